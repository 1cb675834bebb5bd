"""
A job's life beside placement: arrays, dependencies, moments, stops, requeues, changes, lost hosts.
"""

# long: one test for each rule of a job's life.

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.amounts import MEM, Amount
from domain.arrays import ArraySpec, IndexRange
from domain.commands import (
    DefineQueue,
    JoinWorker,
    MarkUnreachable,
    ModifyJob,
    MoveJob,
    RequeueJob,
    ResumeJob,
    StopJob,
    SwitchJob,
    WorkerReport,
)
from domain.errors import Refused
from domain.events.workers import JobUsage
from domain.jobs import ExitRules, JobLimits, Program
from domain.queues import QueueSpec
from domain.windows import parse_windows
from tests.builders import MB_MILLI, SECOND_US, some_settings
from tests.projections.scheduling.policies import queue
from tests.projections.scheduling.preempting import again
from tests.scenario import Scenario

HOUR_US = 3_600 * SECOND_US
MINUTE_US = 60 * SECOND_US


def array(first: int, last: int, most: int | None = None) -> ArraySpec:
    return ArraySpec(ranges=(IndexRange(start=first, end=last),), started_max=most)


def queue_with(scenario: Scenario, **changes: Any) -> None:
    scenario.command(DefineQueue(queue="normal", spec=QueueSpec(priority=30, **changes)))


# -- arrays


def test_elements_are_jobs_of_their_own(scenario: Scenario) -> None:
    """
    One submission, one stream an element, opened by its first event.
    """
    scenario.hosts("h1 slots=2")
    scenario.submit("A", array=array(1, 3))

    assert [
        "A[1] dispatched: h1*1",
        "A[2] dispatched: h1*1",
        "A[3] pended: slots short on h1",
    ] == scenario.session()
    assert scenario.state.stored.versions["job:0000000001"] == 1
    assert scenario.state.stored.versions["job:0000000001[000001]"] == 1


def test_an_array_starts_no_more_elements_than_its_limit(scenario: Scenario) -> None:
    """
    %k bounds what is started, and the rest says so.
    """
    scenario.hosts("h1 slots=9")
    scenario.submit("A", array=array(1, 3, most=1))

    assert ["A[1] dispatched: h1*1", "A[2] pended: JOB_ARRAY_JLIMIT",
            "A[3] pended: JOB_ARRAY_JLIMIT"] == scenario.session()  # fmt: skip

    scenario.finish("A[1]")

    assert ["A[2] dispatched: h1*1"] == scenario.session()


@pytest.mark.parametrize(("before", "after"), [(1, 2), (None, 2), (2, None)])
def test_how_many_elements_are_started_can_be_changed(
    scenario: Scenario, before: int | None, after: int | None
) -> None:
    """
    It is the array's, whichever element is named, also one that runs; nothing else of an array can
    be changed.
    """
    scenario.hosts("h1 slots=9")
    scenario.submit("A", array=array(1, 4, most=before))
    if before is not None:
        scenario.session()
    first, bound = scenario.job("A[1]").spec, array(1, 4, after)
    spec = first.model_copy(update={"array": bound})
    scenario.command(ModifyJob(job_id="1[1]", spec=spec))
    restored = again(scenario)
    scenario.session()
    restored.session(scenario.now_us)

    assert restored.snapshot() == scenario.core.snapshot()
    assert (after or 4) == list(scenario.states().values()).count("RUN")
    assert {bound} == {scenario.job(f"A[{index}]").spec.array for index in range(1, 5)}
    other = first.model_copy(update={"array": array(1, 5, after)})
    with pytest.raises(Refused, match="but for how many"):
        scenario.command(ModifyJob(job_id="1[4]", spec=other))


def test_an_array_is_forgotten_as_one(scenario: Scenario) -> None:
    """
    While one element lives, all its elements are known.
    """
    scenario.hosts("h1 slots=9")
    scenario.submit("A", array=array(1, 2))
    scenario.jobs("B", "C", "D")
    scenario.session()
    scenario.finish("A[1]", "B", "C")
    scenario.pass_time(4_000)
    scenario.jobs("E")
    scenario.session()
    assert "A[1]" in scenario.states()

    scenario.finish("A[2]", "D")
    scenario.pass_time(4_000)
    scenario.jobs("F")

    assert ["F dispatched: h1*1", "forgotten: [(1, 4)]"] == scenario.session()


