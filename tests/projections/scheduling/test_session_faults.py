"""
Faults in what a session does beside placing: gathering, giving up, letting victims go on.

Where code of plug-ins may run, what is raised is told to that job alone. Anywhere else the session
fails as a whole: until it has decided something every counter is as it was, and whoever folds what
was committed decides as it would have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from domain.commands import DefineQueue
from domain.queues import QueueSpec
from projections.scheduling import gathering, preemption, resumption
from projections.scheduling.core import Core
from projections.scheduling.derived import derived
from projections.scheduling.placement.plugins import Plan, View
from projections.scheduling.plugins import Plugins
from tests.builders import SECOND_US, some_settings
from tests.examples import examples
from tests.projections.scheduling.faults import out_of_memory_at
from tests.projections.scheduling.policies import limit
from tests.projections.scheduling.preempting import crowded, licence, queues, running
from tests.projections.scheduling.test_preemption_faults import counters
from tests.scenario import Scenario

CORE = "projections/scheduling/"
STEPS_MAX = examples(120)
"""So many steps are disturbed, evenly spread over all."""


@contextmanager
def faulty(owner: type, method: str, step: int) -> Iterator[list[int]]:
    """
    Run out of memory at a step of each call of a method, 0 for never; count those of the longest.
    """
    kept, steps = getattr(owner, method), [0]

    def disturbed(*arguments: Any, **more: Any) -> Any:
        with out_of_memory_at(step, CORE) as count:
            try:
                return kept(*arguments, **more)
            finally:
                steps[0] = max(steps[0], count[0])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, method, disturbed)
        yield steps


def steps_of(owner: type, method: str, begun: Callable[[], Scenario]) -> tuple[range, list[str]]:
    """
    Return the steps to disturb, and what is decided without a fault.
    """
    scenario = begun()
    with faulty(owner, method, 0) as steps:
        decisions = scenario.session()
    assert steps[0] > 10
    return range(1, steps[0] + 1, max(1, steps[0] // STEPS_MAX)), decisions


# ------------------------------------------------------------------------------------- gathering


def about_to_gather() -> Scenario:
    """
    Return a cluster with a wide job that will gather, memory too, and one that will run beside it.
    """
    scenario = Scenario(some_settings())
    spec = QueueSpec(priority=50, resource_reserve_us=300 * SECOND_US)
    scenario.command(DefineQueue(queue="par", spec=spec))
    scenario.command(DefineQueue(queue="bf", spec=QueueSpec(priority=40, is_backfill=True)))
    scenario.hosts("h1 slots=4 mem_mb=400", "h2 slots=4 mem_mb=400")
    licence(scenario, total=2, release=False)
    limit(scenario, "many", slots=20)
    scenario.submit("X", tasks_min=3, tasks_max=3, run_limit_us=100 * SECOND_US)
    scenario.session()
    scenario.start("X")
    wide = ("rusage[mem=50:lic=1]",)
    scenario.submit("BIG", queue="par", tasks_min=8, tasks_max=8, resreq=wide)
    scenario.submit("B", queue="bf", run_limit_us=10 * SECOND_US)
    return scenario


@pytest.mark.slow
def test_a_fault_at_any_step_of_gathering_is_told_to_that_job_alone() -> None:
    """
    It gathers nothing, the session goes on, and it gathers when the fault is gone. Only when it
    will start may be unknown meanwhile: nothing is promised where that can't be worked out.
    """
    failed = 0
    steps, expected = steps_of(gathering.Gathering, "_find", about_to_gather)
    assert any(words.startswith("BIG gathers") for words in expected)
    for step in steps:
        scenario = about_to_gather()
        before = counters(scenario)
        with faulty(gathering.Gathering, "_find", step):
            told = scenario.session()
        if told[0].startswith("BIG gathers h1*1 mem=51200000 h2*4 mem=51200000 till 301:"):
            continue
        failed += 1
        assert "BIG pended: PLUGIN_FAILED" == told[0], (step, told)
        assert [words for words in told if words.startswith("B dispatched")], (step, told)
        assert {} == scenario.state.gatherers, step
        scenario.finish("B")
        assert _but_known(before) == _but_known(counters(scenario)), step

        scenario.close("h2")
        scenario.open("h2")

        late = scenario.session()
        assert any(words.startswith("BIG gathers") for words in late), (step, late)
    assert failed > len(steps) // 2


def _but_known(found: Any) -> Any:
    """
    Leave out counters of changes, which only rise.
    """
    kept = {name: value for name, value in found[0].items() if "shut" not in name}
    return kept, *found[1:]


class FailsForFewer:
    """
    Be an allocator that fails when it is asked for fewer tasks than the job has.
    """

    name = "odd"
    version = 1

    def accepts(self, tasks: int) -> bool:
        return True

    def plans(self, tasks: int, view: View) -> Iterator[Plan] | None:
        if tasks < 8:
            raise RuntimeError("it is broken")
        return iter(())


def test_a_plug_in_that_fails_while_a_job_gathers_stops_no_session() -> None:
    """
    It is asked for fewer tasks than when it placed the job: only gathering meets the fault, and a
    session that failed as a whole would fail for ever.
    """
    plugins = Plugins()
    plugins.allocators["odd"] = FailsForFewer()
    scenario = Scenario(some_settings(allocators=("odd",)), plugins=plugins)
    spec = QueueSpec(priority=50, slot_reserve_us=300 * SECOND_US)
    scenario.command(DefineQueue(queue="par", spec=spec))
    scenario.hosts("h1 slots=4", "h2 slots=3")
    scenario.jobs("BIG queue=par tasks=8", "B")

    decisions = scenario.session()

    assert ["BIG pended: PLUGIN_FAILED", "B dispatched: h1*1"] == decisions
    assert [] == scenario.session()


# --------------------------------------------------------------------- what concerns no job alone


def about_to_go_on() -> Scenario:
    """
    Return a cluster whose victims of preemption may go on, one of them held up by another limit.
    """
    scenario = crowded()
    scenario.submit("A", queue="hi", tasks_min=3, tasks_max=3, resreq=("rusage[lic=1]",))
    scenario.session()
    scenario.suspended(*(name for name in "XYZV" if scenario.job(name).suspend_order))
    scenario.session()
    scenario.start("A")
    scenario.finish("A")
    return scenario


def about_to_end_a_hold() -> Scenario:
    """
    Return a cluster in which hosts are held for a job whose queue has just been inactivated.
    """
    scenario = Scenario(some_settings())
    queues(scenario, "hi 90 >lo", "lo 10 <hi")
    scenario.hosts("h1 slots=1", "h2 slots=1")
    running(scenario, "X queue=lo", "Y queue=lo")
    scenario.submit("A", queue="hi")
    scenario.submit("C", queue="hi")
    scenario.session()
    scenario.set_queue("hi", "inactive")
    return scenario


def about_to_give_up() -> Scenario:
    """
    Return a cluster in which the time of a job that gathers is over.
    """
    scenario = about_to_gather()
    scenario.session()
    scenario.pass_time(300)
    return scenario


PIECES = {
    "going on": (resumption.Resumption, "let_go_on", about_to_go_on, "resume ordered"),
    "idle holds": (
        preemption.Preemption, "end_idle_holds", about_to_end_a_hold, "gives up preempting",
    ),
    "giving up": (gathering.Gathering, "give_up", about_to_give_up, "no longer promised"),
}  # fmt: skip


def folded(scenario: Scenario) -> Core:
    """
    Return a core that folds what was committed.
    """
    core = Core()
    for stamped in scenario.log:
        core.apply(stamped)
    return core


def disturbed(piece: str) -> None:
    """
    Disturb the steps of a piece of a session one after the other.
    """
    owner, method, begun, word = PIECES[piece]
    steps, expected = steps_of(owner, method, begun)
    assert any(word in words for words in expected), expected
    for step in steps:
        scenario = begun()
        before, events = counters(scenario), scenario.state.stored.events
        snapshot = scenario.core.snapshot()
        try:
            with faulty(owner, method, step):
                scenario.core.session(scenario.now_us)
        except MemoryError:
            pass
        else:
            pytest.fail(f"step {step} wasn't reached")
        if scenario.state.stored.events == events:
            assert before == counters(scenario), step
            assert snapshot == scenario.core.snapshot(), step

        scenario.core = folded(scenario)

        assert snapshot == scenario.core.snapshot(), step
        assert derived(Core.restore(snapshot).state) == derived(scenario.state), step
        assert expected == scenario.session(), step


@pytest.mark.slow
@pytest.mark.parametrize("piece", PIECES)
def test_a_fault_at_any_step_leaves_what_was_committed(piece: str) -> None:
    """
    Looking changes nothing; what was decided before the fault is dropped with the core.
    """
    disturbed(piece)


@pytest.mark.slow
def test_sabotage_a_look_that_changes_counters_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A comparison that such a look passes would prove nothing.
    """
    kept = resumption.Resumption._fits_again

    def takes(self: resumption.Resumption, victim: Any) -> bool:
        self._state.capacity.used[victim.allocation.runs[0].first] += 1
        fits = kept(self, victim)
        self._state.capacity.used[victim.allocation.runs[0].first] -= 1
        return fits

    monkeypatch.setattr(resumption.Resumption, "_fits_again", takes)

    with pytest.raises(AssertionError):
        disturbed("going on")
