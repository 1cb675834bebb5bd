"""
Application profiles and queues: what holds for a job, and what isn't allowed.
"""

from __future__ import annotations

from typing import Any

import pytest

from domain.commands import (
    DefineCluster,
    DefineProfile,
    RemoveLimit,
    RemoveProfile,
    RemoveQueue,
    SwitchJob,
)
from domain.errors import NotFound, Refused
from domain.jobs import EnvironmentVariable, ExitRules, JobLimits, Program
from domain.profiles import ProfileSpec
from domain.resreq.merge import Mark, QueueResreq, ReservationRange
from tests.builders import MB_MILLI, SECOND_US, some_settings
from tests.projections.scheduling.policies import limit, profile, queue
from tests.projections.scheduling.preempting import again
from tests.projections.scheduling.test_limits import decided
from tests.scenario import Scenario


def submit(scenario: Scenario, name: str, **fields: Any) -> None:
    """
    Submit a job that uses the profile "app".
    """
    scenario.submit(name, profile="app", **fields)


def test_a_default_holds_where_the_job_says_nothing(scenario: Scenario) -> None:
    """
    And gives way where it says something.
    """
    scenario.hosts("h1 slots=8 mem_mb=1000")
    profile(scenario, "app", resreq=("rusage[mem=600]",), tasks_min=2, run_limit_us=5 * SECOND_US)
    submit(scenario, "A")
    submit(scenario, "B", resreq=("rusage[mem=300]",), tasks_min=3, tasks_max=3)

    assert decided(scenario) == ["A dispatched: h1*2", "B dispatched: h1*3"]
    assert scenario.state.run_limit_us(scenario.job("A")) == 5 * SECOND_US


@pytest.mark.parametrize("field", ["pre_exec", "post_exec"])
@pytest.mark.parametrize(
    ("rules", "own", "rule"),
    [
        ({"allows_job_exec": False}, "mine", "isn't allowed by the job's profile"),
        ({"allows_job_exec": False}, "", ""),
        ({"exec_mark": Mark.FIXED}, "mine", "is fixed by the job's profile"),
        ({"exec_mark": Mark.FIXED}, "theirs", ""),
        ({"exec_mark": Mark.FIXED}, "", ""),
        ({}, "mine", ""),
    ],
)
def test_a_profile_says_whether_jobs_have_commands_around_their_own(
    scenario: Scenario, rules: dict[str, Any], own: str, rule: str, field: str
) -> None:
    """
    When it is submitted; a waiting job whose profile forbids it later waits, and says so.
    """
    scenario.hosts("h1")
    program = Program(argv=("true",), **{field: own})
    profile(scenario, "app", **{field: "theirs"}, **rules)
    if rule:
        with pytest.raises(Refused) as refused:
            submit(scenario, "A", program=program)
        assert (f"program.{field}", rule) == (refused.value.field, refused.value.rule)
        profile(scenario, "app", **{field: "theirs"})
    submit(scenario, "A", program=program)
    profile(scenario, "app", **{field: "theirs"}, **rules)

    decided_now = "A pended: never: JOB_NOT_ALLOWED" if rule else "A dispatched: h1*1"
    assert [decided_now] == scenario.session()


@pytest.mark.parametrize(
    ("most", "usual", "own", "holds"),
    [
        (None, None, None, None), (None, 20, None, 20), (60, None, None, 60), (60, 20, None, 20),
        (60, 20, 40, 40), (60, None, 40, 40), (None, 20, 40, 40),
    ],
)  # fmt: skip
def test_a_job_that_names_no_run_limit_has_its_queues(
    scenario: Scenario, most: int | None, usual: int | None, own: int | None, holds: int | None
) -> None:
    """
    The default, else the longest: nobody gets past a queue's run limit by naming none.
    """
    given = {"run_limit_max_us": most, "run_limit_default_us": usual}
    seconds = {name: each and each * SECOND_US for name, each in given.items()}
    queue(scenario, **{name: each for name, each in seconds.items() if each is not None})
    scenario.hosts("h1")
    scenario.submit("A", run_limit_us=own and own * SECOND_US)
    scenario.session()
    assert (holds and holds * SECOND_US) == scenario.state.run_limit_us(scenario.job("A"))

    scenario.pass_time(3_600)

    ended = ["A kill ordered on h1: TERM_RUNLIMIT"] if holds else []
    assert ended == scenario.session()


