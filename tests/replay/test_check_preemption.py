"""
The check of invariants where jobs stop for others: their slots are open to some and not to all.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from domain.events.jobs import JobDispatched, JobSuspendOrdered
from domain.events.queues import QueueDefined
from domain.preemption import OnPreempt
from replay.check import check
from store.log import EventLog
from store.transfer import import_log
from tests.examples import examples
from tests.projections.scheduling.preempting import queues, running
from tests.projections.scheduling.test_preemption_props import CASES, STEPS, act, scenario_of
from tests.replay.logs import ListLog
from tests.replay.test_simulation_preemption import played
from tests.scenario import Scenario

GOLDEN = sorted((Path(__file__).resolve().parent.parent / "golden").glob("core-*"))
TWICE = "slots are never given twice"


@pytest.mark.parametrize("source", GOLDEN, ids=lambda path: path.name)
def test_a_golden_log_of_the_core_holds_every_invariant(source: Path, tmp_path: Path) -> None:
    """
    It has a job of a third queue that starts where a victim has stopped for another.
    """
    import_log(source / "log.jsonl.zst", tmp_path / "log")

    with EventLog.open(tmp_path / "log", writable=False) as log:
        result = check(log, sample_events=1)

    assert [] == result.findings
    assert result.dispatches > 10


@pytest.mark.parametrize("on_preempt", list(OnPreempt))
def test_a_simulation_with_preemption_holds_every_invariant(
    tmp_path: Path, on_preempt: OnPreempt
) -> None:
    """
    The preemptor starts on its victim's only slot.
    """
    _, simulation = played(tmp_path, on_preempt)

    assert [] == check(simulation.engine.log, sample_events=1).findings


@settings(max_examples=examples(60))
@given(CASES, STEPS)
def test_whatever_the_core_does_for_preemptors_holds_every_invariant(
    values: dict[str, Any], steps: list[Any]
) -> None:
    """
    The judge must not be wrong about what victims give back: slots, memory, what bounds release.
    """
    scenario = scenario_of(values, plain=False)
    for step in [*steps, ("session",)]:
        act(scenario, step)

    assert [] == check(ListLog(scenario.log), sample_events=50).findings


@pytest.fixture
def preempted() -> ListLog:
    """
    Return a log in which J has started on the only slot of h1, for which A has stopped, and K, as
    well of a queue that may preempt A's, on h2.
    """
    scenario = Scenario()
    queues(scenario, "hi 90 >lo", "lo 10 <hi")
    scenario.hosts("h1 slots=1")
    running(scenario, "A queue=lo")
    scenario.jobs("J queue=hi")
    scenario.session()
    scenario.suspended("A")
    scenario.session()
    scenario.hosts("h2 slots=1")
    scenario.jobs("K queue=hi")
    scenario.session()
    return ListLog(scenario.log)


def found(log: ListLog) -> list[tuple[str, int]]:
    """
    Return rule and position of each finding about slots.
    """
    return [(one.rule, one.position) for one in check(log).findings if one.rule == TWICE]


def test_a_slot_that_a_victim_left_is_given_once(preempted: ListLog) -> None:
    """
    K may have what J has left of it, which is nothing.
    """
    assert [] == found(preempted)
    place = preempted.where(JobDispatched, 3)
    event = preempted.events[place - 1].event
    runs = (event.allocation.runs[0].model_copy(update={"first": 0}),)
    allocation = event.allocation.model_copy(update={"runs": runs})
    preempted.change(place, event=event.model_copy(update={"allocation": allocation}))

    assert [(TWICE, place)] == found(preempted)


def test_a_job_that_is_no_victim_keeps_its_slots(preempted: ListLog) -> None:
    """
    Stopped for another reason, A has left its slot to nobody.
    """
    place = preempted.where(JobSuspendOrdered)
    event = preempted.events[place - 1].event
    preempted.change(place, event=event.model_copy(update={"preemptor": ""}))

    assert [(TWICE, preempted.where(JobDispatched, 2))] == found(preempted)


def test_a_queue_that_may_not_preempt_gets_no_slots_of_victims() -> None:
    """
    Nothing is held for J any more, so the slot is open to K's queue; were that another one, K would
    use it twice.
    """
    scenario = Scenario()
    queues(scenario, "hi 90 >lo", "top 95 >lo", "lo 10 <hi top")
    scenario.hosts("h1 slots=1")
    running(scenario, "A queue=lo")
    scenario.jobs("J queue=hi")
    scenario.session()
    scenario.suspended("A")
    scenario.kill("J")
    scenario.jobs("K queue=top")
    assert ["K dispatched: h1*1"] == [one for one in scenario.session() if one.startswith("K")]
    log = ListLog(scenario.log)
    assert [] == found(log)

    place = next(
        one.position
        for one in log.events
        if isinstance(one.event, QueueDefined) and one.stream == "queue:top"
    )
    event = log.events[place - 1].event
    spec = event.spec.model_copy(update={"preemptible_queues": None})
    log.change(place, event=event.model_copy(update={"spec": spec}))

    assert [(TWICE, log.where(JobDispatched, 2))] == found(log)
