"""
Properties of the core: the fast core decides as the literal one, states rebuild equal, decisions
repeat.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.amounts import MEM, Amount
from domain.arrays import ArraySpec, IndexRange
from domain.commands import (
    ConfigureWorker,
    DefineQueue,
    KillJob,
    MarkUnreachable,
    MoveJob,
    RequeueJob,
    ResumeJob,
    StopJob,
    SwitchJob,
    WorkerReport,
)
from domain.errors import XceError
from domain.events.workers import JobUsage
from domain.job_states import ENDED, LIVE
from domain.jobs import ExitRules, JobLimits
from domain.name_lists import parse_names
from domain.preemption import Preemption, Relation, Trigger
from domain.queues import QueueSpec
from domain.signals import SignalName
from domain.thresholds import LoadThreshold
from domain.windows import parse_windows
from domain.workers import HostSettings
from projections.scheduling.core import Core
from projections.scheduling.derived import CACHES, CAPACITY_CACHES, derived
from projections.scheduling.records import JobRecord, StoredState
from projections.scheduling.snapshot import load_state
from projections.scheduling.state import State
from projections.scheduling.watches import order_of
from tests.builders import MB_MILLI, SECOND_US, a_host, a_job, some_settings
from tests.examples import examples
from tests.scenario import Scenario

LIVES = st.fixed_dictionaries(
    {},
    optional={
        "array": st.builds(
            ArraySpec,
            ranges=st.just((IndexRange(start=1, end=3),)),
            started_max=st.sampled_from([None, 1, 2]),
        ),
        "dependency_text": st.sampled_from(
            ["done(1)", "!done(2)", "ended(1) && exit(2)", "started(2)"]
        ),
        "begin_us": st.integers(0, 4_000).map(lambda seconds: seconds * SECOND_US),
        "deadline_us": st.integers(0, 9_000).map(lambda seconds: seconds * SECOND_US),
        "run_limit_us": st.integers(1, 3_000).map(lambda seconds: seconds * SECOND_US),
        "rerunnable": st.booleans(),
        "exits": st.just(ExitRules(requeue=(99,), success=(7,), requeue_max=2)),
        "limits": st.just(JobLimits(memory_kib=100 * 1024)),
        "tasks_min": st.just(2),
        "tasks_max": st.just(2),
    },
)
PLANNED = st.fixed_dictionaries(
    {"tasks_min": st.just(2), "tasks_max": st.just(2)},
    optional={"run_limit_us": st.sampled_from([SECOND_US, 500 * SECOND_US])},
)
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("submit"),
            st.integers(1, 9),
            st.sampled_from([None, 50, 100, 300]),
            st.booleans(),
            st.integers(0, 1),
            st.integers(0, 3),
        ),
        st.tuples(st.just("submit"), st.integers(1, 4)),
        st.tuples(st.just("finish"), st.integers(0, 50)),
        st.tuples(st.just("life"), LIVES),
        st.tuples(st.just("life"), PLANNED),
        st.tuples(st.just("end"), st.integers(0, 50), st.sampled_from([1, 7, 99])),
        st.tuples(
            st.sampled_from(["stop", "resume", "suspended", "resumed", "requeue", "top", "bottom"]),
            st.integers(0, 50),
        ),
        st.tuples(st.just("switch"), st.integers(0, 50), st.sampled_from(["normal", "other"])),
        st.tuples(st.just("windows"), st.sampled_from([None, "0:00-0:30", "0:10-0:20 0:40-2:00"])),
        st.tuples(
            st.just("picker"),
            st.sampled_from(["normal", "other"]),
            st.sampled_from(["", "builtin_fcfs", "strict_fcfs", "shortest_first"]),
            st.sampled_from([30, 40]),
        ),
        st.tuples(st.just("kill"), st.integers(0, 50), st.booleans()),
        st.tuples(st.just("run"), st.integers(0, 50), st.integers(0, 4)),
        st.tuples(st.just("signal"), st.integers(0, 50), st.sampled_from(SignalName)),
        st.tuples(st.just("hold"), st.integers(0, 50)),
        st.tuples(st.just("lift"), st.integers(0, 50)),
        st.tuples(st.just("close"), st.integers(0, 4)),
        st.tuples(st.just("open"), st.integers(0, 4)),
        st.tuples(st.just("silent"), st.integers(0, 4)),
        st.tuples(st.just("host"), st.integers(0, 5), st.integers(0, 400)),
        st.tuples(st.just("report"), st.integers(0, 4), st.integers(0, 500), st.integers(0, 400)),
        st.tuples(
            st.just("thresholds"),
            st.integers(0, 4),
            st.sampled_from([None, 0, 200]),
            st.sampled_from([None, 100, 300]),
        ),
        st.tuples(st.just("queue"), st.sampled_from(["open", "active", "inactive"])),
        st.tuples(st.just("time"), st.integers(1, 3_000)),
        st.tuples(st.just("session")),
    ),
    min_size=12,
    max_size=40,
)
WORKERS = ("close", "open", "silent", "report", "thresholds")
ASKED = {"stop": StopJob, "resume": ResumeJob, "requeue": RequeueJob}
HOSTS = st.lists(st.tuples(st.integers(0, 6), st.sampled_from([None, 100, 250, 400])), max_size=5)
CHAINS = st.sampled_from([("parjob", "fill"), ("fill",), ("parjob",)])
PICKERS = st.sampled_from(["builtin_fcfs", "strict_fcfs", "shortest_first"])
LIMITS = st.sampled_from([1, 2, 5, 10_000])
EITHER = Preemption(relation=Relation.EITHER)
PREEMPTIONS = st.sampled_from(
    [
        None,
        EITHER,
        EITHER,
        EITHER.model_copy(update={"resources": (MEM,)}),
        EITHER.model_copy(update={"trigger": Trigger.SLOTS, "times_max": 1}),
        EITHER.model_copy(update={"delay_us": 100 * SECOND_US}),
        EITHER.model_copy(update={"no_interval_us": 100 * SECOND_US, "no_run_us": SECOND_US}),
    ]
)
"""How jobs of the queue ``other`` may suspend those of ``normal``; None for not at all."""


def scenarios_of(
    hosts: list[Any],
    chain: tuple[str, ...],
    picker: str,
    most: int,
    preemption: Preemption | None = None,
    *,
    plain: bool,
) -> Scenario:
    """
    Return a scenario with hosts and two queues.
    """
    chosen = some_settings(
        allocators=chain,
        picker=picker,
        session_max_decisions=most,
        preemption=preemption or Preemption(),
        end_orphans=True,
        orphan_grace_us=300 * SECOND_US,
        hung_after_us=900 * SECOND_US,
    )
    scenario = Scenario(chosen, plain=plain)
    preys = None if preemption is None else parse_names("all")
    spec = QueueSpec(priority=40, preemptible_queues=preys)
    scenario.command(DefineQueue(queue="other", spec=spec))
    for number, (slots, mem_mb) in enumerate(hosts):
        scenario.command(a_host(f"h{number}", slots, mem_mb))
    return scenario


def play(scenario: Scenario, step: tuple[Any, ...]) -> None:
    """
    Play one step; what is refused changes nothing.
    """
    try:
        _play(scenario, step)
    except XceError:
        return


def _play(scenario: Scenario, step: tuple[Any, ...]) -> None:  # noqa: C901, PLR0912, PLR0915 - a table
    kind, values = step[0], step[1:]
    jobs = list(scenario.state.stored.jobs.values())
    workers = scenario.state.hosts
    if kind == "submit":
        tasks, mem_mb, per_task, high, more = (*values, None, False, 0, 0)[:5]
        queue = "other" if high else "normal"
        command = a_job(
            tasks, tasks_max=tasks + more, mem_mb=mem_mb, per_task=per_task, queue=queue
        )
        made = scenario.command(command)
        job = scenario.state.stored.jobs[made[0].stream]
        scenario.ids[job.job_id] = job.job_id
    elif kind == "session":
        scenario.session()
    elif kind == "time":
        scenario.pass_time(values[0])
    elif kind == "queue":
        scenario.set_queue("normal", values[0])
    elif kind == "host":
        scenario.command(a_host(f"h{len(workers)}", values[0], values[1] or None))
    elif kind in WORKERS and workers:
        worker = workers[values[0] % len(workers)]
        if kind == "silent":
            scenario.command(
                MarkUnreachable(
                    worker=worker.name, incarnation=worker.incarnation, silent_us=SECOND_US
                )
            )
        elif kind == "thresholds":
            _bound_load(scenario, worker.name, values[1], values[2])
        elif kind == "report":
            _report(scenario, worker, values[1], values[2])
        else:
            getattr(scenario, kind)(worker.name)
    elif kind == "life":
        scenario.submit(f"J{len(jobs)}", **values[0])
        for job in scenario.state.stored.jobs.values():
            scenario.ids[job.job_id] = job.job_id
    elif kind == "picker":
        name, picker, priority = values
        spec = scenario.state.stored.queues[name].spec
        changes = {"picker": picker, "priority": priority}
        scenario.command(DefineQueue(queue=name, spec=spec.model_copy(update=changes)))
    elif kind == "windows":
        windows = parse_windows(values[0]) if values[0] else None
        spec = QueueSpec(priority=30, run_windows=windows)
        scenario.command(DefineQueue(queue="normal", spec=spec))
    elif jobs and kind not in WORKERS:
        job = jobs[values[0] % len(jobs)]
        if kind == "finish":
            if job.allocation is not None:
                scenario.finish(job.job_id)
        elif kind == "kill":
            scenario.command(KillJob(job_id=job.job_id, force=bool(values[1:] and values[1])))
        elif kind == "run":
            _run(scenario, job, values[1])
        elif kind == "signal":
            scenario.signal(job.job_id, values[1])
        elif kind == "end":
            if job.allocation is not None:
                scenario.finish(job.job_id, exit_code=values[1])
        elif kind == "switch":
            scenario.command(SwitchJob(job_id=job.job_id, queue=values[1]))
        elif kind in ("top", "bottom"):
            scenario.command(MoveJob.model_validate({"job_id": job.job_id, "to": kind}))
        elif kind in ASKED:
            scenario.command(ASKED[kind](job_id=job.job_id))
        elif kind in ("suspended", "resumed"):
            if job.allocation is not None:
                getattr(scenario, kind)(job.job_id)
        else:
            getattr(scenario, kind)(job.job_id)


def _run(scenario: Scenario, job: JobRecord, place: int) -> None:
    """
    Have a job started on one host or on two, which may have no room.
    """
    hosts = scenario.state.hosts
    names = [hosts[(place + more) % len(hosts)].name for more in range(2)] if hosts else []
    names = names[: 1 + (job.spec.tasks_min > 1 and len(hosts) > 1)]
    if names:
        scenario.run(job.job_id, f"{names[0]}*{job.spec.tasks_min - len(names) + 1}", *names[1:])


def _bound_load(
    scenario: Scenario, host: str, stop_mb: int | None, sched_mb: int | None
) -> None:
    """
    Bound the free memory of a host, or no longer.
    """
    bounds = [None if each is None else each * MB_MILLI for each in (sched_mb, stop_mb)]
    threshold = LoadThreshold(index=MEM, sched_milli=bounds[0], stop_milli=bounds[1])
    thresholds = () if bounds == [None, None] else (threshold,)
    settings = HostSettings(thresholds=thresholds)
    scenario.command(ConfigureWorker(worker=host, settings=settings))


def _report(scenario: Scenario, worker: Any, free_mb: int, used_mb: int) -> None:
    # A restored state knows its live jobs in another order.
    live = sorted(scenario.state.live.values(), key=order_of)
    on_host = [job for job in live if job.allocation is not None]
    scenario.command(
        WorkerReport(
            worker=worker.name,
            incarnation=worker.incarnation,
            load=(Amount(resource=MEM, milli=free_mb * MB_MILLI),),
            jobs=tuple(
                JobUsage(
                    job_id=job.job_id,
                    attempt=job.attempt,
                    amounts=(Amount(resource=MEM, milli=used_mb * MB_MILLI),),
                )
                for job in on_host[:2]
            ),
        )
    )


def invariants(state: State) -> None:
    """
    Check what holds at every moment: capacities respected, one allocation a live job, indexes equal
    when rebuilt.
    """
    capacity = state.capacity
    assert (capacity.usable >= 0).all()
    assert int(capacity.usable.sum()) == capacity.usable_total
    assert {job.stream for job in state.stored.jobs.values() if job.state in LIVE} == set(
        state.live
    )
    used = np.zeros(capacity.hosts, np.int64)
    for job in state.live.values():
        assert job.allocation is not None
        for number, tasks, _ in job.allocation.shares():
            used[number] += tasks
    assert (used == capacity.used).all()
    for job in state.victims.values():
        assert job.allocation is not None
        for number, tasks, _ in job.allocation.shares() if job.is_aside else ():
            used[number] -= tasks
    for job in state.live.values():
        # An operator may put as many on a host as they like.
        for number, tasks, _ in job.allocation.shares() if job.is_forced and job.allocation else ():
            used[number] -= tasks
    assert (used <= capacity.slots).all()


@settings(max_examples=examples(150))
@given(HOSTS, CHAINS, PICKERS, LIMITS, PREEMPTIONS, STEPS)
def test_the_fast_core_decides_as_the_literal_one(
    hosts: list[Any],
    chain: tuple[str, ...],
    picker: str,
    most: int,
    preemption: Preemption | None,
    steps: list[Any],
) -> None:
    """
    Safety of every shortcut: the same commands give the same events, byte for byte, and the same
    state.
    """
    fast = scenarios_of(hosts, chain, picker, most, preemption, plain=False)
    slow = scenarios_of(hosts, chain, picker, most, preemption, plain=True)
    for step in [*steps, ("session",), ("session",)]:
        play(fast, step)
        play(slow, step)
        assert slow.log == fast.log

    assert slow.core.snapshot() == fast.core.snapshot()


@settings(max_examples=examples(80))
@given(HOSTS, CHAINS, PICKERS, LIMITS, PREEMPTIONS, STEPS, st.integers(0, 40))
def test_a_restored_core_equals_the_one_that_went_on(
    hosts: list[Any],
    chain: tuple[str, ...],
    picker: str,
    most: int,
    preemption: Preemption | None,
    steps: list[Any],
    cut: int,
) -> None:
    """
    Snapshot + rest = full fold: state, indexes and later decisions are the same.
    """
    kept = scenarios_of(hosts, chain, picker, most, preemption, plain=False)
    restored = None
    for place, step in enumerate([*steps, ("session",)]):
        if place == min(cut, len(steps)):
            restored = scenarios_of(hosts, chain, picker, most, preemption, plain=False)
            restored.core = Core.restore(kept.core.snapshot())
            restored.now_us, restored.ids = kept.now_us, dict(kept.ids)
            mark = len(kept.log)
        play(kept, step)
        if restored is not None:
            play(restored, step)
        invariants(kept.state)

    assert restored is not None
    assert kept.log[mark:] == restored.log[len(restored.log) - len(kept.log[mark:]) :]
    assert kept.core.snapshot() == restored.core.snapshot()
    assert derived(kept.state) == derived(restored.state)


@settings(max_examples=examples(80))
@given(HOSTS, CHAINS, PICKERS, LIMITS, PREEMPTIONS, STEPS)
def test_folding_the_log_gives_the_state_and_its_indexes(
    hosts: list[Any],
    chain: tuple[str, ...],
    picker: str,
    most: int,
    preemption: Preemption | None,
    steps: list[Any],
) -> None:
    """
    State = fold(events), and what is derived incrementally equals what is derived afresh.
    """
    scenario = scenarios_of(hosts, chain, picker, most, preemption, plain=False)
    for step in [*steps, ("session",)]:
        play(scenario, step)
    folded = Core()
    for stamped in scenario.log:
        folded.apply(stamped)
    afresh = State(load_state(scenario.core.snapshot()), folded.plugins.pickers[picker]())

    assert scenario.core.snapshot() == folded.snapshot()
    for state in (folded.state, afresh):
        assert derived(scenario.state) == derived(state)


@settings(max_examples=examples(60))
@given(HOSTS, CHAINS, PICKERS, PREEMPTIONS, STEPS)
def test_empty_sessions_change_no_decision(
    hosts: list[Any],
    chain: tuple[str, ...],
    picker: str,
    preemption: Preemption | None,
    steps: list[Any],
) -> None:
    """
    Conformance of the pickers: sessions that decide nothing, as a restored core knows, may be
    inserted anywhere.
    """
    once = scenarios_of(hosts, chain, picker, 10_000, preemption, plain=False)
    often = scenarios_of(hosts, chain, picker, 10_000, preemption, plain=False)
    for step in [*steps, ("session",)]:
        play(once, step)
        play(often, step)
        if not Core.restore(often.core.snapshot()).session(often.now_us):
            assert often.core.session(often.now_us) == []
            assert often.core.session(often.now_us) == []

    assert once.log == often.log


@settings(max_examples=examples(60))
@given(HOSTS, CHAINS, PICKERS, LIMITS, PREEMPTIONS, STEPS)
def test_every_waiting_job_that_was_considered_has_a_reason(
    hosts: list[Any],
    chain: tuple[str, ...],
    picker: str,
    most: int,
    preemption: Preemption | None,
    steps: list[Any],
) -> None:
    """
    The full list of reasons is never empty.
    """
    scenario = scenarios_of(hosts, chain, picker, most, preemption, plain=False)
    for step in [*steps, ("session",)]:
        play(scenario, step)

    kept: StoredState = scenario.state.stored
    assert all(found.reasons for found in kept.reason_sets.values())
    for job in kept.jobs.values():
        if job.reason_set:
            assert job.state not in ENDED | LIVE
            assert job.reason_set in kept.reason_sets


def test_every_index_is_compared_or_named_as_a_cache() -> None:
    """
    A new index takes part in the comparison, unless somebody says why it needn't.
    """
    state = Scenario().state
    known = derived(state)

    for name in vars(state):
        assert name in known or name in CACHES or name.startswith("_"), name
    for name in vars(state.capacity):
        is_cache = name in CAPACITY_CACHES or name.startswith("_")
        assert f"capacity.{name}" in known or is_cache, name
