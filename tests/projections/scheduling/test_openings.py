"""
Hosts that open to a job by what others take of them: ``select[slots<2]`` and the like.
"""

from __future__ import annotations

import pytest

from domain.resreq import parse
from projections.scheduling.openings import opens_by_taking
from projections.scheduling.request import Condition, Part
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