# -- dependencies


def test_a_child_waits_for_its_parent(scenario: Scenario) -> None:
    """
    Three-valued: not yet, then true.
    """
    scenario.hosts("h1 slots=9")
    scenario.jobs("A")
    scenario.submit("B", dependency_text="done(1)")

    assert ["B pended: JOB_DEPEND", "A dispatched: h1*1"] == scenario.session()

    scenario.finish("A")

    assert ["B dispatched: h1*1"] == scenario.session()


def test_a_dependency_that_is_taken_away_holds_nobody_back(scenario: Scenario) -> None:
    """
    Also one that could never come true: nothing of it stays behind the text.
    """
    scenario.hosts("h1 slots=9")
    scenario.jobs("A")
    scenario.submit("B", dependency_text="done(1)")
    scenario.session()
    scenario.finish("A", exit_code=1)
    assert ["B pended: never: JOB_DEP_INVALID"] == scenario.session()

    spec = scenario.job("B").spec.model_copy(update={"dependency_text": ""})
    scenario.command(ModifyJob(job_id=scenario.ids["B"], spec=spec))

    assert scenario.job("B").spec.dependency is None
    assert ["B dispatched: h1*1"] == scenario.session()


def test_a_dependency_that_can_never_come_true_says_never(scenario: Scenario) -> None:
    """
    done(A) after A failed waits for ever, and says so.
    """
    scenario.hosts("h1 slots=9")
    scenario.jobs("A")
    scenario.submit("B", dependency_text="done(1)")
    scenario.session()
    scenario.finish("A", exit_code=1)

    assert ["B pended: never: JOB_DEP_INVALID"] == scenario.session()


def test_orphans_end_where_the_cluster_says_so() -> None:
    """
    The option to end jobs whose dependency can never come true.
    """
    for plain in (False, True):
        scenario = Scenario(some_settings(end_orphans=True), plain=plain)
        scenario.hosts("h1 slots=9")
        scenario.jobs("A")
        scenario.submit("B", dependency_text="done(1)")
        scenario.session()
        scenario.finish("A", exit_code=1)

        assert ["B ended: TERM_ORPHAN_SYSTEM"] == scenario.session()


@pytest.mark.parametrize("rule", [False, True], ids=["kept", "ended"])
def test_a_job_says_itself_whether_it_ends_as_an_orphan(*, rule: bool) -> None:
    """
    LSF's -ti goes before the cluster's rule, either way, and may be said later.
    """
    for plain in (False, True):
        scenario = Scenario(some_settings(end_orphans=rule), plain=plain)
        scenario.hosts("h1 slots=9")
        scenario.jobs("A")
        for name, own in (("B", True), ("C", False), ("D", None)):
            scenario.submit(name, dependency_text="done(1)", ends_as_orphan=own)
        scenario.session()
        scenario.finish("A", exit_code=1)
        scenario.session()

        ended = {"B": "EXIT", "C": "PEND", "D": "EXIT" if rule else "PEND"}
        assert {"A": "EXIT", **ended} == scenario.states()
        spec = scenario.job("C").spec.model_copy(update={"ends_as_orphan": True})
        scenario.command(ModifyJob(job_id=scenario.ids["C"], spec=spec))
        assert ["C ended: TERM_ORPHAN_SYSTEM"] == scenario.session()


def test_an_unknown_parent_is_refused(scenario: Scenario) -> None:
    """
    A dependency on an unknown job refuses the submission.
    """
    with pytest.raises(Refused) as refused:
        scenario.submit("B", dependency_text="done(77)")

    assert "dependency" in refused.value.field


def test_a_parent_is_known_while_its_child_waits(scenario: Scenario) -> None:
    """
    Parents must stay known also beyond the cleaning period.
    """
    scenario.hosts("h1 slots=9")
    scenario.jobs("A", "C", "D", "E")
    scenario.session()
    scenario.submit("B", dependency_text="done(1) && done(2)")
    scenario.finish("A", "D", "E")
    scenario.pass_time(4_000)
    scenario.jobs("F")
    scenario.session()

    assert "A" in scenario.states()

    scenario.finish("C")

    assert ["B dispatched: h1*1"] == scenario.session()


