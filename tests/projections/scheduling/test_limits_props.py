"""
Properties of limits, quotas, rights and profiles: whatever is defined, submitted and ended, in
whatever order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.commands import (
    DefineLimit,
    DefineProfile,
    DefineUser,
    KillJob,
    RemoveLimit,
    StopJob,
    SwitchJob,
)
from domain.errors import XceError
from domain.limits import Basis, LimitAmount, LimitSpec
from domain.profiles import ProfileSpec
from domain.resreq.merge import Mark
from domain.users import UserSpec
from domain.windows import parse_windows
from projections.scheduling.core import Core
from projections.scheduling.limits import Limits
from projections.scheduling.snapshot import load_state
from projections.scheduling.state import State
from tests.builders import MB_MILLI, a_host, some_settings
from tests.examples import examples
from tests.projections.scheduling.policies import group, project, queue, scope
from tests.scenario import Scenario

USERS = st.sampled_from(["u1", "u2", "u3"])
SCOPES = {
    "users": ["all", "each all", "u1 u2", "g1", "each g1", "all ~u1"],
    "groups": ["each all", "g1", "g1 g2"],
    "queues": ["normal", "each all"],
    "projects": ["p", "each all"],
    "profiles": ["app"],
    "hosts": ["each all", "h0", "h0 h1", "each all ~h1", "all"],
}
AMOUNTS = st.lists(
    st.one_of(
        st.builds(
            lambda name, most: LimitAmount(resource=name, milli=most * 1000),
            st.sampled_from(["jobs", "slots", "tasks"]),
            st.integers(0, 5),
        ),
        st.builds(
            lambda most: LimitAmount(resource="mem", milli=most * MB_MILLI),
            st.sampled_from([0, 60, 150, 400]),
        ),
    ),
    min_size=1,
    max_size=2,
    unique_by=lambda amount: amount.resource,
)


@st.composite
def limits(draw: st.DrawFn) -> LimitSpec:
    """
    Return a limit of up to two dimensions.
    """
    names = draw(st.lists(st.sampled_from(sorted(SCOPES)), max_size=2, unique=True))
    scopes = {name: scope(draw(st.sampled_from(SCOPES[name]))) for name in names}
    amounts = draw(AMOUNTS)
    if "hosts" in names and draw(st.booleans()):
        amounts = [
            LimitAmount(
                resource=each.resource,
                milli=500 if each.resource != "mem" else 40_000,
                basis=Basis.PER_PROCESSOR if each.resource != "mem" else Basis.PERCENT,
            )
            for each in amounts
        ]
    windows = draw(st.sampled_from([None, None, parse_windows("0:00-0:20")]))
    return LimitSpec(amounts=tuple(amounts), windows=windows, **scopes)


def some_of(
    required: dict[str, st.SearchStrategy[Any]], optional: dict[str, st.SearchStrategy[Any]]
) -> st.SearchStrategy[dict[str, Any]]:
    """
    Return dictionaries with at most two of the optional fields: with more, little would be allowed.
    """
    names = st.lists(st.sampled_from(sorted(optional)), max_size=2, unique=True)
    return names.flatmap(
        lambda chosen: st.fixed_dictionaries(
            {**required, **{name: optional[name] for name in chosen}}
        )
    )


ASKS = some_of(
    {"user": USERS},
    {
        "tasks_min": st.just(2),
        "queue": st.sampled_from(["normal", "other"]),
        "project": st.sampled_from(["p", "p/q"]),
        "group": st.sampled_from(["g1", "g2"]),
        "profile": st.just("app"),
        "resreq": st.sampled_from(
            [
                ("rusage[mem=50]",),
                ("rusage[mem=50/task]",),
                ("rusage[mem=90/job]",),
                ("rusage[mem=80||mem=20]",),
                ("span[hosts=1]",),
                ("span[ptile=1] rusage[mem=50]",),
                ("order[mem]",),
                ("1*{rusage[mem=50]}+2*{select[slots>0]}",),
            ]
        ),
        "is_exclusive": st.just(True),
        "run_limit_us": st.integers(1, 2_000_000_000),
    },
)
QUEUES = some_of(
    {"name": st.sampled_from(["normal", "other"])},
    {
        "slots": st.integers(0, 4),
        "user_slots": st.integers(0, 3),
        "host_slots": st.integers(0, 3),
        "processor_slots_milli": st.sampled_from([300, 500]),
        "host_jobs": st.integers(0, 2),
        "hosts": st.sampled_from(["h1", "h1+2 others", "all ~h0", "h0 h1!"]),
        "users": st.sampled_from(["u1 u2", "g1", "all ~u2"]),
        "hosts_max": st.integers(1, 2),
        "tasks_max": st.integers(1, 3),
        "tasks_min": st.integers(1, 2),
        "allows_exclusive": st.booleans(),
        "project": st.sampled_from(["p", ""]),
        "user_priority_max": st.integers(0, 2),
    },
)
GROUPS = some_of(
    {"name": st.sampled_from(["g1", "g2"]), "members": st.sampled_from(["u1", "u1 u2", "u3", ""])},
    {
        "slots_max": st.integers(0, 4),
        "user_slots_max": st.integers(0, 3),
        "jobs_max": st.integers(0, 3),
        "default_project": st.sampled_from(["p", ""]),
    },
)
PROJECTS = st.fixed_dictionaries(
    {"path": st.sampled_from(["p", "p/q"]), "users": st.sampled_from(["u1", "u1 u2 u3"])},
    optional={
        "groups": st.just("g1"),
        "slots": st.integers(1, 5),
        "jobs": st.integers(1, 3),
        "is_open": st.booleans(),
    },
)
PROFILES = st.builds(
    ProfileSpec,
    resreq=st.sampled_from([(), ("select[slots>0]",)]),
    resreq_mark=st.sampled_from(list(Mark)),
    tasks_min=st.sampled_from([None, 1, 3]),
    tasks_mark=st.sampled_from([Mark.DEFAULT, Mark.FIXED]),
)
MEMBERS = st.builds(
    UserSpec,
    slots_max=st.sampled_from([None, 0, 2]),
    processor_slots_max_milli=st.sampled_from([None, 500]),
)
NAMES = st.sampled_from(["l1", "l2"])
ANY_JOB = st.integers(0, 30)
VALUES: dict[str, tuple[int, tuple[st.SearchStrategy[Any], ...]]] = {
    "job": (14, (ASKS, st.sampled_from([0, 0, 0, 1, 3]))),
    "session": (8, ()),
    "finish": (5, (ANY_JOB,)),
    "limit": (5, (NAMES, limits())),
    "unlimit": (1, (NAMES,)),
    "queue": (2, (QUEUES,)),
    "group": (1, (GROUPS,)),
    "project": (1, (PROJECTS,)),
    "profile": (1, (PROFILES,)),
    "user": (1, (USERS, MEMBERS)),
    "kill": (1, (ANY_JOB,)),
    "stop": (1, (ANY_JOB,)),
    "suspended": (1, (ANY_JOB,)),
    "switch": (2, (ANY_JOB, st.sampled_from(["normal", "other"]))),
    "host": (1, (st.integers(0, 4), st.sampled_from([None, 100, 300]))),
    "time": (1, (st.integers(1, 3_000),)),
}
"""What may happen: how often, and with which values."""

KINDS = st.sampled_from([kind for kind, (weight, _) in VALUES.items() for _ in range(weight)])


@st.composite
def steps_of(draw: st.DrawFn) -> list[Any]:
    """
    Return a limit and some twenty steps more; jobs and sessions are the most frequent ones.
    """
    kinds = ["limit", *draw(st.lists(KINDS, min_size=12, max_size=40))]
    return [(kind, *(draw(values) for values in VALUES[kind][1])) for kind in kinds]


STEPS = steps_of()
CHAINS = st.sampled_from([("parjob", "fill"), ("fill",)])
PICKERS = st.sampled_from(["builtin_fcfs", "strict_fcfs"])


def begun(chain: tuple[str, ...], picker: str, *, plain: bool = False) -> Scenario:
    """
    Return a scenario of two hosts, two queues and two groups.
    """
    scenario = Scenario(some_settings(allocators=chain, picker=picker), plain=plain)
    queue(scenario, "other", priority=40, allows_exclusive=True)
    group(scenario, "g1", "u1 u2")
    group(scenario, "g2", "u3")
    scenario.command(a_host("h0", 6, 300))
    scenario.command(a_host("h1", 5, 200))
    return scenario


def play(scenario: Scenario, step: tuple[Any, ...]) -> None:
    """
    Play one step; what is refused changes nothing.
    """
    before = scenario.core.snapshot()
    try:
        _play(scenario, *step)
    except XceError:
        assert before == scenario.core.snapshot()


def _play(scenario: Scenario, kind: str, *values: Any) -> None:  # noqa: C901, PLR0912 - a table
    jobs = list(scenario.state.stored.jobs.values())
    if kind == "job":
        asked = dict(values[0])
        least = asked.get("tasks_min", 1)
        scenario.submit(f"J{len(jobs)}", **asked, tasks_max=least + values[1])
        for job in scenario.state.stored.jobs.values():
            scenario.ids[job.job_id] = job.job_id
    elif kind == "limit":
        scenario.command(DefineLimit(limit=values[0], spec=values[1]))
    elif kind == "unlimit":
        scenario.command(RemoveLimit(limit=values[0]))
    elif kind == "queue":
        queue(scenario, **values[0])
    elif kind == "group":
        group(scenario, **values[0])
    elif kind == "project":
        project(scenario, **values[0])
    elif kind == "profile":
        scenario.command(DefineProfile(profile="app", spec=values[0]))
    elif kind == "user":
        scenario.command(DefineUser(user=values[0], spec=values[1]))
    elif kind == "host":
        scenario.command(a_host(f"h{len(scenario.state.hosts)}", values[0], values[1]))
    elif kind == "time":
        scenario.pass_time(values[0])
    elif kind == "session":
        scenario.session()
    elif jobs:
        job = jobs[values[0] % len(jobs)]
        if kind in ("finish", "suspended"):
            if job.allocation is not None:
                getattr(scenario, kind)(job.job_id)
        elif kind == "kill":
            scenario.command(KillJob(job_id=job.job_id))
        elif kind == "stop":
            scenario.command(StopJob(job_id=job.job_id))
        else:
            scenario.command(SwitchJob(job_id=job.job_id, queue=values[1]))


@settings(max_examples=examples(200))
@given(CHAINS, PICKERS, STEPS)
def test_safety_the_fast_core_decides_as_the_literal_one(
    chain: tuple[str, ...], picker: str, steps: list[Any]
) -> None:
    """
    Groups of equal requests, their fingerprints and epochs know all that limits and rights depend
    on.
    """
    fast, slow = begun(chain, picker), begun(chain, picker, plain=True)
    for step in [*steps, ("session",), ("time", 1_300), ("session",), ("session",)]:
        play(fast, step)
        play(slow, step)
        assert slow.log == fast.log

    assert slow.core.snapshot() == fast.core.snapshot()


@settings(max_examples=examples(120))
@given(CHAINS, PICKERS, STEPS)
def test_safety_charges_kept_equal_those_derived_afresh(
    chain: tuple[str, ...], picker: str, steps: list[Any]
) -> None:
    """
    After every step: what is in use of each budget is what the live jobs' allocations say.
    """
    scenario = begun(chain, picker)
    for step in [*steps, ("session",)]:
        play(scenario, step)
        state = scenario.state
        afresh = Limits(state.stored, state.capacity)
        afresh.define(state.live.values())
        assert afresh.in_use() == state.limits.in_use()
    loaded = load_state(scenario.core.snapshot())
    restored = State(loaded, Core().plugins.pickers[picker]())
    assert restored.limits.in_use() == scenario.state.limits.in_use()


@settings(max_examples=examples(120))
@given(CHAINS, PICKERS, STEPS)
def test_safety_no_session_takes_more_than_a_limit_holds(
    chain: tuple[str, ...], picker: str, steps: list[Any]
) -> None:
    """
    Whatever a session adds to a budget is within its bound, on each host and in all.
    """
    scenario = begun(chain, picker)
    for step in [*steps, ("session",)]:
        if step[0] != "session":
            play(scenario, step)
            continue
        before = scenario.state.limits.in_use()
        scenario.session()
        _assert_within(scenario.state, before)


def _assert_within(state: State, before: dict[tuple[str, str, str], list[int]]) -> None:
    used = state.limits.in_use()
    for job in state.live.values():
        for budget in state.limits.budgets_of(job.spec):
            after = np.array(used.get(budget.key, [0]))
            grown = after > np.array(before.get(budget.key, [0] * len(after)))
            left = state.limits.headroom(budget)
            if budget.rule.windows is None and grown.any():
                whole = state.limits.headroom(budget, is_empty=True)
                assert (np.where(grown, after, 0) <= whole).all(), (budget.key, after, whole)
                assert (np.asarray(left) >= 0).all()


@settings(max_examples=examples(80))
@given(CHAINS, PICKERS, STEPS, st.integers(0, 30))
def test_safety_a_restored_core_goes_on_alike(
    chain: tuple[str, ...], picker: str, steps: list[Any], cut: int
) -> None:
    """
    Nothing of limits, rights or merged values is kept that a snapshot doesn't bring back.
    """
    kept = begun(chain, picker)
    for step in steps[:cut]:
        play(kept, step)
    restored = begun(chain, picker)
    restored.core = Core.restore(kept.core.snapshot())
    restored.now_us, restored.ids = kept.now_us, dict(kept.ids)
    mark, begin = len(kept.log), len(restored.log)
    for step in [*steps[cut:], ("session",)]:
        play(kept, step)
        play(restored, step)

    assert kept.log[mark:] == restored.log[begin:]
    assert kept.core.snapshot() == restored.core.snapshot()
