"""
Properties of the policies that plan: a restored core goes on alike, and every index can be rebuilt,
whatever happens to jobs and hosts meanwhile.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from domain.commands import DefineQueue
from domain.queues import QueueSpec
from projections.scheduling.core import Core
from projections.scheduling.derived import derived
from tests.builders import SECOND_US
from tests.examples import examples
from tests.projections.scheduling.test_core_props import (
    CHAINS,
    HOSTS,
    LIMITS,
    STEPS,
    invariants,
    play,
    scenarios_of,
)
from tests.scenario import Scenario

PLANNING = st.sampled_from(["easy", "conservative", "fairshare", "shortest_first", "builtin_fcfs"])
GATHERING = st.sampled_from(
    [
        {},
        {"slot_reserve_us": 900 * SECOND_US, "is_backfill": True},
        {"resource_reserve_us": 900 * SECOND_US, "is_backfill": True},
    ]
)


def planned(
    hosts: list[Any], chain: tuple[str, ...], picker: str, most: int, gathering: dict[str, Any]
) -> Scenario:
    """
    Return a cluster whose jobs are planned by a picker, or gather.
    """
    scenario = scenarios_of(hosts, chain, picker, most, None, plain=False)
    for name, priority in (("normal", 30), ("other", 40)):
        spec = QueueSpec(priority=priority, run_limit_default_us=500 * SECOND_US, **gathering)
        scenario.command(DefineQueue(queue=name, spec=spec))
    return scenario


@settings(max_examples=examples(60), deadline=None)
@given(HOSTS, CHAINS, PLANNING, LIMITS, GATHERING, STEPS, st.integers(0, 40))
def test_a_restored_core_plans_as_the_one_that_went_on(
    hosts: list[Any],
    chain: tuple[str, ...],
    picker: str,
    most: int,
    gathering: dict[str, Any],
    steps: list[Any],
    cut: int,
) -> None:
    """
    What outlives a session is in the state: promises, loans and documents.
    """
    kept = planned(hosts, chain, picker, most, gathering)
    restored, mark = None, 0
    for place, step in enumerate([*steps, ("session",), ("session",)]):
        if place == min(cut, len(steps)):
            restored = planned(hosts, chain, picker, most, gathering)
            restored.core = Core.restore(kept.core.snapshot())
            restored.now_us, restored.ids = kept.now_us, dict(kept.ids)
            mark = len(kept.log)
        play(kept, step)
        if restored is not None:
            play(restored, step)
        invariants(kept.state)

    assert restored is not None
    later = kept.log[mark:]
    assert later == restored.log[len(restored.log) - len(later) :]
    assert kept.core.snapshot() == restored.core.snapshot()
    assert derived(kept.state) == derived(restored.state)
