"""
After its own start the scheduler gives jobs only to workers that it has heard.
"""

from __future__ import annotations

from domain.commands import LeaveWorker, MarkUnreachable, StartScheduler, WorkerReport
from domain.events.workers import WorkerBecameUnreachable, WorkerCameBack
from tests.builders import SECOND_US
from tests.scenario import Scenario

STARTED = StartScheduler(
    epoch=2, holder="test:1", code_version="1", pickers=(), allocators=(), awaits_workers=True
)
SILENT = MarkUnreachable(worker="h1", incarnation=1, silent_us=60 * SECOND_US)


def started_again(scenario: Scenario) -> None:
    """
    Let the scheduler begin again with the plug-ins that it had.
    """
    stored = scenario.state.stored
    scenario.command(
        STARTED.model_copy(update={"pickers": stored.pickers, "allocators": stored.allocators}),
        actor="",
    )


def test_no_job_goes_to_a_host_that_was_not_heard_since_the_schedulers_start(
    scenario: Scenario,
) -> None:
    """
    Its agent may be gone with the scheduler, as after xce down: the job would wait for nobody. What
    runs there isn't touched, and the first word of the worker opens the host.
    """
    scenario.hosts("h1 slots=2", "h2 slots=2")
    scenario.jobs("A tasks=2")
    scenario.session()
    started_again(scenario)
    scenario.jobs("B")
    waiting = scenario.session()
    scenario.command(WorkerReport(worker="h2", incarnation=1), actor="")

    assert ["B pended: SBD_UNREACH on h1, h2"] == waiting
    back = [one.stream for one in scenario.log if isinstance(one.event, WorkerCameBack)]
    assert ["worker:h2"] == back
    assert ["B dispatched: h2*1"] == scenario.session()
    assert {"A": "RUN", "B": "RUN"} == scenario.states()


def test_a_worker_that_is_never_heard_becomes_unreachable_as_any_other(
    scenario: Scenario,
) -> None:
    """
    Its jobs must come to an end, by the rules of lost hosts.
    """
    scenario.hosts("h1 slots=2")
    scenario.jobs("A")
    scenario.session()
    started_again(scenario)
    scenario.command(SILENT, actor="")

    assert {"A": "UNKWN"} == scenario.states()
    assert not scenario.state.worker("h1").is_awaited


def test_a_worker_that_left_jobs_behind_is_missed_and_an_idle_one_is_not(
    scenario: Scenario,
) -> None:
    """
    An agent may end while its programs run; if it never comes back, somebody must say so.
    """
    scenario.hosts("h1 slots=2", "h2 slots=2")
    scenario.jobs("A")
    scenario.session()
    for name in ("h1", "h2"):
        scenario.command(LeaveWorker(worker=name, incarnation=1), actor="")
        scenario.command(SILENT.model_copy(update={"worker": name}), actor="")

    missed = [one.stream for one in scenario.log if isinstance(one.event, WorkerBecameUnreachable)]
    assert ["worker:h1"] == missed
    assert {"A": "UNKWN"} == scenario.states()
