"""
Jobs that an operator has started on named hosts: what is passed over, and what isn't.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from domain.arrays import ArraySpec, IndexRange
from domain.commands import (
    ConfigureWorker,
    DefineUser,
    LeaveWorker,
    MarkUnreachable,
    RequeueJob,
    SetQueue,
)
from domain.errors import Refused
from domain.jobs import HostChoice
from domain.thresholds import LoadThreshold
from domain.users import UserSpec
from domain.windows import parse_windows
from domain.workers import HostSettings
from projections.scheduling.derived import derived
from projections.scheduling.status import why_waiting
from tests.builders import SECOND_US
from tests.projections.scheduling.policies import limit, queue
from tests.projections.scheduling.preempting import again, licence, running
from tests.projections.scheduling.test_loads import report
from tests.scenario import Scenario

Bar = Callable[[Scenario], None]
BARS: dict[str, Bar] = {}
"""What keeps the job ``A`` from starting on h1."""


def bars(bar: Bar) -> Bar:
    """
    Note what an operator passes over.
    """
    BARS[bar.__name__] = bar
    return bar


@bars
def no_slot_is_free(scenario: Scenario) -> None:
    scenario.jobs("X tasks=2")
    scenario.session()
    scenario.jobs("A")


@bars
def others_come_first(scenario: Scenario) -> None:
    scenario.jobs("X tasks=2", "Y tasks=2", "A")
    scenario.session()


@bars
def its_time_has_not_come(scenario: Scenario) -> None:
    scenario.submit("A", begin_us=9_000 * SECOND_US)


@bars
def its_parent_waits(scenario: Scenario) -> None:
    scenario.jobs("P hold=1")
    scenario.submit("A", dependency_text="done(P)")


@bars
def its_queue_is_inactive(scenario: Scenario) -> None:
    scenario.jobs("A")
    scenario.command(SetQueue(queue="normal", to="inactive"))


@bars
def its_queue_is_outside_its_windows(scenario: Scenario) -> None:
    queue(scenario, dispatch_windows=parse_windows("8:00-9:00"))
    scenario.jobs("A")


@bars
def new_jobs_wait(scenario: Scenario) -> None:
    queue(scenario, new_job_delay_us=100 * SECOND_US)
    scenario.jobs("A")


@bars
def its_user_may_have_no_slots(scenario: Scenario) -> None:
    scenario.jobs("A")
    scenario.command(DefineUser(user="alice", spec=UserSpec(slots_max=0)))


@bars
def a_limit_is_reached(scenario: Scenario) -> None:
    scenario.jobs("A")
    limit(scenario, "none", slots=0)


@bars
def a_limit_of_the_host_is_reached(scenario: Scenario) -> None:
    queue(scenario, host_slots=1)
    scenario.jobs("X")
    scenario.session()
    scenario.jobs("A")


@bars
def its_array_has_started_enough(scenario: Scenario) -> None:
    array = ArraySpec(ranges=(IndexRange(start=1, end=2),), started_max=1)
    scenario.submit("X", array=array)
    scenario.session()
    scenario.ids["A"] = scenario.ids["X[2]"]


@bars
def the_host_is_closed(scenario: Scenario) -> None:
    scenario.close("h1")
    scenario.jobs("A")


@bars
def the_host_is_locked_and_shut(scenario: Scenario) -> None:
    settings = HostSettings(is_locked=True, dispatch_windows=parse_windows("8:00-9:00"))
    scenario.command(ConfigureWorker(worker="h1", settings=settings))
    scenario.jobs("A")


@bars
def the_load_is_unknown(scenario: Scenario) -> None:
    settings = HostSettings(thresholds=(LoadThreshold(index="r1m", sched_milli=1),))
    scenario.command(ConfigureWorker(worker="h1", settings=settings))
    scenario.jobs("A")


@bars
def its_stop_condition_holds_there(scenario: Scenario) -> None:
    queue(scenario, stop_condition="r1m > 2")
    report(scenario, "h1", r1m=3_000)
    scenario.jobs("A")


@bars
def the_host_does_not_match(scenario: Scenario) -> None:
    scenario.submit("A", resreq=("select[mem>90000] span[hosts=1] order[-slots]",))


@bars
def another_host_is_asked_for(scenario: Scenario) -> None:
    scenario.hosts("h2")
    scenario.close("h2")
    scenario.submit("A", hosts=(HostChoice(host="h2"),))


@pytest.mark.parametrize("plain", [False, True], ids=["fast", "plain"])
@pytest.mark.parametrize("bar", BARS)
def test_an_operator_passes_over(bar: str, *, plain: bool) -> None:
    """
    What is policy, not fact: without the operator the job waits, with them it runs.
    """
    scenario = Scenario(plain=plain)
    scenario.hosts("h1 slots=2 mem_mb=400")
    BARS[bar](scenario)
    scenario.session()
    assert "PEND" == scenario.states()["A"]

    scenario.run("A", "h1")

    name = "X[2]" if "A" not in scenario.job("A").spec.name else "A"
    assert f"{name} dispatched: h1*1" in scenario.session()
    assert scenario.job("A").is_forced
    assert derived(scenario.state) == derived(again(scenario).state)
    scenario.finish("A")
    assert not scenario.job("A").is_forced
    assert derived(scenario.state) == derived(again(scenario).state)


# -------------------------------------------------------------------------- what isn't passed over


def test_amounts_that_it_reserves_must_be_there(scenario: Scenario) -> None:
    """
    Memory given twice would end somebody's job; it starts as soon as the memory is free.
    """
    scenario.hosts("h1 slots=4 mem_mb=400", "h2 slots=4 mem_mb=4000")
    scenario.submit("X", resreq=("rusage[mem=300]",))
    scenario.session()
    scenario.submit("A", resreq=("rusage[mem=200]",))

    scenario.run("A", "h1")

    assert ["A pended: mem short on h1"] == scenario.session()
    assert ["HOST_JOB_RUSAGE"] == [each.code for each in why_waiting(*of(scenario, "A"))[1]]
    assert [] == scenario.session()
    scenario.finish("X")
    assert ["A dispatched: h1*1"] == scenario.session()


def of(scenario: Scenario, name: str) -> tuple:  # type: ignore[type-arg]
    """
    Return what tells why a job waits.
    """
    return scenario.state, scenario.job(name)


def test_shared_amounts_must_be_there(scenario: Scenario) -> None:
    """
    A licence is a fact outside of the cluster.
    """
    scenario.hosts("h1 slots=4")
    licence(scenario, total=1, release=False)
    scenario.submit("X", resreq=("rusage[lic=1]",))
    scenario.session()
    scenario.submit("A", resreq=("rusage[lic=1]",))

    scenario.run("A", "h1")

    assert ["A pended: RES_SHORT lic"] == scenario.session()
    scenario.finish("X")
    assert ["A dispatched: h1*1"] == scenario.session()


def test_a_lost_host_is_waited_for(scenario: Scenario) -> None:
    """
    Nobody there would start it; named when it is lost it is refused at once.
    """
    scenario.hosts("h1", "h2")
    scenario.jobs("A", "B")
    scenario.set_queue("normal", "inactive")
    scenario.run("A", "h1")
    scenario.command(MarkUnreachable(worker="h1", incarnation=1, silent_us=1), actor="")

    assert ["A pended: SBD_UNREACH on h1"] == scenario.session()
    with pytest.raises(Refused) as refused:
        scenario.run("B", "h1")
    assert ("hosts", "must be reached", "h1") == (
        refused.value.field, refused.value.rule, refused.value.value
    )  # fmt: skip
    scenario.command(LeaveWorker(worker="h2", incarnation=1), actor="")
    with pytest.raises(Refused):
        scenario.run("B", "h2")


def test_exclusive_jobs_stay_alone(scenario: Scenario) -> None:
    """
    In both directions: neither is another job put beside one, nor one beside another.
    """
    scenario.hosts("h1 slots=4", "h2 slots=4")
    queue(scenario, allows_exclusive=True)
    scenario.submit("X", is_exclusive=True)
    scenario.session()
    scenario.set_queue("normal", "inactive")
    scenario.jobs("A", "B")
    scenario.submit("Y", is_exclusive=True)
    scenario.run("B", "h2")
    scenario.session()

    scenario.run("A", "h1")
    scenario.run("Y", "h2")

    assert [
        "A pended: HOST_EXCLUSIVE on h1",
        "Y pended: HOST_NONEXCLUSIVE on h2",
    ] == scenario.session()
    scenario.finish("X", "B")
    assert ["A dispatched: h1*1", "Y dispatched: h2*1"] == scenario.session()


def test_held_and_started_jobs_are_refused(scenario: Scenario) -> None:
    """
    A user's hold is theirs; what runs runs already.
    """
    scenario.hosts("h1")
    scenario.jobs("A hold=1", "B")
    scenario.session()

    for name, state in (("A", "PSUSP"), ("B", "RUN")):
        with pytest.raises(Refused) as refused:
            scenario.run(name, "h1")
        assert refused.value.value == f"{scenario.ids[name]} is {state}"


# ---------------------------------------------------------------------------------- tasks and hosts


@pytest.mark.parametrize(
    ("hosts", "placed"),
    [
        (("h2",), "h2*4"),
        (("h2*3", "h1"), "h2*3 h1*1"),
        (("h3", "h1*1", "h2*1"), "h3*2 h1*1 h2*1"),
        (("h3", "h2", "h1", "h4"), "h3*1 h2*1 h1*1 h4*1"),
        (("h1*5",), "h1*5"),
    ],
)
def test_tasks_are_spread_as_the_operator_says(
    scenario: Scenario, hosts: tuple[str, ...], placed: str
) -> None:
    """
    The first host named runs the command; hosts without a number share what is left, if it is one.
    """
    scenario.hosts("h1", "h2", "h3", "h4")
    scenario.submit("A", tasks_min=4, tasks_max=5)

    scenario.run("A", *hosts)

    assert [f"A dispatched: {placed}"] == scenario.session()


@pytest.mark.parametrize("hosts", [("h1*3",), ("h1*6",), ("h1", "h2"), ("h1*5", "h2")])
def test_other_counts_of_tasks_are_refused(scenario: Scenario, hosts: tuple[str, ...]) -> None:
    """
    A program that asks for four tasks can't work with three.
    """
    scenario.hosts("h1", "h2")
    scenario.submit("A", tasks_min=4, tasks_max=5)

    with pytest.raises(Refused, match="hosts: must get 4 to 5 tasks together"):
        scenario.run("A", *hosts)


def test_hosts_must_be_known_and_named_once(scenario: Scenario) -> None:
    """
    As in a submission.
    """
    scenario.hosts("h1")
    scenario.jobs("A tasks=2")

    with pytest.raises(Refused, match="must name workers that have joined"):
        scenario.run("A", "h9")
    with pytest.raises(Refused, match="must name each host once"):
        scenario.run("A", "h1", "h1")


def test_members_of_a_compound_share_the_hosts(scenario: Scenario) -> None:
    """
    Each takes what it reserves of the host that it gets.
    """
    scenario.hosts("h1 slots=1 mem_mb=100", "h2 slots=1 mem_mb=400")
    text = "1*{select[mem>9999] rusage[mem=300]} + 2*{rusage[mem=50]}"
    scenario.submit("A", tasks_min=3, tasks_max=3, resreq=(text,))

    scenario.run("A", "h2*1", "h1*2")

    assert ["A dispatched: h2*1 h1*2"] == scenario.session()
    runs = scenario.job("A").allocation.runs  # type: ignore[union-attr]
    assert [300 * 1024 * 1000, 50 * 1024 * 1000] == [run.amounts[0].milli for run in runs]


# -------------------------------------------------------------------------------------------- after


def test_a_wish_survives_a_snapshot(scenario: Scenario) -> None:
    """
    And nobody else starts the job meanwhile.
    """
    scenario.hosts("h1 mem_mb=100", "h2 mem_mb=900")
    scenario.submit("X", resreq=("rusage[mem=50]",))
    scenario.session()
    scenario.submit("A", resreq=("rusage[mem=80]",), begin_us=2 * SECOND_US)
    scenario.run("A", "h1")
    scenario.session()
    scenario.pass_time(10)

    scenario.core = again(scenario)

    assert [] == scenario.session()
    scenario.finish("X")
    assert ["A dispatched: h1*1"] == scenario.session()


def test_a_forced_job_is_not_stopped_for_others(high_and_low: Scenario) -> None:
    """
    As in LSF; put back to pending it is a job like any other.
    """
    scenario = high_and_low
    scenario.hosts("h1 slots=1")
    scenario.jobs("A queue=lo")
    scenario.run("A", "h1")
    scenario.session()
    scenario.start("A")
    scenario.jobs("B queue=hi")
    assert ["B pended: slots short on h1"] == scenario.session()

    scenario.command(RequeueJob(job_id=scenario.ids["A"]))
    scenario.session()
    scenario.end_by("A", 15)
    scenario.session()
    scenario.start("B")
    scenario.finish("B")
    scenario.session()
    assert {"A": "RUN", "B": "DONE"} == scenario.states()
    assert not scenario.job("A").is_forced


def test_a_forced_job_still_obeys_run_windows_and_its_limits(scenario: Scenario) -> None:
    """
    Being started is all that was forced.
    """
    scenario.hosts("h1 slots=1")
    queue(scenario, run_windows=parse_windows("8:00-9:00"))
    scenario.submit("A", run_limit_us=60 * SECOND_US)
    scenario.run("A", "h1")

    assert ["A dispatched: h1*1"] == scenario.session()
    assert ["A stop ordered on h1: SUSP_QUEUE_WINDOW"] == scenario.session()


def test_slots_beyond_those_of_the_host_are_nobodys(scenario: Scenario) -> None:
    """
    Others start there when the host has a slot free by its own count.
    """
    scenario.hosts("h1 slots=2")
    running(scenario, "X", "Y")
    scenario.jobs("A", "B")
    scenario.run("A", "h1")
    assert ["A dispatched: h1*1", "B pended: slots short on h1"] == scenario.session()

    scenario.finish("X")
    assert [] == scenario.session()
    scenario.finish("Y")
    assert ["B dispatched: h1*1"] == scenario.session()


def test_asking_again_changes_nothing(scenario: Scenario) -> None:
    """
    Until it is started.
    """
    scenario.hosts("h1 mem_mb=10")
    scenario.submit("A", resreq=("rusage[mem=20]",))
    scenario.run("A", "h1")
    events = len(scenario.log)

    scenario.run("A", "h1")

    assert events == len(scenario.log)
