"""
What is foreseen by counting is what ending one job after the other foresees: moments, hosts, and
what must be kept, on hosts that differ, for requests of every kind.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.amounts import MEM, Amount
from domain.commands import WorkerReport
from domain.events.workers import JobUsage
from domain.job_states import JobState
from domain.reservations import KeptRun
from projections.scheduling.endings import Endings
from projections.scheduling.forecast import Forecasts
from projections.scheduling.foreseen import Wanted
from projections.scheduling.request import Request
from tests.builders import MB_MILLI, SECOND_US, a_host, some_settings
from tests.examples import examples
from tests.projections.scheduling.test_core_props import CHAINS, STEPS
from tests.projections.scheduling.test_planning_props import take
from tests.scenario import Scenario


class OneByOne(Forecasts):
    """
    Foresee as the specification has it.
    """

    def _can_count(self, request: Request) -> bool:
        return False

    def _is_by_host(self, wanted: Wanted) -> bool:
        return False


RESREQS = [
    "rusage[mem=60]", "rusage[mem=60/task]", "rusage[mem=150]", "rusage[gpu=1]", "rusage[gpu=0.6]",
    "rusage[gpu=1.5/task]", "rusage[mem=60,gpu=1/task]", "span[hosts=1]", "span[ptile=2]",
    "span[ptile=2] rusage[mem=60]", "span[ptile=3] rusage[gpu=1/task]", "span[block=2]",
    "span[stripe]", "span[ptile='!']", "select[big]", "select[big] rusage[mem=60] span[hosts=1]",
    "select[mem>50]", "order[-slots]", "order[mem]", "same[big]",
    "{select[big]} || {span[hosts=1]}", "1*{select[big]}+1*{rusage[mem=60]}",
]  # fmt: skip
HOSTS = st.lists(
    st.tuples(
        st.integers(1, 4), st.sampled_from([None, 100, 300]), st.integers(0, 2), st.booleans()
    ),
    min_size=1,
    max_size=4,
)
OTHERS = st.one_of(
    st.just(("session",)),
    st.just(("session",)),
    st.tuples(st.just("time"), st.sampled_from([1, 5, 50, 500])),
    st.tuples(st.just("ends"), st.integers(0, 9)),
    st.tuples(st.just("report"), st.integers(0, 3), st.integers(0, 300), st.integers(0, 200)),
    STEPS.map(lambda steps: steps[0]),
)


def lives(resreqs: list[str]) -> st.SearchStrategy[list[Any]]:
    """
    Return what happens where jobs ask for one of a few things, so that some wait for others.
    """
    jobs = st.builds(
        lambda tasks, more, resreq, exclusive, run_s: {
            "tasks_min": tasks, "tasks_max": tasks + more, "resreq": (resreq,) if resreq else (),
            "is_exclusive": exclusive, "run_limit_us": run_s and run_s * SECOND_US,
        },
        st.integers(1, 4), st.sampled_from([0, 0, 0, 2]), st.sampled_from(resreqs),
        st.sampled_from([False, False, True]), st.sampled_from([10, 100, 1_000, 1_000, None]),
    )  # fmt: skip
    return st.lists(st.one_of(st.tuples(st.just("life"), jobs), OTHERS), min_size=10, max_size=30)


LIFE = st.lists(st.sampled_from(["", *RESREQS]), min_size=1, max_size=3).flatmap(lives)
RUNS = st.lists(
    st.builds(
        lambda first, hosts, slots, mem: KeptRun(
            first=first,
            hosts=hosts,
            slots=slots,
            amounts=(Amount(resource=MEM, milli=mem * MB_MILLI),) if mem else (),
        ),
        st.integers(0, 2), st.integers(1, 2), st.integers(0, 3), st.sampled_from([0, 0, 40]),
    ),
    max_size=3,
).map(tuple)  # fmt: skip
WANTED = st.lists(st.tuples(st.integers(0, 2_000), RUNS), max_size=4)


def scenario_of(hosts: list[Any], chain: tuple[str, ...], picker: str) -> Scenario:
    """
    Return a cluster of hosts that differ.
    """
    scenario = Scenario(some_settings(picker=picker, allocators=chain))
    scenario.queue("other", 40)
    for number, (slots, mem_mb, gpus, is_big) in enumerate(hosts):
        more = {"big": "yes"} if is_big else {}
        scenario.command(a_host(f"h{number}", slots, mem_mb, gpus=gpus, **more), actor="")
    return scenario


def within(runs: tuple[KeptRun, ...], hosts: int) -> tuple[KeptRun, ...]:
    """
    Return the runs that the cluster has.
    """
    return tuple(run for run in runs if run.first + run.hosts <= hosts)


def compare(scenario: Scenario, beside: tuple[KeptRun, ...], wanted: list[Any]) -> None:
    """
    Ask both of every waiting job, and what must be kept.
    """
    state = scenario.state
    fast, plain = state.foresight, OneByOne(state, scenario.core._runner)
    assert fast is not None
    hosts = state.capacity.hosts
    for job in state.stored.jobs.values():
        if job.state is JobState.PEND:
            for kept in ((), within(beside, hosts)):
                assert plain.of(job, kept) == fast.of(job, kept), job.spec
    some = [
        (scenario.now_us + seconds * SECOND_US, within(runs, hosts)) for seconds, runs in wanted
    ]
    assert plain.kept_for(some) == fast.kept_for(some)


@settings(max_examples=examples(150), deadline=None)
@given(HOSTS, CHAINS, st.sampled_from(["easy", "conservative", "builtin_fcfs"]), LIFE, RUNS, WANTED)
def test_counting_foresees_what_ending_one_job_after_the_other_does(
    hosts: list[Any],
    chain: tuple[str, ...],
    picker: str,
    steps: list[Any],
    beside: tuple[KeptRun, ...],
    wanted: list[Any],
) -> None:
    """
    Whatever happens meanwhile; a core that foresees one by one decides alike, byte for byte.
    """
    counting, plain = scenario_of(hosts, chain, picker), scenario_of(hosts, chain, picker)
    plain.state.foresight = OneByOne(plain.state, plain.core._runner)
    for step in [*steps, ("session",)]:
        take(counting, step)
        take(plain, step)
        if step[0] in ("session", "life"):
            compare(counting, beside, wanted)
    assert plain.log == counting.log


def running(*, runs: int, mem_mb: int = 0) -> Scenario:
    """
    Return two hosts: one idle, and one full of jobs that end after 100 s, 200 s and so on.
    """
    scenario = scenario_of([(4, 300, 0, False), (runs, 300, 0, True)], ("fill",), "easy")
    memory = f" rusage[mem={mem_mb}]" if mem_mb else ""
    for number in range(1, runs + 1):
        scenario.submit(
            f"R{number}",
            resreq=(f"select[big]{memory}",),
            run_limit_us=100 * number * SECOND_US,
        )
    scenario.session()
    return scenario


def foreseen(scenario: Scenario, name: str, beside: tuple[KeptRun, ...] = ()) -> int | None:
    """
    Return in how many seconds a job could start, as both foresee it.
    """
    job, state = scenario.job(name), scenario.state
    assert state.foresight is not None
    found = state.foresight.of(job, beside)
    assert found == OneByOne(state, scenario.core._runner).of(job, beside)
    assert found is not None
    assert found.start_us is not None
    return (found.start_us - scenario.now_us) // SECOND_US


def report(scenario: Scenario, *, free_mb: int, used_mb: int, name: str = "R1") -> None:
    """
    Report what the second host has free, and what a job uses there.
    """
    job = scenario.job(name)
    used = Amount(resource=MEM, milli=used_mb * MB_MILLI)
    scenario.command(
        WorkerReport(
            worker="h1",
            incarnation=1,
            load=(Amount(resource=MEM, milli=free_mb * MB_MILLI),),
            jobs=(JobUsage(job_id=job.job_id, attempt=job.attempt, amounts=(used,)),),
        )
    )


@pytest.mark.parametrize(("runs", "start_s"), [(1, 0), (2, 200)])
def test_a_host_kept_for_others_is_idle_while_nobody_has_ended(runs: int, start_s: int) -> None:
    """
    That no job need end is asked last, when one would be enough, whoever asks.
    """
    scenario = running(runs=runs)
    scenario.submit("E", is_exclusive=True, run_limit_us=SECOND_US)

    assert start_s == foreseen(scenario, "E", (KeptRun(first=0, slots=1),))


def test_a_job_that_uses_more_than_it_reserved_gives_back_all_of_it() -> None:
    """
    What was seen after a job's end was foreseen first counts too.
    """
    scenario = running(runs=1, mem_mb=100)
    scenario.submit("W", resreq=("select[big] rusage[mem=250]",), run_limit_us=SECOND_US)
    assert foreseen(scenario, "W") == 100

    report(scenario, free_mb=300, used_mb=250)

    assert foreseen(scenario, "W") == 100


def test_what_a_job_reserved_and_didnt_use_is_measured_as_free_when_it_has_ended() -> None:
    """
    Of 120 MB that are free 100 are reserved until then.
    """
    scenario = running(runs=1, mem_mb=100)
    report(scenario, free_mb=120, used_mb=0)
    wanted = KeptRun(first=1, slots=1, amounts=(Amount(resource=MEM, milli=110 * MB_MILLI),))
    later = [(scenario.now_us + 100 * SECOND_US, (wanted,))]
    fast, plain = scenario.state.foresight, OneByOne(scenario.state, scenario.core._runner)

    assert fast is not None
    kept = KeptRun(first=1, slots=0, amounts=(Amount(resource=MEM, milli=10 * MB_MILLI),))
    assert (kept,) == fast.kept_for(later) == plain.kept_for(later)


def test_a_job_of_unknown_end_that_uses_something_changes_nothing_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """
    It is in no column; on a live cluster one such job would have all of them made again each time.
    """
    scenario = running(runs=1)
    scenario.finish("R1")
    scenario.submit("U", resreq=("select[big] rusage[mem=100]",))
    scenario.session()
    report(scenario, free_mb=300, used_mb=50, name="U")
    assert scenario.job("U").actual
    endings = Endings(scenario.state)
    endings.sync()
    monkeypatch.setattr(endings, "_places", None)

    endings.sync()

    assert endings._places is None


def test_named_units_are_given_back_by_those_that_have_ended_and_by_no_others() -> None:
    """
    When one has ended there is as much as is asked for, but no second unit with half of it free.
    """
    scenario = scenario_of([(4, None, 3, False)], ("fill",), "easy")
    for number in range(1, 4):
        limit_us = 100 * number * SECOND_US
        scenario.submit(f"R{number}", resreq=("rusage[gpu=0.6]",), run_limit_us=limit_us)
    scenario.session()
    scenario.submit("W", resreq=("rusage[gpu=1.5]",), run_limit_us=SECOND_US)

    assert 200 == foreseen(scenario, "W")
