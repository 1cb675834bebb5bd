"""
Jobs that couldn't end in time aren't started: before their queue's window closes, or their
deadline.
"""

from __future__ import annotations

import pytest

from domain.windows import parse_windows
from tests.builders import SECOND_US
from tests.projections.scheduling.policies import queue
from tests.scenario import Scenario

HOUR_US = 3_600 * SECOND_US


@pytest.mark.parametrize(
    ("run_limit_us", "ignores", "starts"),
    [
        (HOUR_US, False, True), (HOUR_US + 1, False, False), (HOUR_US + 1, True, True),
        (None, False, True),
    ],
)  # fmt: skip
def test_a_job_that_would_run_beyond_its_window_waits(
    scenario: Scenario, run_limit_us: int | None, *, ignores: bool, starts: bool
) -> None:
    """
    Ending at the very edge is in time; a queue may say that it doesn't matter (IGNORE_DEADLINE),
    and of a job without limits nobody knows.
    """
    scenario.now_us = HOUR_US
    queue(scenario, run_windows=parse_windows("0:30-2:00"), ignore_deadline=ignores)
    scenario.hosts("h1")
    scenario.submit("A", run_limit_us=run_limit_us)

    decided = "A dispatched: h1*1" if starts else "A pended: QUE_WINDOW_WILL_CLOSE"
    assert [decided] == scenario.session()


@pytest.mark.parametrize(("late_us", "starts"), [(0, True), (1, False)])
def test_a_job_that_would_run_beyond_its_deadline_waits(
    scenario: Scenario, late_us: int, *, starts: bool
) -> None:
    """
    A job that ends at the very moment is in time.
    """
    scenario.hosts("h1")
    deadline_us = scenario.now_us + HOUR_US
    scenario.submit("A", run_limit_us=HOUR_US + late_us, deadline_us=deadline_us)

    decided = "A dispatched: h1*1" if starts else "A pended: JOB_MISS_DEADLINE"
    assert [decided] == scenario.session()
