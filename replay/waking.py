"""
When a driver in virtual time holds a session though nothing happens: at what the core waits for.
"""

from __future__ import annotations

from typing import Final, final

from replay.engine import Engine

WAKEUPS_MAX: Final = 200
"""
So many wakeups may decide nothing while nothing else is to come: windows open and close for ever,
also over jobs that never start.
"""


@final
class Waking:
    """
    Say when something is due next.

    Args:
        engine: Whose core waits.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._idle = 0
        self._events = 0

    def next_us(self, now_us: int, coming_us: int | None) -> int | None:
        """
        Return the earlier of what comes next and what the core waits for; None when all is over.

        Args:
            now_us: Where the driver is.
            coming_us: When an end or a submission comes next, None when none does.
        """
        wakeup_us = self._engine.core.next_wakeup(now_us)
        if wakeup_us is None:
            return coming_us
        if coming_us is not None:
            return min(wakeup_us, coming_us)
        return wakeup_us if self._goes_on() else None

    def _goes_on(self) -> bool:
        """
        Say whether a job is left that time alone may let start or go on.
        """
        state = self._engine.core.state
        events = state.stored.events
        self._idle = 0 if events != self._events else self._idle + 1
        self._events = events
        return bool(state.waiting or state.live) and self._idle <= WAKEUPS_MAX
