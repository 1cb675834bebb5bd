"""
Whole outcomes of sessions, on the fast and on the literal core.
"""

from __future__ import annotations

from domain.events.session import ReasonSetChanged
from domain.jobs import JobLimits
from domain.reasons import ReasonCode
from tests.builders import SECOND_US, some_settings
from tests.projections.scheduling.policies import queue
from tests.scenario import Scenario


def test_short_job_passes_a_blocked_wide_one(scenario: Scenario) -> None:
    """
    A job that can't be placed doesn't stop later ones in greedy FCFS: pending is per job, not per
    queue.
    """
    scenario.hosts("h1 slots=4", "h2 slots=2")
    scenario.jobs("A tasks=8", "B tasks=2")

    scenario.session()

    assert [
        "A pended: never: slots short on h1, h2",
        "B dispatched: h1*2",
    ] == scenario.decisions


def test_a_wide_job_that_fits_the_empty_cluster_is_not_never(scenario: Scenario) -> None:
    """
    Never is told from not now: the same job is never on too small a cluster, and only waits on a
    busy one.
    """
    scenario.hosts("h1 slots=4", "h2 slots=4")
    scenario.jobs("A tasks=3", "B tasks=6")

    scenario.session()

    assert ["A dispatched: h1*3", "B pended: slots short on h1, h2"] == scenario.decisions


def test_tasks_spread_evenly_over_the_fewest_hosts(scenario: Scenario) -> None:
    """
    The plans of parjob come with rising host counts: 6 tasks on hosts of 4 go 3 and 3, not 4 and 2.
    """
    scenario.hosts("h1 slots=4", "h2 slots=4", "h3 slots=4")
    scenario.jobs("A tasks=6")

    scenario.session()

    assert ["A dispatched: h1*3 h2*3"] == scenario.decisions


def test_bucket_too_big_for_a_host_may_still_fit_it_later(scenario: Scenario) -> None:
    """
    The host iterator is made afresh for each bucket: h1 is too small for 3 tasks but takes the
    bucket of 2.
    """
    scenario.hosts("h1 slots=2", "h2 slots=3")
    scenario.jobs("A tasks=5")

    scenario.session()

    assert ["A dispatched: h2*3 h1*2"] == scenario.decisions


def test_fill_takes_what_even_partitions_cannot(scenario: Scenario) -> None:
    """
    An 8-task job fits free hosts of 7 and 1 only by filling them in host order.
    """
    scenario.hosts("h1 slots=1", "h2 slots=7")
    scenario.jobs("A tasks=8")

    scenario.session()

    assert ["A dispatched: h1*1 h2*7"] == scenario.decisions


def test_jobs_go_by_queue_then_job_priority_then_age_then_number(scenario: Scenario) -> None:
    """
    The order is total, its last key the job's number.
    """
    scenario.hosts("h1 slots=9")
    scenario.queue("high", priority=50)
    scenario.jobs("A", "B priority=7", "C queue=high", "D")

    scenario.session()

    order = [words.split()[0] for words in scenario.decisions]
    assert ["C", "B", "A", "D"] == order


def test_a_job_of_a_queue_that_waits_for_memory_names_each_short_host(scenario: Scenario) -> None:
    """
    Every matching short host contributes every resource that it is short of, not only the first.
    """
    scenario.hosts("h1 slots=2 mem_mb=1000", "h2 slots=1 mem_mb=4000", "h3 slots=4 mem_mb=100")
    scenario.jobs("A tasks=2 mem_mb=2000")

    scenario.session()

    assert [
        "A pended: never: slots short on h2; mem short on h1, h3",
    ] == scenario.decisions


def test_memory_per_task_bounds_the_tasks_of_a_host(scenario: Scenario) -> None:
    """
    With 1,000 MB a task, a host of 2,500 MB takes two tasks however many slots it has.
    """
    scenario.hosts("h1 slots=8 mem_mb=2500", "h2 slots=8 mem_mb=2500")
    scenario.jobs("A tasks=4 mem_mb=1000 per_task=1")

    scenario.session()

    assert ["A dispatched: h1*2 h2*2"] == scenario.decisions


def test_task_range_takes_as_many_as_there_are(scenario: Scenario) -> None:
    """
    A range starts with the greatest count that fits, and waits only below its minimum.
    """
    scenario.hosts("h1 slots=3", "h2 slots=2")
    scenario.jobs("A tasks=2 tasks_max=9", "B tasks=1 tasks_max=2")

    scenario.session()

    assert [
        "A dispatched: h1*3 h2*2",
        "B pended: slots short on h1, h2",
    ] == scenario.decisions


def test_reasons_are_recorded_once_until_they_change(scenario: Scenario) -> None:
    """
    Changed amounts alone are no new event; a host that closes is.
    """
    scenario.hosts("h1 slots=4", "h2 slots=4")
    scenario.jobs("A tasks=8", "B tasks=8")
    scenario.session()
    first = scenario.job("B").reason_set
    scenario.jobs("C tasks=1")
    scenario.session()

    assert ["C pended: slots short on h1, h2"] == scenario.decisions
    assert first == scenario.job("B").reason_set

    scenario.close("h2")
    scenario.session()

    assert [] == scenario.decisions
    assert scenario.reasons("B") == "HOST_DISABLED on h2; slots short on h1"


def test_a_session_that_decides_nothing_leaves_no_trace(scenario: Scenario) -> None:
    """
    Whatever outlives a session is a function of events alone.
    """
    scenario.hosts("h1 slots=1")
    scenario.jobs("A tasks=4")
    scenario.session()
    before = scenario.core.snapshot()

    assert [] == scenario.session()
    assert before == scenario.core.snapshot()


