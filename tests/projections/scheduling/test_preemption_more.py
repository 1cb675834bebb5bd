"""
What victims of preemption give back, whom settings spare, other ends, and restores in the middle.
"""

from __future__ import annotations

import pytest

from domain.commands import (
    ResumeJob,
    StopJob,
)
from domain.preemption import (
    JobType,
    OnPreempt,
    Preemption,
    SuspendSignals,
    Trigger,
)
from projections.scheduling.derived import derived
from tests.builders import SECOND_US, some_settings
from tests.projections.scheduling.policies import limit
from tests.projections.scheduling.preempting import again, licence, queues, running, stops
from tests.scenario import Scenario

# -- what a victim gives back


@pytest.mark.parametrize("release", [False, True])
def test_only_what_is_marked_is_given_back(high_and_low: Scenario, *, release: bool) -> None:
    """
    Slots always; a licence when it is declared so. Then it must be free for the victim to go on.
    """
    scenario = high_and_low
    licence(scenario, total=1, release=release)
    scenario.hosts("h1 slots=2")
    scenario.submit("A", queue="lo", resreq=("rusage[lic=1]",))
    scenario.session()
    scenario.submit("J", queue="hi", resreq=("rusage[lic=1]",))

    assert (["A"] if release else []) == stops(scenario)
    if not release:
        return
    scenario.submit("K", queue="mid", resreq=("rusage[lic=1]",))
    scenario.suspended("A")
    scenario.session()
    assert {"A": "SSUSP", "J": "RUN", "K": "PEND"} == scenario.states()
    scenario.finish("J")
    scenario.session()
    assert {"A": "SSUSP", "K": "RUN"}.items() <= scenario.states().items()
    scenario.finish("K")

    assert ["A resume ordered on h1"] == scenario.session()


def test_memory_is_not_given_back(high_and_low: Scenario) -> None:
    """
    E-008: so a shortage of memory alone stops nobody.
    """
    scenario = high_and_low
    scenario.hosts("h1 slots=2 mem_mb=16000")
    running(scenario, "A queue=lo mem_mb=12000")
    scenario.jobs("J queue=hi mem_mb=8000")

    assert [] == stops(scenario)


@pytest.mark.parametrize("plain", [False, True])
def test_memory_is_given_back_where_the_cluster_says_so(*, plain: bool) -> None:
    """
    E-008 with PREEMPTABLE_RESOURCES.
    """
    settings = Preemption(resources=("mem",), trigger=Trigger.SLOTS)
    scenario = Scenario(some_settings(preemption=settings), plain=plain)
    queues(scenario, "hi 90 >all", "lo 10 <all")
    scenario.hosts("h1 slots=2 mem_mb=16000")
    running(scenario, "A queue=lo mem_mb=12000")
    scenario.jobs("J queue=hi mem_mb=8000")

    assert ["A"] == stops(scenario)
    scenario.suspended("A")
    assert ["J dispatched: h1*1"] == scenario.session()
    scenario.finish("A")
    scenario.finish("J")
    column = scenario.state.capacity.resources["mem"]
    assert ([0], [0]) == (column.charged.tolist(), column.unused.tolist())


@pytest.mark.parametrize(("kinds", "has_alone"), [
    ((), False), ((JobType.EXCLUSIVE,), False), ((), True),
])  # fmt: skip
@pytest.mark.parametrize("plain", [False, True])
def test_only_slots_trigger_where_the_cluster_says_so(
    kinds: tuple[JobType, ...], *, has_alone: bool, plain: bool
) -> None:
    """
    LSF's rule: a licence that victims would give back is no cause, also where jobs that have their
    host alone may be stopped and there is none, or there is one and they may not.
    """
    settings = some_settings(preemption=Preemption(trigger=Trigger.SLOTS, job_types=kinds))
    scenario = Scenario(settings, plain=plain)
    queues(scenario, "hi 90 >all", "lo 10 <all")
    licence(scenario, total=1, release=True)
    scenario.hosts("h1 slots=2", *(["h2"] if has_alone else []))
    scenario.submit("A", queue="lo", resreq=("rusage[lic=1]",))
    if has_alone:
        scenario.submit("X", is_exclusive=True)
    scenario.session()
    assert has_alone == scenario.state.capacity.exclusive.any()
    scenario.submit("J", queue="hi", resreq=("rusage[lic=1]",))

    assert [] == stops(scenario)