@pytest.mark.parametrize(
    ("theirs", "own", "field"),
    [
        ({"tasks_min": 2, "tasks_mark": Mark.FIXED}, {"tasks_min": 3, "tasks_max": 3}, "tasks"),
        ({"run_limit_us": 5, "run_limit_mark": Mark.FIXED}, {"run_limit_us": 6}, "run_limit_us"),
        ({"rerunnable": True, "rerunnable_mark": Mark.FIXED}, {"rerunnable": False}, "rerunnable"),
        (
            {"exits": ExitRules(requeue=(9,)), "exits_mark": Mark.FIXED},
            {"exits": ExitRules(requeue=(8,))},
            "exits",
        ),
        (
            {"limits": JobLimits(memory_kib=5), "limits_mark": Mark.FIXED},
            {"limits": JobLimits(memory_kib=6)},
            "limits.memory_kib",
        ),
        (
            {"env": (EnvironmentVariable(name="X", value="1"),), "env_mark": Mark.FIXED},
            {"program": Program(env=(EnvironmentVariable(name="X", value="2"),))},
            "env X",
        ),
        (
            {"resreq": ("rusage[mem=600]",), "resreq_mark": Mark.FIXED},
            {"resreq": ("rusage[mem=300]",)},
            "resreq",
        ),
    ],
)
def test_a_fixed_value_cant_be_said_otherwise(
    scenario: Scenario, theirs: dict[str, Any], own: dict[str, Any], field: str
) -> None:
    """
    Each is refused by its name; without saying it the job has it.
    """
    scenario.hosts("h1 slots=8 mem_mb=1000")
    profile(scenario, "app", **theirs)

    with pytest.raises(Refused, match="fixed by the job's profile") as refused:
        submit(scenario, "A", **own)
    assert refused.value.field == field

    submit(scenario, "B")
    assert scenario.states() == {"B": "PEND"}


def test_a_select_is_anded_to_the_jobs_own(scenario: Scenario) -> None:
    """
    Both must match.
    """
    scenario.hosts("h1 slots=4 big=yes", "h2 slots=4 fast=yes", "h3 slots=4 big=yes fast=yes")
    profile(scenario, "app", resreq=("select[big]",), resreq_mark=Mark.SELECT)
    submit(scenario, "A", resreq=("select[fast]",))

    assert decided(scenario) == ["A dispatched: h3*1"]


def test_only_a_requirement_can_be_anded(scenario: Scenario) -> None:
    """
    Anything else has no AND.
    """
    spec = ProfileSpec(run_limit_us=5, run_limit_mark=Mark.SELECT)

    with pytest.raises(Refused):
        scenario.command(DefineProfile(profile="app", spec=spec))


def test_variables_and_bounds_are_merged_one_by_one(scenario: Scenario) -> None:
    """
    A job's own go before defaults; others are added.
    """
    variables = tuple(EnvironmentVariable(name=name, value="theirs") for name in "XY")
    profile(scenario, "app", env=variables, limits=JobLimits(memory_kib=5, processes=7))
    own = Program(argv=("true",), env=(EnvironmentVariable(name="X", value="own"),))
    submit(scenario, "A", program=own, limits=JobLimits(memory_kib=9))

    values = scenario.state.values_of(scenario.job("A"))
    assert values.program is not None
    assert {each.name: each.value for each in values.program.env} == {"X": "own", "Y": "theirs"}
    assert values.limits == JobLimits(memory_kib=9, processes=7)


