"""
What the picker ``conservative`` keeps between sessions, and when it mustn't.
"""

from __future__ import annotations

import pytest

from domain.commands import HoldJob, KillJob, ModifyJob
from tests.builders import SECOND_US, some_settings
from tests.scenario import Scenario

WHOLE = {"tasks_min": 2, "tasks_max": 2, "run_limit_us": 100 * SECOND_US}


def promised() -> Scenario:
    """
    Return a cluster on which R has started, and A and B are promised to come behind it.
    """
    scenario = Scenario(some_settings(picker="conservative"))
    scenario.hosts("h1 slots=2")
    for name in ("R", "A", "B"):
        scenario.submit(name, **WHOLE)
    scenario.session()
    return scenario


@pytest.mark.parametrize("happening", ["killed", "held", "changed"])
def test_those_behind_a_promised_job_that_no_longer_waits_for_it_move_forward(
    happening: str,
) -> None:
    """
    Nothing was freed and no run has ended, but what was promised to that job isn't any more.
    """
    scenario = promised()
    assert {"A promised 101: h1*2", "B promised 201: "} <= set(scenario.decisions)
    assert [] == scenario.session()
    longer = scenario.job("A").spec.model_copy(update={"run_limit_us": 500 * SECOND_US})
    command = {
        "killed": KillJob(job_id=scenario.ids["A"]),
        "held": HoldJob(job_id=scenario.ids["A"]),
        "changed": ModifyJob(job_id=scenario.ids["A"], spec=longer),
    }[happening]

    scenario.command(command)

    assert "B promised 101: h1*2" in scenario.session()


def test_a_promise_stands_while_only_new_jobs_come_in() -> None:
    """
    The new one is fitted in beside those that are promised, and moves none.
    """
    scenario = promised()

    scenario.submit("C", **WHOLE)

    assert ["C promised 301: "] == scenario.session()


@pytest.mark.parametrize("others", [0, 1])
def test_a_job_that_no_time_would_be_enough_for_is_told_so(others: int) -> None:
    """
    It has no place in what is promised, and was passed over without a word.
    """
    scenario = Scenario(some_settings(picker="conservative"))
    scenario.hosts("h1 slots=2")
    if others:
        scenario.submit("A", run_limit_us=100 * SECOND_US)
    scenario.submit("B", tasks_min=3, tasks_max=3)

    scenario.session()

    assert "B pended: never: slots short on h1" in scenario.decisions
    assert [] == scenario.session()
