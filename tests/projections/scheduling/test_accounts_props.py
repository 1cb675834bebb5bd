"""
What is charged is what jobs' accounts say: after every session, whatever happened before, the
totals kept step by step equal those derived afresh from the stored state.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from projections.scheduling.core import Core
from projections.scheduling.derived import derived
from projections.scheduling.state import State
from tests.examples import examples
from tests.projections.scheduling import test_core_props as lives
from tests.projections.scheduling import test_limits_props as bounded
from tests.projections.scheduling import test_preemption_props as preempting
from tests.scenario import Scenario

pytestmark = pytest.mark.slow


def assert_accounts(state: State) -> None:
    """
    Add up by hand, from the jobs alone, what slots and amounts are charged on every host and of
    every shared total, and compare.
    """
    capacity = state.capacity
    slots = np.zeros(capacity.hosts, np.int64)
    charged = {name: np.zeros(capacity.hosts, np.int64) for name in capacity.resources}
    shared: dict[tuple[str, int], int] = {}
    for job in state.live.values():
        assert job.allocation is not None, job
        given_back = capacity.released if job.is_aside else frozenset()
        for number, tasks, amounts in job.allocation.shares():
            slots[number] += tasks
            reserved: dict[str, int] = {}
            for amount in amounts:
                reserved[amount.resource] = reserved.get(amount.resource, 0) + amount.milli
            for name, milli in reserved.items():
                is_kept = name not in given_back or capacity.facts[number].units.get(name)
                if is_kept:
                    charged[name][number] += max(milli, job.actual.get(number, {}).get(name, 0))
        for each in job.allocation.shared:
            if each.resource not in given_back:
                key = (each.resource, each.pool)
                shared[key] = shared.get(key, 0) + each.milli

    assert slots.tolist() == capacity.used.tolist()
    for name, column in capacity.resources.items():
        assert charged[name].tolist() == column.charged.tolist(), name
    for name, pools in capacity.pools.by_name.items():
        assert [shared.get((name, place), 0) for place in range(len(pools))] == [
            pool.charged for pool in pools
        ], name


def assert_derived(scenario: Scenario) -> None:
    """
    Compare every index with that of a core rebuilt from the snapshot, and both with the sums.
    """
    again = Core.restore(scenario.core.snapshot(), scenario.core.plugins)

    assert derived(again.state) == derived(scenario.state)
    assert_accounts(scenario.state)


@settings(max_examples=examples(60))
@given(
    lives.HOSTS, lives.CHAINS, lives.PICKERS, lives.LIMITS, lives.PREEMPTIONS, lives.STEPS
)  # fmt: skip
def test_safety_totals_are_those_of_the_accounts_after_every_session(
    hosts: Any, chain: Any, picker: str, most: int, preemption: Any, steps: list[Any]
) -> None:
    """
    With arrays, dependencies, windows, usage reports, lost hosts and requeues.
    """
    scenario = lives.scenarios_of(hosts, chain, picker, most, preemption, plain=False)
    for step in [*steps, ("session",)]:
        lives.play(scenario, step)
        if step[0] == "session":
            assert_derived(scenario)


@settings(max_examples=examples(60))
@given(bounded.CHAINS, bounded.PICKERS, bounded.STEPS)
def test_safety_totals_are_those_of_the_accounts_under_limits_and_quotas(
    chain: Any, picker: str, steps: list[Any]
) -> None:
    """
    With limits, quotas, groups, profiles and queues that change while jobs run.
    """
    scenario = bounded.begun(chain, picker)
    for step in [*steps, ("session",)]:
        bounded.play(scenario, step)
        if step[0] == "session":
            assert_derived(scenario)


@settings(max_examples=examples(60))
@given(preempting.CASES, preempting.STEPS)
def test_safety_totals_are_those_of_the_accounts_while_jobs_preempt(
    values: dict[str, Any], steps: list[Any]
) -> None:
    """
    With victims on their way, aside and resumed, and what is held for preemptors.
    """
    scenario = preempting.scenario_of(values, plain=False)
    for step in [*steps, ("session",)]:
        preempting.act(scenario, step)
        if step[0] in ("session", "stopped all", "resumed all"):
            assert_derived(scenario)


@pytest.mark.parametrize("name", ["slots", "mem"])
def test_sabotage_a_total_that_no_account_explains_is_seen(name: str) -> None:
    """
    The sums are the jobs', not the columns': a column that was changed behind their back shows.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=4 mem_mb=1000")
    scenario.jobs("A tasks=2 mem_mb=100", "B mem_mb=50")
    scenario.session()
    assert_accounts(scenario.state)
    capacity = scenario.state.capacity
    column = capacity.used if name == "slots" else capacity.resources[name].charged
    column[0] += 1

    with pytest.raises(AssertionError):
        assert_accounts(scenario.state)