def test_a_job_for_a_cluster_without_hosts_waits_with_a_reason(scenario: Scenario) -> None:
    """
    The full list of reasons is never empty.
    """
    scenario.jobs("A")

    scenario.session()

    assert ["A pended: never: NO_HOSTS"] == scenario.decisions


def test_jobs_of_an_inactive_queue_wait_until_it_is_active(scenario: Scenario) -> None:
    """
    An inactive queue takes submissions and starts nothing.
    """
    scenario.hosts("h1 slots=4")
    scenario.set_queue("normal", "inactive")
    scenario.jobs("A")

    assert [] == scenario.session()

    scenario.set_queue("normal", "active")

    assert ["A dispatched: h1*1"] == scenario.session()


def test_a_held_job_waits_and_keeps_its_place(scenario: Scenario) -> None:
    """
    A hold passes over a job; lifted, it stands where its age puts it.
    """
    scenario.hosts("h1 slots=1")
    scenario.jobs("A", "B")
    scenario.hold("A")
    scenario.session()
    scenario.lift("A")
    scenario.jobs("C")
    scenario.finish("B")

    assert ["A dispatched: h1*1", "C pended: slots short on h1"] == scenario.session()


def test_killing_a_pending_job_ends_it_and_a_running_one_orders_its_worker(
    scenario: Scenario,
) -> None:
    """
    A kill is a request; what comes of it is the next session's decision.
    """
    scenario.hosts("h1 slots=1")
    scenario.jobs("A", "B")
    scenario.session()
    scenario.kill("A", "B")
    scenario.kill("A")

    assert ["A kill ordered on h1: TERM_OWNER", "B ended: TERM_OWNER"] == scenario.session()
    assert {"A": "RUN", "B": "EXIT"} == scenario.states()


def test_a_kill_by_somebody_else_is_the_administrators(scenario: Scenario) -> None:
    """
    The termination reason tells who wanted the end.
    """
    scenario.jobs("A")
    scenario.kill("A", actor="root")

    assert ["A ended: TERM_ADMIN"] == scenario.session()


def test_a_closed_host_takes_nothing_and_keeps_what_runs() -> None:
    """
    Closing never touches running jobs.
    """
    for plain in (False, True):
        scenario = Scenario(plain=plain)
        scenario.hosts("h1 slots=2", "h2 slots=1")
        scenario.jobs("A")
        scenario.session()
        scenario.close("h1")
        scenario.jobs("B", "C")

        assert [
            "B dispatched: h2*1",
            "C pended: HOST_DISABLED on h1; slots short on h2",
        ] == scenario.session()
        assert scenario.states()["A"] == "RUN"


def test_strict_order_stops_at_the_first_job_that_cannot_start() -> None:
    """
    Under strict FCFS nobody overtakes; the jobs behind get their reason from the list's own event.
    """
    for plain in (False, True):
        scenario = Scenario(some_settings(picker="strict_fcfs"), plain=plain)
        scenario.hosts("h1 slots=4")
        scenario.jobs("A tasks=3", "B tasks=2", "C tasks=1")

        assert [
            "A dispatched: h1*3",
            "B pended: slots short on h1",
            "B holds back its list",
        ] == scenario.session()

        scenario.jobs("D tasks=1")
        assert [] == scenario.session()

        scenario.finish("A")
        assert [
            "B dispatched: h1*2",
            "C dispatched: h1*1",
            "D dispatched: h1*1",
        ] == scenario.session()


def test_a_session_ends_at_its_most_decisions_and_the_next_goes_on() -> None:
    """
    The bound is a count, never a time, so that a replay decides the same.
    """
    for plain in (False, True):
        scenario = Scenario(some_settings(session_max_decisions=2), plain=plain)
        scenario.hosts("h1 slots=9")
        scenario.jobs("A", "B", "C")

        assert ["A dispatched: h1*1", "B dispatched: h1*1"] == scenario.session()
        assert scenario.core.is_cut_short
        assert ["C dispatched: h1*1"] == scenario.session()
        assert not scenario.core.is_cut_short


def test_ended_jobs_are_forgotten_in_a_session_that_is_held_anyway(scenario: Scenario) -> None:
    """
    Memory grows with live jobs: those that ended an hour ago go, enough at once, and never by a
    session of their own.
    """
    scenario.hosts("h1 slots=9")
    scenario.jobs("A", "B", "C", "D")
    scenario.session()
    scenario.finish("A", "B", "D")
    scenario.pass_time(3_600)

    assert [] == scenario.session()

    scenario.jobs("E")

    assert ["E dispatched: h1*1", "forgotten: [(1, 2), (4, 4)]"] == scenario.session()
    assert {"C": "RUN", "E": "RUN"} == scenario.states()


def test_the_reason_of_a_job_over_a_lowered_bound_has_the_words_of_older_logs(
    scenario: Scenario,
) -> None:
    """
    Another notation in it would be a difference of every such log when it is decided again.
    """
    scenario.hosts("h1 slots=1")
    queue(scenario)
    scenario.submit("X")
    scenario.session()
    scenario.submit("A", run_limit_us=7_200 * SECOND_US, limits=JobLimits(memory_kib=2 << 20))
    scenario.session()
    queue(scenario, run_limit_max_us=3_600 * SECOND_US)
    scenario.session()

    assert ["run_limit_us: must be at most the queue's 3600000000 (given: 7200000000)."] == [
        reason.detail
        for stamped in scenario.log
        if isinstance(stamped.event, ReasonSetChanged)
        for reason in stamped.event.reasons
        if reason.code is ReasonCode.JOB_NOT_ALLOWED
    ]
