"""
Faults on the way of a placement: whatever raises at whatever step, every counter is as it was, that
job alone is told, and the session goes on.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from projections.scheduling.placement.plugins import Plan, View
from projections.scheduling.plugins import Plugins
from tests.builders import some_settings
from tests.literal import literal_plugins
from tests.projections.scheduling.faults import out_of_memory_at
from tests.projections.scheduling.policies import limit
from tests.projections.scheduling.preempting import queues
from tests.projections.scheduling.test_placement import ask, cluster, shared
from tests.projections.scheduling.test_placement_props import everything
from tests.scenario import Scenario

PLACEMENT = "projections/scheduling/placement/"
REQUESTS = {
    "amounts": ("rusage[mem=100]", 3),
    "compound": (
        "1*{select[fast] rusage[mem=100:gpu=1:lic=1]} + 2*{rusage[mem=50:lic=1] order[mem]}",
        1,
    ),
    "span": ("select[slots>1] span[ptile=2] same[maxslots]", 4),
    "alternatives": ("{select[mem>9000]} || {rusage[mem=100/task] span[stripe]}", 3),
    "waits": ("rusage[mem=5000||gpu=9]", 2),
}


def begun(resreq: str, tasks: int) -> Scenario:
    """
    Return a cluster in use with one job that waits to be tried, and one behind it.
    """
    scenario = cluster(
        False,
        {"name": "h1", "slots": 4, "mem_mb": 1000, "gpus": 2, "fast": "yes"},
        {"name": "h2", "slots": 4, "mem_mb": 1000},
        {"name": "h3", "slots": 2, "mem_mb": 400},
        allocators=("parjob", "fill"),
    )
    shared(scenario, "lic", 3)
    ask(scenario, "X", "rusage[mem=100:lic=1]")
    scenario.session()
    ask(scenario, "A", resreq, tasks)
    return scenario


@pytest.mark.parametrize("kind", REQUESTS)
def test_a_fault_at_any_step_leaves_every_counter_as_it_was(kind: str) -> None:
    """
    The placement is given up whole; tried again without the fault, the job gets what it would have
    got.
    """
    undisturbed = begun(*REQUESTS[kind])
    with out_of_memory_at(0, PLACEMENT) as count:
        undisturbed.session()
    steps = count[0]
    assert steps > 20

    for step in range(1, steps + 1):
        scenario = begun(*REQUESTS[kind])
        before = everything(scenario)[0]
        with out_of_memory_at(step, PLACEMENT):
            scenario.session()
        if undisturbed.decisions == scenario.decisions:
            continue
        assert ["A pended: PLUGIN_FAILED"] == scenario.decisions, step
        assert before == everything(scenario)[0], step

        scenario.open("h1")
        scenario.close("h3")
        scenario.open("h3")
        scenario.session()

        expected = undisturbed.job("A").allocation
        assert expected == scenario.job("A").allocation, step


class Broken:
    """
    Raise at one of the calls that an allocator gets.
    """

    name = "broken"
    version = 1

    def __init__(self, where: str) -> None:
        self.where = where
        self.closed = 0

    def accepts(self, tasks: int) -> bool:
        if self.where == "guard":
            raise RuntimeError("guard")
        return True

    def plans(self, tasks: int, view: View) -> Iterator[Plan] | None:
        if self.where == "start":
            raise RuntimeError("start")
        if self.where == "iterator":
            return NotIterable()
        return None if self.where == "none" else self._plans()

    def _plans(self) -> Iterator[Plan]:
        try:
            yield Plan(((1, 99),))
            if self.where == "next":
                raise RuntimeError("next")
            yield Plan(((1, 1), (1, 1)), (0, 99) if self.where == "pins" else ())
        finally:
            self.closed += 1
            if self.where == "finish":
                raise RuntimeError("finish")


class NotIterable:
    """
    Be what a plug-in returns in place of its plans, and can't be gone through.
    """

    def __iter__(self) -> Iterator[Plan]:
        raise RuntimeError("iterator")


@pytest.mark.parametrize("plain", [False, True], ids=["fast", "plain"])
@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("guard", "PLUGIN_FAILED"),
        ("start", "PLUGIN_FAILED"),
        ("next", "PLUGIN_FAILED"),
        ("none", "NO_PLAN"),
    ],
)
def test_a_plug_in_that_fails_fails_its_job_alone(plain: bool, where: str, expected: str) -> None:
    """
    The generator is finished, and jobs that don't need the plug-in are placed.
    """
    broken = Broken(where)
    plugins = Plugins()
    plugins.allocators[broken.name] = broken
    scenario = Scenario(some_settings(allocators=("broken",)), plugins=plugins, plain=plain)
    scenario.hosts("h1 slots=4")
    scenario.jobs("A tasks=2", "B tasks=1")

    decisions = scenario.session()

    assert "B dispatched: h1*1" == decisions[1]
    assert expected in decisions[0]
    assert (where == "next") == (broken.closed > 0)


def with_broken(plain: bool, where: str) -> Scenario:
    """
    Return a cluster in use that has an allocator which fails.
    """
    plugins = literal_plugins() if plain else Plugins()
    plugins.allocators["broken"] = Broken(where)
    scenario = Scenario(some_settings(allocators=("broken",)), plugins=plugins, plain=plain)
    queues(scenario, "hi 90 >all", "lo 10 <all")
    scenario.hosts("h1 slots=3 mem_mb=1000", "h2 slots=2 mem_mb=500")
    shared(scenario, "lic", 3)
    for name in ("X", "Y"):
        ask(scenario, name, "rusage[mem=100:lic=1]", queue="lo")
    scenario.session()
    return scenario


WHERES = ["guard", "start", "next", "finish", "iterator", "pins"]


@pytest.mark.parametrize("plain", [False, True], ids=["fast", "plain"])
@pytest.mark.parametrize("where", WHERES)
@pytest.mark.parametrize("queue", ["lo", "hi"])
def test_a_plug_in_that_fails_changes_no_counter(plain: bool, where: str, queue: str) -> None:
    """
    Whichever of its steps raises, also the last one of a plan that was satisfied, and also on trial
    for a job that preempts: nothing is claimed, nobody is stopped, and the job is told.
    """
    scenario = with_broken(plain, where)
    limit(scenario, "many", slots=9)
    ask(scenario, "A", "rusage[mem=100:lic=1]", 2, queue=queue)
    before, used = everything(scenario)[0], scenario.state.limits.in_use()

    (told,) = scenario.session()

    assert told.startswith("A pended: PLUGIN_FAILED")
    assert (before, used) == (everything(scenario)[0], scenario.state.limits.in_use())
    assert {"X": "RUN", "Y": "RUN", "A": "PEND"} == scenario.states()


@pytest.mark.parametrize("plain", [False, True], ids=["fast", "plain"])
def test_a_plug_in_that_is_well_again_places_what_waited(plain: bool) -> None:
    """
    A failure proves nothing: the job is tried again in the next session without any other change.
    """
    scenario = with_broken(plain, "start")
    ask(scenario, "A", "rusage[mem=100:lic=1]", 2)
    scenario.session()
    allocator = scenario.core.plugins.allocators["broken"]
    assert isinstance(allocator, Broken)
    allocator.where = ""
    scenario.close("h2")
    scenario.open("h2")

    assert ["A dispatched: h1*1 h2*1"] == scenario.session()
