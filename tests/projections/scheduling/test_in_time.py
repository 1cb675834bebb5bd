"""
Jobs that couldn't end in time aren't started: before their queue's window closes, or their
deadline.
"""

from __future__ import annotations

import pytest

from domain.commands import LeaveWorker
from domain.windows import parse_windows
from tests.builders import SECOND_US
from tests.projections.scheduling.policies import queue
from tests.projections.scheduling.preempting import again
from tests.projections.scheduling.test_modified import change
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


def test_that_a_window_closes_too_soon_is_waited_for(scenario: Scenario) -> None:
    """
    Nothing else happens at that moment, and what the job is told would be an older reason: slots
    that come free now don't help it any more.
    """
    scenario.now_us = HOUR_US
    queue(scenario, run_windows=parse_windows("0:30-2:00"))
    scenario.hosts("h1 slots=1")
    scenario.submit("X", run_limit_us=HOUR_US)
    scenario.submit("A", run_limit_us=HOUR_US // 3)
    scenario.submit("B", run_limit_us=HOUR_US // 2)
    scenario.submit("C")
    scenario.session()
    assert "slots short on h1" == scenario.reasons("A")
    moments = []

    for _ in range(2):
        other = again(scenario)
        assert [] == other.session(scenario.now_us)
        wakeup_us = scenario.core.next_wakeup(scenario.now_us)
        assert (wakeup_us, []) == (other.next_wakeup(scenario.now_us), scenario.session())
        assert wakeup_us is not None
        moments.append(wakeup_us)
        scenario.now_us = wakeup_us - 1
        assert [] == scenario.session()
        scenario.now_us = wakeup_us
        scenario.session()

    assert [2 * HOUR_US - HOUR_US // 2 + 1, 2 * HOUR_US - HOUR_US // 3 + 1] == moments
    assert ["QUE_WINDOW_WILL_CLOSE"] * 2 == [scenario.reasons(name) for name in ("A", "B")]
    assert "slots short on h1" == scenario.reasons("C")
    assert 2 * HOUR_US == scenario.core.next_wakeup(scenario.now_us)


def test_a_job_that_asks_for_less_time_is_waited_for_later(scenario: Scenario) -> None:
    """
    By what its limit is then; and each day anew.
    """
    scenario.now_us = HOUR_US
    queue(scenario, run_windows=parse_windows("0:30-2:00"))
    scenario.hosts("h1 slots=1")
    scenario.jobs("X")
    scenario.session()
    scenario.submit("A", run_limit_us=HOUR_US // 2)
    scenario.session()

    change(scenario, "A", run_limit_us=HOUR_US // 4)
    scenario.session()

    closes_us = 2 * HOUR_US
    assert closes_us - HOUR_US // 4 + 1 == scenario.core.next_wakeup(scenario.now_us)
    for moment_us in (closes_us, HOUR_US // 2 + 24 * HOUR_US):
        scenario.now_us = moment_us
        scenario.session()
    tomorrow_us = closes_us + 24 * HOUR_US - HOUR_US // 4 + 1
    assert tomorrow_us == scenario.core.next_wakeup(scenario.now_us)


def test_moments_that_change_nothing_are_not_waited_for(scenario: Scenario) -> None:
    """
    A window that closes too soon already when the job comes, that its queue doesn't mind, or a job
    that an operator wants started whatever its window says: a session each would decide nothing.
    """
    scenario.now_us = HOUR_US
    queue(scenario, run_windows=parse_windows("0:30-2:00"))
    queue(scenario, "free", run_windows=parse_windows("0:30-2:00"), ignore_deadline=True)
    scenario.hosts("h1 slots=1", "h2 slots=1", "gone")
    scenario.jobs("X", "Y")
    scenario.session()
    scenario.submit("LATE", run_limit_us=2 * HOUR_US)
    scenario.submit("FREE", queue="free", run_limit_us=HOUR_US // 2)
    scenario.submit("WANTED", run_limit_us=HOUR_US // 2)
    scenario.run("WANTED", "gone")
    scenario.command(LeaveWorker(worker="gone", incarnation=1), actor="")
    scenario.session()
    assert scenario.job("WANTED").forced_on

    assert "QUE_WINDOW_WILL_CLOSE" == scenario.reasons("LATE")
    assert 2 * HOUR_US == scenario.core.next_wakeup(scenario.now_us)


@pytest.mark.parametrize("run_limit_us", [HOUR_US + 1, HOUR_US * 5 // 4])
def test_a_moment_that_has_passed_when_a_job_comes_has_nobody_tried_again(
    scenario: Scenario, run_limit_us: int
) -> None:
    """
    The job itself is told in its turn; every other request would be tried for each that comes late.
    """
    scenario.now_us = HOUR_US
    queue(scenario, run_windows=parse_windows("0:30-2:00"))
    scenario.submit("LATE", run_limit_us=run_limit_us)

    assert not scenario.state.closings.are_due(scenario.state, scenario.now_us)
    assert ["LATE pended: never: QUE_WINDOW_WILL_CLOSE"] == scenario.session()
