"""
Faults on the way of a preemption: whatever raises while victims are looked for, nobody is stopped,
every counter and memo is as it was, that job alone is told, and the session goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from projections.scheduling import preemption
from projections.scheduling.derived import derived
from projections.scheduling.placement.relief import Relief
from tests.examples import examples
from tests.projections.scheduling.faults import out_of_memory_at
from tests.projections.scheduling.preempting import crowded
from tests.scenario import Scenario

CORE = "projections/scheduling/"
STEPS_MAX = examples(150)
"""So many steps are disturbed, evenly spread over all."""
REQUESTS = {
    "on one host": {"resreq": ("rusage[mem=100:lic=1]",)},
    "over hosts": {"tasks_min": 4, "tasks_max": 4, "resreq": ("rusage[mem=50]",)},
    "in parts": {"resreq": ("1*{rusage[lic=1]} + 2*{order[mem]}",)},
    "in vain": {"resreq": ("rusage[mem=9000]",)},
}


def begun(kind: str) -> Scenario:
    """
    Return a full cluster with jobs that may be stopped, one that wants them to, and one behind it.
    """
    scenario = crowded()
    scenario.submit("A", queue="hi", **REQUESTS[kind])
    scenario.jobs("B queue=lo mem_mb=100")
    return scenario


def counters(scenario: Scenario) -> tuple[object, ...]:
    """
    Return what is kept of hosts, limits, victims and holds.
    """
    kept = derived(scenario.state)
    names = [name for name in kept if name.startswith(("capacity.", "limits"))]
    limits = scenario.state.limits.in_use()
    victims, keepers = set(scenario.state.victims), set(scenario.state.keepers)
    return {name: kept[name] for name in names}, limits, victims, keepers


@contextmanager
def faulty_search(step: int) -> Iterator[list[int]]:
    """
    Run out of memory at a step of the search for victims, 0 for never; count the steps.
    """
    kept, steps = preemption.Preemption.find, [0]

    def find(*arguments: Any) -> Any:
        with out_of_memory_at(step, CORE) as count:
            try:
                return kept(*arguments)
            finally:
                steps[0] += count[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(preemption.Preemption, "find", find)
        yield steps


def disturbed(kind: str) -> None:
    """
    Disturb steps of the search one after the other.
    """
    scenario = begun(kind)
    with faulty_search(0) as steps:
        scenario.session()
    assert steps[0] > 50
    for step in range(1, steps[0] + 1, max(1, steps[0] // STEPS_MAX)):
        disturbed_at(step, kind, scenario.decisions)


@pytest.mark.slow
@pytest.mark.parametrize("kind", REQUESTS)
def test_a_fault_at_any_step_stops_nobody(kind: str) -> None:
    """
    The search is given up whole; tried again without the fault, the same victims are found.
    """
    disturbed(kind)


def disturbed_at(step: int, kind: str, expected: list[str]) -> None:
    """
    Hold a session that runs out of memory at a step, and see that nothing came of it but that jobs
    are told.
    """
    scenario = begun(kind)
    before = counters(scenario)
    with faulty_search(step):
        told = scenario.session()
    assert "A pended: PLUGIN_FAILED" == told[0], (step, told)
    assert before == counters(scenario), step
    assert not [words for words in told if "ordered" in words], step

    scenario.close("h2")
    scenario.open("h2")

    late = [words for words in scenario.session() if "ordered" in words]
    assert [words for words in expected if "ordered" in words] == late, step


def gives_at_once(kept: Any) -> Any:
    """
    Return a search that has the hosts give back on trial what victims would, for good.
    """

    def give_all(self: Relief, job: Any, *, is_ended: bool) -> None:
        kept(self, job, is_ended=is_ended)
        self._capacity.used[job.allocation.runs[0].first] -= 1

    return give_all


@pytest.mark.slow
def test_sabotage_a_trial_that_changes_counters_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A comparison that such a trial passes would prove nothing.
    """
    monkeypatch.setattr(Relief, "give_all", gives_at_once(Relief.give_all))

    with pytest.raises(AssertionError):
        disturbed("in vain")


@pytest.mark.slow
def test_sabotage_a_fault_that_is_taken_for_nobody_helps_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """
    As it was: a trial that raised was one that failed, so that other victims were chosen.
    """
    kept = preemption.Preemption._trial

    def silent(*arguments: Any) -> Any:
        try:
            return kept(*arguments)
        except MemoryError:
            return None

    monkeypatch.setattr(preemption.Preemption, "_trial", silent)

    with pytest.raises(AssertionError):
        disturbed("over hosts")