def test_an_unknown_profile_is_refused_and_a_used_one_stays(scenario: Scenario) -> None:
    """
    One clear error each.
    """
    with pytest.raises(Refused, match="profile"):
        submit(scenario, "A")
    profile(scenario, "app")
    submit(scenario, "A")

    with pytest.raises(Refused, match="must not be used"):
        scenario.command(RemoveProfile(profile="app"))


def test_a_changed_profile_holds_for_waiting_jobs(scenario: Scenario) -> None:
    """
    Effective values are merged live; a conflict that comes later makes the job wait for ever.
    """
    scenario.hosts("h1 slots=1")
    profile(scenario, "app")
    submit(scenario, "A", tasks_min=2, tasks_max=2)
    decided(scenario)
    profile(scenario, "app", tasks_min=1, tasks_mark=Mark.FIXED)

    assert decided(scenario) == ["A pended: never: JOB_NOT_ALLOWED"]


@pytest.mark.parametrize(
    ("theirs", "reason"),
    [("rusage[mem=50]", "never: JOB_NOT_ALLOWED"), ("rusage[mem=10]", "slots short on h1")],
)
def test_a_requirement_that_is_fixed_later_is_none_for_jobs_that_have_another(
    theirs: str, reason: str, scenario: Scenario
) -> None:
    """
    It was asked once without a check and remembered as allowed; the job started with its own.
    """
    scenario.hosts("h1 slots=1 mem_mb=100")
    profile(scenario, "app")
    submit(scenario, "A", resreq=("rusage[mem=10]",))
    scenario.session()
    submit(scenario, "B", resreq=("rusage[mem=10]",))
    profile(scenario, "app", resreq=(theirs,), resreq_mark=Mark.FIXED)
    scenario.session()
    assert reason == scenario.reasons("B")
    scenario.core = again(scenario)

    assert [] == scenario.session()


# ------------------------------------------------------------------------------------------- queues


@pytest.mark.parametrize(
    ("fields", "asked", "tasks"),
    [
        ({"tasks_min": 2, "tasks_default": 4, "tasks_max": 8}, {}, (4, 4)),
        ({"tasks_min": 2, "tasks_max": 8}, {}, (2, 2)),
        ({"tasks_max": 8}, {}, (1, 1)),
        ({"tasks_min": 2, "tasks_max": 8}, {"tasks_min": 1, "tasks_max": 9}, (2, 8)),
        ({"tasks_min": 2, "tasks_max": 8}, {"tasks_min": 3, "tasks_max": 3}, (3, 3)),
        ({"tasks_min": 2, "tasks_max": 8}, {"names_tasks": True}, None),
        ({"tasks_min": 2, "tasks_max": 8}, {"tasks_min": 9, "tasks_max": 9}, None),
    ],
)
def test_a_queues_range_of_tasks(
    scenario: Scenario,
    fields: dict[str, int],
    asked: dict[str, Any],
    tasks: tuple[int, int] | None,
) -> None:
    """
    A job that names none gets the default, a range is clipped, what lies outside is refused.
    """
    queue(scenario, **fields)
    if tasks is None:
        with pytest.raises(Refused, match="within the queue's range"):
            scenario.submit("A", **asked)
        return
    scenario.submit("A", **asked)

    values = scenario.state.values_of(scenario.job("A"))
    assert tasks == (values.tasks_min, values.tasks_max)


def test_a_waiting_job_that_a_new_range_leaves_out_waits_for_ever(scenario: Scenario) -> None:
    """
    It was allowed when it was submitted.
    """
    scenario.hosts("h1 slots=1")
    scenario.jobs("A tasks=2")
    decided(scenario)
    queue(scenario, tasks_max=1)
    decided(scenario)

    assert scenario.reasons("A") == "never: QUE_PROCLIMIT"


@pytest.mark.parametrize(
    "fields",
    [
        {"tasks_min": 3, "tasks_max": 2},
        {"tasks_min": 3, "tasks_default": 2},
        {"run_limit_max_us": 3, "run_limit_default_us": 4},
    ],
)
def test_a_queue_that_contradicts_itself_is_refused(
    scenario: Scenario, fields: dict[str, int]
) -> None:
    """
    One clear error at the definition, not at each job.
    """
    with pytest.raises(Refused):
        queue(scenario, **fields)


