"""
Preemption: who is suspended for whom, what is held meanwhile, and who goes on when.
"""

from __future__ import annotations

from typing import Any

import pytest

from domain.commands import (
    DefineQueue,
    DefineResource,
    MarkUnreachable,
    ModifyJob,
    ResumeJob,
    StopJob,
)
from domain.errors import Refused
from domain.name_lists import parse_names
from domain.preemption import (
    OnPreempt,
    Preemption,
    PreemptPolicy,
    Relation,
    SuspendSignals,
    Trigger,
)
from domain.queues import QueueSpec
from domain.resources import ResourceDescriptor, ResourceScope, SharedTotal
from projections.scheduling.core import Core
from projections.scheduling.derived import derived
from tests.builders import SECOND_US, some_settings
from tests.projections.scheduling.policies import limit
from tests.scenario import Scenario


def queues(scenario: Scenario, *texts: str, **fields: Any) -> None:
    """
    Define queues: "hi 90 >lo mid" preempts lo and mid, "lo 10 <all" is preemptible by all.
    """
    for text in texts:
        name, priority, *rest = text.split()
        hunted = " ".join(rest).partition("<")[0].strip().removeprefix(">")
        by = " ".join(rest).partition("<")[2].strip()
        spec = QueueSpec(
            priority=int(priority),
            preemptible_queues=parse_names(hunted) if hunted else None,
            preemptible_by=parse_names(by) if by else None,
            **fields,
        )
        scenario.command(DefineQueue(queue=name, spec=spec))


@pytest.fixture
def high_and_low(scenario: Scenario) -> Scenario:
    """
    Return a scenario with a queue that preempts another.
    """
    queues(scenario, "hi 90 >all", "mid 50", "lo 10 <all")
    return scenario


def running(scenario: Scenario, *texts: str) -> None:
    """
    Submit jobs, each in a session of its own, and have them started.
    """
    for text in texts:
        scenario.jobs(text)
        scenario.session()
        name = text.split()[0]
        assert scenario.states()[name] == "RUN", text
        scenario.start(name)
        scenario.pass_time(1)


def stops(scenario: Scenario) -> list[str]:
    """
    Hold a session; return whose stop it orders.
    """
    return [words.split()[0] for words in scenario.session() if "stop ordered" in words]


# -- the whole story


def test_suspend_start_resume(high_and_low: Scenario) -> None:
    """
    E-001: one session orders the stop, the next one after it was confirmed starts the job; the
    victim goes on when it has ended.
    """
    scenario = high_and_low
    scenario.hosts("h1 slots=1")
    running(scenario, "A queue=lo")
    scenario.jobs("J queue=hi")

    assert [
        "J preempts A: h1*1",
        "A stop ordered on h1: SUSP_PREEMPT",
        "J pended: slots short on h1",
    ] == scenario.session()
    assert [] == scenario.session(), "nothing more until it is confirmed"

    scenario.suspended("A")
    assert {"A": "SSUSP", "J": "PEND"} == scenario.states()
    assert ["J dispatched: h1*1"] == scenario.session()

    scenario.start("J")
    assert [] == scenario.session()
    scenario.finish("J")
    assert ["A resume ordered on h1"] == scenario.session()

    scenario.resumed("A")
    assert {"A": "RUN", "J": "DONE"} == scenario.states()
    assert [] == scenario.session()


def test_a_free_slot_is_used_before_anyone_is_preempted(high_and_low: Scenario) -> None:
    """
    E-005: preemption comes only after placement has failed.
    """
    scenario = high_and_low
    scenario.hosts("h1 slots=1", "h2 slots=1")
    running(scenario, "A queue=lo")
    scenario.jobs("J queue=hi")

    assert ["J dispatched: h2*1"] == scenario.session()


