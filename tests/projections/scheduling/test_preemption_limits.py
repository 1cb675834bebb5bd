"""
Preemption for what limits are short of: what victims give back of it lets the preemptor start.
"""

from __future__ import annotations

import pytest

from domain.commands import DefineUser
from domain.preemption import OnPreempt, Preemption, Trigger
from domain.users import UserSpec
from tests.builders import some_settings
from tests.projections.scheduling.policies import limit, project
from tests.projections.scheduling.preempting import queues, running, stops
from tests.scenario import Scenario


def at_most(scenario: Scenario, slots: int, user: str = "alice") -> None:
    """
    Bound the slots of a user.
    """
    scenario.command(DefineUser(user=user, spec=UserSpec(slots_max=slots)), actor="root")


def see_one_after_the_other(scenario: Scenario) -> None:
    """
    Have J preempt A, and see that A goes on when J has ended, not before.
    """
    running(scenario, "A queue=lo")
    scenario.jobs("J queue=hi")
    assert ["A"] == stops(scenario)
    scenario.suspended("A")
    assert ["J dispatched: h1*1"] == scenario.session()
    scenario.start("J")
    assert [] == scenario.session()
    scenario.finish("J")
    assert ["A resume ordered on h1"] == scenario.session()


def test_a_users_slots_are_freed_by_suspending_a_job_of_the_same_user(
    high_and_low: Scenario,
) -> None:
    """
    Hosts have room; the shortage is the user's own bound, which suspended jobs don't count for. The
    victim goes on when the bound holds it again, not when its host does.
    """
    scenario = high_and_low
    scenario.hosts("h1 slots=4")
    at_most(scenario, 1)

    see_one_after_the_other(scenario)


def test_a_limit_of_jobs_is_freed_wherever_its_jobs_run(high_and_low: Scenario) -> None:
    """
    The one job that the limit counts is the one victim, though it isn't on the host that is used.
    """
    scenario = high_and_low
    scenario.hosts("h1 slots=1", "h2 slots=2")
    limit(scenario, "one", users="alice", jobs=1)
    running(scenario, "A queue=lo", "B queue=lo user=bob")
    scenario.jobs("J tasks=1 queue=hi")

    assert ["A"] == stops(scenario)
    scenario.suspended("A")
    assert ["J"] == [words.split()[0] for words in scenario.session() if "dispatched" in words]


@pytest.mark.parametrize("plain", [False, True])
def test_a_limit_of_jobs_counts_suspended_ones_against_all_who_may_not_preempt_them(
    *, plain: bool
) -> None:
    """
    Else another job of the same user would start while one is suspended for somebody, and that one
    could go on only when it has ended.
    """
    scenario = Scenario(some_settings(), plain=plain)
    queues(scenario, "hi 90 >lo", "mid 50", "lo 10 <all")
    scenario.hosts("h1 slots=1", "h2 slots=4")
    limit(scenario, "one", users="alice", jobs=1)
    running(scenario, "A queue=lo resreq=select[hname==h1]")
    scenario.jobs("J queue=hi user=bob resreq=select[hname==h1]")
    assert ["A"] == stops(scenario)
    scenario.suspended("A")
    scenario.jobs("K queue=lo", "M queue=mid")

    assert ["J"] == [words.split()[0] for words in scenario.session() if "dispatched" in words]
    assert "RES_LIMIT(one,jobs)" == scenario.reasons("K") == scenario.reasons("M")
    scenario.start("J")
    scenario.finish("J")
    assert "A resume ordered on h1" in scenario.session()
    assert "RES_LIMIT(one,jobs)" == scenario.reasons("K") == scenario.reasons("M")


@pytest.mark.parametrize("plain", [False, True])
def test_a_limit_of_jobs_keeps_nobody_from_preempting_and_victims_wait_until_it_holds(
    *, plain: bool
) -> None:
    """
    It is over its bound meanwhile, but never by jobs that run.
    """
    scenario = Scenario(some_settings(), plain=plain)
    queues(scenario, "hi 90 >lo", "lo 10 <all")
    scenario.hosts("h1 slots=1", "h2 slots=1")
    limit(scenario, "two", users="alice", jobs=2)
    running(scenario, "A queue=lo", "B queue=lo")
    scenario.jobs("J queue=hi")
    (victim,) = stops(scenario)
    scenario.suspended(victim)
    assert ["J"] == [words.split()[0] for words in scenario.session() if "dispatched" in words]
    scenario.start("J")
    scenario.jobs("K queue=lo")
    assert ["K pended: RES_LIMIT(two,jobs)"] == scenario.session()

    scenario.finish("J")
    assert any(f"{victim} resume ordered" in words for words in scenario.session())
    assert "RES_LIMIT(two,jobs)" == scenario.reasons("K")


@pytest.mark.parametrize("plain", [False, True])
def test_a_victim_of_a_limit_of_jobs_does_not_go_on_beside_its_preemptor(*, plain: bool) -> None:
    """
    Its host has free slots all the time; the limit is what it was stopped for.
    """
    scenario = Scenario(some_settings(), plain=plain)
    queues(scenario, "hi 90 >lo", "lo 10 <all")
    scenario.hosts("h1 slots=4")
    limit(scenario, "one", users="alice", jobs=1)

    see_one_after_the_other(scenario)