def test_bounds_are_told_in_the_units_that_people_type(scenario: Scenario) -> None:
    """
    Nobody typed microseconds or KiB, and a refusal that names no bound helps nobody.
    """
    hour = 3_600 * SECOND_US
    with pytest.raises(Refused, match=r"must not be above run_limit_max_us, 1h \(given: '2h'\)"):
        queue(scenario, run_limit_max_us=hour, run_limit_default_us=2 * hour)
    most = JobLimits(memory_kib=512_000, cpu_us=90 * SECOND_US, processes=5)
    queue(scenario, run_limit_max_us=hour, job_limits_max=most)

    with pytest.raises(Refused, match=r"must be at most the queue's 1h \(given: '2h'\)"):
        scenario.submit("A", run_limit_us=2 * hour)
    for over, words in (
        (JobLimits(memory_kib=2 << 20), r"queue's 500MB \(given: '2GB'\)"),
        (JobLimits(cpu_us=hour), r"queue's 1m30s \(given: '1h'\)"),
        (JobLimits(processes=6), r"queue's 5 \(given: '6'\)"),
    ):
        with pytest.raises(Refused, match=words):
            scenario.submit("A", limits=over)


def test_exclusive_jobs_need_a_queue_that_allows_them(scenario: Scenario) -> None:
    """
    LSF's EXCLUSIVE.
    """
    queue(scenario, allows_exclusive=False)

    with pytest.raises(Refused, match="is_exclusive"):
        scenario.submit("A", is_exclusive=True)


def test_bounds_above_the_queues_are_refused_and_defaults_fill_in(scenario: Scenario) -> None:
    """
    Each bound by itself; without a default the ceiling holds.
    """
    queue(
        scenario,
        job_limits_max=JobLimits(memory_kib=100, processes=5),
        job_limits_default=JobLimits(memory_kib=50),
    )
    with pytest.raises(Refused, match=r"limits\.memory_kib"):
        scenario.submit("A", limits=JobLimits(memory_kib=101))
    scenario.submit("B")

    assert scenario.state.values_of(scenario.job("B")).limits == JobLimits(
        memory_kib=50, processes=5
    )


def test_a_queue_has_hosts_with_preference(scenario: Scenario) -> None:
    """
    Others are no candidates; preferred ones come first; the job's own wish goes before.
    """
    scenario.hosts("h1 slots=1", "h2 slots=1", "h3 slots=1")
    queue(scenario, hosts="h2+1 h3+2")
    scenario.jobs("A", "B hosts=h2", "C")

    assert decided(scenario) == [
        "A dispatched: h3*1",
        "B dispatched: h2*1",
        "C pended: HOST_QUE_MEMB on h1; slots short on h2, h3",
    ]


def test_others_are_the_hosts_that_a_queue_doesnt_name(scenario: Scenario) -> None:
    """
    ``h3+1 others ~h1``: every host but h1, h3 first.
    """
    scenario.hosts("h1 slots=1", "h2 slots=1", "h3 slots=1")
    queue(scenario, hosts="h3+1 others ~h1")
    scenario.jobs("A", "B", "C")

    assert decided(scenario) == [
        "A dispatched: h3*1",
        "B dispatched: h2*1",
        "C pended: HOST_QUE_MEMB on h1; slots short on h2, h3",
    ]


def test_a_queue_names_which_host_must_be_first(scenario: Scenario) -> None:
    """
    ``h2!``: the job's command runs there.
    """
    scenario.hosts("h1 slots=2", "h2 slots=2")
    queue(scenario, hosts="h1 h2!")
    scenario.jobs("A tasks=4")

    assert decided(scenario) == ["A dispatched: h2*2 h1*2"]