def test_a_queue_that_agrees_to_nothing_is_left_alone(scenario: Scenario) -> None:
    """
    Both sides must agree: the list of the one, the flag of the other.
    """
    queues(scenario, "hi 90 >lo", "lo 10", "other 20 <hi")
    scenario.hosts("h1 slots=2")
    running(scenario, "A queue=lo", "B queue=other")
    scenario.jobs("J queue=hi")

    assert [] == stops(scenario)


@pytest.mark.parametrize("plain", [False, True])
def test_either_side_may_establish_the_relation_where_the_cluster_says_so(*, plain: bool) -> None:
    """
    LSF's rule, E-002.
    """
    scenario = Scenario(some_settings(preemption=Preemption(relation=Relation.EITHER)), plain=plain)
    queues(scenario, "hi 90", "lo 10 <hi", "equal 90 >all")
    scenario.hosts("h1 slots=1")
    running(scenario, "A queue=lo")
    scenario.jobs("J queue=hi")

    assert ["A"] == stops(scenario)


def test_equal_priority_never_preempts(scenario: Scenario) -> None:
    """
    A relation is between queues of different priority.
    """
    queues(scenario, "a 50 >all <all", "b 50 >all <all")
    scenario.hosts("h1 slots=1")
    running(scenario, "A queue=a")
    scenario.jobs("B queue=b", "C queue=a")

    assert [] == stops(scenario)


# -- whom


def test_preference_beats_queue_priority(scenario: Scenario) -> None:
    """
    E-004.
    """
    queues(scenario, "hi 90 >q20+2 q10", "q20 20 <all", "q10 10 <all")
    scenario.hosts("h1 slots=2")
    running(scenario, "A queue=q20", "B queue=q10")
    scenario.jobs("J queue=hi")

    assert ["A"] == stops(scenario)


def test_the_lowest_queue_then_the_lowest_priority_then_the_latest_start(
    scenario: Scenario,
) -> None:
    """
    The rank of victims: least important first, then least work lost, then the highest id.
    """
    queues(scenario, "hi 90 >all", "q20 20 <all", "q10 10 <all")
    scenario.hosts("h1 slots=5")
    running(scenario, "A queue=q20", "B queue=q10 priority=5", "C queue=q10", "D queue=q10",
            "E queue=q20")  # fmt: skip
    order = []
    for name in ("J", "K", "L", "M", "N"):
        scenario.jobs(f"{name} queue=hi")
        order += stops(scenario)

    assert ["D", "C", "B", "E", "A"] == order


def test_the_kind_of_victim_decides_between_hosts(scenario: Scenario) -> None:
    """
    As many victims on either host: the lower queue's job is the victim; alike, the first host's.
    """
    queues(scenario, "hi 90 >all", "q20 20 <all", "q10 10 <all")
    scenario.hosts("h1 slots=1", "h2 slots=1", "h3 slots=1")
    running(scenario, "A queue=q20", "B queue=q10", "C queue=q10")
    scenario.jobs("J queue=hi")

    assert ["B"] == stops(scenario)


@pytest.mark.parametrize("plain", [False, True])
def test_least_run_time_first_where_the_queue_says_so(*, plain: bool) -> None:
    """
    E-006: then it goes before the job's own priority.
    """
    scenario = Scenario(plain=plain)
    queues(scenario, "hi 90 >all", preempt_policy=PreemptPolicy.LEAST_RUN_TIME)
    queues(scenario, "lo 10 <all")
    scenario.hosts("h1 slots=2")
    running(scenario, "A queue=lo", "B queue=lo priority=9")
    scenario.jobs("J queue=hi")

    assert ["B"] == stops(scenario)


def test_the_fewest_victims_on_one_host(high_and_low: Scenario) -> None:
    """
    One job that holds two slots is stopped rather than two that hold one each, even though the two
    rank first.
    """
    scenario = high_and_low
    scenario.hosts("h1 slots=2", "h2 slots=2")
    running(scenario, "A tasks=2 queue=lo", "B queue=lo", "C queue=lo")
    scenario.jobs("J tasks=2 queue=hi")

    assert ["J preempts A: h1*2", "A stop ordered on h1: SUSP_PREEMPT",
            "J pended: slots short on h1, h2"] == scenario.session()  # fmt: skip


