"""
Whether a queue is inside its windows between sessions, and when it will be.
"""

from __future__ import annotations

import pytest

from domain.queues import QueueSpec
from domain.windows import parse_windows
from projections.scheduling.queue_windows import is_inside_at, next_opening_us

HOUR_US = 3_600_000_000


@pytest.mark.parametrize(
    ("run", "dispatch", "at_hour", "opens_hour"),
    [
        (None, None, 5, None),
        ("8:00-9:00", None, 5, 8),
        (None, "8:00-9:00", 9, 32),
        # Each opens by itself before both are open.
        ("8:00-20:00", "6:00-7:00 12:00-13:00", 5, 12),
        # In the week from Sunday on; the first day of all was a Thursday.
        ("1:8:00-1:20:00", "12:00-13:00", 5, 4 * 24 + 12),
        ("8:00-9:00", "9:00-10:00", 5, None),
    ],
)
def test_a_queue_opens_when_both_its_windows_are_open(
    run: str | None, dispatch: str | None, at_hour: int, opens_hour: int | None
) -> None:
    """
    A job starts only inside run and dispatch windows; those that never meet never let one start.
    """
    queue = QueueSpec(
        priority=1,
        run_windows=None if run is None else parse_windows(run),
        dispatch_windows=None if dispatch is None else parse_windows(dispatch),
    )

    opens_us = next_opening_us(queue, at_hour * HOUR_US)

    assert (None if opens_hour is None else opens_hour * HOUR_US) == opens_us
    assert opens_us is None or (
        is_inside_at(queue, opens_us) and not is_inside_at(queue, opens_us - 1)
    )
