"""
One log in an environment: insert rows as frames and index rows; reading is in
`store.embedded.reader`.

This is the fast primitive under the library's recorders: rows are plain tuples of stream, version,
topic and state.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import count
from typing import TypeVar

import lmdb

from domain.errors import Corrupt
from store.dictionaries import current
from store.embedded.cursors import key_of, pairs
from store.embedded.errors import EpochPassedError
from store.embedded.frames import (
    STATE_MAX,
    Columns,
    Header,
    build_frame,
    check_follows,
    encode_columns,
    encode_row,
    read_header,
    topic_bit,
    topic_mask,
)
from store.embedded.index import append_row, insert_index
from store.embedded.kept import dictionary_of, keep
from store.embedded.layout import (
    META,
    encoded_stream,
    id_bytes,
    number_bytes,
    number_of,
    version_bytes,
)
from store.embedded.reader import Reader
from store.embedded.rows import CommitRows, Head, Row, columns_of, refuse_too_large, streams_of
from store.segments import Segment

Name = TypeVar("Name")


class Journal(Reader):
    """
    A log of rows in an environment, under the names of one application and purpose.
    """

    _cached_own: tuple[int, int, bytes | None] = (-1, 0, None)
    """Number of our own last commit, and what holds while it is the last of all: the epoch, and a
    key that none of the index is greater than, None when that isn't known."""

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
        columns = columns_of(rows) if len(rows) > 1 else None
        if self._has_new_dictionary:
            # Of an earlier commit: an error behind a commit would deny it.
            self._learn_dictionaries()

        def insert(
            transaction: lmdb.Transaction,
        ) -> tuple[int, Head, Head, int, bytes | None]:
            number = transaction.id()
            own, found, last_key = self._cached_own
            if own != number - 1:
                found, last_key = self.environment.epoch(transaction), None
            if epoch is not None and found != epoch:
                raise EpochPassedError(epoch, found)
            before = after = self._head(transaction, number - 1)
            written = found if written_epoch is None else written_epoch
            if columns is not None:
                after = self._put_rows(transaction, columns, before, written)
                last_key = None
            elif rows:
                after, last_key = self._put_row(transaction, rows[0], before, written, last_key)
            if also is not None:
                also(transaction)
            return number, before, after, found, last_key

        # Caches only learn what is committed.
        number, before, after, found, last_key = self.environment.write(insert)
        self._cached_head = (number, after)
        self._cached_own = (number, found, last_key)
        return range(before.position + 1, after.position + 1)

    def _put_row(
        self,
        transaction: lmdb.Transaction,
        row: Row,
        head: Head,
        epoch: int,
        last_key: bytes | None,
    ) -> tuple[Head, bytes]:
        """
        Put a commit of one row; return the new head and a key that none of the index is greater
        than.

        Equivalent to: `_put_rows`, without columns. Differs in: a new stream behind all others, as
        those of submissions are, isn't looked for when the last key is known.
        """
        stream, version, topic, state = row
        if len(state) > STATE_MAX:
            refuse_too_large(stream, version, len(state))
        encoded, prefix = encoded_stream(stream)
        key, position = prefix + version_bytes(version), head.position + 1
        if last_key is not None and key > last_key and not last_key.startswith(prefix):
            append_row(transaction, self._index, key, position)
            last_key = key
        else:
            cursor = transaction.cursor(db=self._index)
            insert_index(cursor, (stream,), (version,), position)
            if last_key is None:
                cursor.last()
                last_key = key_of(cursor)
            last_key = max(last_key, key)
        mask = topic_bit(topic)
        raw = encode_row(topic, encoded, version, state)
        return self._put_frame(transaction, raw, head, mask=mask, events=1, epoch=epoch), last_key

    def _put_rows(
        self, transaction: lmdb.Transaction, columns: CommitRows, head: Head, epoch: int
    ) -> Head:
        """
        Put a commit; return the new head.
        """
        cursor = transaction.cursor(db=self._index)
        insert_index(cursor, columns.streams, columns.versions, head.position + 1)
        parts = columns.cut()
        for at, part in enumerate(parts, 1):
            raw, mask = _payload(part)
            events, is_last = len(part.states), at == len(parts)
            head = self._put_frame(
                transaction, raw, head, mask=mask, events=events, epoch=epoch, is_last=is_last
            )
        return head

    def _put_frame(
        self,
        transaction: lmdb.Transaction,
        raw: bytes,
        head: Head,
        *,
        mask: int,
        events: int,
        epoch: int,
        is_last: bool = True,
    ) -> Head:
        """
        Put a frame with an uncompressed payload; return the new head.
        """
        first = head.position + 1
        frame, digest = build_frame(
            raw,
            mask=mask,
            events=events,
            first_position=first,
            epoch=epoch,
            is_last=is_last,
            previous=head.digest,
        )
        if not transaction.put(number_bytes(first), frame, db=self._log, append=True):
            expected, found = "the end of the log", "a later frame"
            raise Corrupt("order", first, expected, found, self.environment.path)
        if (dictionary := dictionary_of(frame)) not in self._kept:
            self._keep_dictionary(transaction, dictionary)
        return Head(head.position + events, digest)

    def _keep_dictionary(self, transaction: lmdb.Transaction, number: int) -> None:
        """
        See that the log has the dictionary of a frame, by its number, 0 for none.
        """
        if number:
            self._has_new_dictionary |= keep(transaction, self.environment.database(META), number)

    def adopt(self, frames: Sequence[tuple[Header, Columns, bytes, bytes]]) -> None:
        """
        Append frames of another log with the same history so far, in one transaction.

        Args:
            frames: Header, decoded columns, uncompressed payload and bytes of each.

        Raises:
            Corrupt: One doesn't follow the one before it, or its digest is wrong.
            VersionsTakenError: A stream has such a version already.
        """

        def insert(transaction: lmdb.Transaction) -> tuple[int, Head]:
            number = transaction.id()
            head = self._head(transaction, number - 1)
            for header, columns, raw, frame in frames:
                first = header.first_position
                check_follows(header, raw, head.position, head.digest)
                names = streams_of(columns.ids, first)
                streams = list(map(names.__getitem__, columns.id_indexes))
                cursor = transaction.cursor(db=self._index)
                insert_index(cursor, streams, columns.versions, first)
                transaction.put(number_bytes(first), frame, db=self._log, append=True)
                if (dictionary := dictionary_of(frame)) not in self._kept:
                    self._keep_dictionary(transaction, dictionary)
                head = Head(header.last_position, header.digest)
            return number, head

        self._cached_head = self.environment.write(insert)

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

        def move(transaction: lmdb.Transaction) -> None:
            self.anchors.put(transaction, database, segment)
            # Its frames were compressed anew; those of an older program had no dictionary.
            keep(transaction, self.environment.database(META), current()[0])
            cursor = transaction.cursor(db=self._log)
            is_on = cursor.first()
            while is_on and number_of(key_of(cursor)) <= segment.last_position:
                is_on = cursor.delete()

        self.environment.write(move)
        self._frames = OrderedDict()


def _payload(rows: CommitRows) -> tuple[bytes, int]:
    """
    Return the uncompressed payload of a frame, and the mask of its topics.

    Raises:
        DataError: A topic is beyond its bounds.
    """
    streams, versions, topics, states = rows
    topic_numbers, numbers = _first_seen(topics), _first_seen(streams)
    mask = topic_mask(topic_numbers)
    columns = Columns(
        list(topic_numbers),
        list(map(id_bytes, numbers)),
        list(map(topic_numbers.__getitem__, topics)),
        list(map(numbers.__getitem__, streams)),
        versions,
        states,
    )
    return encode_columns(columns), mask


def _first_seen(names: Sequence[Name]) -> dict[Name, int]:
    """
    Return the numbers of distinct names, from 0 in order of first appearance.
    """
    return dict(zip(dict.fromkeys(names), count()))