# -- moments


def test_a_job_does_not_start_before_its_begin_time(scenario: Scenario) -> None:
    """
    The next wakeup is the begin time, and a session then starts it.
    """
    scenario.hosts("h1 slots=9")
    begin_us = scenario.now_us + HOUR_US
    scenario.submit("A", begin_us=begin_us)

    assert ["A pended: JOB_START_TIME"] == scenario.session()
    assert begin_us == scenario.core.next_wakeup(scenario.now_us)

    scenario.pass_time(3_600)

    assert ["A dispatched: h1*1"] == scenario.session()


def test_a_run_limit_ends_a_job_when_its_running_time_is_over(scenario: Scenario) -> None:
    """
    A kill decision, at the wakeup that the core asked for.
    """
    scenario.hosts("h1 slots=9")
    scenario.submit("A", run_limit_us=10 * SECOND_US)
    scenario.session()

    assert scenario.now_us + 10 * SECOND_US == scenario.core.next_wakeup(scenario.now_us)

    scenario.pass_time(10)

    assert ["A kill ordered on h1: TERM_RUNLIMIT"] == scenario.session()

    scenario.finish("A", exit_code=1)
    assert scenario.job("A").why == "TERM_RUNLIMIT"


def test_suspended_time_does_not_count_for_the_run_limit(scenario: Scenario) -> None:
    """
    Wall clock minus suspended time.
    """
    scenario.hosts("h1 slots=9")
    scenario.submit("A", run_limit_us=10 * SECOND_US)
    scenario.session()
    scenario.pass_time(4)
    scenario.command(StopJob(job_id="1"))
    scenario.session()
    scenario.suspended("A")
    scenario.pass_time(100)
    assert [] == scenario.session()
    scenario.command(ResumeJob(job_id="1"))
    scenario.session()
    scenario.resumed("A")
    scenario.pass_time(5)
    assert [] == scenario.session()
    scenario.pass_time(1)

    assert ["A kill ordered on h1: TERM_RUNLIMIT"] == scenario.session()


def test_a_memory_limit_ends_a_job_that_uses_more(scenario: Scenario) -> None:
    """
    A limit isn't a reservation: it kills.
    """
    scenario.hosts("h1 slots=9 mem_mb=1000")
    scenario.submit("A", limits=JobLimits(memory_kib=100 * 1024))
    scenario.session()
    used = Amount(resource=MEM, milli=101 * MB_MILLI)
    usage = JobUsage(job_id="1", attempt=1, amounts=(used,))
    scenario.command(WorkerReport(worker="h1", incarnation=1, jobs=(usage,)))

    assert ["A kill ordered on h1: TERM_MEMLIMIT"] == scenario.session()


def test_a_deadline_ends_a_job_waiting_or_started(scenario: Scenario) -> None:
    """
    At its deadline a job ends, started or not; before it, it isn't started when it can't finish.
    """
    scenario.hosts("h1 slots=1")
    deadline_us = scenario.now_us + 100 * SECOND_US
    scenario.submit("A", deadline_us=deadline_us)
    scenario.submit("B", deadline_us=deadline_us)
    scenario.submit("C", deadline_us=deadline_us, run_limit_us=HOUR_US)
    scenario.session()
    assert scenario.decisions[-1] == "C pended: JOB_MISS_DEADLINE"
    scenario.pass_time(100)

    assert [
        "A kill ordered on h1: TERM_DEADLINE",
        "B ended: TERM_DEADLINE",
        "C ended: TERM_DEADLINE",
    ] == scenario.session()


def test_nothing_starts_outside_the_dispatch_window(scenario: Scenario) -> None:
    """
    The wakeup is the window's opening; running jobs are untouched.
    """
    scenario.hosts("h1 slots=9")
    queue_with(scenario, dispatch_windows=parse_windows("1:00-2:00"))
    scenario.jobs("A")

    assert [] == scenario.session()
    assert HOUR_US == scenario.core.next_wakeup(scenario.now_us)

    scenario.now_us = HOUR_US
    assert ["A dispatched: h1*1"] == scenario.session()

    scenario.now_us = 2 * HOUR_US
    assert [] == scenario.session()


