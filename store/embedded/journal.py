"""
One log in an environment: insert rows as frames and index rows; reading is in
`store.embedded.reader`.

This is the fast primitive under the library's recorders: rows are plain tuples of stream, version,
topic and state.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence

import lmdb

from domain.errors import Corrupt
from store.dictionaries import current
from store.embedded.cursors import key_of, pairs
from store.embedded.errors import EpochPassedError
from store.embedded.frames import (
    Columns,
    Header,
    build_frame,
    check_follows,
    read_header,
)
from store.embedded.index import insert_index
from store.embedded.kept import dictionary_of, keep
from store.embedded.layout import META, id_bytes, id_of, number_bytes, number_of
from store.embedded.reader import Reader
from store.embedded.rows import Head, Row, Stream, split_rows
from store.segments import Segment


class Journal(Reader):
    """
    A log of rows in an environment, under the names of one application and purpose.
    """

    def insert_rows(
        self,
        rows: Sequence[Row],
        *,
        epoch: int | None = None,
        written_epoch: int | None = None,
        also: Callable[[lmdb.Transaction], None] | None = None,
    ) -> range:
        """
        Append rows as one commit, all or nothing, synced as the durability says; return their
        positions.

        Args:
            rows: What to append, in order.
            epoch: The caller's epoch as the one writer, None when there is no such rule.
            written_epoch: The epoch that the frames get, the store's present one when None.
            also: Writes more in the same transaction; nothing is written when it raises.

        Raises:
            VersionsTakenError: A stream has such a version already.
            EpochPassedError: Another writer took over.
            DataError: An id, version or state is beyond its bounds.
        """
        with self.environment.write() as transaction:
            found = self.environment.epoch(transaction)
            if epoch is not None and found != epoch:
                raise EpochPassedError(epoch, found)
            written = found if written_epoch is None else written_epoch
            head = self._head(transaction, transaction.id() - 1)
            first = head.position + 1
            if rows:
                insert_index(transaction, self._index, rows, first)
                head = self._put_frames(transaction, rows, head, written)
            if also is not None:
                also(transaction)
            number = transaction.id()
        # Caches only learn what is committed.
        self._cached_head = (number, head)
        return range(first, first + len(rows))

    def _put_frames(
        self,
        transaction: lmdb.Transaction,
        rows: Sequence[Row],
        head: Head,
        epoch: int,
    ) -> Head:
        """
        Put the frames of a commit; return the new head.
        """
        position, digest = head
        parts = list(split_rows(rows))
        for at, part in enumerate(parts, 1):
            columns = _columns(part)
            frame, digest = build_frame(
                columns,
                first_position=position + 1,
                epoch=epoch,
                is_last=at == len(parts),
                previous=digest,
            )
            if not transaction.put(number_bytes(position + 1), frame, db=self._log, append=True):
                raise Corrupt(
                    "order",
                    position + 1,
                    "the end of the log",
                    "a later frame",
                    self.environment.path,
                )
            self._keep_dictionary(transaction, frame)
            position += len(part)
        return Head(position, digest)

    def _keep_dictionary(self, transaction: lmdb.Transaction, frame: bytes) -> None:
        """
        See that the log has the dictionary of a frame.
        """
        if (number := dictionary_of(frame)) and number not in self._kept:
            keep(transaction, self.environment.database(META), number)

    def adopt(self, frames: Sequence[tuple[Header, Columns, bytes, bytes]]) -> None:
        """
        Append frames of another log with the same history so far, in one transaction.

        Args:
            frames: Header, decoded columns, uncompressed payload and bytes of each.

        Raises:
            Corrupt: One doesn't follow the one before it, or its digest is wrong.
            VersionsTakenError: A stream has such a version already.
        """
        with self.environment.write() as transaction:
            head = self._head(transaction, transaction.id() - 1)
            for header, columns, raw, frame in frames:
                check_follows(header, raw, head.position, head.digest)
                streams = [id_of(columns.ids[index]) for index in columns.id_indexes]
                entries = zip(streams, columns.versions, strict=True)
                rows = [(stream, version, "", b"") for stream, version in entries]
                insert_index(transaction, self._index, rows, header.first_position)
                key = number_bytes(header.first_position)
                transaction.put(key, frame, db=self._log, append=True)
                self._keep_dictionary(transaction, frame)
                head = Head(header.last_position, header.digest)
            number = transaction.id()
        self._cached_head = (number, head)

    def first_frames(self, upto: int, events: int) -> list[bytes]:
        """
        Copy the first frames in the store, whole commits, as far as they end at or before a
        position and aren't the last commit; about so many events, but at least one commit.
        """
        batch: list[bytes] = []
        whole = count = 0
        with self.environment.read() as transaction:
            last = self._head(transaction, transaction.id()).position
            for key, frame in pairs(transaction.cursor(db=self._log)):
                header = read_header(frame, position=number_of(key))
                if header.last_position > upto or header.last_position >= last:
                    break
                batch.append(frame)
                count += header.events
                if header.is_last_of_commit:
                    whole = len(batch)
                    if count >= events:
                        break
        return batch[:whole]

    def move_out(self, segment: Segment) -> None:
        """
        Put the anchor of a segment and take its frames out of the store, in one transaction.
        """
        database = self.anchors.database(create=True)
        with self.environment.write() as transaction:
            self.anchors.put(transaction, database, segment)
            # Its frames were compressed anew; those of an older program had no dictionary.
            keep(transaction, self.environment.database(META), current()[0])
            cursor = transaction.cursor(db=self._log)
            is_on = cursor.first()
            while is_on and number_of(key_of(cursor)) <= segment.last_position:
                is_on = cursor.delete()
        self._frames = OrderedDict()


def _columns(rows: Sequence[Row]) -> Columns:
    """
    Turn rows into columns.
    """
    topics: dict[str, int] = {}
    topic_indexes = [topics.setdefault(row[2], len(topics)) for row in rows]
    streams: dict[Stream, int] = {}
    indexes = [streams.setdefault(row[0], len(streams)) for row in rows]
    ids = [id_bytes(stream) for stream in streams]
    versions, states = [row[1] for row in rows], [row[3] for row in rows]
    return Columns(list(topics), ids, topic_indexes, indexes, versions, states)