def test_a_limit_of_jobs_on_a_host_does_not_block_preemption(high_and_low: Scenario) -> None:
    """
    E-014: whoever is suspended for another doesn't count.
    """
    scenario = high_and_low
    scenario.hosts("h1 slots=2")
    limit(scenario, "l1", hosts="h1", jobs=2)
    running(scenario, "A queue=lo", "B queue=lo")
    scenario.jobs("J queue=hi")

    assert ["B"] == stops(scenario)
    scenario.suspended("B")
    assert ["J dispatched: h1*1"] == scenario.session()


# -- protection, signals, other ends


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize(
    ("settings", "victim"),
    [
        (Preemption(), ["C"]),
        (Preemption(no_interval_us=15 * SECOND_US), ["B"]),
        (Preemption(no_interval_us=999 * SECOND_US), []),
        (Preemption(no_interval_us=10 * SECOND_US), ["C"]),
        (Preemption(no_interval_us=10 * SECOND_US + 1), ["B"]),
        (Preemption(no_run_us=15 * SECOND_US), ["C"]),
        (Preemption(no_run_us=10 * SECOND_US), []),
        (Preemption(no_run_us=10 * SECOND_US + 1), ["C"]),
        (Preemption(no_finish_us=3_595 * SECOND_US), ["B"]),
        (Preemption(no_finish_us=3_590 * SECOND_US), ["B"]),
        (Preemption(no_finish_us=3_590 * SECOND_US - 1), ["C"]),
        (Preemption(times_max=0), []),
        (Preemption(delay_us=SECOND_US), []),
    ],
)
def test_protection(settings: Preemption, victim: list[str], *, plain: bool) -> None:
    """
    E-012, E-018: jobs that have just begun, run long, end soon or were stopped too often.
    """
    scenario = Scenario(some_settings(preemption=settings), plain=plain)
    queues(scenario, "hi 90 >all", "lo 10 <all")
    scenario.hosts("h1 slots=2")
    scenario.submit("B", queue="lo", run_limit_us=7_200 * SECOND_US)
    scenario.session()
    scenario.pass_time(10)
    scenario.submit("C", queue="lo", run_limit_us=3_600 * SECOND_US)
    scenario.session()
    scenario.pass_time(10)
    scenario.jobs("J queue=hi")

    assert victim == stops(scenario)


@pytest.mark.parametrize(("starts", "victim"), [((), "A"), (("A", "B"), "B")])
@pytest.mark.parametrize("plain", [False, True])
def test_of_equal_jobs_the_one_that_started_last_is_stopped(
    starts: tuple[str, ...], victim: str, *, plain: bool
) -> None:
    """
    Least work is lost. It is the start that its worker has told that counts, else the dispatch, and
    not which was submitted first.
    """
    scenario = Scenario(some_settings(), plain=plain)
    queues(scenario, "hi 90 >all", "lo 10 <all")
    scenario.hosts("h1 slots=2")
    scenario.submit("A", queue="lo", begin_us=scenario.now_us + 5 * SECOND_US)
    scenario.submit("B", queue="lo")
    assert "B dispatched: h1*1" in scenario.session()
    scenario.pass_time(5)
    assert "A dispatched: h1*1" in scenario.session()
    for name in starts:
        scenario.pass_time(1)
        scenario.start(name)
    scenario.jobs("J queue=hi")

    assert [victim] == stops(scenario)