def test_running_jobs_are_suspended_outside_the_run_window(scenario: Scenario) -> None:
    """
    A run window that closes suspends, one that opens lets go on.
    """
    scenario.hosts("h1 slots=9")
    queue_with(scenario, run_windows=parse_windows("0:00-1:00"))
    scenario.jobs("A")
    scenario.session()
    scenario.now_us = HOUR_US

    assert ["A stop ordered on h1: SUSP_QUEUE_WINDOW"] == scenario.session()
    scenario.suspended("A")
    assert scenario.states()["A"] == "SSUSP"
    assert [] == scenario.session()

    scenario.now_us = 24 * HOUR_US
    assert ["A resume ordered on h1"] == scenario.session()
    scenario.resumed("A")
    assert scenario.states()["A"] == "RUN"


def test_a_job_that_could_not_finish_before_the_window_closes_is_not_started(
    scenario: Scenario,
) -> None:
    """
    Ending exactly at the edge is allowed.
    """
    scenario.hosts("h1 slots=9")
    queue_with(scenario, run_windows=parse_windows("0:00-1:00"))
    scenario.now_us = 30 * MINUTE_US
    scenario.submit("A", run_limit_us=30 * MINUTE_US)
    scenario.submit("B", run_limit_us=31 * MINUTE_US)

    assert [
        "A dispatched: h1*1",
        "B pended: QUE_WINDOW_WILL_CLOSE",
    ] == scenario.session()


# -- stopping and going on


def test_a_user_cannot_resume_what_an_administrator_stopped(scenario: Scenario) -> None:
    """
    LSF's rule; the administrator can.
    """
    scenario.hosts("h1 slots=9")
    scenario.jobs("A")
    scenario.session()
    scenario.command(StopJob(job_id="1"), actor="root")
    assert ["A stop ordered on h1: SUSP_ADMIN_STOP"] == scenario.session()
    scenario.suspended("A")

    with pytest.raises(Refused):
        scenario.command(ResumeJob(job_id="1"), actor="alice")
    scenario.command(ResumeJob(job_id="1"), actor="root")

    assert scenario.states()["A"] == "SSUSP"
    assert ["A resume ordered on h1"] == scenario.session()


def test_a_stopped_job_keeps_its_slots(scenario: Scenario) -> None:
    """
    A user's stop frees nothing.
    """
    scenario.hosts("h1 slots=1")
    scenario.jobs("A", "B")
    scenario.session()
    scenario.command(StopJob(job_id="1"))
    scenario.session()
    scenario.suspended("A")

    assert scenario.states() == {"A": "USUSP", "B": "PEND"}
    assert [] == scenario.session()


# -- going back to pending


def test_a_requeue_exit_value_puts_a_job_on_top_with_the_next_attempt(scenario: Scenario) -> None:
    """
    As often as its rules allow, then it ends.
    """
    scenario.hosts("h1 slots=1")
    scenario.submit("A", exits=ExitRules(requeue=(99,), requeue_max=1))
    scenario.jobs("B")
    scenario.session()
    scenario.finish("A", exit_code=99)

    assert ["A requeued: exit value", "A dispatched: h1*1"] == scenario.session()
    assert scenario.job("A").attempt == 2

    scenario.finish("A", exit_code=99)

    assert ["B dispatched: h1*1"] == scenario.session()
    assert scenario.states()["A"] == "EXIT"


def test_an_excluding_value_avoids_the_host_of_a_serial_job_only(scenario: Scenario) -> None:
    """
    Nobody can tell which of a parallel job's hosts failed, and it might need all there are.
    """
    scenario.hosts("h1 slots=2", "h2 slots=2", "h3 slots=2")
    scenario.submit("A", exits=ExitRules(exclude=(20,)))
    scenario.submit("B", tasks_min=3, tasks_max=3, exits=ExitRules(exclude=(20,)))
    scenario.submit("C", tasks_min=2, tasks_max=2, exits=ExitRules(exclude=(20,)))
    scenario.session()
    for name in "ABC":
        scenario.finish(name, exit_code=20)
    scenario.session()

    assert [(0,), (), ()] == [scenario.job(name).excluded_hosts for name in "ABC"]


