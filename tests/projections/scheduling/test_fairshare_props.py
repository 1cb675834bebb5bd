"""
Fairshare with its short cuts decides as the obvious one, whatever happens to jobs, hosts and
queues.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from domain.commands import DefineQueue
from domain.fairshare import Fairshare, parse_shares
from domain.preemption import Preemption
from domain.queues import QueueSpec
from projections.scheduling.core import Core
from projections.scheduling.plugins import Plugins
from tests.builders import SECOND_US, a_job
from tests.examples import examples
from tests.literal import literal_plugins
from tests.literal_fairshare import LiteralFairshare
from tests.projections.scheduling.test_core_props import (
    CHAINS,
    HOSTS,
    LIMITS,
    STEPS,
    play,
    scenarios_of,
)
from tests.scenario import Scenario

USERS = st.sampled_from(["ann", "bob", "eve", "joe", "kim"])
WAITING = st.tuples(
    st.just("share"),
    USERS,
    st.integers(1, 3),
    st.sampled_from([None, 50, 100, 200]),
    st.sampled_from(["normal", "other"]),
    st.integers(0, 2),
)
SHARES = st.sampled_from(
    [
        "default=1",
        "ann=3 bob=1 default=1",
        "g=2(ann=1 bob=1) h=2(eve=3 joe=1) default=1",
        "ann=1 others=1",
        "ann=5 bob=5",
    ]
)
RULES = st.fixed_dictionaries(
    {"shares": SHARES.map(parse_shares)},
    optional={
        "run_job_factor_milli": st.just(0),
        "committed_run_time_factor_milli": st.just(500),
        "counts_past_runs": st.just(True),
        "run_time_decays": st.just(True),
    },
)
GATHERING = st.sampled_from([{}, {}, {"slot_reserve_us": 900 * SECOND_US, "is_backfill": True}])
COMMON = st.booleans()
SESSION = st.just(("session",))
STEP = st.one_of(WAITING, WAITING, SESSION, SESSION, STEPS.map(lambda steps: steps[0]))


def shared(
    hosts: list[Any],
    chain: tuple[str, ...],
    most: int,
    rules: dict[str, Any],
    gathering: dict[str, Any],
    *,
    common: bool,
    preempts: bool,
    plain: bool,
) -> Scenario:
    """
    Return a cluster whose queues are shared: each by itself, or in common accounts.
    """
    preemption = Preemption() if preempts else None
    scenario = scenarios_of(hosts, chain, "fairshare", most, preemption, plain=False)
    if plain:
        plugins = Plugins(
            pickers={**literal_plugins().pickers, "fairshare": LiteralFairshare}
        )
        scenario.core = Core.restore(scenario.core.snapshot(), plugins, plain=True)
    own = Fairshare(**rules)
    spec = scenario.state.stored.queues["normal"].spec
    changed = spec.model_copy(update={"fairshare": own, **gathering})
    scenario.command(DefineQueue(queue="normal", spec=changed))
    spec = scenario.state.stored.queues["other"].spec
    other = Fairshare(accounts_of="normal") if common else own
    changed = QueueSpec.model_validate({**spec.model_dump(), "fairshare": other.model_dump()})
    scenario.command(DefineQueue(queue="other", spec=changed))
    return scenario


def take(scenario: Scenario, step: tuple[Any, ...]) -> None:
    """
    Play one step, or submit a job of some user.
    """
    if step[0] != "share":
        play(scenario, step)
        return
    _, user, tasks, mem_mb, queue, priority = step
    command = a_job(tasks, mem_mb=mem_mb, queue=queue, user=user, priority=priority)
    spec = command.spec.model_copy(update={"run_limit_us": 500 * SECOND_US})
    made = scenario.command(command.model_copy(update={"spec": spec}), actor=user)
    job = scenario.state.stored.jobs[made[0].stream]
    scenario.ids[job.job_id] = job.job_id


@settings(max_examples=examples(120), deadline=None)
@given(
    HOSTS, CHAINS, LIMITS, RULES, GATHERING, COMMON, st.booleans(),
    st.lists(STEP, min_size=10, max_size=50),
)
def test_fairshare_decides_as_the_literal_one(
    hosts: list[Any],
    chain: tuple[str, ...],
    most: int,
    rules: dict[str, Any],
    gathering: dict[str, Any],
    common: bool,
    preempts: bool,
    steps: list[Any],
) -> None:
    """
    The same commands give the same events, byte for byte.
    """
    fast, slow = (
        shared(
            hosts, chain, most, rules, gathering, common=common, preempts=preempts, plain=plain
        )
        for plain in (False, True)
    )
    for step in [*steps, ("session",), ("session",)]:
        take(fast, step)
        take(slow, step)
        assert slow.log == fast.log
