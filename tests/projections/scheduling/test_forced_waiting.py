"""
While a job waits for the hosts that an operator named, no picker knows of it, whatever happens; and
what ends that.
"""

from __future__ import annotations

import pytest

from domain.arrays import ArraySpec, IndexRange
from domain.commands import (
    LeaveWorker,
    MarkUnreachable,
    MoveJob,
    StartScheduler,
    SwitchJob,
    WorkerReport,
)
from domain.envelope import Stamped
from domain.events.jobs import JobRunRequested
from domain.jobs import HostTasks
from projections.scheduling.derived import derived
from projections.scheduling.status import why_waiting
from tests.projections.scheduling.policies import queue
from tests.projections.scheduling.preempting import again
from tests.projections.scheduling.test_modified import change
from tests.scenario import Scenario


@pytest.mark.parametrize("to", ["top", "bottom"])
def test_moving_a_job_that_waits_for_named_hosts_keeps_nobody_back(
    scenario: Scenario, to: str
) -> None:
    """
    It is before all others anyway. A picker that got to know of it would take it for the first of
    all that ask for the same, and pass them all over.
    """
    scenario.hosts("h1", "h2")
    scenario.jobs("A", "B")
    scenario.run("A", "h1")
    scenario.command(LeaveWorker(worker="h1", incarnation=1), actor="")

    scenario.command(MoveJob.model_validate({"job_id": scenario.ids["A"], "to": to}))

    assert "B dispatched: h2*1" in scenario.session()
    assert derived(scenario.state) == derived(again(scenario).state)


def test_a_new_start_of_the_scheduler_keeps_nobody_back(scenario: Scenario) -> None:
    """
    It has jobs tried again on hosts that they avoid, as one may that an operator wants elsewhere.
    """
    scenario.hosts("h1", "h2")
    scenario.jobs("A")
    scenario.session()
    scenario.could_not_start("A", fault="memory")
    scenario.command(LeaveWorker(worker="h2", incarnation=1), actor="")
    scenario.close("h1")
    scenario.session()
    scenario.hosts("h3")
    scenario.run("A", "h3")
    scenario.command(LeaveWorker(worker="h3", incarnation=1), actor="")
    scenario.jobs("B")

    stored = scenario.state.stored
    begun = StartScheduler(
        epoch=2, holder="test", code_version="test", pickers=stored.pickers,
        allocators=stored.allocators, awaits_workers=True,
    )  # fmt: skip
    scenario.command(begun, actor="")
    scenario.command(WorkerReport(worker="h1", incarnation=1), actor="")
    scenario.open("h1")

    assert "B dispatched: h1*1" in scenario.session()
    assert derived(scenario.state) == derived(again(scenario).state)


@pytest.mark.parametrize("how", ["hold", "more tasks", "switch", "kill", "other hosts"])
def test_the_wish_ends_when_the_job_can_not_be_what_was_meant(
    scenario: Scenario, how: str
) -> None:
    """
    A hold says that it mustn't start, and a job of other tasks can't start on as many as were
    named.
    """
    scenario.hosts("h1 slots=1 mem_mb=100", "h2 slots=1 mem_mb=900")
    queue(scenario, "other", tasks_default=2)
    scenario.submit("A", resreq=("rusage[mem=200]",), names_tasks=False)
    scenario.set_queue("normal", "inactive")
    scenario.set_queue("other", "inactive")
    scenario.run("A", "h1")
    assert ["A pended: never: mem short on h1"] == scenario.session()
    if how == "hold":
        scenario.hold("A")
        scenario.lift("A")
    elif how == "more tasks":
        change(scenario, "A", tasks_min=2, tasks_max=3)
    elif how == "switch":
        scenario.command(SwitchJob(job_id=scenario.ids["A"], queue="other"))
    elif how == "kill":
        scenario.kill("A")
        assert ["A ended: TERM_OWNER"] == scenario.session()
    else:
        scenario.run("A", "h2")
        assert ["A dispatched: h2*1"] == scenario.session()

    assert ({}, ()) == (scenario.state.forced, scenario.job("A").forced_on)
    assert derived(scenario.state) == derived(again(scenario).state)
    decisions = scenario.session()
    assert not [words for words in decisions if "dispatched" in words]


