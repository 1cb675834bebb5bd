"""
Rows: what a log holds, without objects around it, and how a commit is cut into frames.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple, cast
from uuid import UUID

from eventsourcing.persistence import DataError

from domain.errors import Corrupt
from store.embedded.frames import EVENTS_MAX, PAYLOAD_SOFT_MAX, STATE_MAX, Header
from store.embedded.layout import id_of

Stream = str | UUID
Row = tuple[Stream, int, str, bytes]
"""Stream, version, topic, state."""
PlacedRow = tuple[int, Stream, int, str, bytes]
"""Position, stream, version, topic, state."""


class Head(NamedTuple):
    """
    Where a log ends: its last position, 0 when empty, and the digest there.
    """

    position: int
    digest: bytes


class Decoded(NamedTuple):
    """
    A frame's rows, with names instead of numbers.
    """

    header: Header
    streams: list[Stream]
    versions: Sequence[int]
    topics: list[str]
    states: Sequence[bytes]

    def rows(self) -> Iterator[PlacedRow]:
        """
        Yield the rows with their positions.
        """
        return zip(
            range(self.header.first_position, self.header.last_position + 1),
            self.streams, self.versions, self.topics, self.states, strict=True,
        )  # fmt: skip

    def row(self, position: int) -> PlacedRow:
        """
        Return the row at a position of this frame.
        """
        at = position - self.header.first_position
        return position, self.streams[at], self.versions[at], self.topics[at], self.states[at]


def streams_of(ids: Sequence[bytes], position: int, path: str | None = None) -> list[Stream]:
    """
    Return the streams that the encoded ids of a frame, or of an index row, stand for.

    Raises:
        Corrupt: One stands for none.
    """
    try:
        return list(map(id_of, ids))
    except ValueError as error:
        raise Corrupt("structure", position, "ids of streams", str(error), path) from None


class CommitRows(NamedTuple):
    """
    The rows of a commit, column by column, with names instead of numbers.
    """

    streams: Sequence[Stream]
    versions: Sequence[int]
    topics: Sequence[str]
    states: Sequence[bytes]

    def cut(self) -> Sequence[CommitRows]:
        """
        Cut a commit into the parts that become frames.

        Raises:
            DataError: A state is too large.
        """
        if len(self.states) <= EVENTS_MAX and sum(map(len, self.states)) <= PAYLOAD_SOFT_MAX:
            return (self,)
        return [CommitRows._make(column[part] for column in self) for part in self._parts()]

    def _parts(self) -> Iterator[slice]:
        """
        Yield where the parts begin and end: each has as many rows as a frame may hold.
        """
        sizes = list(accumulate(map(len, self.states), initial=0))
        if max(map(len, self.states)) > STATE_MAX:
            for stream, version, state in zip(
                self.streams, self.versions, self.states, strict=True
            ):
                refuse_too_large(stream, version, len(state))
        begin, rows = 0, len(self.states)
        while begin < rows:
            fitting = bisect_right(sizes, sizes[begin] + PAYLOAD_SOFT_MAX) - 1
            end = min(max(begin + 1, fitting), begin + EVENTS_MAX, rows)
            yield slice(begin, end)
            begin = end


def refuse_too_large(stream: Stream, version: int, length: int) -> None:
    """
    Refuse a state of more bytes than any frame holds.

    Raises:
        DataError: It is.
    """
    if length > STATE_MAX:
        message = f"state of {stream} version {version} has {length} bytes, more than {STATE_MAX}"
        raise DataError(message)


# Half the time of calling the classes, whose parameters have names.
new_head = cast("Callable[[type[Head], tuple[int, bytes]], Head]", tuple.__new__)
_new_commit = cast(
    "Callable[[type[CommitRows], Iterable[tuple[object, ...]]], CommitRows]", tuple.__new__
)


def columns_of(rows: Sequence[Row]) -> CommitRows:
    """
    Return rows column by column.
    """
    return _new_commit(CommitRows, zip(*rows, strict=True))
