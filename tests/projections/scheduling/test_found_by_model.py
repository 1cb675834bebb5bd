"""
What the comparison with the obvious slow scheduler has found, each in its smallest form.
"""

from __future__ import annotations

import pytest

from domain.commands import (
    DefineQueue,
    DefineUser,
    MarkUnreachable,
    ModifyJob,
    RequeueJob,
    ResumeJob,
    StopJob,
    WorkerReport,
)
from domain.errors import Refused
from domain.jobs import ExitRules
from domain.queues import QueueLimits
from domain.users import UserSpec
from projections.scheduling.core import Core
from projections.scheduling.status import why_waiting
from tests.builders import SECOND_US
from tests.projections.scheduling.policies import limit
from tests.projections.scheduling.preempting import queues, running, stops
from tests.projections.scheduling.test_placement import shared
from tests.scenario import Scenario


def is_never(scenario: Scenario, name: str) -> bool:
    """
    Say whether a waiting job is told that it can never start.
    """
    return why_waiting(scenario.state, scenario.job(name))[0]


def stop(scenario: Scenario, name: str, actor: str = "alice") -> None:
    """
    Ask to stop a job.
    """
    scenario.command(StopJob(job_id=scenario.ids[name]), actor)


def go_on(scenario: Scenario, name: str) -> None:
    """
    Ask to let a job go on.
    """
    scenario.command(ResumeJob(job_id=scenario.ids[name]))


def test_never_is_told_anew_when_hosts_join_though_a_limit_is_the_reason(
    scenario: Scenario,
) -> None:
    """
    The reason stays the same, but now some host could hold the job.
    """
    scenario.hosts("h1 slots=1")
    limit(scenario, "brake", jobs=0)
    scenario.jobs("A tasks=4")
    scenario.session()
    assert is_never(scenario, "A")

    scenario.hosts("h2 slots=4")
    scenario.session()

    assert not is_never(scenario, "A")


def test_never_is_told_anew_when_a_limit_is_defined_otherwise(scenario: Scenario) -> None:
    """
    The same limit of the same name is the reason, yet it could hold the job by now.
    """
    scenario.hosts("h1 slots=8")
    scenario.jobs("B tasks=2", "A tasks=4")
    limit(scenario, "few", slots=3)
    scenario.session()
    assert is_never(scenario, "A")

    limit(scenario, "few", slots=5)
    scenario.session()

    assert "A pended" not in " ".join(scenario.decisions)
    assert not is_never(scenario, "A")


def test_a_limit_of_some_hosts_charges_nobody_elsewhere(scenario: Scenario) -> None:
    """
    What runs on other hosts isn't shown as its use.
    """
    scenario.hosts("h1 slots=1", "h2 slots=1")
    limit(scenario, "few", hosts="each h1", slots=1)
    scenario.jobs("A", "B")
    scenario.session()

    assert {("few", "slots", ""): [1_000, 0]} == scenario.state.limits.in_use()


@pytest.mark.parametrize(("most", "stopped"), [(0, []), (1, ["C", "B", "A"]), (2, ["C", "B"])])
def test_nobody_is_stopped_in_vain_where_a_limit_is_overdrawn(
    scenario: Scenario, most: int, stopped: list[str]
) -> None:
    """
    A user's slots were cut while three are in use: one victim may give back less than is lacking.
    """
    queues(scenario, "hi 90 >all", "lo 10 <all")
    scenario.hosts("h1 slots=4")
    running(scenario, "A queue=lo", "B queue=lo", "C queue=lo")
    scenario.command(DefineUser(user="alice", spec=UserSpec(slots_max=most)))
    if most:
        scenario.jobs("D queue=hi")
    else:
        scenario.command(DefineUser(user="alice", spec=UserSpec(slots_max=1)))
        scenario.jobs("D queue=hi")
        scenario.command(DefineUser(user="alice", spec=UserSpec(slots_max=0)))

    assert sorted(stopped) == sorted(stops(scenario))


