"""
Follow the log: wait for new events in the consumer's own thread, whoever commits them.

The library's ListenNotifySubscription can lose a wake-up and scans a filtered log again and again
from its last match; this one listens before it reads, remembers how far it has scanned, and notices
commits of other processes by the engine's transaction number, which costs no system call.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from eventsourcing.persistence import Notification, Subscription

if TYPE_CHECKING:
    from store.embedded.recorder import EmbeddedApplicationRecorder

BATCH = 500
DELAY_MIN_S = 0.001
DELAY_MAX_S = 0.02
DELAY_GROWTH = 1.5


class EmbeddedSubscription(Subscription["EmbeddedApplicationRecorder"]):
    """
    Yield notifications after a position, as they come, until stopped.
    """

    def __init__(
        self,
        recorder: EmbeddedApplicationRecorder,
        gt: int | None = None,
        topics: Sequence[str] = (),
    ) -> None:
        super().__init__(recorder=recorder, gt=gt, topics=topics)
        # Own reference: closing the application must not pull the environment away under a reader.
        self._environment = recorder.environment.retain()
        self._wake = threading.Event()
        self._environment.add_listener(self._wake)
        self._batch: Sequence[Notification] = ()
        self._next = 0
        self._scanned = max(0, gt or 0)
        self._release_lock = threading.Lock()
        self._is_released = False

    def __next__(self) -> Notification:
        """
        Return the next notification, waiting for it.
        """
        while not self._has_been_stopped:
            if self._next < len(self._batch):
                self._next += 1
                return self._batch[self._next - 1]
            self._wake.clear()
            seen, head = self._recorder.journal.glance()
            self._batch, self._next = self._read(head), 0
            if not self._batch:
                self._wait(seen)
        self._release()
        raise StopIteration

    def _read(self, head: int) -> Sequence[Notification]:
        """
        Read what is new up to the head, and remember how far, so that what was filtered out is not
        scanned again.
        """
        if head <= self._scanned:
            return ()
        found = self._recorder.select_notifications(
            self._scanned, BATCH, stop=head, topics=self._topics, inclusive_of_start=False
        )
        self._scanned = found[-1].id if len(found) == BATCH else head
        return found

    def _wait(self, seen: int) -> None:
        """
        Wait until somebody commits or the subscription is stopped.

        A commit can be heard of before it can be read: the engine writes the meta page, which the
        doorbell looks at, and only then tells readers. So *seen* is what our reader saw, not what
        the doorbell said: that way a commit in between ends the waiting instead of being missed.
        """
        delay = DELAY_MIN_S
        while not self._has_been_stopped and not self._wake.wait(delay):
            if self._environment.last_transaction() != seen:
                return
            delay = min(delay * DELAY_GROWTH, DELAY_MAX_S)

    def stop(self) -> None:
        """
        End the iteration; may be called by any thread, at any time, more than once.
        """
        super().stop()
        self._wake.set()

    def __exit__(self, *args: object, **kwargs: object) -> None:
        """
        Stop and let the environment go.
        """
        super().__exit__(*args, **kwargs)
        self._release()

    def _release(self) -> None:
        """
        Give the reference back, once.
        """
        with self._release_lock:
            if self._is_released:
                return
            self._is_released = True
        self._environment.remove_listener(self._wake)
        self._environment.release()

    def __del__(self) -> None:
        """
        Let the environment go when nobody did.
        """
        if hasattr(self, "_release_lock"):
            self._release()
