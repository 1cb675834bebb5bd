"""
Properties of decision traces: they change nothing, whatever is traced.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from domain.preemption import Preemption
from projections.scheduling.plugins import Plugins
from projections.scheduling.trace import Level, TraceSettings, Verdict
from projections.scheduling.trace_plain import packed, unpacked
from projections.scheduling.trace_session import Tracing
from projections.scheduling.trace_store import TraceStore
from tests.examples import examples
from tests.projections.scheduling import test_core_props as lives
from tests.projections.scheduling import test_limits_props as bounds
from tests.projections.scheduling import test_placement_props as requirements
from tests.scenario import Scenario

ONE = TraceSettings(streams=frozenset({"job:0000000002"}), arrays=frozenset({3}))
CHOICES = st.sampled_from(
    [TraceSettings(), ONE, TraceSettings(level=Level.SUMMARY), TraceSettings(lines_max=7)]
)

PICKERS = st.sampled_from(sorted(Plugins().pickers))


def traced(scenario: Scenario, chosen: TraceSettings) -> TraceStore:
    """
    Trace a scenario from now on; return where to.
    """
    store = TraceStore()
    scenario.core.tracing = Tracing(chosen, store)
    return store


def sound(store: TraceStore, scenario: Scenario, chosen: TraceSettings) -> None:
    """
    Check what holds of every trace: writing didn't fail, it keeps to its bound, it reads as
    written, and it tells what was decided.
    """
    for job_id in store.job_ids():
        trace = store.get(job_id)
        assert trace is not None
        assert "" == trace.broken
        assert len(trace.lines) <= chosen.lines_max
        assert unpacked(packed(trace), trace.session, trace.passed) == trace
        job = scenario.state.stored.jobs.get(f"job:{int(job_id.split('[')[0]):010}")
        if job is not None and trace.outcome.verdict is Verdict.DISPATCHED and job.attempt == 1:
            assert job.session_number == trace.session.number


@settings(max_examples=examples(150), deadline=None)
@given(requirements.HOSTS, requirements.SETTINGS, requirements.STEPS, CHOICES)
def test_safety_requirements_are_decided_alike_traced_or_not(
    hosts: list[dict[str, Any]], chosen: dict[str, Any], steps: list[Any], what: TraceSettings
) -> None:
    """
    The same commands give the same events, byte for byte, and the same state; a traced placement
    tries plans one by one where an untraced one takes the short cut.
    """
    off = requirements.cluster(hosts, chosen, plain=False)
    on = requirements.cluster(hosts, chosen, plain=False)
    store = traced(on, what)
    for step in [*steps, ("session",), ("session",)]:
        requirements.play(off, step)
        requirements.play(on, step)
        assert off.log == on.log

    assert off.core.snapshot() == on.core.snapshot()
    sound(store, on, what)


@settings(max_examples=examples(150), deadline=None)
@given(
    lives.HOSTS, lives.CHAINS, PICKERS, lives.LIMITS, lives.PREEMPTIONS, lives.STEPS, CHOICES
)
def test_safety_lives_of_jobs_are_the_same_traced_or_not(
    hosts: list[Any],
    chain: tuple[str, ...],
    picker: str,
    most: int,
    preemption: Preemption | None,
    steps: list[tuple[Any, ...]],
    what: TraceSettings,
) -> None:
    """
    With arrays, dependencies, holds, windows, limits of decisions and preemption: equal events and
    snapshots, with tracing switched on half-way too.
    """
    off = lives.scenarios_of(hosts, chain, picker, most, preemption, plain=False)
    on = lives.scenarios_of(hosts, chain, picker, most, preemption, plain=False)
    store = None
    for place, step in enumerate([*steps, ("session",), ("session",)]):
        if place == len(steps) // 2:
            store = traced(on, what)
        lives.play(off, step)
        lives.play(on, step)
        assert off.log == on.log

    assert off.core.snapshot() == on.core.snapshot()
    assert store is not None
    sound(store, on, what)


@settings(max_examples=examples(100))
@given(bounds.CHAINS, bounds.PICKERS, bounds.STEPS, CHOICES)
def test_safety_limits_are_kept_alike_traced_or_not(
    chain: tuple[str, ...], picker: str, steps: list[Any], what: TraceSettings
) -> None:
    """
    Limits, quotas, rights and profiles, whole and by host: equal events and snapshots.
    """
    off, on = bounds.begun(chain, picker), bounds.begun(chain, picker)
    store = traced(on, what)
    for step in [*steps, ("session",), ("time", 1_300), ("session",)]:
        bounds.play(off, step)
        bounds.play(on, step)
        assert off.log == on.log

    assert off.core.snapshot() == on.core.snapshot()
    sound(store, on, what)