@pytest.mark.parametrize("how", ["priority", "less memory", "a wider range", "switch"])
def test_the_wish_outlives_what_does_not_contradict_it(scenario: Scenario, how: str) -> None:
    """
    A user who changes something else would take back unawares what an operator did for them.
    """
    scenario.hosts("h1 slots=1 mem_mb=100", "h2 slots=1 mem_mb=900")
    queue(scenario, "other")
    scenario.submit("A", resreq=("rusage[mem=200]",))
    scenario.set_queue("normal", "inactive")
    scenario.set_queue("other", "inactive")
    scenario.run("A", "h1")
    scenario.session()
    if how == "priority":
        change(scenario, "A", user_priority=1)
    elif how == "less memory":
        change(scenario, "A", resreq=("rusage[mem=150]",))
    elif how == "a wider range":
        change(scenario, "A", tasks_max=4)
    else:
        scenario.command(SwitchJob(job_id=scenario.ids["A"], queue="other"))

    assert ["A pended: never: mem short on h1"] == scenario.session()
    assert derived(scenario.state) == derived(again(scenario).state)
    change(scenario, "A", resreq=("rusage[mem=50]",))
    assert ["A dispatched: h1*1"] == scenario.session()
    assert scenario.job("A").is_forced


def test_another_bound_of_an_array_leaves_the_wishes_of_its_elements(scenario: Scenario) -> None:
    """
    Changed by one element it is all elements' bound; a wish is of an element alone.
    """
    scenario.hosts("h1 mem_mb=100", "h2 mem_mb=100")
    array = ArraySpec(ranges=(IndexRange(start=1, end=3),), started_max=1)
    scenario.submit("A", array=array, resreq=("rusage[mem=200]",))
    scenario.run("A[1]", "h1")
    scenario.run("A[2]", "h2")
    wider = array.model_copy(update={"started_max": 2})

    change(scenario, "A[3]", array=wider)
    assert ["A[1]", "A[2]"] == forced(scenario)
    change(scenario, "A[2]", array=array, tasks_min=2, tasks_max=2)
    assert ["A[1]"] == forced(scenario)
    change(scenario, "A[1]", array=wider, user_priority=1)
    assert ["A[1]"] == forced(scenario)
    assert derived(scenario.state) == derived(again(scenario).state)


def forced(scenario: Scenario) -> list[str]:
    """
    Return the jobs that operators want on certain hosts.
    """
    return [name for name in scenario.ids if name != "A" and scenario.job(name).forced_on]


def test_a_job_larger_than_its_host_is_told_never(scenario: Scenario) -> None:
    """
    What the host lacks even when it is empty no wait brings; a larger host of the name does.
    """
    scenario.hosts("h1 mem_mb=100", "h2 mem_mb=900")
    scenario.submit("X", resreq=("rusage[mem=50] select[mem>500]",))
    scenario.session()
    scenario.submit("A", resreq=("rusage[mem=200]",))
    scenario.submit("B", resreq=("rusage[mem=880]",))

    scenario.run("A", "h1")
    scenario.run("B", "h2")

    assert [
        "A pended: never: mem short on h1",
        "B pended: mem short on h2",
    ] == scenario.session()
    assert [True, False] == [
        why_waiting(scenario.state, scenario.job(name))[0] for name in ("A", "B")
    ]
    scenario.close("h1")
    scenario.command(MarkUnreachable(worker="h1", incarnation=1, silent_us=1), actor="")
    assert [] == scenario.session()
    assert "never: SBD_UNREACH on h1" == scenario.reasons("A")
    scenario.hosts("h1 mem_mb=300")
    assert ["A dispatched: h1*1"] == scenario.session()


def test_another_alternative_may_open_later(scenario: Scenario) -> None:
    """
    As for any job: never means whatever the time.
    """
    scenario.hosts("h1 mem_mb=100")
    text = "{rusage[mem=200]} || {rusage[mem=50]}@10"
    scenario.submit("A", tasks_min=1, tasks_max=1, resreq=(text,))

    scenario.run("A", "h1")

    assert ["A pended: mem short on h1"] == scenario.session()
    scenario.pass_time(600)
    assert ["A dispatched: h1*1"] == scenario.session()


def test_a_wish_of_before_there_was_never_is_decided_as_it_was(scenario: Scenario) -> None:
    """
    Old logs give the decisions that they gave, also beside a newer wish for the same.
    """
    scenario.hosts("h1 mem_mb=100")
    for name in ("A", "B"):
        scenario.submit(name, resreq=("rusage[mem=200]",))
    stream = scenario.job("A").stream
    old = JobRunRequested(hosts=(HostTasks(host="h1", tasks=1),))
    version = scenario.state.next_version(stream)
    scenario.core.apply(Stamped(stream, version, scenario.now_us, "root", "", old, True))
    scenario.run("B", "h1")

    assert ["A pended: mem short on h1", "B pended: never: mem short on h1"] == scenario.session()
    assert [] == scenario.session()
    scenario.run("A", "h1")
    assert ["A pended: never: mem short on h1"] == scenario.session()
