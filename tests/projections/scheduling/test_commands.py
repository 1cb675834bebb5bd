"""
Commands about jobs: what each state allows, and whose word goes before whose.
"""

from __future__ import annotations

import pytest

from domain.amounts import MEM, Amount, HostResource, InstanceUnit
from domain.arrays import ArraySpec, IndexRange
from domain.commands import (
    DefineCluster,
    JoinWorker,
    MarkUnreachable,
    ModifyJob,
    RequeueJob,
    ResumeJob,
    StartScheduler,
    StopJob,
    SubmitJob,
    SwitchJob,
    WorkerReport,
)
from domain.errors import Conflict, Refused
from domain.events.jobs import JobKillOrdered, JobModified, JobSwitched
from domain.jobs import Program
from tests.builders import MB_MILLI, SECOND_US, a_job, some_settings
from tests.projections.scheduling.policies import queue
from tests.projections.scheduling.preempting import licence
from tests.scenario import Scenario


def refused(scenario: Scenario, command: object, actor: str = "alice") -> Refused:
    """
    Return why a command is refused; nothing may have changed.
    """
    before = scenario.core.snapshot()
    with pytest.raises(Refused) as found:
        scenario.command(command, actor)
    assert before == scenario.core.snapshot()
    return found.value


# ------------------------------------------------------------------------------------------- kills


def test_a_run_limit_warns_before_it_kills(scenario: Scenario) -> None:
    """
    SIGUSR2 lets a program save its work; a kill by somebody begins with SIGTERM.
    """
    scenario.hosts("h1")
    scenario.submit("A", run_limit_us=60 * SECOND_US)
    scenario.jobs("B")
    scenario.session()
    scenario.pass_time(60)
    scenario.kill("B")
    scenario.session()

    orders = [each.event for each in scenario.log if isinstance(each.event, JobKillOrdered)]
    assert [
        ("TERM_RUNLIMIT", ("SIGUSR2", "SIGINT", "SIGTERM", "SIGKILL")),
        ("TERM_OWNER", ("SIGTERM", "SIGKILL")),
    ] == [(order.why, order.signals) for order in orders]


@pytest.mark.parametrize("code", [0, 1])
def test_an_ended_job_can_be_neither_killed_nor_stopped(scenario: Scenario, code: int) -> None:
    """
    DONE and EXIT are for good.
    """
    scenario.hosts("h1")
    scenario.jobs("A")
    scenario.session()
    scenario.finish("A", exit_code=code)
    state = scenario.states()["A"]

    with pytest.raises(Refused) as found:
        scenario.kill("A")
    assert ("must not have ended", f"1 is {state}") == (found.value.rule, found.value.value)
    for command in (StopJob(job_id="1"), RequeueJob(job_id="1"), ResumeJob(job_id="1")):
        assert f"1 is {state}" == refused(scenario, command).value


# ----------------------------------------------------------------------------------- stops, resumes


@pytest.mark.parametrize("state", ["PEND", "RUN"])
def test_an_administrator_takes_over_a_users_stop(scenario: Scenario, state: str) -> None:
    """
    Then its user can't let it go on; who stops it again changes nothing.
    """
    scenario.hosts("h1")
    scenario.jobs("A")
    if state == "RUN":
        scenario.session()
        scenario.start("A")
    for actor in ("alice", "root"):
        scenario.command(StopJob(job_id="1"), actor)
    if state == "RUN":
        scenario.session()
        scenario.suspended("A")
    assert [] == scenario.command(StopJob(job_id="1"), "alice")
    assert [] == scenario.command(StopJob(job_id="1"), "root")

    found = refused(scenario, ResumeJob(job_id="1"))
    assert "was stopped by an administrator, who must resume it" == found.rule
    assert scenario.command(ResumeJob(job_id="1"), "root")


@pytest.mark.parametrize("state", ["PEND", "PSUSP", "UNKWN", "DONE"])
def test_only_started_jobs_go_back_to_pending(scenario: Scenario, state: str) -> None:
    """
    Of a lost host's job nobody knows whether it runs: another attempt beside it would be a second.
    """
    scenario.hosts("h1 slots=1")
    scenario.jobs("A hold=1" if state == "PSUSP" else "A")
    if state in ("UNKWN", "DONE"):
        scenario.session()
    if state == "UNKWN":
        scenario.command(MarkUnreachable(worker="h1", incarnation=1, silent_us=1), actor="")
    if state == "DONE":
        scenario.finish("A")
    assert {"A": state} == scenario.states()

    assert f"1 is {state}" == refused(scenario, RequeueJob(job_id="1")).value