def test_a_queue_bounds_the_hosts_of_a_job(scenario: Scenario) -> None:
    """
    LSF's HOSTLIMIT_PER_JOB.
    """
    scenario.hosts("h1 slots=2", "h2 slots=2", "h3 slots=2")
    queue(scenario, hosts_max=2)
    scenario.jobs("A tasks=5", "B tasks=4")

    assert decided(scenario)[1:] == ["B dispatched: h1*2 h2*2"]


def test_a_started_job_moves_only_to_a_queue_that_has_its_hosts(scenario: Scenario) -> None:
    """
    LSF's bswitch.
    """
    scenario.hosts("h1 slots=1", "h2 slots=1")
    scenario.queue("b", 30)
    queue(scenario, "b", hosts="h2")
    scenario.jobs("A", "B")
    decided(scenario)

    with pytest.raises(Refused, match="h1"):
        scenario.command(SwitchJob(job_id=scenario.ids["A"], queue="b"))
    scenario.command(SwitchJob(job_id=scenario.ids["B"], queue="b"))


def test_a_queue_caps_what_counts_of_a_jobs_own_priority(scenario: Scenario) -> None:
    """
    Above the cap the older job goes first.
    """
    scenario.hosts("h1 slots=1")
    queue(scenario, user_priority_max=5)
    scenario.jobs("A priority=5", "B priority=50")

    assert decided(scenario)[0] == "A dispatched: h1*1"


def test_a_queues_requirement_means_nothing_unless_the_cluster_says_so(
    scenario: Scenario,
) -> None:
    """
    Profiles say what jobs need; ``queue_resreq: merge`` gives LSF's way.
    """
    scenario.hosts("h1 slots=4", "h2 slots=4 big=yes")
    queue(scenario, resreq=("select[big]",))
    scenario.jobs("A")
    assert decided(scenario) == ["A dispatched: h1*1"]

    scenario.command(DefineCluster(settings=some_settings(queue_resreq=QueueResreq.MERGE)))
    scenario.jobs("B")
    assert decided(scenario) == ["B dispatched: h2*1"]


def test_what_jobs_may_reserve_is_bound_by_the_queue(scenario: Scenario) -> None:
    """
    LSF's RESRSV_LIMIT.
    """
    scenario.hosts("h1 slots=4 mem_mb=9000")
    scenario.command(DefineCluster(settings=some_settings(queue_resreq=QueueResreq.MERGE)))
    bound = ReservationRange(resource="mem", least_milli=100 * MB_MILLI, most_milli=500 * MB_MILLI)
    queue(scenario, reservations=(bound,))

    with pytest.raises(Refused, match="must reserve between"):
        scenario.submit("A", resreq=("rusage[mem=600]",))
    scenario.submit("B", resreq=("rusage[mem=300]",))


def test_a_queue_is_removed_when_nothing_is_in_it(scenario: Scenario) -> None:
    """
    Neither the default one nor one that a job or a limit names.
    """
    scenario.queue("other", 30)
    scenario.hosts("h1 slots=1")
    limit(scenario, "l1", queues="other", slots=1)
    for name in ("normal", "other"):
        with pytest.raises(Refused):
            scenario.command(RemoveQueue(queue=name))
    scenario.command(RemoveLimit(limit="l1"))
    scenario.command(RemoveQueue(queue="other"))

    with pytest.raises(NotFound):
        scenario.jobs("A queue=other")
    scenario.jobs("B")
    assert decided(scenario) == ["B dispatched: h1*1"]


def test_alternatives_of_a_profile_that_is_changed_open_at_their_moment(
    scenario: Scenario,
) -> None:
    """
    A job that waits already is woken for those that it has got since.
    """
    scenario.hosts("h1 slots=4")
    profile(scenario, "p", resreq=("select[maxslots>9]",))
    scenario.submit("A", profile="p")
    scenario.session()
    profile(scenario, "p", resreq=("{select[maxslots>9]} || {select[maxslots>1]}@10",))
    scenario.session()
    moment = scenario.core.next_wakeup(scenario.now_us)
    assert moment == scenario.job("A").submit_us + 600 * SECOND_US
    scenario.pass_time(600)
    scenario.session()

    assert "RUN" == scenario.states()["A"]
