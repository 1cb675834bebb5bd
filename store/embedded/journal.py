"""
One log in an environment: insert rows as frames and index rows; reading is in
`store.embedded.reader`.

This is the fast primitive under the library's recorders: rows are plain tuples of stream, version,
topic and state.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import count
from typing import TypeVar

import lmdb

from domain.errors import Corrupt
from store.dictionaries import current
from store.embedded.builder import FrameBuilder, encode_row
from store.embedded.cursors import key_of, pairs
from store.embedded.errors import EpochPassedError
from store.embedded.frames import (
    FLAG_LAST,
    STATE_MAX,
    Columns,
    Header,
    check_follows,
    encode_columns,
    read_header,
    topic_mask,
)
from store.embedded.index import insert_index
from store.embedded.kept import dictionary_of, keep
from store.embedded.layout import (
    META,
    encode_stream,
    id_bytes,
    number_bytes,
    number_of,
    varint,
    version_bytes,
)
from store.embedded.reader import Reader
from store.embedded.rows import (
    CommitRows,
    Head,
    Row,
    columns_of,
    new_head,
    refuse_too_large,
    streams_of,
)
from store.segments import Segment

Name = TypeVar("Name")
OwnCommit = tuple[int, Head, int, bytes | None]
"""Number of a commit of our own, and what holds while it is the last of all: the head, the epoch,
and a key that none of the index is greater than, None when that isn't known."""


class Journal(Reader):
    """
    A log of rows in an environment, under the names of one application and purpose.
    """

    _own: OwnCommit = (-1, Head(0, b""), 0, None)
    """Our own last commit."""

    @cached_property
    def _build(self) -> Callable[..., tuple[bytes, bytes, int]]:
        """
        Return what builds frames, in the write transaction only.
        """
        return FrameBuilder().build

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
        if len(rows) == 1 and written_epoch is None and also is None:
            position = self.insert_row(rows[0], epoch)
            return range(position, position + 1)
        columns = columns_of(rows) if rows else None
        if self._has_new_dictionary:
            # Of an earlier commit: an error behind a commit would deny it.
            self._learn_dictionaries()

        def insert(transaction: lmdb.Transaction) -> OwnCommit:
            number = transaction.id()
            head, found, _ = self._last_commit(transaction, number - 1)
            if epoch is not None and found != epoch:
                raise EpochPassedError(epoch, found)
            if columns is not None:
                written = found if written_epoch is None else written_epoch
                head = self._put_rows(transaction, columns, head, written)
            if also is not None:
                also(transaction)
            return number, head, found, None

        # Only what is committed is remembered.
        self._own = number, head, _, _ = self.environment.write(insert)
        self._cached_head = number, head
        return range(head.position - len(rows) + 1, head.position + 1)

    # hot: durable answers wait for it. Behind a sync, where nothing is in the processor's caches,
    # a call costs a microsecond or two: what others do in functions of their own is done here.
    def insert_row(self, row: Row, epoch: int | None = None) -> int:
        """
        Append one row as a commit; return its position.

        Equivalent to: `insert_rows`. Differs in: no columns are made; and a new stream behind all
        others, as those of submissions are, isn't looked for when the last key is known.
        """
        stream, version, topic, state = row
        if len(state) > STATE_MAX:
            refuse_too_large(stream, version, len(state))
        encoded, prefix = encode_stream(stream)
        key = prefix + version_bytes(version)
        raw, mask = encode_row(topic, encoded, version, state)

        def insert(transaction: lmdb.Transaction) -> OwnCommit:
            number = transaction.id()
            own, head, found, last_key = self._own
            if own != number - 1:
                head, found, last_key = self._last_commit(transaction, number - 1)
            if epoch is not None and found != epoch:
                raise EpochPassedError(epoch, found)
            last, previous = head
            position = last + 1
            if last_key is not None and key > last_key and not last_key.startswith(prefix):
                is_last = transaction.put(key, varint(position), db=self._index, append=True)
                last_key = key
            else:
                cursor = transaction.cursor(db=self._index)
                insert_index(cursor, (stream,), (version,), position)
                is_last = last_key is not None or cursor.last()
                last_key = max(last_key or key_of(cursor), key)
            frame, digest, dictionary = self._build(
                raw, mask, 1, position, found, FLAG_LAST, previous
            )
            at = position.to_bytes(8, "big")
            if not (is_last and transaction.put(at, frame, db=self._log, append=True)):
                raise self._not_last(position)
            if dictionary not in self._kept:
                self._keep_dictionary(transaction, dictionary)
            return number, new_head(Head, (position, digest)), found, last_key

        if self._has_new_dictionary:
            self._learn_dictionaries()
        self._own = own = self.environment.write(insert)
        self._cached_head = own[:2]
        return own[1][0]

    def _last_commit(
        self, transaction: lmdb.Transaction, number: int
    ) -> tuple[Head, int, bytes | None]:
        """
        Return what holds after the last commit, by its number: the head, the epoch, and a key that
        none of the index is greater than, None when that isn't known.
        """
        own, head, found, last_key = self._own
        if own == number:
            return head, found, last_key
        return self._head(transaction, number), self.environment.epoch(transaction), None

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
            flags = FLAG_LAST if is_last else 0
            head = self._put_frame(transaction, raw, head, mask, events, epoch, flags)
        return head

    def _put_frame(
        self,
        transaction: lmdb.Transaction,
        raw: bytes,
        head: Head,
        mask: int,
        events: int,
        epoch: int,
        flags: int = FLAG_LAST,
    ) -> Head:
        """
        Put a frame with an uncompressed payload; return the new head.
        """
        last, previous = head
        first = last + 1
        frame, digest, dictionary = self._build(raw, mask, events, first, epoch, flags, previous)
        if not transaction.put(number_bytes(first), frame, db=self._log, append=True):
            raise self._not_last(first)
        if dictionary not in self._kept:
            self._keep_dictionary(transaction, dictionary)
        return new_head(Head, (last + events, digest))

    def _not_last(self, position: int) -> Corrupt:
        """
        Return the error for a frame, or the index row of one, that the engine doesn't take as the
        last.
        """
        expected, found = "the end of the log", "a later frame or index row"
        return Corrupt("order", position, expected, found, self.environment.path)

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