# --------------------------------------------------------------------------------------- priorities


def test_a_job_without_a_priority_has_half_of_the_highest(scenario: Scenario) -> None:
    """
    LSF's MAX_USER_PRIORITY: users may put jobs behind those of which nobody said anything, too.
    """
    settings = some_settings(user_priority_max=100)
    scenario.command(DefineCluster(settings=settings))
    scenario.hosts("h1 slots=9")
    scenario.jobs("A priority=49", "B", "C priority=51", "D priority=50")

    assert ["C", "B", "D", "A"] == [words.split()[0] for words in scenario.session()]


def test_a_priority_above_the_highest_is_refused(scenario: Scenario) -> None:
    """
    When it is submitted and when it is changed; one that is taken away is half of the highest.
    """
    scenario.command(DefineCluster(settings=some_settings(user_priority_max=100)))
    scenario.jobs("A priority=100")
    spec = scenario.job("A").spec
    for command in (
        SubmitJob(spec=spec.model_copy(update={"user_priority": 101})),
        ModifyJob(job_id="1", spec=spec.model_copy(update={"user_priority": 101})),
    ):
        found = refused(scenario, command)
        assert ("user_priority", "must be at most 100") == (found.field, found.rule)

    none = spec.model_copy(update={"user_priority": 0})
    scenario.command(ModifyJob(job_id="1", spec=none))

    assert 50 == scenario.job("A").spec.user_priority


# -------------------------------------------------------------------------------- switch and modify


def test_a_switched_job_comes_behind_the_jobs_of_its_new_queue(scenario: Scenario) -> None:
    """
    As if it had just been submitted there, also when it was put to the top before.
    """
    queue(scenario, "other", priority=30)
    scenario.hosts("h1 slots=9")
    scenario.jobs("A")
    scenario.pass_time(1)
    scenario.jobs("B queue=other")
    scenario.pass_time(1)
    scenario.command(SwitchJob(job_id="1", queue="other"))
    scenario.jobs("C queue=other")

    assert ["B", "A", "C"] == [words.split()[0] for words in scenario.session()]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("user", "bob"),
        ("array", ArraySpec(ranges=(IndexRange(start=1, end=2),))),
    ],
)
@pytest.mark.parametrize("is_started", [False, True])
def test_whose_job_it_is_and_which_elements_it_has_cannot_be_modified(
    scenario: Scenario, field: str, value: object, *, is_started: bool
) -> None:
    """
    Another's job would be another job, and other elements would be other jobs.
    """
    scenario.hosts("h1")
    scenario.jobs("A")
    if is_started:
        scenario.session()
    spec = scenario.job("A").spec.model_copy(update={field: value})

    found = refused(scenario, ModifyJob(job_id="1", spec=spec))

    assert field == found.field
    assert found.rule.startswith("can't be changed")


def test_a_pending_job_is_switched_by_a_modification_and_changed_in_one_step(
    scenario: Scenario,
) -> None:
    """
    LSF's bmod -q; the queue alone is a switch as any other.
    """
    queue(scenario, "other")
    scenario.jobs("A", "B")
    spec = scenario.job("A").spec.model_copy(update={"queue": "other", "name": "new"})
    only = scenario.job("B").spec.model_copy(update={"queue": "other"})

    both = scenario.command(ModifyJob(job_id="1", spec=spec))
    one = scenario.command(ModifyJob(job_id="2", spec=only))

    assert [JobSwitched, JobModified] == [type(each.event) for each in both]
    assert [JobSwitched] == [type(each.event) for each in one]
    assert ("other", "new") == (scenario.job("A").spec.queue, scenario.job("A").spec.name)