def test_reasons_copied_from_an_earlier_job_are_looked_at_again(scenario: Scenario) -> None:
    """
    Behind the job that proved it a dispatch takes the last slots; the next session tells so, as a
    core does that was restored meanwhile.
    """
    scenario.hosts("h1 slots=2 mem_mb=100")
    scenario.jobs("A mem_mb=200 priority=3", "B tasks=2 priority=2", "C mem_mb=200 priority=1")
    scenario.session()
    assert ["mem short on h1"] * 2 == [scenario.reasons(name).split(": ")[-1] for name in "AC"]
    again = Core.restore(scenario.core.snapshot(), plain=scenario.state.is_plain)

    scenario.session()

    assert "slots short on h1" in scenario.reasons("C")
    assert again.session(scenario.now_us)
    assert again.snapshot() == scenario.core.snapshot()


def test_what_is_held_for_a_preemptor_is_told_to_those_behind_it_at_once(
    high_and_low: Scenario,
) -> None:
    """
    A plan to preempt takes the licence that is free: the job behind waits for that too, and the
    next session finds nothing to tell.
    """
    scenario = high_and_low
    scenario.hosts("h1 slots=1")
    shared(scenario, "lic", 1)
    running(scenario, "A queue=lo")
    scenario.submit("C", queue="lo", resreq=("rusage[lic=1]",))
    scenario.session()
    scenario.submit("B", queue="hi", resreq=("rusage[lic=1]",))

    assert ["A"] == stops(scenario)
    assert "RES_SHORT lic" in scenario.reasons("C")
    assert scenario.session() == []


def test_whom_the_system_has_stopped_a_user_may_stop_too(high_and_low: Scenario) -> None:
    """
    It is USUSP then, and doesn't go on with the system's reasons.
    """
    scenario = high_and_low
    scenario.hosts("h1 slots=1")
    running(scenario, "A queue=lo")
    scenario.jobs("B queue=hi")
    scenario.session()
    scenario.suspended("A")
    stop(scenario, "A")
    assert scenario.states()["A"] == "USUSP"
    scenario.session()
    scenario.finish("B")

    assert scenario.session() == []

    go_on(scenario, "A")

    assert scenario.states()["A"] == "SSUSP"
    assert ["A resume ordered on h1"] == scenario.session()


@pytest.mark.parametrize("is_ordered", [False, True])
def test_a_stop_that_was_taken_back_leaves_no_trace(scenario: Scenario, is_ordered: bool) -> None:
    """
    A job that nothing has stopped yet runs on, also across the loss of its host.
    """
    scenario.hosts("h1 slots=1")
    running(scenario, "A")
    stop(scenario, "A")
    if is_ordered:
        scenario.session()
    go_on(scenario, "A")
    silent = MarkUnreachable(worker="h1", incarnation=1, silent_us=SECOND_US)
    scenario.command(silent, actor="")
    scenario.command(WorkerReport(worker="h1", incarnation=1), actor="")

    assert {"A": "RUN"} == scenario.states()
    assert scenario.session() == []


@pytest.mark.parametrize("is_ordered", [False, True])
def test_a_killed_job_does_not_come_back(scenario: Scenario, is_ordered: bool) -> None:
    """
    Neither because it was to be put back to pending before, nor by its exit value; and its end is
    ordered once.
    """
    scenario.hosts("h1 slots=2")
    scenario.submit("A", exits=ExitRules(requeue=(99,)))
    scenario.submit("B", exits=ExitRules(requeue=(99,)))
    scenario.session()
    scenario.command(RequeueJob(job_id=scenario.ids["A"]))
    if is_ordered:
        assert ["A kill ordered on h1: TERM_REQUEUE_OWNER"] == scenario.session()
    scenario.kill("A", "B")
    again = Core.restore(scenario.core.snapshot(), plain=scenario.state.is_plain)
    assert set(again.state.kills) == set(scenario.state.kills)
    scenario.finish("A", "B", exit_code=99)

    assert scenario.session() == []
    assert {"A": "EXIT", "B": "EXIT"} == scenario.states()