def test_nobody_is_suspended_for_slots_that_suspended_jobs_still_count_for(
    high_and_low: Scenario,
) -> None:
    """
    A limit of slots, like a queue's, counts them: suspending would be in vain.
    """
    scenario = high_and_low
    scenario.hosts("h1 slots=4")
    limit(scenario, "two", users="alice", slots=2)
    running(scenario, "A queue=lo", "B queue=lo")
    scenario.jobs("J queue=hi")

    assert [] == stops(scenario)
    assert "RES_LIMIT(two,slots)" == scenario.reasons("J")


@pytest.mark.parametrize("ends", [OnPreempt.KILL, OnPreempt.REQUEUE])
def test_victims_that_end_give_back_all_that_limits_count(
    scenario: Scenario, ends: OnPreempt
) -> None:
    """
    Then a project's quota of slots is curable too.
    """
    queues(scenario, "hi 90 >all")
    queues(scenario, "lo 10 <all", on_preempt=ends)
    scenario.hosts("h1 slots=4")
    project(scenario, "/p", users="alice", slots=2)
    scenario.submit("A", queue="lo", project="/p")
    scenario.submit("B", queue="lo", project="/p")
    scenario.session()
    scenario.start("A", "B")
    scenario.pass_time(5)
    scenario.submit("J", queue="hi", project="/p")
    scenario.session()

    assert ["B kill ordered on h1: TERM_PREEMPT"] == [
        words for words in scenario.decisions if "kill" in words
    ]
    scenario.finish("B")
    assert "J dispatched: h1*1" in scenario.session()


def test_nobody_is_suspended_where_the_bound_is_full_of_others(high_and_low: Scenario) -> None:
    """
    Victims of another user give nothing back of it.
    """
    scenario = high_and_low
    scenario.hosts("h1 slots=4")
    at_most(scenario, 1)
    running(scenario, "A queue=mid", "B queue=lo user=bob")
    scenario.jobs("J queue=hi")

    assert [] == stops(scenario)
    assert "USER_JOB_LIMIT(user alice,slots)" == scenario.reasons("J")


def test_what_is_freed_of_a_bound_is_held_for_the_preemptor(scenario: Scenario) -> None:
    """
    Another job of the same user that comes first takes none of it.
    """
    queues(scenario, "top 95", "hi 90 >all", "lo 10 <all")
    scenario.hosts("h1 slots=4")
    at_most(scenario, 1)
    running(scenario, "A queue=lo")
    scenario.jobs("J queue=hi")
    assert ["A"] == stops(scenario)
    scenario.jobs("K queue=top")
    assert ["K pended: USER_JOB_LIMIT(user alice,slots)"] == scenario.session()
    scenario.suspended("A")

    assert ["J dispatched: h1*1"] == scenario.session()


def test_a_job_that_misses_its_deadline_anyway_suspends_nobody(high_and_low: Scenario) -> None:
    """
    A second cause that no victim cures leaves them alone, though the bound is named first.
    """
    scenario = high_and_low
    scenario.hosts("h1 slots=4")
    at_most(scenario, 1)
    running(scenario, "A queue=lo")
    scenario.submit(
        "J", queue="hi", deadline_us=scenario.now_us + 1_000_000, run_limit_us=60_000_000
    )

    assert [] == stops(scenario)


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize(("bound", "victims"), [("slots", ["A"]), ("jobs", [])])
def test_where_slots_alone_trigger_a_bound_of_slots_does(
    bound: str, victims: list[str], *, plain: bool
) -> None:
    """
    LSF's rule speaks of slots: a user's bound of them, not a limit of jobs.
    """
    settings = some_settings(preemption=Preemption(trigger=Trigger.SLOTS))
    scenario = Scenario(settings, plain=plain)
    queues(scenario, "hi 90 >all", "lo 10 <all")
    scenario.hosts("h1 slots=4")
    if bound == "slots":
        at_most(scenario, 1)
    else:
        limit(scenario, "one", users="alice", jobs=1)
    running(scenario, "A queue=lo")
    scenario.jobs("J queue=hi")

    assert victims == stops(scenario)


@pytest.mark.parametrize("plain", [False, True])
def test_a_limit_of_slots_counts_victims_for_their_preemptors_too(*, plain: bool) -> None:
    """
    Only limits of jobs spare who may preempt those that were stopped.
    """
    scenario = Scenario(some_settings(), plain=plain)
    queues(scenario, "hi 90 >lo", "lo 10 <all")
    scenario.hosts("h1 slots=1")
    limit(scenario, "two", users="alice", slots=2)
    running(scenario, "A queue=lo")
    scenario.jobs("J queue=hi")
    assert ["A"] == stops(scenario)
    scenario.suspended("A")
    assert ["J dispatched: h1*1"] == scenario.session()
    scenario.start("J")
    scenario.hosts("h2 slots=4")
    scenario.jobs("K queue=hi")

    assert ["K pended: RES_LIMIT(two,slots)"] == scenario.session()
