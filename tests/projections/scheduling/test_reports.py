"""
Reports of workers: which count, and what comes back when a lost host does.
"""

from __future__ import annotations

from typing import Any

import pytest

from domain.amounts import MEM, Amount
from domain.commands import (
    JobCouldNotStartReport,
    JobFinishedReport,
    JobResumedReport,
    JobStartedReport,
    JobSuspendedReport,
    LeaveWorker,
    MarkUnreachable,
    RequeueJob,
    ResumeJob,
    StopJob,
    WorkerReport,
)
from domain.events.refusals import ReportIgnored
from domain.events.workers import JobUsage
from tests.projections.scheduling.preempting import queues, running
from tests.scenario import Scenario

REPORTS: list[tuple[Any, dict[str, Any]]] = [
    (JobStartedReport, {}),
    (JobCouldNotStartReport, {"why": "it failed"}),
    (JobFinishedReport, {"exit_code": 0}),
    (JobSuspendedReport, {}),
    (JobResumedReport, {}),
]
ABOUT: dict[str, Any] = {"worker": "h1", "incarnation": 1, "job_id": "1", "attempt": 2}
STALE: list[tuple[dict[str, Any], str]] = [
    ({"attempt": 1}, "its attempt is 2 now"),
    ({"worker": "h2"}, "the job isn't on this worker"),
    ({"job_id": "9"}, "no such job is known"),
    ({"worker": "h3"}, "its incarnation is 2 now"),
]


def second_attempt(scenario: Scenario) -> None:
    """
    Let job 1 run on h1 in its second attempt, while h2 is there, and h3 in its second life.
    """
    scenario.hosts("h1 slots=1", "h2 slots=1", "h3 slots=1", "h3 slots=1")
    scenario.close("h2")
    scenario.close("h3")
    scenario.jobs("A")
    scenario.session()
    scenario.command(RequeueJob(job_id="1"))
    scenario.session()
    scenario.end_by("A", 15)
    scenario.session()
    assert (2, "RUN") == (scenario.job("A").attempt, scenario.states()["A"])


@pytest.mark.parametrize(("change", "why"), STALE)
@pytest.mark.parametrize(("kind", "fields"), REPORTS)
def test_a_report_that_is_not_about_the_live_attempt_changes_nothing(
    scenario: Scenario, kind: Any, fields: dict[str, Any], change: dict[str, Any], why: str
) -> None:
    """
    An agent that was away tells of what is no longer; it is recorded as ignored, with why.
    """
    second_attempt(scenario)
    before = scenario.job("A").state, scenario.job("A").start_us, scenario.job("A").why

    (made,) = scenario.command(kind(**{**ABOUT, **change, **fields}), actor="")

    assert isinstance(made.event, ReportIgnored)
    assert why == made.event.why
    job = scenario.job("A")
    assert before == (job.state, job.start_us, job.why)


def test_a_report_about_the_live_attempt_counts(scenario: Scenario) -> None:
    """
    The same as those above, with nothing changed: they are ignored for what is wrong with them.
    """
    second_attempt(scenario)

    scenario.command(JobStartedReport(**ABOUT), actor="")
    scenario.command(JobFinishedReport(**ABOUT, exit_code=0), actor="")

    assert ("DONE", scenario.now_us) == (scenario.states()["A"], scenario.job("A").start_us)


@pytest.mark.parametrize("change", [change for change, _ in STALE[:3]])
def test_usage_that_is_not_of_the_live_attempt_is_left_out(
    scenario: Scenario, change: dict[str, Any]
) -> None:
    """
    A former attempt's memory isn't this one's; the rest of the report counts.
    """
    second_attempt(scenario)
    about = {**ABOUT, **change}
    amounts = (Amount(resource=MEM, milli=5_000),)
    usage = JobUsage(job_id=about["job_id"], attempt=about["attempt"], amounts=amounts)
    usage = usage.model_copy(update={"cpu_us": 7, "processes": 3})
    report = WorkerReport(worker=about["worker"], incarnation=1, jobs=(usage,))

    (made,) = scenario.command(report, actor="")

    assert () == made.event.jobs  # type: ignore[attr-defined]
    assert (0, 0, {}) == (
        scenario.job("A").cpu_us, scenario.job("A").processes, scenario.job("A").actual
    )  # fmt: skip


# ----------------------------------------------------------------------------- hosts that come back


@pytest.mark.parametrize("how", ["running", "stopped by its user", "stopped for another"])
def test_a_job_comes_back_with_its_host_as_it_was(scenario: Scenario, how: str) -> None:
    """
    A process that was stopped before its host was lost is stopped still.
    """
    queues(scenario, "hi 90 >lo", "lo 10 <hi")
    scenario.hosts("h1 slots=1")
    running(scenario, "A queue=lo")
    if how == "stopped by its user":
        scenario.command(StopJob(job_id="1"))
    elif how == "stopped for another":
        scenario.jobs("B queue=hi hold=1", "C queue=hi")
    if how != "running":
        scenario.session()
        scenario.suspended("A")
    state = {"running": "RUN", "stopped by its user": "USUSP"}.get(how, "SSUSP")
    assert state == scenario.states()["A"]

    scenario.command(MarkUnreachable(worker="h1", incarnation=1, silent_us=1), actor="")
    assert "UNKWN" == scenario.states()["A"]
    scenario.command(WorkerReport(worker="h1", incarnation=1), actor="")

    assert state == scenario.states()["A"]


def test_a_stop_that_was_only_ordered_does_not_come_back_as_one(scenario: Scenario) -> None:
    """
    Its order stands, and the worker still has to carry it out.
    """
    scenario.hosts("h1")
    running(scenario, "A")
    scenario.command(StopJob(job_id="1"))
    scenario.session()
    scenario.command(MarkUnreachable(worker="h1", incarnation=1, silent_us=1), actor="")
    scenario.command(WorkerReport(worker="h1", incarnation=1), actor="")
    assert {"A": "RUN"} == scenario.states()

    scenario.suspended("A")

    assert {"A": "USUSP"} == scenario.states()
    scenario.command(ResumeJob(job_id="1"))
    assert ["A resume ordered on h1"] == scenario.session()


@pytest.mark.parametrize("how", ["lost", "left"])
def test_nothing_is_held_on_a_host_that_is_gone(scenario: Scenario, how: str) -> None:
    """
    The preemptor looks for another place; whoever stops for it there stops for it alone.
    """
    queues(scenario, "hi 90 >lo", "lo 10 <hi")
    scenario.hosts("h1 slots=1", "h2 slots=1")
    running(scenario, "A queue=lo", "X queue=hi")
    scenario.jobs("B queue=hi")
    assert "B preempts A: h1*1" in scenario.session()

    if how == "lost":
        gone: object = MarkUnreachable(worker="h1", incarnation=1, silent_us=1)
    else:
        gone = LeaveWorker(worker="h1", incarnation=1)
    scenario.command(gone, actor="")

    assert (None, {}) == (scenario.job("B").keeps, scenario.state.keepers)
    scenario.finish("X")
    assert "B dispatched: h2*1" in scenario.session()