def test_victims_that_turn_out_unneeded_are_dropped(high_and_low: Scenario) -> None:
    """
    In rank order C (one slot), then A (two): with A alone the job fits.
    """
    scenario = high_and_low
    scenario.hosts("h1 slots=3")
    running(scenario, "A tasks=2 queue=lo", "C queue=lo")
    scenario.jobs("J tasks=2 queue=hi")

    assert ["A"] == stops(scenario)


def test_a_job_over_several_hosts_stops_jobs_on_several(high_and_low: Scenario) -> None:
    """
    No host alone suffices, so victims are taken wherever they are.
    """
    scenario = high_and_low
    scenario.hosts("h1 slots=1", "h2 slots=1")
    running(scenario, "A queue=lo", "B queue=lo")
    scenario.jobs("J tasks=2 queue=hi")

    assert ["B", "A"] == stops(scenario)

    scenario.suspended("A")
    assert [] == scenario.session()
    scenario.suspended("B")
    assert ["J dispatched: h1*1 h2*1"] == scenario.session()


def test_nobody_is_suspended_in_vain(high_and_low: Scenario) -> None:
    """
    E-009: where no set of victims lets the job start, nobody is stopped.
    """
    scenario = high_and_low
    scenario.hosts("h1 slots=2")
    running(scenario, "A queue=lo", "B queue=mid")
    scenario.jobs("J tasks=2 queue=hi")

    assert [] == stops(scenario)


def test_a_second_job_of_the_same_request_finds_victims_of_its_own(high_and_low: Scenario) -> None:
    """
    A request whose job waits for victims isn't proved impossible for the next.
    """
    scenario = high_and_low
    scenario.hosts("h1 slots=3")
    running(scenario, "A queue=lo", "B queue=lo", "C queue=mid")
    scenario.jobs("J queue=hi", "K queue=hi", "L queue=hi")

    assert ["B", "A"] == stops(scenario)

    scenario.suspended("A")
    assert ["K dispatched: h1*1"] == scenario.session()
    scenario.suspended("B")
    assert ["J dispatched: h1*1"] == scenario.session()


# -- what is held


def test_what_is_freed_is_held_for_the_preemptor(high_and_low: Scenario) -> None:
    """
    Neither other queues nor another job of its own, however important, takes it meanwhile.
    """
    scenario = high_and_low
    scenario.hosts("h1 slots=2")
    running(scenario, "A queue=lo", "B queue=mid")
    scenario.jobs("J queue=hi")
    assert ["A"] == stops(scenario)
    scenario.jobs("K queue=mid", "L queue=hi priority=9")
    scenario.suspended("A")

    decisions = scenario.session()

    assert "J dispatched: h1*1" in decisions
    assert {"K": "PEND", "L": "PEND"}.items() <= scenario.states().items()


def test_free_slots_that_the_preemptor_needs_are_held_too(high_and_low: Scenario) -> None:
    """
    Otherwise its victim would have been stopped in vain.
    """
    scenario = high_and_low
    scenario.hosts("h1 slots=2")
    running(scenario, "A queue=lo")
    scenario.jobs("J tasks=2 queue=hi", "K queue=mid")

    assert ["J preempts A: h1*2", "A stop ordered on h1: SUSP_PREEMPT",
            "J pended: slots short on h1", "K pended: slots short on h1",
            ] == scenario.session()  # fmt: skip

    scenario.suspended("A")
    assert ["J dispatched: h1*2"] == scenario.session()


