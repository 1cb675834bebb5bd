"""
Hosts that take no jobs: closed, draining, opened again.
"""

from __future__ import annotations

import pytest

from domain.commands import DrainWorker, WorkerReport
from domain.errors import NotFound
from projections.scheduling.core import Core
from tests.scenario import Scenario
from tools.daemon.views import hosts


def drain(scenario: Scenario, host: str) -> int:
    """
    Let a host run dry; return how many events that gave.
    """
    return len(scenario.command(DrainWorker(worker=host, why="kernel"), actor="root"))


def status(scenario: Scenario) -> list[tuple[object, object]]:
    """
    Return status and reason of each host as they are shown.
    """
    return [(host["status"], host["why"]) for host in hosts(scenario.state)]


@pytest.mark.parametrize("plain", [False, True])
def test_a_draining_host_takes_no_jobs_and_keeps_those_that_it_has(*, plain: bool) -> None:
    """
    It is draining while it has some and drained then; open again it takes what waited.
    """
    scenario = Scenario(plain=plain)
    scenario.hosts("h1 slots=2")
    scenario.jobs("A")
    scenario.session()
    assert 1 == drain(scenario, "h1")
    scenario.jobs("B")
    scenario.session()

    assert {"A": "RUN", "B": "PEND"} == scenario.states()
    assert "HOST_DISABLED on h1" == scenario.reasons("B")
    assert [("draining", "kernel")] == status(scenario)
    scenario.core = Core.restore(scenario.core.snapshot(), scenario.core.plugins, plain=plain)
    scenario.finish("A")
    assert [] == scenario.session()
    assert [("drained", "kernel")] == status(scenario)
    scenario.open("h1")
    scenario.session()

    assert "RUN" == scenario.states()["B"]
    assert [("ok", "")] == status(scenario)


def test_draining_what_is_closed_changes_nothing_and_closing_ends_the_draining() -> None:
    """
    A closed host takes no jobs anyway; repeated commands leave no trace.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=2")
    scenario.close("h1")
    assert 0 == drain(scenario, "h1")
    scenario.open("h1")
    assert [1, 0] == [drain(scenario, "h1"), drain(scenario, "h1")]
    scenario.close("h1")

    assert [("closed", "")] == status(scenario)
    with pytest.raises(NotFound):
        drain(scenario, "h9")


@pytest.mark.parametrize("plain", [False, True])
def test_a_host_whose_worker_cannot_measure_its_load_takes_no_jobs_until_it_can(
    *, plain: bool
) -> None:
    """
    LSF's closed_LIM: its jobs go on, and those that wait start with the next figures.
    """
    scenario = Scenario(plain=plain)
    scenario.hosts("h1 slots=2")
    scenario.jobs("A")
    scenario.session()
    scenario.command(WorkerReport(worker="h1", incarnation=1, is_blind=True), actor="")
    scenario.jobs("B")
    scenario.session()
    assert {"A": "RUN", "B": "PEND"} == scenario.states()
    assert "HOST_NO_LIM on h1" == scenario.reasons("B")
    assert [("blind", "")] == status(scenario)
    scenario.core = Core.restore(scenario.core.snapshot(), scenario.core.plugins, plain=plain)
    scenario.command(WorkerReport(worker="h1", incarnation=1), actor="")
    scenario.session()

    assert "RUN" == scenario.states()["B"]
