"""
What the picker ``conservative`` keeps between sessions, and when it mustn't.
"""

from __future__ import annotations

import pytest

from domain.commands import HoldJob, KillJob, ModifyJob
from tests.builders import SECOND_US, some_settings
from tests.scenario import Scenario


@pytest.mark.parametrize("happening", ["killed", "held", "changed"])
def test_those_behind_a_promised_job_that_no_longer_waits_for_it_move_forward(
    happening: str,
) -> None:
    """
    Nothing was freed and no run has ended, but what was promised to that job isn't any more.
    """
    scenario = Scenario(some_settings(picker="conservative"))
    scenario.hosts("h1 slots=2")
    whole = {"tasks_min": 2, "tasks_max": 2, "run_limit_us": 100 * SECOND_US}
    for name in ("R", "A", "B"):
        scenario.submit(name, **whole)
    scenario.session()
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
    scenario = Scenario(some_settings(picker="conservative"))
    scenario.hosts("h1 slots=2")
    whole = {"tasks_min": 2, "tasks_max": 2, "run_limit_us": 100 * SECOND_US}
    for name in ("R", "A", "B"):
        scenario.submit(name, **whole)
    scenario.session()

    scenario.submit("C", **whole)

    assert ["C promised 301: "] == scenario.session()