def test_slots_of_a_suspended_job_are_closed_to_unrelated_queues(high_and_low: Scenario) -> None:
    """
    E-010: the victim goes on before equal or lower work, though another queue outranks it.
    """
    scenario = high_and_low
    scenario.hosts("h1 slots=1")
    running(scenario, "A queue=lo")
    scenario.jobs("J queue=hi")
    scenario.session()
    scenario.suspended("A")
    scenario.session()
    scenario.jobs("K queue=mid", "L queue=lo")
    scenario.session()
    assert {"K": "PEND", "L": "PEND"}.items() <= scenario.states().items()

    scenario.finish("J")

    assert ["A resume ordered on h1"] == scenario.session()


def test_later_higher_work_takes_the_slots_before_the_victim_goes_on(
    high_and_low: Scenario,
) -> None:
    """
    The victim isn't resumed only to be stopped again.
    """
    scenario = high_and_low
    scenario.hosts("h1 slots=1")
    running(scenario, "A queue=lo")
    scenario.jobs("J queue=hi")
    scenario.session()
    scenario.suspended("A")
    scenario.session()
    scenario.jobs("K queue=hi")
    scenario.session()
    scenario.finish("J")

    assert ["K dispatched: h1*1"] == scenario.session()


def test_a_killed_preemptor_lets_its_victim_go_on(high_and_low: Scenario) -> None:
    """
    What is held ends with the job it is held for.
    """
    scenario = high_and_low
    scenario.hosts("h1 slots=1")
    running(scenario, "A queue=lo")
    scenario.jobs("J queue=hi")
    scenario.session()
    scenario.suspended("A")
    scenario.kill("J")

    assert ["J ended: TERM_OWNER", "A resume ordered on h1"] == scenario.session()


def test_a_modified_preemptor_holds_nothing(high_and_low: Scenario) -> None:
    """
    It is considered anew, and here fits nowhere.
    """
    scenario = high_and_low
    scenario.hosts("h1 slots=1")
    running(scenario, "A queue=lo")
    scenario.jobs("J queue=hi")
    scenario.session()
    scenario.suspended("A")
    job = scenario.job("J")
    spec = job.spec.model_copy(update={"tasks_min": 2, "tasks_max": 2})
    scenario.command(ModifyJob(job_id=job.job_id, spec=spec))
    assert job.keeps is None

    assert ["J pended: never: slots short on h1", "A resume ordered on h1"] == scenario.session()


def test_a_preemptor_whose_hosts_are_lost_holds_nothing(high_and_low: Scenario) -> None:
    """
    It looks for others.
    """
    scenario = high_and_low
    scenario.hosts("h1 slots=1", "h2 slots=1")
    running(scenario, "A queue=lo", "B queue=lo")
    scenario.jobs("J queue=hi")
    assert ["A"] == stops(scenario)
    scenario.command(MarkUnreachable(worker="h1", incarnation=1, silent_us=SECOND_US), actor="")
    assert scenario.job("J").keeps is None

    assert ["B"] == stops(scenario)


def test_a_preemptor_whose_host_is_closed_gives_up_or_finds_another(
    high_and_low: Scenario,
) -> None:
    """
    Its victim there goes on.
    """
    scenario = high_and_low
    scenario.hosts("h1 slots=1")
    running(scenario, "A queue=lo")
    scenario.jobs("J queue=hi")
    scenario.session()
    scenario.suspended("A")
    scenario.close("h1")

    assert ["J gives up preempting", "A resume ordered on h1"] == [
        words for words in scenario.session() if "pended" not in words
    ]


def test_a_preemptor_of_an_inactive_queue_holds_nothing(high_and_low: Scenario) -> None:
    """
    It can't start, so nobody waits for it.
    """
    scenario = high_and_low
    scenario.hosts("h1 slots=1")
    running(scenario, "A queue=lo")
    scenario.jobs("J queue=hi")
    scenario.session()
    scenario.suspended("A")
    scenario.set_queue("hi", "inactive")

    assert ["J gives up preempting", "A resume ordered on h1"] == scenario.session()


# -- no ping-pong