@pytest.mark.parametrize(
    ("changes", "field", "hint"),
    [
        ({"queue": "other"}, "queue", "xce switch QUEUE 1"),
        ({"tasks_max": 2}, "tasks_max", "xce requeue 1"),
        ({"program": Program(argv=("true",), stdin="/in", stdout="/o")}, "program.stdin", "requ"),
    ],
)
def test_what_cannot_be_changed_of_a_started_job_is_named_with_what_does_it(
    scenario: Scenario, changes: dict[str, object], field: str, hint: str
) -> None:
    """
    Of a program the part is named that nothing changes any more; its output may go elsewhere.
    """
    queue(scenario, "other")
    scenario.hosts("h1")
    scenario.submit("A", program=Program(argv=("true",)))
    scenario.session()
    spec = scenario.job("A").spec.model_copy(update=changes)

    found = refused(scenario, ModifyJob(job_id="1", spec=spec))

    assert (field, "can't be changed once the job has started") == (found.field, found.rule)
    assert hint in str(found.hint)


def test_a_started_job_cannot_reserve_more_of_what_hosts_share(scenario: Scenario) -> None:
    """
    Others have taken their share by what was left.
    """
    scenario.hosts("h1")
    licence(scenario, total=3, release=False)
    scenario.submit("A", resreq=("rusage[lic=1]",))
    scenario.session()
    spec = scenario.job("A").spec.model_copy(update={"resreq": ("rusage[lic=2]",)})

    found = refused(scenario, ModifyJob(job_id="1", spec=spec))

    assert "can't be changed once the job has started" == found.rule


def test_a_started_job_cannot_reserve_other_named_units(scenario: Scenario) -> None:
    """
    Its program was told which ones it has.
    """
    units = tuple(InstanceUnit(name=str(number)) for number in range(2))
    resource = HostResource(name="gpu", total_milli=2_000, units=units)
    scenario.command(JoinWorker(worker="h1", slots=2, resources=(resource,)), actor="")
    scenario.submit("A", resreq=("rusage[gpu=1]",))
    scenario.session()
    spec = scenario.job("A").spec.model_copy(update={"resreq": ("rusage[gpu=2]",)})

    found = refused(scenario, ModifyJob(job_id="1", spec=spec))

    assert "can't be changed once the job has started" == found.rule


# ----------------------------------------------------------------------------------------- workers


def test_a_worker_that_joins_again_begins_with_what_it_has_in_all(scenario: Scenario) -> None:
    """
    What was measured in its former life is no fact any more: it may be another machine.
    """
    scenario.hosts("h1 mem_mb=1000")
    free = (Amount(resource=MEM, milli=10 * MB_MILLI),)
    scenario.command(WorkerReport(worker="h1", incarnation=1, load=free), actor="")
    scenario.submit("A", resreq=("rusage[mem=500]",))
    assert ["A pended: mem short on h1"] == scenario.session()

    scenario.hosts("h1 mem_mb=1000")

    assert ["A dispatched: h1*1"] == scenario.session()


def test_the_grace_time_of_a_lost_host_counts_from_the_schedulers_own_start() -> None:
    """
    While it was away it heard nobody: a host may have been silent only towards a dead scheduler.
    """
    scenario = Scenario(some_settings(lost_grace_us=60 * SECOND_US))
    scenario.hosts("h1")
    scenario.jobs("A")
    scenario.session()
    scenario.command(MarkUnreachable(worker="h1", incarnation=1, silent_us=1), actor="")
    scenario.now_us = 50 * SECOND_US
    started = next(each.event for each in scenario.log if each.stream == "scheduler")
    fields = started.model_dump() | {"epoch": 2}
    names = StartScheduler.model_fields
    scenario.command(StartScheduler(**{name: fields[name] for name in names if name in fields}))

    scenario.now_us = 109 * SECOND_US
    assert [] == scenario.session()
    scenario.now_us = 110 * SECOND_US

    assert ["A ended: TERM_LOST_HOST"] == scenario.session()


# -------------------------------------------------------------------------------------------- keys


def test_a_key_gives_one_job_and_no_other_content(scenario: Scenario) -> None:
    """
    A client that heard no answer asks again; one that uses a key twice by mistake is told.
    """
    spec = a_job(name="A").spec
    command = SubmitJob(spec=spec, key="k", digest="d")
    scenario.command(command)

    assert [] == scenario.command(command)
    assert "job:0000000001" == scenario.state.stored.keys["k"].stream
    with pytest.raises(Conflict, match="the key was used for another submission"):
        scenario.command(SubmitJob(spec=spec, key="k", digest="other"))
    assert scenario.command(SubmitJob(spec=spec, key="k2", digest="d"))
    assert 2 == scenario.state.stored.highest_job
