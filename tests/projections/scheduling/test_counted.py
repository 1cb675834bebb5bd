"""
What counts towards a job's own bounds: of its time, and of how often it goes back to pending.
"""

from __future__ import annotations

import pytest

from domain.commands import MarkUnreachable, RequeueJob, StopJob, WorkerReport
from domain.jobs import ExitRules
from domain.windows import parse_windows
from tests.builders import SECOND_US
from tests.projections.scheduling.policies import queue
from tests.projections.scheduling.preempting import again
from tests.scenario import Scenario


def lose(scenario: Scenario, host: str) -> None:
    """
    Notice that nothing is heard of a host.
    """
    command = MarkUnreachable(worker=host, incarnation=1, silent_us=SECOND_US)
    scenario.command(command, actor="")


def hear(scenario: Scenario, host: str) -> None:
    """
    Have a host report again.
    """
    scenario.command(WorkerReport(worker=host, incarnation=1), actor="")


def test_a_job_on_a_host_nobody_hears_of_runs_on_towards_its_limit(scenario: Scenario) -> None:
    """
    The run limit is wall clock without suspended time, and nobody has suspended it; the order is
    given once there is somebody to carry it out.
    """
    scenario.hosts("h1")
    scenario.submit("A", run_limit_us=100 * SECOND_US)
    scenario.session()
    scenario.start("A")
    scenario.pass_time(50)
    lose(scenario, "h1")
    scenario.pass_time(40)
    hear(scenario, "h1")
    assert [] == scenario.session()
    assert 90 * SECOND_US == scenario.job("A").run_us
    scenario.core = again(scenario)

    scenario.pass_time(10)

    assert ["A kill ordered on h1: TERM_RUNLIMIT"] == scenario.session()


def test_a_window_that_closed_and_opened_between_two_sessions_counts_anew(
    scenario: Scenario,
) -> None:
    """
    The job didn't fit before it closed, and does now; nobody has seen it closed.
    """
    scenario.hosts("h1")
    queue(scenario, "normal", run_windows=parse_windows("0:00-0:30 0:31-2:00"))
    scenario.submit("A", run_limit_us=3_000 * SECOND_US)
    assert ["A pended: QUE_WINDOW_WILL_CLOSE"] == scenario.session()

    scenario.pass_time(35 * 60)

    assert ["A dispatched: h1*1"] == scenario.session()


def test_a_suspended_job_does_not_run_while_nobody_hears_of_its_host(scenario: Scenario) -> None:
    """
    It was stopped before, and still is when its host is back.
    """
    scenario.hosts("h1")
    scenario.submit("A", run_limit_us=100 * SECOND_US)
    scenario.session()
    scenario.start("A")
    scenario.command(StopJob(job_id=scenario.ids["A"]))
    scenario.session()
    scenario.suspended("A")
    lose(scenario, "h1")
    scenario.pass_time(500)
    hear(scenario, "h1")

    assert [] == scenario.session()
    assert 0 == scenario.job("A").run_us


@pytest.mark.parametrize("commands", [0, 2])
def test_only_exit_values_count_towards_the_most_requeues(
    commands: int, scenario: Scenario
) -> None:
    """
    LSF's MAX_JOB_REQUEUE bounds what a program does to itself, not what people do to it.
    """
    scenario.hosts("h1")
    scenario.submit("A", exits=ExitRules(requeue=(99,), requeue_max=1))
    scenario.session()
    for _ in range(commands):
        scenario.command(RequeueJob(job_id=scenario.ids["A"]))
        scenario.session()
        scenario.finish("A", exit_code=143)
        scenario.session()
    scenario.core = again(scenario)
    scenario.finish("A", exit_code=99)
    assert "A requeued: exit value" in scenario.session()
    scenario.session()
    scenario.core = again(scenario)

    scenario.finish("A", exit_code=99)

    assert {"A": "EXIT"} == scenario.states()
    assert [] == scenario.session()
