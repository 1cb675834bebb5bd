"""
What an event log stands on: the embedded store; any application recorder of the library is in
`store.recorded`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from eventsourcing.persistence import ApplicationRecorder, Subscription

from store.codec import PlacedRow, Row
from store.embedded.ahead import keep_ahead
from store.embedded.environment import Environment
from store.embedded.recorder import EmbeddedApplicationRecorder
from store.embedded.rows import Row as StoredRow
from store.segments import Segment
from store.space import Space, space_at

Columns = tuple[Sequence[int], Sequence[str], Sequence[int], Sequence[str], Sequence[bytes]]
"""Positions, streams, versions, topics and states of some rows, in order."""

EVENTS_PER_UPKEEP = 250
"""How often a writer lets dead readers go, which keep old pages, and looks for free pages ahead."""


class Engine(Protocol):
    """
    Keep rows in one order.
    """

    name: str
    log_id: str

    def head(self) -> int:
        """
        Return the last position, 0 when empty.
        """

    def append(self, rows: Sequence[Row], epoch: int | None) -> int:
        """
        Append rows as one commit; return the last position.
        """

    def columns(self, after: int, upto: int | None) -> Iterator[Columns]:
        """
        Yield the rows after a position, up to and with another, column by column.
        """

    def stream_rows(self, stream: str, after_version: int, limit: int) -> list[PlacedRow]:
        """
        Return at most *limit* rows of a stream after a version.
        """

    def row_at(self, position: int) -> PlacedRow:
        """
        Return the row at a position.
        """

    def digest_at(self, position: int) -> bytes:
        """
        Return the digest of the history up to a position.
        """

    def epoch(self) -> int:
        """
        Return the count of writers so far, 0 when it isn't kept.
        """

    def frame_count(self) -> int:
        """
        Return how many records the rows take.
        """

    def used_bytes(self) -> int:
        """
        Return how many bytes the log takes, 0 when that can't be told.
        """

    def readers(self) -> tuple[int, int]:
        """
        Return how many read transactions are open, and how many commits ago the oldest began.
        """

    def segments(self) -> list[Segment]:
        """
        Return the archived segments.
        """

    def follow(self, after: int) -> Subscription[ApplicationRecorder]:
        """
        Return a subscription to the notifications after a position.
        """

    def close(self) -> None:
        """
        Let everything go.
        """


class EmbeddedEngine:
    """
    Stand on the embedded store; takes over the reference to its environment.
    """

    name = "embedded"

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._recorder = EmbeddedApplicationRecorder(environment)
        self.journal = self._recorder.journal
        self.log_id = environment.log_id

    def head(self) -> int:
        """
        Return the last position, 0 when empty.
        """
        return self.journal.head().position

    def append(self, rows: Sequence[StoredRow], epoch: int | None) -> int:
        """
        Append rows as one commit; return the last position.
        """
        if len(rows) == 1:
            last = self.journal.insert_row(rows[0], epoch)
        else:
            last = self.journal.insert_rows(rows, epoch=epoch)[-1]
        if last % EVENTS_PER_UPKEEP < len(rows):
            self._environment.check_readers()
            keep_ahead(self._environment, epoch)
        return last

    def columns(self, after: int, upto: int | None) -> Iterator[Columns]:
        """
        Yield the rows after a position, up to and with another, column by column.
        """
        for frame in self.journal.iter_frames(after, upto):
            first, last = frame.header.first_position, frame.header.last_position
            columns = (
                range(first, last + 1),
                frame.streams,
                frame.versions,
                frame.topics,
                frame.states,
            )
            begin = max(0, after + 1 - first)
            end = last + 1 - first if upto is None else min(upto, last) + 1 - first
            if begin > 0 or end <= last - first:
                columns = tuple(column[begin:end] for column in columns)  # type: ignore[assignment]
            yield columns  # type: ignore[misc]

    def stream_rows(self, stream: str, after_version: int, limit: int) -> list[PlacedRow]:
        """
        Return at most *limit* rows of a stream after a version.
        """
        return self.journal.stream_rows(stream, gt=after_version, limit=limit)  # type: ignore[return-value]

    def row_at(self, position: int) -> PlacedRow:
        """
        Return the row at a position.
        """
        return self.journal.frame_at(position).row(position)  # type: ignore[return-value]

    def digest_at(self, position: int) -> bytes:
        """
        Return the digest of the history up to a position.
        """
        return self.journal.digest_at(position)

    def epoch(self) -> int:
        """
        Return the count of writers so far, 0 when it isn't kept.
        """
        with self._environment.read() as transaction:
            return self._environment.epoch(transaction)

    def frame_count(self) -> int:
        """
        Return how many records the rows take.
        """
        return self.journal.frame_count()

    def used_bytes(self) -> int:
        """
        Return how many bytes the log takes, 0 when that can't be told.
        """
        return self._environment.used_bytes()

    def readers(self) -> tuple[int, int]:
        """
        Return how many read transactions are open, and how many commits ago the oldest began.
        """
        return self._environment.readers()

    def space(self) -> Space:
        """
        Measure the room that is left.
        """
        environment = self._environment
        return space_at(
            environment.settings.path,
            map_used=environment.used_bytes(),
            map_size=environment.map_size(),
        )

    def segments(self) -> list[Segment]:
        """
        Return the archived segments.
        """
        return self.journal.anchors.segments()

    def follow(self, after: int) -> Subscription[ApplicationRecorder]:
        """
        Return a subscription to the notifications after a position.
        """
        return self._recorder.subscribe(gt=after)

    def close(self) -> None:
        """
        Let everything go.
        """
        self._environment.release()
