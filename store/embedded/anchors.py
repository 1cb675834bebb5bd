"""
Anchors: what remains in the store of a segment that was moved to the archive.

An anchor says which positions the segment holds, the chain's digest before and after it, and the
digest of its file; so history is as tamper-evident as before.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import lmdb

from domain.errors import Corrupt, NotFound
from store.embedded.cursors import pair, pairs
from store.embedded.environment import Database, Environment
from store.embedded.layout import number_bytes
from store.segments import ARCHIVE, Segment, frames_of


class Anchors:
    """
    Know the archived segments of a log.
    """

    def __init__(self, environment: Environment, name: bytes) -> None:
        self._environment = environment
        self._name = name
        self.directory = Path(environment.path) / ARCHIVE

    def database(self, *, create: bool = False) -> Database | None:
        """
        Return the anchors' database, None before the first archiving.
        """
        return self._environment.database(self._name, create=create)

    def segments(self) -> list[Segment]:
        """
        Return all segments by position.
        """
        database = self.database()
        if database is None:
            return []
        with self._environment.read() as transaction:
            return [_segment(value) for _, value in pairs(transaction.cursor(db=database))]

    def segment_of(self, position: int) -> Segment | None:
        """
        Return the segment that holds a position, None when no segment does.
        """
        database = self.database()
        if database is None or position < 1:
            return None
        with self._environment.read() as transaction:
            cursor = transaction.cursor(db=database)
            is_before = cursor.set_range(number_bytes(position + 1)) and cursor.prev()
            if not is_before and not cursor.last():
                return None
            segment = _segment(pair(cursor)[1])
        return segment if segment.first_position <= position <= segment.last_position else None

    def frames(self, segment: Segment, position: int) -> Iterator[tuple[int, bytes]]:
        """
        Yield first position and bytes of a segment's frames from the one with a position on.

        Raises:
            NotFound: The segment was pruned.
            Corrupt: Its file is missing or damaged.
        """
        if segment.is_pruned:
            rule = f"was pruned; the log now begins at {self.first_position()}"
            raise NotFound("position", rule, position)
        yield from frames_of(self.directory / segment.file, position)

    def first_position(self) -> int:
        """
        Return the first position that can still be read.
        """
        pruned = [segment.last_position for segment in self.segments() if segment.is_pruned]
        return max(pruned, default=0) + 1

    def put(
        self, transaction: lmdb.Transaction, database: Database | None, segment: Segment
    ) -> None:
        """
        Store an anchor.
        """
        value = json.dumps(asdict(segment), sort_keys=True).encode()
        transaction.put(number_bytes(segment.first_position), value, db=database)

    def mark_pruned(self, segment: Segment) -> None:
        """
        Say in a segment's anchor that its file was removed on purpose.
        """
        database = self.database()
        marked = replace(segment, is_pruned=True)
        self._environment.write(lambda transaction: self.put(transaction, database, marked))


def _segment(value: bytes) -> Segment:
    """
    Read an anchor.

    Raises:
        Corrupt: It is none.
    """
    try:
        return Segment(**json.loads(value))
    except (ValueError, TypeError) as error:
        raise Corrupt("structure", None, "an anchor of a segment", str(error)[:200]) from None