def test_a_success_exit_value_is_done(scenario: Scenario) -> None:
    """
    The queue's rules hold for jobs without their own.
    """
    scenario.hosts("h1 slots=1")
    queue_with(scenario, exits=ExitRules(success=(3,)))
    scenario.jobs("A")
    scenario.session()
    scenario.finish("A", exit_code=3)

    assert scenario.states() == {"A": "DONE"}


def test_requeue_by_command_ends_the_attempt_first(scenario: Scenario) -> None:
    """
    The worker kills the attempt; its end puts the job back behind its equals.
    """
    scenario.hosts("h1 slots=1")
    scenario.jobs("A", "B")
    scenario.session()
    scenario.pass_time(1)
    scenario.command(RequeueJob(job_id="1"))
    assert ["A kill ordered on h1: TERM_REQUEUE_OWNER"] == scenario.session()
    scenario.finish("A", exit_code=1)

    assert [
        "A requeued: command",
        "B dispatched: h1*1",
        "A pended: slots short on h1",
    ] == scenario.session()


def test_who_wanted_a_job_back_shows_in_why_its_attempt_ended(scenario: Scenario) -> None:
    """
    LSF's TERM_REQUEUE_ADMIN; what the requeue itself is told as is the same for both.
    """
    scenario.hosts("h1 slots=1")
    scenario.jobs("A")
    scenario.session()
    scenario.command(RequeueJob(job_id="1"), actor="root")
    assert ["A kill ordered on h1: TERM_REQUEUE_ADMIN"] == scenario.session()
    scenario.finish("A", exit_code=1)

    assert "A requeued: command" == scenario.session()[0]


def test_a_rerunnable_job_of_a_lost_host_starts_anew_after_the_grace_time(
    scenario: Scenario,
) -> None:
    """
    UNKWN first; then requeued if rerunnable, ended otherwise; reports of the old attempt are stale.
    """
    scenario.hosts("h1 slots=2", "h2 slots=2")
    scenario.submit("A", rerunnable=True)
    scenario.jobs("B")
    scenario.session()
    scenario.pass_time(60)
    scenario.command(MarkUnreachable(worker="h1", incarnation=1, silent_us=60 * SECOND_US))
    assert scenario.states() == {"A": "UNKWN", "B": "UNKWN"}
    wakeup_us = scenario.core.next_wakeup(scenario.now_us)
    assert wakeup_us is not None
    assert [] == scenario.session()
    scenario.now_us = wakeup_us

    assert [
        "A requeued: lost host",
        "B ended: TERM_LOST_HOST",
    ] == scenario.session()
    assert scenario.core.is_cut_short
    assert ["A dispatched: h2*1"] == scenario.session()


def test_a_host_that_comes_back_in_time_has_its_jobs_again(scenario: Scenario) -> None:
    """
    Nothing is put back before the grace time is over.
    """
    scenario.hosts("h1 slots=2")
    scenario.submit("A", rerunnable=True)
    scenario.session()
    scenario.command(MarkUnreachable(worker="h1", incarnation=1, silent_us=60 * SECOND_US))
    scenario.pass_time(300)
    scenario.command(JoinWorker(worker="h1", slots=2))
    scenario.pass_time(3_000)

    assert [] == scenario.session()
    assert scenario.states() == {"A": "RUN"}


# -- changes


def test_switching_puts_a_job_under_its_new_queue(scenario: Scenario) -> None:
    """
    It keeps its age, and goes by the new queue's priority.
    """
    scenario.hosts("h1 slots=1")
    scenario.queue("high", priority=90)
    scenario.jobs("A", "B")
    scenario.command(SwitchJob(job_id="2", queue="high"))

    assert ["B dispatched: h1*1", "A pended: slots short on h1"] == scenario.session()


def test_top_and_bottom_move_a_job_among_its_equals(scenario: Scenario) -> None:
    """
    A job on top goes first, one at the bottom last, also behind those that come later.
    """
    scenario.hosts("h1 slots=9")
    scenario.jobs("A", "B", "C")
    scenario.command(MoveJob(job_id="3", to="top"))
    scenario.command(MoveJob(job_id="1", to="bottom"))
    scenario.jobs("D")

    order = [words.split()[0] for words in scenario.session()]

    assert ["C", "B", "D", "A"] == order


