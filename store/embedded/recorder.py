"""
Aggregate and application recorder of the library: thin covers of the journal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from eventsourcing.persistence import (
    AggregateRecorder,
    ApplicationRecorder,
    Notification,
    StoredEvent,
    Subscription,
)

from store.embedded.environment import Environment
from store.embedded.journal import Journal
from store.embedded.rows import PlacedRow, Row
from store.embedded.subscription import EmbeddedSubscription


class EmbeddedAggregateRecorder(AggregateRecorder):
    """
    Record events of streams.
    """

    def __init__(
        self, environment: Environment, *, name: str = "", purpose: str = "events"
    ) -> None:
        super().__init__()
        self.environment = environment
        self.journal = Journal(environment, name=name, purpose=purpose)

    def insert_events(
        self, stored_events: Sequence[StoredEvent], **kwargs: Any
    ) -> Sequence[int] | None:
        """
        Append events as one commit.
        """
        self._insert(stored_events, **kwargs)
        return None

    def _insert(self, stored_events: Sequence[StoredEvent], **_: Any) -> range:
        """
        Append events as one commit; return their positions.
        """
        return self.insert_rows([row_of(event) for event in stored_events])

    def insert_rows(self, rows: Sequence[Row], *, epoch: int | None = None) -> range:
        """
        Append plain rows (stream, version, topic, state) as one commit; return their positions.
        """
        if not rows:
            return range(0)
        return self.journal.insert_rows(rows, epoch=epoch, also=None)

    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredEvent]:
        """
        Return the events of a stream by version.
        """
        rows = self.journal.stream_rows(originator_id, gt=gt, lte=lte, desc=desc, limit=limit)
        return [StoredEvent(*row[1:]) for row in rows]


class EmbeddedApplicationRecorder(EmbeddedAggregateRecorder, ApplicationRecorder):
    """
    Record events of streams in one order, and read them in it.
    """

    def insert_events(
        self, stored_events: Sequence[StoredEvent], **kwargs: Any
    ) -> Sequence[int] | None:
        """
        Append events as one commit; return their positions.
        """
        return list(self._insert(stored_events, **kwargs))

    def iter_rows(self, after: int = 0, upto: int | None = None) -> Iterator[PlacedRow]:
        """
        Yield plain rows (position, stream, version, topic, state) after a position, up to and with
        another.
        """
        return self.journal.iter_rows(after, upto)

    def select_notifications(
        self, start: int | None, limit: int, stop: int | None = None, topics: Sequence[str] = (), *,
        inclusive_of_start: bool = True,
    ) -> Sequence[Notification]:  # fmt: skip
        """
        Return at most *limit* events from a position on, up to and with another, of some topics or
        of all.
        """
        after = max(0, (start or 0) - (1 if inclusive_of_start else 0))
        found: list[Notification] = []
        if limit <= 0:
            return found
        for position, stream, version, topic, state in self.journal.iter_rows(after, stop, topics):
            found.append(
                Notification(
                    originator_id=stream,
                    originator_version=version,
                    topic=topic,
                    state=state,
                    id=position,
                )
            )
            if len(found) >= limit:
                break
        return found

    def max_notification_id(self) -> int | None:
        """
        Return the last position, None when the log is empty.
        """
        return self.journal.head().position or None

    def subscribe(
        self, gt: int | None = None, topics: Sequence[str] = ()
    ) -> Subscription[ApplicationRecorder]:
        """
        Follow the log from a position on.
        """
        return EmbeddedSubscription(self, gt=gt, topics=topics)


def row_of(event: StoredEvent) -> Row:
    """
    Return a stored event as a plain row.
    """
    return event.originator_id, event.originator_version, event.topic, event.state