@pytest.mark.parametrize(("times_max", "victims"), [(1, []), (2, ["A"]), (None, ["A"])])
@pytest.mark.parametrize("plain", [False, True])
def test_a_job_that_was_stopped_often_enough_is_stopped_no_more(
    times_max: int | None, victims: list[str], *, plain: bool
) -> None:
    """
    E-018: it may be stopped so many times, whoever comes.
    """
    settings = some_settings(preemption=Preemption(times_max=times_max))
    scenario = Scenario(settings, plain=plain)
    queues(scenario, "hi 90 >all", "lo 10 <all")
    scenario.hosts("h1 slots=1")
    running(scenario, "A queue=lo")
    scenario.jobs("J queue=hi")
    assert ["A"] == stops(scenario)
    scenario.suspended("A")
    scenario.session()
    scenario.finish("J")
    scenario.session()
    scenario.resumed("A")
    scenario.jobs("K queue=hi")

    assert victims == stops(scenario)


@pytest.mark.parametrize("plain", [False, True])
def test_a_delay_is_waited_for(*, plain: bool) -> None:
    """
    The core says when it has passed, and that session stops the victim.
    """
    settings = some_settings(preemption=Preemption(delay_us=5 * SECOND_US))
    scenario = Scenario(settings, plain=plain)
    queues(scenario, "hi 90 >all", "lo 10 <all")
    scenario.hosts("h1 slots=1")
    running(scenario, "A queue=lo")
    scenario.jobs("J queue=hi")
    assert [] == stops(scenario)

    assert scenario.now_us + 5 * SECOND_US == scenario.core.next_wakeup(scenario.now_us)
    scenario.pass_time(5)
    assert ["A"] == stops(scenario)


@pytest.mark.parametrize(
    ("signals", "tasks", "signal"),
    [
        (SuspendSignals.TSTP, 1, "SIGTSTP"),
        (SuspendSignals.LSF, 1, "SIGSTOP"),
        (SuspendSignals.LSF, 2, "SIGTSTP"),
    ],
)
def test_the_signal_is_as_the_cluster_says(
    signals: SuspendSignals, tasks: int, signal: str
) -> None:
    """
    SIGTSTP, so that a program can prepare; LSF stops serial jobs at once.
    """
    scenario = Scenario(some_settings(preemption=Preemption(signals=signals)))
    queues(scenario, "hi 90 >all", "lo 10 <all")
    scenario.hosts("h1 slots=2")
    running(scenario, f"A tasks={tasks} queue=lo")
    scenario.jobs("J tasks=2 queue=hi")
    scenario.session()

    orders = scenario.state.worker("h1").orders
    assert [signal] == [order.signal for order in orders.values()]


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("on_preempt", [OnPreempt.KILL, OnPreempt.REQUEUE])
def test_a_queue_may_have_its_victims_ended(on_preempt: OnPreempt, *, plain: bool) -> None:
    """
    E-017: they give back everything then, memory too.
    """
    scenario = Scenario(plain=plain)
    queues(scenario, "hi 90 >all")
    queues(scenario, "lo 10 <all", on_preempt=on_preempt)
    scenario.hosts("h1 slots=2 mem_mb=100")
    running(scenario, "A queue=lo mem_mb=80")
    scenario.jobs("J queue=hi mem_mb=80")

    assert [
        "J preempts A: h1*1",
        "A kill ordered on h1: TERM_PREEMPT",
        "J pended: mem short on h1",
    ] == scenario.session()

    scenario.finish("A", exit_code=143)
    scenario.session()
    ended = "EXIT" if on_preempt is OnPreempt.KILL else "PEND"
    assert {"A": ended, "J": "RUN"} == scenario.states()
    assert scenario.job("A").why == ("TERM_PREEMPT" if ended == "EXIT" else "")


# -- nothing but a function of the log


