"""
Properties of preemption, on small full clusters where nearly every session suspends somebody.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from domain.commands import DefineQueue, DefineResource, DefineUser
from domain.events.jobs import JobPreemptionPlanned, JobSuspendOrdered
from domain.job_states import JobState
from domain.name_lists import parse_names
from domain.preemption import OnPreempt, Preemption
from domain.queues import QueueSpec
from domain.resources import ResourceDescriptor, ResourceScope, SharedTotal
from domain.users import UserSpec
from projections.scheduling.core import Core
from projections.scheduling.derived import derived
from projections.scheduling.plugins import Plugins
from projections.scheduling.watches import order_of
from tests.builders import SECOND_US, a_host, some_settings
from tests.examples import examples
from tests.projections.scheduling.policies import limit
from tests.projections.scheduling.test_core_props import invariants, play
from tests.scenario import Scenario

JOBS = st.fixed_dictionaries(
    {"queue": st.sampled_from(["lo", "mid", "hi", "hi", "other"])},
    optional={
        "resreq": st.sampled_from(
            [("rusage[mem=90]",), ("rusage[lic=1]",), ("span[hosts=1]",), ("rusage[lic=1:mem=80]",)]
        ),
        "tasks_min": st.just(2),
        "tasks_max": st.sampled_from([2, 3]),
        "user_priority": st.integers(0, 2),
        "run_limit_us": st.integers(1, 500).map(lambda seconds: seconds * SECOND_US),
    },
)
EACH = st.integers(0, 30)
STEPS = st.lists(
    st.one_of(
        *[st.tuples(st.just("life"), JOBS)] * 5,
        *[st.tuples(st.just("session"))] * 5,
        *[st.tuples(st.just("stopped all"))] * 3,
        *[st.tuples(st.just("finish"), EACH)] * 2,
        st.tuples(st.just("suspended"), EACH),
        st.tuples(st.just("resumed"), EACH),
        st.tuples(st.just("resumed all")),
        st.tuples(
            st.sampled_from(["kill", "hold", "lift", "stop", "resume", "requeue", "top"]), EACH
        ),
        st.tuples(st.just("switch"), EACH, st.sampled_from(["lo", "hi"])),
        st.tuples(st.sampled_from(["close", "open", "open", "silent"]), st.integers(0, 2)),
        st.tuples(st.just("report"), st.integers(0, 2), st.integers(0, 250), st.integers(0, 150)),
        st.tuples(st.just("time"), st.integers(1, 300)),
    ),
    min_size=20,
    max_size=60,
)
HOSTS = st.lists(
    st.tuples(st.integers(1, 3), st.sampled_from([None, 150, 250])), min_size=1, max_size=3
)
SETTINGS = st.builds(
    Preemption,
    resources=st.sampled_from([(), ("mem",)]),
    times_max=st.sampled_from([None, None, 1]),
    delay_us=st.sampled_from([0, 0, 50 * SECOND_US]),
    no_interval_us=st.sampled_from([0, 0, 50 * SECOND_US]),
)
PICKERS = st.sampled_from(["builtin_fcfs", "builtin_fcfs", "strict_fcfs"])
CHAINS = st.sampled_from([("parjob", "fill"), ("fill",)])
ENDS = st.sampled_from([OnPreempt.SUSPEND, OnPreempt.SUSPEND, *OnPreempt])
BOUNDS = st.sampled_from([None, None, {"jobs": 2}, {"slots": 2}, {"jobs": 3, "slots": 3}])
MOST = st.sampled_from([1, 3, 10_000])


def scenario_of(
    values: dict[str, Any], *, plain: bool, plugins: Plugins | None = None
) -> Scenario:
    """
    Return a scenario with a chain of three queues and one that has no part in it.
    """
    chosen = some_settings(
        allocators=values["chain"],
        picker=values["picker"],
        session_max_decisions=values["most"],
        preemption=values["preemption"],
    )
    scenario = Scenario(chosen, plain=plain, plugins=plugins)
    every = parse_names("all")
    specs = {
        "lo": QueueSpec(priority=10, preemptible_by=every, on_preempt=values["ends"]),
        "mid": QueueSpec(priority=50, preemptible_by=every, preemptible_queues=every),
        "hi": QueueSpec(priority=90, preemptible_queues=every),
        "other": QueueSpec(priority=40),
    }
    for name, spec in specs.items():
        scenario.command(DefineQueue(queue=name, spec=spec))
    if values.get("bound"):
        limit(scenario, "bound", users="alice", **values["bound"])
        most = UserSpec(slots_max=values["bound"].get("slots"))
        scenario.command(DefineUser(user="alice", spec=most))
    licence = ResourceDescriptor(
        name="lic",
        scope=ResourceScope.SHARED,
        totals=(SharedTotal(total_milli=1000),),
        is_consumable=True,
        release_on_suspend=True,
    )
    scenario.command(DefineResource(descriptor=licence))
    for number, (slots, mem_mb) in enumerate(values["hosts"]):
        scenario.command(a_host(f"h{number}", slots, mem_mb))
    for number in range(sum(slots for slots, _ in values["hosts"])):
        play(scenario, ("life", {"queue": ("lo", "lo", "mid")[number % 3]}))
    for _ in values["hosts"] * 5:
        scenario.session()
    return scenario


CASES = st.fixed_dictionaries(
    {
        "hosts": HOSTS,
        "chain": CHAINS,
        "picker": PICKERS,
        "most": MOST,
        "preemption": SETTINGS,
        "ends": ENDS,
        "bound": BOUNDS,
    }
)


def act(scenario: Scenario, step: tuple[Any, ...]) -> None:
    """
    Play one step, also those that confirm all orders that stand.
    """
    if step[0] not in ("stopped all", "resumed all"):
        play(scenario, step)
        return
    for job in sorted(scenario.state.live.values(), key=order_of):
        if step[0] == "stopped all" and job.suspend_order:
            play(scenario, ("suspended", _place(scenario, job.stream)))
        elif step[0] == "resumed all" and job.resume_order:
            play(scenario, ("resumed", _place(scenario, job.stream)))


def _place(scenario: Scenario, stream: str) -> int:
    return list(scenario.state.stored.jobs).index(stream)


@settings(max_examples=examples(150))
@given(CASES, STEPS)
def test_the_fast_core_preempts_as_the_literal_one(values: dict[str, Any], steps: Any) -> None:
    """
    Safety of every shortcut: the same events, and the same state.
    """
    fast, slow = scenario_of(values, plain=False), scenario_of(values, plain=True)
    for step in [*steps, ("session",), ("session",)]:
        act(fast, step)
        act(slow, step)
        assert slow.log == fast.log
        invariants(fast.state)

    assert slow.core.snapshot() == fast.core.snapshot()


@settings(max_examples=examples(100))
@given(CASES, STEPS, st.integers(0, 50))
def test_a_core_restored_in_the_middle_goes_on_alike(
    values: dict[str, Any], steps: Any, cut: int
) -> None:
    """
    Holds and victims are functions of the events, and every index is rebuilt equal.
    """
    kept, restored = scenario_of(values, plain=False), None
    for place, step in enumerate([*steps, ("session",)]):
        if place == min(cut, len(steps)):
            restored = scenario_of(values, plain=False)
            restored.core = Core.restore(kept.core.snapshot())
            restored.now_us, restored.ids, mark = kept.now_us, dict(kept.ids), len(kept.log)
        act(kept, step)
        if restored is not None:
            act(restored, step)

    assert restored is not None
    assert kept.log[mark:] == restored.log[len(restored.log) - len(kept.log[mark:]) :]
    assert kept.core.snapshot() == restored.core.snapshot()
    assert derived(kept.state) == derived(restored.state)


@settings(max_examples=examples(150))
@given(CASES, STEPS)
def test_nobody_is_suspended_in_vain_nor_twice_for_the_same(
    values: dict[str, Any], steps: Any
) -> None:
    """
    Safety: a job whose victims have all stopped starts in the next session, when nothing else has
    happened meanwhile; and no victim that has gone on is stopped again for the same job.
    """
    scenario = scenario_of({**values, "picker": "builtin_fcfs", "most": 10_000}, plain=False)
    stopped: set[tuple[str, int, str]] = set()
    for step in [*steps, ("session",)]:
        before = len(scenario.log)
        act(scenario, step)
        for stamped in scenario.log[before:]:
            event = stamped.event
            if isinstance(event, JobSuspendOrdered) and event.preemptor:
                key = (stamped.stream, event.attempt, event.preemptor)
                assert key not in stopped
                stopped.add(key)
        planned = [
            stamped.stream
            for stamped in scenario.log[before:]
            if isinstance(stamped.event, JobPreemptionPlanned)
        ]
        if planned and values["ends"] is OnPreempt.SUSPEND and not _is_ending(scenario):
            act(scenario, ("stopped all",))
            scenario.session()
            for stream in planned:
                assert scenario.state.stored.jobs[stream].state is JobState.RUN


def _is_ending(scenario: Scenario) -> bool:
    """
    Say whether orders stand whose job doesn't stop but ends.
    """
    return any(job.kill_order for job in scenario.state.live.values())


@settings(max_examples=examples(100))
@given(CASES, STEPS)
def test_every_victim_goes_on_when_nothing_needs_its_hosts(
    values: dict[str, Any], steps: Any
) -> None:
    """
    Liveness: once all other jobs have ended and every host is back, no victim stays suspended.
    """
    scenario = scenario_of({**values, "most": 10_000}, plain=False)
    for step in steps:
        act(scenario, step)
    for number in range(len(values["hosts"])):
        act(scenario, ("open", number))
        act(scenario, ("report", number, 250, 0))
    for _ in range(3 * len(scenario.state.stored.jobs) + 3):
        act(scenario, ("stopped all",))
        act(scenario, ("resumed all",))
        for name, job in list(scenario.ids.items()):
            record = scenario.job(name)
            if record.state is JobState.PEND:
                scenario.kill(name)
            elif record.state is JobState.RUN and not record.preemptor:
                play(scenario, ("finish", _place(scenario, record.stream)))
            assert job
        scenario.session()

    assert [] == [
        job.job_id
        for job in scenario.state.live.values()
        # One that was told to end, also to be put back, waits for its worker.
        if job.is_aside and job.stop_actor is None and not job.kill_order
    ]
    assert not scenario.state.keepers