def test_nobody_is_stopped_for_a_queue_that_has_as_many_jobs_as_it_may(scenario: Scenario) -> None:
    """
    No victim is of that queue, so none gives back anything of what the job is short of.
    """
    queues(scenario, "hi 90 >all", limits=QueueLimits(jobs=1))
    queues(scenario, "lo 10 <all")
    scenario.hosts("h1 slots=3")
    running(scenario, "A queue=lo", "B queue=hi")
    scenario.jobs("C queue=hi")

    assert stops(scenario) == []
    assert "RES_LIMIT" in scenario.reasons("C")


# -- started jobs, changed


def changed(scenario: Scenario, name: str, **changes: object) -> None:
    """
    Ask for other contents of a job.
    """
    spec = scenario.job(name).spec.model_copy(update=changes)
    scenario.command(ModifyJob(job_id=scenario.ids[name], spec=spec))


def test_a_started_job_cannot_reserve_what_its_host_does_not_have(scenario: Scenario) -> None:
    """
    There is nothing to charge; it is refused by the host's name, and nothing has changed.
    """
    scenario.hosts("h1 slots=1", "h2 slots=1 mem_mb=100")
    scenario.jobs("A")
    scenario.session()

    with pytest.raises(Refused, match="must reserve what h1 has"):
        changed(scenario, "A", resreq=("rusage[mem=50]",))

    assert scenario.session() == []


def test_a_victim_that_is_changed_goes_on_like_any_other(high_and_low: Scenario) -> None:
    """
    It is still stopped, and is charged for its other amounts what a victim is charged.
    """
    scenario = high_and_low
    scenario.hosts("h1 slots=1 mem_mb=100")
    limit(scenario, "few", mem=60_000 * 1024)
    scenario.submit("A", queue="lo", resreq=("rusage[mem=50]",))
    scenario.session()
    scenario.jobs("B queue=hi")
    scenario.session()
    scenario.suspended("A")
    changed(scenario, "A", resreq=("rusage[mem=20]",))
    again = Core.restore(scenario.core.snapshot(), plain=scenario.state.is_plain)
    assert again.state.limits.in_use() == scenario.state.limits.in_use()
    scenario.session()
    scenario.finish("B")

    assert ["A resume ordered on h1"] == scenario.session()


# -- moments


def test_ends_at_limits_are_ordered_by_their_moments_alone(scenario: Scenario) -> None:
    """
    That a job was looked at when it could begin, or wasn't since no session was held, leaves no
    trace: a core that was restored decides in the same order.
    """
    now_us = scenario.now_us
    scenario.hosts("h1 slots=0")
    scenario.submit("A", begin_us=now_us + 10 * SECOND_US, deadline_us=now_us + 100 * SECOND_US)
    scenario.submit("B", deadline_us=now_us + 90 * SECOND_US)
    scenario.pass_time(20)
    scenario.session()
    scenario.pass_time(100)
    again = Core.restore(scenario.core.snapshot(), plain=scenario.state.is_plain)

    assert ["B ended: TERM_DEADLINE", "A ended: TERM_DEADLINE"] == scenario.session()
    ended = [each.stream for each in again.session(scenario.now_us) if each.stream != "session"]
    assert [scenario.job(name).stream for name in "BA"] == ended


def test_it_is_told_when_a_job_has_become_too_late(scenario: Scenario) -> None:
    """
    That moment is waited for: no other has to come by for the job to learn of it.
    """
    scenario.hosts("h1 slots=0")
    deadline_us = scenario.now_us + 100 * SECOND_US
    scenario.submit("A", deadline_us=deadline_us, run_limit_us=60 * SECOND_US)
    scenario.session()
    assert "never: slots short on h1" == scenario.reasons("A")
    wakeup_us = scenario.core.next_wakeup(scenario.now_us)
    assert wakeup_us == deadline_us - 60 * SECOND_US + 1

    scenario.pass_time(41)
    scenario.session()

    assert "never: JOB_MISS_DEADLINE" == scenario.reasons("A")


