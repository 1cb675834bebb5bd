"""
Hosts that open to a job by what others take of them: ``select[slots<2]`` and the like.
"""

from __future__ import annotations

import pytest

from domain.commands import DefineResource
from domain.resources import ResourceDescriptor
from domain.resreq import parse
from projections.scheduling.openings import opens_by_taking
from projections.scheduling.request import Condition, Part
from tests.projections.scheduling.preempting import again
from tests.scenario import Scenario


def test_a_job_starts_in_the_session_that_takes_what_it_must_not_be_there(
    scenario: Scenario,
) -> None:
    """
    Whether its like was tried before or after; another session at this moment finds nothing.
    """
    scenario.hosts("h1 slots=4")
    scenario.submit("A", resreq=("select[slots<4]",))
    scenario.submit("B")
    scenario.submit("C", resreq=("select[slots<4]",))
    scenario.submit("D", resreq=("select[slots<1]",))
    scenario.session()
    assert {"A": "RUN", "B": "RUN", "C": "RUN", "D": "PEND"} == scenario.states()

    assert [] == scenario.session()


def test_jobs_that_open_hosts_to_each_other_all_start(scenario: Scenario) -> None:
    """
    The session goes through its jobs as often as that helps.
    """
    scenario.hosts("h1 slots=8")
    for free in (5, 6, 7, 8):
        scenario.submit(f"J{free}", resreq=(f"select[slots<{free}]",))
    scenario.jobs("A")
    scenario.session()

    assert set(scenario.states().values()) == {"RUN"}
    assert [] == scenario.session()


def test_a_restored_state_goes_through_its_jobs_as_often(scenario: Scenario) -> None:
    """
    W can't be tried, and what it asks for was forgotten with the old resources: that it waits has
    the jobs gone through again all the same, so that A, tried before B, is told what B left.
    """
    scenario.hosts("h1 slots=4 mem_mb=100")
    scenario.queue("shut", priority=10)
    scenario.submit("W", queue="shut", resreq=("select[slots<2]",))
    scenario.session()
    scenario.set_queue("shut", "inactive")
    scenario.command(DefineResource(descriptor=ResourceDescriptor(name="foo")))
    scenario.jobs("A mem_mb=200 priority=3", "B tasks=4 priority=2")
    restored = again(scenario)

    scenario.session()
    restored.session(scenario.now_us)

    assert restored.snapshot() == scenario.core.snapshot()
    assert "slots short on h1" in scenario.reasons("A")
    assert [] == scenario.session()


@pytest.mark.parametrize(
    ("select", "opens"),
    [
        ("slots > 2", False),
        ("slots < 2", True),
        ("2 < slots", False),
        ("2 > slots", True),
        ("!(slots < 2)", False),
        ("!(slots > 2)", True),
        ("slots == 2", True),
        ("slots > 2 && mem > 100 || r1m < 1", False),
        ("slots > 2 || mem < 100", True),
        ("mem - 100 > 50", True),
        ("slots", False),
        ("!slots", True),
        ("r1m < 2", False),
        ("maxslots < 9 && ncpus == 4", False),
    ],
)
def test_which_selects_open_by_taking(select: str, opens: bool) -> None:
    """
    What isn't a comparison of one name with a number isn't looked into: it may.
    """
    expr = parse((select,)).only.select
    assert expr is not None
    condition = Condition(key=(select, "", ""), expr=expr, is_static=False)
    part = Part(tasks_min=1, tasks_max=1, conditions=(condition,))

    assert opens is opens_by_taking(part, lambda name: name in {"slots", "mem"})
