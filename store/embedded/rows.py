"""
Rows: what a log holds, without objects around it, and how a commit is cut into frames.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple
from uuid import UUID

from eventsourcing.persistence import DataError

from store.embedded.frames import EVENTS_MAX, PAYLOAD_SOFT_MAX, STATE_MAX, Header

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


def split_rows(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """
    Cut a commit into the parts that become frames.

    Raises:
        DataError: A state is too large.
    """
    if len(rows) <= EVENTS_MAX and sum([len(row[3]) for row in rows]) <= PAYLOAD_SOFT_MAX:
        yield rows
        return
    begin = size = 0
    for at, row in enumerate(rows):
        length = len(row[3])
        if length > STATE_MAX:
            message = (
                f"state of {row[0]} version {row[1]} has {length} bytes, more than {STATE_MAX}"
            )
            raise DataError(message)
        if at > begin and (size + length > PAYLOAD_SOFT_MAX or at - begin >= EVENTS_MAX):
            yield rows[begin:at]
            begin, size = at, 0
        size += length
    yield rows[begin:]