def test_a_queues_other_run_limit_ends_jobs_that_run(scenario: Scenario) -> None:
    """
    What holds for a job is looked up when it is needed; so its moment must be.
    """
    scenario.hosts("h1 slots=1")
    scenario.jobs("A")
    scenario.session()
    spec = scenario.state.stored.queues["normal"].spec
    short = spec.model_copy(update={"run_limit_default_us": 60 * SECOND_US})
    scenario.command(DefineQueue(queue="normal", spec=short))
    scenario.pass_time(60)

    assert ["A kill ordered on h1: TERM_RUNLIMIT"] == scenario.session()


def test_a_run_limit_holds_though_contact_was_lost_meanwhile(scenario: Scenario) -> None:
    """
    Nobody has suspended the job, so it runs; the order is given when its worker is back.
    """
    scenario.hosts("h1 slots=1")
    scenario.submit("A", run_limit_us=60 * SECOND_US)
    scenario.session()
    scenario.command(MarkUnreachable(worker="h1", incarnation=1, silent_us=SECOND_US), actor="")
    scenario.pass_time(60)
    assert scenario.session() == []

    scenario.command(WorkerReport(worker="h1", incarnation=1), actor="")

    assert ["A kill ordered on h1: TERM_RUNLIMIT"] == scenario.session()


# -- reasons


def test_that_no_host_takes_jobs_is_told_beside_what_was_not_tried(scenario: Scenario) -> None:
    """
    That the second member wasn't tried is no reason by itself.
    """
    scenario.hosts("h1 slots=2")
    scenario.close("h1")
    scenario.submit("A", resreq=("1*{} + 1*{rusage[mem=10]}",))
    scenario.session()

    assert "HOST_DISABLED" in scenario.reasons("A")


def test_a_preemptor_whose_victim_goes_on_asks_as_others_do(high_and_low: Scenario) -> None:
    """
    Nothing is held for it any more and nobody stops for it: a restored core wouldn't say so.
    """
    scenario = high_and_low
    scenario.hosts("h1 slots=1")
    running(scenario, "A queue=lo")
    scenario.jobs("B queue=hi")
    assert ["A"] == stops(scenario)
    scenario.suspended("A")
    scenario.close("h1")
    scenario.session()
    scenario.resumed("A")
    scenario.session()

    asked = scenario.state.stored.reason_sets[scenario.job("B").reason_set].fingerprint
    assert "spares=" in asked
    assert "keeps=" not in asked


def test_a_compound_of_one_member_may_want_its_hosts_alike_too(scenario: Scenario) -> None:
    """
    What stands behind the braces binds all of it, however little that is.
    """
    scenario.hosts("h1 slots=1 rack=a", "h2 slots=1 rack=b", "h3 slots=1 rack=b")
    scenario.submit("A", resreq=("{2*{}} same[rack]",))
    scenario.submit("B", resreq=("{2*{}} same[rack]",))

    assert "A dispatched: h2*1 h3*1" in scenario.session()
    assert {"A": "RUN", "B": "PEND"} == scenario.states()


@pytest.mark.parametrize("is_ordered", [False, True])
def test_a_victim_that_a_user_stopped_and_let_go_on_waits_for_its_preemptor(
    high_and_low: Scenario, is_ordered: bool
) -> None:
    """
    Also when both came before it had stopped: it went on at once, on what was held for another.
    """
    scenario = high_and_low
    scenario.hosts("h1 slots=1")
    running(scenario, "A queue=lo")
    scenario.jobs("B queue=hi")
    assert ["A"] == stops(scenario)
    if not is_ordered:
        scenario.suspended("A")
    stop(scenario, "A")
    go_on(scenario, "A")
    if is_ordered:
        scenario.suspended("A")
    scenario.session()

    assert {"A": "SSUSP", "B": "RUN"} == scenario.states()