def test_a_victim_that_went_on_is_not_stopped_again_for_the_same_job(
    high_and_low: Scenario,
) -> None:
    """
    J lost its hold by being held; once lifted it must wait, another job needn't.
    """
    scenario = high_and_low
    scenario.hosts("h1 slots=1")
    running(scenario, "A queue=lo")
    scenario.jobs("J queue=hi")
    scenario.session()
    scenario.suspended("A")
    scenario.hold("J")
    assert ["A resume ordered on h1"] == scenario.session()
    scenario.resumed("A")
    scenario.lift("J")

    assert [] == stops(scenario)

    scenario.jobs("K queue=hi")
    assert ["A"] == stops(scenario)


def test_chain_of_three_queues(scenario: Scenario) -> None:
    """
    E-016: the highest queue's victim goes on first.
    """
    queues(scenario, "hi 90 >all", "mid 50 >all <all", "lo 10 <all")
    scenario.hosts("h1 slots=1")
    running(scenario, "L queue=lo")
    for name, text, victim in (("M", "M queue=mid", "L"), ("J", "J queue=hi", "M")):
        scenario.jobs(text)
        assert [victim] == stops(scenario)
        scenario.suspended(victim)
        scenario.session()
        assert scenario.states()[name] == "RUN"
    scenario.finish("J")
    assert ["M resume ordered on h1"] == scenario.session()
    scenario.resumed("M")
    assert [] == scenario.session()
    scenario.finish("M")

    assert ["L resume ordered on h1"] == scenario.session()


def test_a_victim_waits_for_the_window_of_its_queue_and_for_its_user(
    high_and_low: Scenario,
) -> None:
    """
    Its user can stop it meanwhile, and a resume alone doesn't bring it back to a full host.
    """
    scenario = high_and_low
    scenario.hosts("h1 slots=1")
    running(scenario, "A queue=lo")
    scenario.jobs("J queue=hi")
    scenario.session()
    scenario.suspended("A")
    scenario.session()
    scenario.command(StopJob(job_id=scenario.ids["A"]))
    scenario.command(ResumeJob(job_id=scenario.ids["A"]))
    assert [] == scenario.session()
    with pytest.raises(Refused):
        scenario.command(ResumeJob(job_id=scenario.ids["A"]))
    scenario.command(StopJob(job_id=scenario.ids["A"]))
    scenario.finish("J")
    assert [] == scenario.session()

    scenario.command(ResumeJob(job_id=scenario.ids["A"]))

    assert ["A resume ordered on h1"] == scenario.session()


# -- what a victim gives back


def licence(scenario: Scenario, *, total: int, release: bool) -> None:
    scenario.command(
        DefineResource(
            descriptor=ResourceDescriptor(
                name="lic",
                scope=ResourceScope.SHARED,
                totals=(SharedTotal(total_milli=total * 1000),),
                is_consumable=True,
                release_on_suspend=release,
            )
        )
    )


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


@pytest.mark.parametrize("plain", [False, True])
def test_only_slots_trigger_where_the_cluster_says_so(*, plain: bool) -> None:
    """
    LSF's rule: a licence that victims would give back is no cause.
    """
    settings = some_settings(preemption=Preemption(trigger=Trigger.SLOTS))
    scenario = Scenario(settings, plain=plain)
    queues(scenario, "hi 90 >all", "lo 10 <all")
    licence(scenario, total=1, release=True)
    scenario.hosts("h1 slots=2")
    scenario.submit("A", queue="lo", resreq=("rusage[lic=1]",))
    scenario.session()
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
        (Preemption(no_run_us=15 * SECOND_US), ["C"]),
        (Preemption(no_finish_us=3_595 * SECOND_US), ["B"]),
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


def again(scenario: Scenario) -> Core:
    """
    Return a core restored from a scenario's snapshot.
    """
    core = scenario.core
    return Core.restore(core.snapshot(), core.plugins, plain=scenario.state.is_plain)


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