def test_a_user_moves_a_job_among_their_own_alone(scenario: Scenario) -> None:
    """
    It comes right before the first of its user's own, or right behind the last; what other people
    have before those stays there.
    """
    scenario.hosts("h1 slots=9")
    scenario.jobs("A user=bob", "B user=ann", "C user=bob", "D user=ann", "E user=bob")
    scenario.command(MoveJob(job_id="4", to="top", among="own"))
    scenario.command(MoveJob(job_id="1", to="bottom", among="own"))

    order = [words.split()[0] for words in scenario.session()]

    assert ["D", "B", "C", "E", "A"] == order


@given(
    users=st.lists(st.sampled_from("abc"), min_size=1, max_size=7),
    moves=st.lists(
        st.tuples(
            st.integers(0, 6), st.sampled_from(["top", "bottom"]), st.sampled_from(["all", "own"])
        ),
        max_size=12,
    ),
)
def test_moves_put_jobs_where_a_plain_list_has_them(users, moves) -> None:
    """
    Whatever was moved before, an insertion is right beside the outermost of the jobs meant.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=9")
    scenario.jobs(*(f"J{number} user={user}" for number, user in enumerate(users)))
    plain = list(range(len(users)))
    for moved, to, among in moves:
        if moved >= len(users):
            continue
        scenario.command(
            MoveJob.model_validate({"job_id": str(moved + 1), "to": to, "among": among})
        )
        meant = [
            place
            for place, job in enumerate(plain)
            if job != moved and (among == "all" or users[job] == users[moved])
        ]
        here = plain.index(moved)
        if not meant or (to == "top" and here < meant[0]) or (to == "bottom" and here > meant[-1]):
            continue
        beside = plain[meant[0] if to == "top" else meant[-1]]
        plain.remove(moved)
        plain.insert(plain.index(beside) + (to == "bottom"), moved)

    order = [words.split()[0] for words in scenario.session()]

    assert [f"J{job}" for job in plain] == order


@pytest.mark.parametrize("among", ["all", "own"])
def test_jobs_whose_priorities_are_capped_alike_are_equals(scenario: Scenario, among: str) -> None:
    """
    What of a wish doesn't count for the order doesn't keep a job from being moved either.
    """
    queue(scenario, user_priority_max=5)
    scenario.hosts("h1 slots=9")
    scenario.submit("A", user_priority=9)
    scenario.submit("B", user_priority=7)
    scenario.submit("C", user_priority=3)

    for name, to in (("B", "top"), ("C", "top")):
        moved = {"job_id": scenario.ids[name], "to": to, "among": among}
        scenario.command(MoveJob.model_validate(moved))

    assert ["B", "A", "C"] == [words.split()[0] for words in scenario.session()]


def test_a_modified_job_is_considered_anew(scenario: Scenario) -> None:
    """
    A pending job may change everything but who and where it is.
    """
    scenario.hosts("h1 slots=2")
    scenario.jobs("A tasks=4")
    scenario.session()
    spec = scenario.job("A").spec
    scenario.command(
        ModifyJob(job_id="1", spec=spec.model_copy(update={"tasks_min": 2, "tasks_max": 2}))
    )

    assert ["A dispatched: h1*2"] == scenario.session()
    with pytest.raises(Refused) as refused:
        scenario.command(ModifyJob(job_id="1", spec=spec))
    assert refused.value.field == "tasks_min"


def test_a_started_job_may_reserve_another_amount(scenario: Scenario) -> None:
    """
    Its host is charged with the new amount at once; anything else of its requirement stays.
    """
    scenario.hosts("h1 slots=9 mem_mb=1000")
    scenario.jobs("A mem_mb=900", "B mem_mb=500")
    scenario.session()
    spec = scenario.job("A").spec
    less = spec.model_copy(update={"resreq": ("rusage[mem=400]",), "requirement": None})
    scenario.command(ModifyJob(job_id="1", spec=less))

    assert ["B dispatched: h1*1"] == scenario.session()
    other = spec.model_copy(update={"resreq": ("span[hosts=1]",), "requirement": None})
    with pytest.raises(Refused):
        scenario.command(ModifyJob(job_id="1", spec=other))


def test_the_output_of_a_started_job_may_go_elsewhere(scenario: Scenario) -> None:
    """
    Its next start looks there; what it runs stays as it is (LSF's ``bmod -o``).
    """
    scenario.hosts("h1 slots=1")
    scenario.jobs("A")
    scenario.session()
    spec = scenario.job("A").spec
    program = (spec.program or Program()).model_copy(update={"stdout": "elsewhere"})
    scenario.command(ModifyJob(job_id="1", spec=spec.model_copy(update={"program": program})))

    assert program == scenario.job("A").spec.program
    other = program.model_copy(update={"argv": ("reboot",)})
    with pytest.raises(Refused, match="once the job has started"):
        scenario.command(ModifyJob(job_id="1", spec=spec.model_copy(update={"program": other})))


def test_a_queue_may_let_new_jobs_wait_before_they_are_considered(scenario: Scenario) -> None:
    """
    LSF's NEW_JOB_SCHED_DELAY: their moment is waited for, and other queues' jobs go first.
    """
    scenario.hosts("h1 slots=1")
    spec = QueueSpec(priority=90, new_job_delay_us=10 * SECOND_US)
    scenario.command(DefineQueue(queue="slow", spec=spec))
    scenario.jobs("A queue=slow", "B")
    scenario.session()
    assert {"A": "PEND", "B": "RUN"} == scenario.states()
    moment = scenario.job("A").submit_us + 10 * SECOND_US
    assert moment == scenario.core.next_wakeup(scenario.now_us)
    scenario.finish("B")
    scenario.core = again(scenario)
    assert [] == scenario.session()
    scenario.pass_time(10)

    assert "A dispatched: h1*1" in scenario.session()


def test_a_queue_that_no_longer_lets_new_jobs_wait_has_them_considered(scenario: Scenario) -> None:
    """
    So it is for those that wait already, and the other way round.
    """
    scenario.hosts("h1 slots=1")
    slow = QueueSpec(priority=90, new_job_delay_us=10 * SECOND_US)
    scenario.command(DefineQueue(queue="q", spec=slow))
    scenario.jobs("A queue=q")
    scenario.session()
    scenario.command(DefineQueue(queue="q", spec=QueueSpec(priority=90)))
    scenario.session()
    assert "RUN" == scenario.states()["A"]

    scenario.jobs("B queue=q")
    scenario.session()
    scenario.command(DefineQueue(queue="q", spec=slow))
    scenario.finish("A")
    scenario.session()
    assert "JOB_DELAY_SCHED" == scenario.reasons("B")
    scenario.pass_time(10)
    scenario.session()
    assert "RUN" == scenario.states()["B"]


@pytest.mark.parametrize("most", [1, 10_000])
@pytest.mark.parametrize("how", ["begin", "delay"])
def test_a_core_restored_while_a_job_is_kept_back_says_that_it_no_longer_is(
    how: str, most: int
) -> None:
    """
    Behind a job that holds it back it isn't tried when it becomes ready: its reason is all that is
    decided of it, after a restart as without one, and where a session ends in the middle.
    """
    delay_us = 100 * SECOND_US if how == "delay" else 0
    begin_us = 50 * SECOND_US if how == "begin" else None
    scenario = Scenario(some_settings(picker="strict_fcfs", session_max_decisions=most))
    scenario.hosts("h1 slots=1")
    scenario.command(
        DefineQueue(queue="late", spec=QueueSpec(priority=30, new_job_delay_us=delay_us))
    )
    scenario.submit("running")
    scenario.submit("blocker")
    scenario.submit("kept", queue="late", begin_us=begin_us)
    for _ in range(9):
        scenario.session()
    assert scenario.reasons("kept") in {"JOB_START_TIME", "JOB_DELAY_SCHED"}
    scenario.command(DefineQueue(queue="late", spec=QueueSpec(priority=30)))
    scenario.pass_time(60)

    for _ in range(4):
        restored = again(scenario)
        made = restored.session(scenario.now_us)
        scenario.session()
        assert made == scenario.log[len(scenario.log) - len(made) :]
        assert restored.snapshot() == scenario.core.snapshot()

    assert "JOB_NEW" == scenario.reasons("kept")
