"""
The driver's stamps: they never fall, and the wall clock enters only at the start.
"""

from __future__ import annotations

import time


class LogClock:
    """
    Give stamps in microseconds UTC: the later of last stamp and wall at the start, from then on
    what has elapsed on the monotonic clock.

    Args:
        last_us: Stamp of the log's last event, 0 when it is empty.
    """

    def __init__(self, last_us: int) -> None:
        self._start_us = max(last_us, time.time_ns() // 1000)
        self._start_ns = time.monotonic_ns()

    def now_us(self) -> int:
        """
        Return the stamp of this moment.
        """
        return self._start_us + (time.monotonic_ns() - self._start_ns) // 1000
