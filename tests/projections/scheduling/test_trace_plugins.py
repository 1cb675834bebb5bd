"""
What is traced of other people's plug-ins, and of what goes wrong on the way.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from projections.scheduling.pickers.fcfs import BuiltinFcfs
from projections.scheduling.placement import levels
from projections.scheduling.placement.plugins import Plan
from projections.scheduling.plugins import Plugins
from projections.scheduling.trace import Kind, TraceSettings, Verdict
from projections.scheduling.trace_session import Tracing
from projections.scheduling.trace_store import TraceStore
from replay.debugger.show import Units
from replay.trace_words import line_text
from tests.builders import some_settings
from tests.scenario import Scenario


class Halves:
    """
    Yield an empty plan, a whole and two halves; count how far it was asked.
    """

    name = "halves"
    version = 1

    def __init__(self):
        self.asked = 0

    def accepts(self, tasks):
        return tasks % 2 == 0

    def plans(self, tasks, view):
        for groups in (((1, 0),), ((1, tasks),), ((2, tasks // 2),), ((1, 1),)):
            self.asked += 1
            yield Plan(groups)


class NoPlan(Halves):
    """
    Never find a plan to begin with.
    """

    name = "no_plan"

    def plans(self, tasks, view):
        return None


class Fails(Halves):
    """
    Raise in the middle of its plans.
    """

    name = "fails"

    def plans(self, tasks, view):
        yield Plan(((1, tasks),))
        raise ValueError("no more")


class Keyed(BuiltinFcfs):
    """
    Pick first come, first served, and tell the keys that it is given.
    """

    name = "keyed"

    def __init__(self, keys):
        super().__init__()
        self._keys = keys

    def order_keys(self, job):
        if self._keys is None:
            raise ValueError("no keys")
        return self._keys


def cluster(*allocators):
    """
    Return a traced scenario of two hosts whose chain is these allocators.
    """
    known = Plugins().allocators
    plugins = Plugins(allocators=known | {one.name: one for one in allocators})
    chosen = some_settings(allocators=tuple(one.name for one in allocators))
    scenario = Scenario(chosen, plugins=plugins)
    scenario.hosts("h1 slots=2", "h2 slots=2")
    store = TraceStore()
    scenario.core.tracing = Tracing(TraceSettings(), store)
    return scenario, store


def told(store, *kinds):
    return [line_text(line, Units()) for line in store.get("1").lines if line.kind in kinds]


def test_plans_of_somebody_else_are_not_asked_for_beyond_the_one_that_is_taken():
    """
    Asking may change something there: what a traced placement asks, an untraced one asks too.
    """
    allocator = Halves()
    scenario, store = cluster(allocator)
    scenario.jobs("A tasks=4")

    scenario.session()

    assert 3 == allocator.asked
    assert [
        "plan 1 [0]: skipped (it has a bucket without a task, or no bucket)",
        "plan 2 [4]: discarded (no host left for a bucket of 4)",
        "plan 3 [2,2]: satisfied",
        "later plans: not tried (its later plans weren't asked for)",
    ] == told(store, Kind.PLAN)


def test_guards_that_decline_and_generators_that_can_not_start_are_told():
    """
    An odd count is declined; no plan at all fails the allocator.
    """
    scenario, store = cluster(Halves())
    scenario.jobs("A tasks=3")
    scenario.session()
    assert ["allocator halves: declines"] == told(store, Kind.GUARD)
    assert ["primary, 3 tasks: failed (no allocator accepts it)"] == told(store, Kind.PRIMARY)

    scenario, store = cluster(NoPlan())
    scenario.jobs("A tasks=2")
    scenario.session()
    assert ["no_plan, 2 tasks, 0 plans on 2 hosts: failed (no plan generated)"] == told(
        store, Kind.ALLOCATOR
    )


def test_a_plug_in_that_raises_leaves_what_was_tried_before():
    """
    The job pends for that failure; the trace ends where it happened.
    """
    scenario, store = cluster(Fails())
    scenario.jobs("A tasks=4")

    scenario.session()

    trace = store.get("1")
    assert Verdict.FAILED is trace.outcome.verdict
    assert ("PLUGIN_FAILED", "", "fails: ValueError: no more") in trace.outcome.reasons
    assert ["plan 1 [4]: discarded (no host left for a bucket of 4)"] == told(store, Kind.PLAN)
    assert ["fails, 4 tasks, 1 plan on 2 hosts"] == told(store, Kind.ALLOCATOR)


def test_a_merge_that_fails_is_told(monkeypatch):
    """
    Each member was placed, but what they got can't be put together.
    """
    def fails(*args, **more):
        raise ValueError("no units left")

    monkeypatch.setattr(levels, "allocation_of", fails)
    scenario, store = cluster(Halves())
    scenario.submit("A", resreq=("1*{select[slots>0]}+1*{select[slots>0]}",))

    scenario.session()

    assert ["2 members, amounts per host: failed (no units left)"] == told(store, Kind.MERGE)
    assert Verdict.FAILED is store.get("1").outcome.verdict


@pytest.mark.parametrize(
    ("keys", "told_keys", "broken"),
    [
        (None, (), "ValueError: no keys"),
        ([("age",)], (), "ValueError: not enough values to unpack (expected 2, got 1)"),
        ([("age", np.int64(3)), ("share", Fraction(1, 2))], (("age", "3"), ("share", "1/2")), ""),
    ],
)
def test_keys_of_somebody_elses_picker_reach_no_decision(keys, told_keys, broken):
    """
    A picker that can't tell what ordered a job has picked it all the same; numbers of its own kind
    are told in words.
    """
    plugins = Plugins(pickers={"keyed": lambda: Keyed(keys)})
    scenario = Scenario(some_settings(picker="keyed"), plugins=plugins)
    scenario.hosts("h1 slots=2")
    store = TraceStore()
    scenario.core.tracing = Tracing(TraceSettings(), store)
    scenario.jobs("A tasks=2")

    scenario.session()

    assert ["A dispatched: h1*2"] == scenario.decisions
    found = store.get("1")
    assert broken == found.broken
    assert told_keys == tuple((key.name, key.value) for key in found.keys)