def test_a_restored_core_goes_on_in_the_middle_of_it(high_and_low: Scenario) -> None:
    """
    Holds, victims and what they gave back are rebuilt from the stored state.
    """
    scenario = high_and_low
    licence(scenario, total=1, release=True)
    scenario.hosts("h1 slots=2")
    scenario.submit("A", queue="lo", resreq=("rusage[lic=1]",))
    running(scenario, "B queue=lo")
    scenario.submit("J", queue="hi", tasks_min=2, tasks_max=2, resreq=("rusage[lic=1]",))
    scenario.session()
    scenario.suspended("A")

    restored = again(scenario)

    assert derived(scenario.state) == derived(restored.state)
    scenario.suspended("B")
    restored = again(scenario)
    assert ["J dispatched: h1*2"] == scenario.session()
    assert [made.event for made in restored.session(scenario.now_us)] == [
        made.event for made in scenario.log[-len(scenario.decisions) - 1 :]
    ]


def test_jobs_that_knew_their_reasons_find_victims_in_one_session(scenario: Scenario) -> None:
    """
    The first of a request that finds its victims proves nothing for those that wait with it.
    """
    queues(scenario, "hi 90 >all", "lo 10")
    scenario.hosts("h1 slots=2")
    running(scenario, "A queue=lo", "B queue=lo")
    scenario.jobs("J queue=hi", "K queue=hi")
    assert [] == stops(scenario)
    queues(scenario, "lo 10 <all")

    assert ["B", "A"] == stops(scenario)


def test_a_lower_victim_does_not_pass_a_higher_one_that_lacks_room(scenario: Scenario) -> None:
    """
    One slot is free: the job of the higher queue needs two, the lower one's would keep it from
    them.
    """
    queues(scenario, "hi 90 >all", "q20 20 <all", "q10 10 <all")
    scenario.hosts("h1 slots=3")
    running(scenario, "A tasks=2 queue=q20", "B queue=q10")
    scenario.jobs("J tasks=3 queue=hi")
    scenario.session()
    scenario.suspended("A", "B")
    scenario.session()
    scenario.jobs("K tasks=2 queue=hi")
    scenario.session()
    scenario.finish("J")
    assert ["K dispatched: h1*2"] == scenario.session()

    scenario.finish("K")

    assert ["A resume ordered on h1", "B resume ordered on h1"] == scenario.session()


def test_a_job_that_its_user_stops_gives_back_what_is_marked(high_and_low: Scenario) -> None:
    """
    A licence is free for others meanwhile, and must be free again for the job to go on; its slot
    stays its own.
    """
    scenario = high_and_low
    licence(scenario, total=1, release=True)
    scenario.hosts("h1 slots=2")
    scenario.submit("A", queue="mid", resreq=("rusage[lic=1]",))
    scenario.submit("B", queue="mid", resreq=("rusage[lic=1]",))
    scenario.session()
    assert {"A": "RUN", "B": "PEND"} == scenario.states()
    scenario.command(StopJob(job_id=scenario.ids["A"]))
    scenario.session()
    scenario.suspended("A")
    assert derived(scenario.state) == derived(again(scenario).state)

    assert ["B dispatched: h1*1"] == scenario.session()
    scenario.command(ResumeJob(job_id=scenario.ids["A"]))
    assert [] == scenario.session()
    scenario.jobs("C queue=mid")
    assert ["C pended: slots short on h1"] == scenario.session()

    scenario.finish("B")

    assert "A resume ordered on h1" in scenario.session()
    scenario.resumed("A")
    assert [1000] == [pool.charged for pool in scenario.state.capacity.pools.by_name["lic"]]


def test_a_queue_may_name_one_that_is_defined_later(scenario: Scenario) -> None:
    """
    The reference survives a restart, and the queue can still be changed.
    """
    queues(scenario, "hi 90 >lo")
    queues(scenario, "lo 10 <hi")
    scenario.core = again(scenario)
    scenario.hosts("h1 slots=1")
    running(scenario, "A queue=lo")
    scenario.jobs("J queue=hi")
    assert ("lo",) == scenario.state.preys_of("hi")
    assert ["A"] == stops(scenario)

    queues(scenario, "hi 90")

    assert () == scenario.state.preys_of("hi")
    assert "J gives up preempting" in scenario.session()
