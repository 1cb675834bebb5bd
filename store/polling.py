"""
Follow any recorder of the library by asking it again and again.

Its own subscriptions can lose a wake-up, and SQLite has none.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from eventsourcing.persistence import ApplicationRecorder, Notification, Subscription

PAGE = 500
DELAY_MIN_S = 0.005
DELAY_MAX_S = 0.1
DELAY_GROWTH = 1.5


class PollingSubscription(Subscription[ApplicationRecorder]):
    """
    Yield notifications after a position, as they come, until stopped.
    """

    def __init__(
        self, recorder: ApplicationRecorder, gt: int | None = None, *, without: str = ""
    ) -> None:
        """
        Begin behind a position.

        Args:
            recorder: What is followed.
            gt: The position, None for the beginning.
            without: A stream whose events aren't given.
        """
        super().__init__(recorder=recorder, gt=gt)
        self._without = without
        self._stopped = threading.Event()
        self._page: Sequence[Notification] = ()
        self._next = 0
        self._last = gt or 0

    def __next__(self) -> Notification:
        """
        Return the next notification, waiting for it.
        """
        delay = DELAY_MIN_S
        while not self._has_been_stopped:
            if self._next < len(self._page):
                found = self._page[self._next]
                self._next, self._last = self._next + 1, found.id
                if found.originator_id != self._without:
                    return found
                continue
            self._page = self._recorder.select_notifications(
                self._last, PAGE, inclusive_of_start=False
            )
            self._next = 0
            if not self._page:
                self._stopped.wait(delay)
                delay = min(delay * DELAY_GROWTH, DELAY_MAX_S)
        raise StopIteration

    def stop(self) -> None:
        """
        End the iteration; may be called by any thread, at any time, more than once.
        """
        super().stop()
        self._stopped.set()
