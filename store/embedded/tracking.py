"""
Tracking and process recorder: how far a projection has got, kept in one transaction with what it
wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import lmdb
from eventsourcing.persistence import (
    IntegrityError,
    ProcessRecorder,
    StoredEvent,
    Tracking,
    TrackingRecorder,
)

from store.embedded.cursors import get
from store.embedded.environment import Environment
from store.embedded.layout import number_bytes, number_of, tracking_name
from store.embedded.recorder import EmbeddedApplicationRecorder, row_of


class EmbeddedTrackingRecorder(TrackingRecorder):
    """
    Keep the position of each tracked application.
    """

    def __init__(self, environment: Environment, *, name: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.environment = environment
        self._tracking = environment.database(tracking_name(name))

    def insert_tracking(self, tracking: Tracking) -> None:
        """
        Record a position, higher than the one before.
        """
        self.environment.write(lambda transaction: self.put_tracking(transaction, tracking))

    def put_tracking(self, transaction: lmdb.Transaction, tracking: Tracking) -> None:
        """
        Record a position in a transaction.

        Raises:
            IntegrityError: It isn't higher than the recorded one.
        """
        key = tracking.application_name.encode()
        recorded = get(transaction, key, self._tracking)
        if recorded is not None and tracking.notification_id <= number_of(recorded):
            message = f"{tracking} is not after the recorded position {number_of(recorded)}"
            raise IntegrityError(message)
        transaction.put(key, number_bytes(tracking.notification_id), db=self._tracking)

    def max_tracking_id(self, application_name: str) -> int | None:
        """
        Return the recorded position, None when there is none.
        """
        with self.environment.read() as transaction:
            recorded = get(transaction, application_name.encode(), self._tracking)
        return None if recorded is None else number_of(recorded)


class EmbeddedProcessRecorder(
    EmbeddedTrackingRecorder, EmbeddedApplicationRecorder, ProcessRecorder
):
    """
    Record events and the position they follow from, both or neither.
    """

    def __init__(
        self, environment: Environment, *, name: str = "", purpose: str = "events"
    ) -> None:
        EmbeddedApplicationRecorder.__init__(self, environment, name=name, purpose=purpose)
        self._tracking = environment.database(tracking_name(name))

    def _insert(
        self, stored_events: Sequence[StoredEvent], *, tracking: Tracking | None = None, **_: Any
    ) -> range:
        """
        Append events and record the tracking in the same transaction; return the events' positions.
        """
        if tracking is None:
            return super()._insert(stored_events)
        return self.journal.insert_rows(
            [row_of(event) for event in stored_events],
            also=lambda transaction: self.put_tracking(transaction, tracking),
        )
