"""
Preemption: who is suspended for whom, what is held meanwhile, and who goes on when.
"""

from __future__ import annotations

import pytest

from domain.commands import (
    MarkUnreachable,
    ModifyJob,
    ResumeJob,
    StopJob,
)
from domain.errors import Refused
from domain.preemption import (
    Preemption,
    PreemptPolicy,
    Relation,
)
from tests.builders import SECOND_US, some_settings
from tests.projections.scheduling.preempting import queues, running, stops
from tests.scenario import Scenario

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
