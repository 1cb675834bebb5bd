"""
While a job waits for the hosts that an operator named, no picker knows of it, whatever happens.
"""

from __future__ import annotations

import pytest

from domain.commands import LeaveWorker, MoveJob, StartScheduler, WorkerReport
from projections.scheduling.derived import derived
from tests.projections.scheduling.preempting import again
from tests.scenario import Scenario


@pytest.mark.parametrize("to", ["top", "bottom"])
def test_moving_a_job_that_waits_for_named_hosts_keeps_nobody_back(
    scenario: Scenario, to: str
) -> None:
    """
    It is before all others anyway. A picker that got to know of it would take it for the first of
    all that ask for the same, and pass them all over.
    """
    scenario.hosts("h1", "h2")
    scenario.jobs("A", "B")
    scenario.run("A", "h1")
    scenario.command(LeaveWorker(worker="h1", incarnation=1), actor="")

    scenario.command(MoveJob.model_validate({"job_id": scenario.ids["A"], "to": to}))

    assert "B dispatched: h2*1" in scenario.session()
    assert derived(scenario.state) == derived(again(scenario).state)


def test_a_new_start_of_the_scheduler_keeps_nobody_back(scenario: Scenario) -> None:
    """
    It has jobs tried again on hosts that they avoid, as one may that an operator wants elsewhere.
    """
    scenario.hosts("h1", "h2")
    scenario.jobs("A")
    scenario.session()
    scenario.could_not_start("A", fault="memory")
    scenario.command(LeaveWorker(worker="h2", incarnation=1), actor="")
    scenario.close("h1")
    scenario.session()
    scenario.hosts("h3")
    scenario.run("A", "h3")
    scenario.command(LeaveWorker(worker="h3", incarnation=1), actor="")
    scenario.jobs("B")

    stored = scenario.state.stored
    begun = StartScheduler(
        epoch=2, holder="test", code_version="test", pickers=stored.pickers,
        allocators=stored.allocators, awaits_workers=True,
    )  # fmt: skip
    scenario.command(begun, actor="")
    scenario.command(WorkerReport(worker="h1", incarnation=1), actor="")
    scenario.open("h1")

    assert "B dispatched: h1*1" in scenario.session()
    assert derived(scenario.state) == derived(again(scenario).state)
