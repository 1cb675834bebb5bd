"""
One log in an environment: insert rows as frames and index rows, read them back checked.

This is the fast primitive under the library's recorders: rows are plain tuples of stream, version, topic and state.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple
from uuid import UUID

import lmdb
from eventsourcing.persistence import DataError

from domain.errors import Corrupt
from store.chain import digest_within, genesis
from store.embedded.environment import Environment
from store.embedded.errors import EpochPassed
from store.embedded.frames import (
    EVENTS_MAX,
    PAYLOAD_SOFT_MAX,
    STATE_MAX,
    Columns,
    Frame,
    Header,
    build_frame,
    check_crc,
    open_frame,
    read_header,
    topic_mask,
)
from store.embedded.index import insert_index, stream_positions
from store.embedded.layout import id_bytes, id_of, number_bytes, number_of, space_names

Stream = str | UUID
Row = tuple[Stream, int, str, bytes]
"""Stream, version, topic, state."""
PlacedRow = tuple[int, Stream, int, str, bytes]
"""Position, stream, version, topic, state."""

IndexEntry = tuple[bytes, int, int]
"""Encoded id, version, position."""

READ_BYTES = 256 << 10
READ_FRAMES = 256
"""How much one read transaction copies out before it ends."""
CACHED_FRAMES = 16


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


class Journal:
    """
    A log of rows in an environment, under the names of one application and purpose.
    """

    def __init__(self, environment: Environment, *, name: str = "", purpose: str = "events") -> None:
        self.environment = environment
        self._names = space_names(name, purpose)
        self._log = environment.database(self._names.log)
        self._index = environment.database(self._names.index)
        self._topics = environment.database(self._names.topics)
        self._topic_names: list[str] = []
        self._topic_numbers: dict[str, int] = {}
        self._cached_head: tuple[int, Head] = (-1, self._origin())
        self._frames: OrderedDict[int, Decoded] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def is_there(self) -> bool:
        """
        Say whether the log's databases exist; a reader may come before the first writer.
        """
        return self._log is not None and self._index is not None and self._topics is not None

    def _origin(self) -> Head:
        """
        Return the head of the empty log.
        """
        return Head(0, genesis(self.environment.log_id, self._names.log))

    # Writing

    def insert_rows(
        self,
        rows: Sequence[Row],
        *,
        epoch: int | None = None,
        also: Callable[[lmdb.Transaction], None] | None = None,
    ) -> range:
        """
        Append rows as one commit, all or nothing, synced as the durability says; return their positions.

        Args:
            rows: What to append, in order.
            epoch: The caller's epoch as the one writer, None when there is no such rule.
            also: Writes more in the same transaction; nothing is written when it raises.

        Raises:
            VersionsTaken: A stream has such a version already.
            EpochPassed: Another writer took over.
            DataError: An id, version or state is beyond its bounds.
        """
        with self.environment.write() as transaction:
            found = self.environment.epoch(transaction)
            if epoch is not None and found != epoch:
                raise EpochPassed(epoch, found)
            head = self._head(transaction, transaction.id() - 1)
            first = head.position + 1
            new_topics: dict[str, int] = {}
            if rows:
                self._load_topics(transaction)
                insert_index(transaction, self._index, rows, first)
                head = self._put_frames(transaction, rows, head, found, new_topics)
            if also is not None:
                also(transaction)
            number = transaction.id()
        # Caches only learn what is committed.
        with self._lock:
            self._remember_topics(new_topics)
        self._cached_head = (number, head)
        return range(first, first + len(rows))

    def _put_frames(
        self, transaction: lmdb.Transaction, rows: Sequence[Row], head: Head, epoch: int, new_topics: dict[str, int]
    ) -> Head:
        """
        Put the frames of a commit and the topics it brings; return the new head.
        """
        position, digest = head
        parts = list(split_rows(rows))
        for at, part in enumerate(parts, 1):
            columns = self._columns(part, new_topics)
            frame, digest = build_frame(
                columns, first_position=position + 1, epoch=epoch, is_last=at == len(parts), previous=digest
            )
            if not transaction.put(number_bytes(position + 1), frame, db=self._log, append=True):
                raise Corrupt("order", position + 1, "the end of the log", "a later frame", self.environment.path)
            position += len(part)
        for topic, number in new_topics.items():
            transaction.put(number_bytes(number), topic.encode(), db=self._topics)
        return Head(position, digest)

    def _columns(self, rows: Sequence[Row], new_topics: dict[str, int]) -> Columns:
        """
        Turn rows into columns, numbering topics that the log hasn't seen.
        """
        known, brought = self._topic_numbers, []
        lookup: dict[str, int] = {}
        for topic in dict.fromkeys([row[2] for row in rows]):
            number = known.get(topic, new_topics.get(topic))
            if number is None:
                number = new_topics[topic] = len(known) + len(new_topics)
                brought.append(topic)
            lookup[topic] = number
        seen: dict[Stream, int] = {}
        indexes = [seen.setdefault(row[0], len(seen)) for row in rows]
        return Columns(
            brought, [id_bytes(stream) for stream in seen], [lookup[row[2]] for row in rows], indexes,
            [row[1] for row in rows], [row[3] for row in rows],
        )  # fmt: skip

    # Reading

    def head(self) -> Head:
        """
        Return where the log ends now.
        """
        if not self.is_there:
            return self._origin()
        with self.environment.read() as transaction:
            return self._head(transaction, transaction.id())

    def _head(self, transaction: lmdb.Transaction, last_commit: int) -> Head:
        """
        Return where the log ends in a transaction; the last frame is checked unless we wrote it ourselves.
        """
        number, head = self._cached_head
        if number == last_commit:
            return head
        cursor = transaction.cursor(db=self._log)
        if not cursor.last():
            return self._origin()
        position, frame = number_of(cursor.key()), cursor.value()
        header = read_header(frame, position=position)
        check_crc(frame, position=position)
        return Head(header.last_position, header.digest)

    def headers(self) -> Iterator[Header]:
        """
        Yield every frame's header, unchecked.
        """
        for position, frame in self._stored_frames(1):
            yield read_header(frame, position=position)

    def stored_frames(self) -> Iterator[tuple[int, bytes]]:
        """
        Yield key and bytes of every frame as it lies there, whatever it holds.
        """
        after: bytes | None = None
        while self.is_there:
            batch: list[tuple[bytes, bytes]] = []
            size = 0
            with self.environment.read() as transaction:
                cursor = transaction.cursor(db=self._log)
                is_on = cursor.first() if after is None else cursor.set_range(after + b"\x00")
                while is_on and size < READ_BYTES and len(batch) < READ_FRAMES:
                    batch.append(cursor.item())
                    size += len(batch[-1][1])
                    is_on = cursor.next()
            if not batch:
                return
            yield from ((number_of(key), frame) for key, frame in batch)
            after = batch[-1][0]

    def frame_after(self, position: int) -> tuple[int, bytes]:
        """
        Return the key behind a position and the digest that its frame builds on; the head when there is none.
        """
        with self.environment.read() as transaction:
            cursor = transaction.cursor(db=self._log)
            if not cursor.set_range(number_bytes(position + 1)):
                return position + 1, b""
            key = number_of(cursor.key())
            return key, read_header(cursor.value(), position=key).previous

    def topic_names(self) -> list[str]:
        """
        Return the topics in order of their numbers.
        """
        if not self.is_there:
            return []
        with self.environment.read() as transaction:
            return [value.decode() for _, value in transaction.cursor(db=self._topics)]

    def read_index(self, read: Callable[[lmdb.Cursor], Iterator[IndexEntry]]) -> Iterator[IndexEntry]:
        """
        Yield what *read* makes of a cursor on the index, in one read transaction; for verifying only.
        """
        if self.is_there:
            with self.environment.read() as transaction:
                yield from read(transaction.cursor(db=self._index))

    def frame_count(self) -> int:
        """
        Return how many frames there are.
        """
        if not self.is_there:
            return 0
        with self.environment.read() as transaction:
            return int(transaction.stat(db=self._log)["entries"])

    def iter_rows(
        self, after: int = 0, upto: int | None = None, topics: Sequence[str] = ()
    ) -> Iterator[PlacedRow]:
        """
        Yield the rows after a position, up to and with another one, in order, checked.

        Args:
            after: 0 for the beginning.
            upto: None for whatever is there when the reading comes to it.
            topics: Only these; frames without any of them are passed over.
        """
        for decoded in self.iter_frames(after, upto, topics):
            rows = decoded.rows()
            header = decoded.header
            if header.first_position <= after or (upto is not None and header.last_position > upto):
                rows = (row for row in rows if after < row[0] and (upto is None or row[0] <= upto))  # type: ignore[assignment]
            if topics:
                rows = (row for row in rows if row[3] in topics)  # type: ignore[assignment]
            yield from rows

    def iter_frames(
        self, after: int = 0, upto: int | None = None, topics: Sequence[str] = ()
    ) -> Iterator[Decoded]:
        """
        Yield the decoded frames that hold positions after one and up to another, each checked and linked to the last.
        """
        previous: Header | None = None
        mask: int | None = None
        for position, stored in self._stored_frames(after + 1):
            if upto is not None and position > upto:
                return
            header = read_header(stored, position=position)
            self._check_link(previous, header, position)
            previous = header
            if topics:
                mask = self._mask_of(topics) if mask is None else mask
                if not header.topic_mask & mask:
                    check_crc(stored, position=position)
                    continue
            yield self._decode(open_frame(stored, position=position))

    def _mask_of(self, topics: Sequence[str]) -> int:
        """
        Return the mask of those of the given topics that the log knows.
        """
        with self.environment.read() as transaction:
            self._load_topics(transaction)
        return topic_mask([self._topic_numbers[topic] for topic in topics if topic in self._topic_numbers])

    def _check_link(self, previous: Header | None, header: Header, position: int) -> None:
        """
        Compare a frame with the one before it.
        """
        if header.first_position != position:
            raise Corrupt("order", position, position, header.first_position, self.environment.path)
        if previous is None:
            if position == 1 and header.previous != self._origin().digest:
                raise Corrupt("chain", 1, self._origin().digest.hex(), header.previous.hex(), self.environment.path)
            return
        if header.first_position != previous.last_position + 1:
            expected = previous.last_position + 1
            raise Corrupt("gap", expected, expected, header.first_position, self.environment.path)
        if header.previous != previous.digest:
            raise Corrupt("chain", position, previous.digest.hex(), header.previous.hex(), self.environment.path)

    def _stored_frames(self, position: int) -> Iterator[tuple[int, bytes]]:
        """
        Yield key and bytes of the frames from the one that holds a position on, in short read transactions.
        """
        while self.is_there:
            batch = self._copy_frames(position)
            if not batch:
                return
            yield from batch
            key, frame = batch[-1]
            position = key + max(1, read_header(frame, position=key).count)

    def _copy_frames(self, position: int) -> list[tuple[int, bytes]]:
        """
        Copy some frames out of one read transaction, beginning with the one that holds a position.
        """
        batch: list[tuple[int, bytes]] = []
        size = 0
        with self.environment.read() as transaction:
            cursor = transaction.cursor(db=self._log)
            if not _seek_frame(cursor, position):
                return batch
            for key, frame in cursor:
                batch.append((number_of(key), frame))
                size += len(frame)
                if size >= READ_BYTES or len(batch) >= READ_FRAMES:
                    break
        return batch

    def _decode(self, frame: Frame) -> Decoded:
        """
        Put names in the place of numbers.
        """
        columns = frame.columns
        names = self._names_upto(max(columns.topics), frame.header.first_position)
        streams = [id_of(encoded) for encoded in columns.ids]
        return Decoded(
            frame.header,
            [streams[index] for index in columns.id_indexes],
            columns.versions,
            [names[number] for number in columns.topics],
            columns.states,
        )

    def _names_upto(self, number: int, position: int) -> list[str]:
        """
        Return the topics' names, read again when a number is unknown.
        """
        if number >= len(self._topic_names):
            with self.environment.read() as transaction:
                self._load_topics(transaction)
            if number >= len(self._topic_names):
                raise Corrupt("schema", position, "a known topic number", number, self.environment.path)
        return self._topic_names

    def _load_topics(self, transaction: lmdb.Transaction) -> None:
        """
        Read the topics that other processes added.
        """
        if transaction.stat(db=self._topics)["entries"] == len(self._topic_names):
            return
        with self._lock:
            cursor = transaction.cursor(db=self._topics)
            stored = {value.decode(): number_of(key) for key, value in cursor}
            self._remember_topics({topic: number for topic, number in stored.items() if number >= len(self._topic_names)})

    def _remember_topics(self, topics: dict[str, int]) -> None:
        """
        Add committed topics to the table in order of their numbers; those known already are passed over.
        """
        for topic, number in sorted(topics.items(), key=lambda item: item[1]):
            if number == len(self._topic_names):
                self._topic_names.append(topic)
                self._topic_numbers[topic] = number

    # Streams and single positions

    def stream_rows(
        self, stream: Stream, *, gt: int | None = None, lte: int | None = None, desc: bool = False,
        limit: int | None = None,
    ) -> list[PlacedRow]:  # fmt: skip
        """
        Return the rows of a stream by version.
        """
        if not self.is_there:
            return []
        with self.environment.read() as transaction:
            found = stream_positions(transaction, self._index, stream, gt=gt, lte=lte, desc=desc, limit=limit)
        rows = []
        for version, position in found:
            row = self.frame_at(position).row(position)
            if row[1] != stream or row[2] != version:
                there = f"{row[1]} version {row[2]}"
                raise Corrupt("order", position, f"{stream} version {version}", there, self.environment.path)
            rows.append(row)
        return rows

    def frame_at(self, position: int) -> Decoded:
        """
        Return the frame that holds a position; recently used ones are kept.

        Raises:
            Corrupt: It is missing or damaged.
        """
        for first, decoded in reversed(self._frames.items()):
            if first <= position <= decoded.header.last_position:
                return decoded
        with self.environment.read() as transaction:
            cursor = transaction.cursor(db=self._log)
            stored = cursor.item() if _seek_frame(cursor, position) else None
        if stored is None:
            raise Corrupt("gap", position, f"position {position}", "nothing", self.environment.path)
        first = number_of(stored[0])
        decoded = self._decode(open_frame(stored[1], position=first))
        if position > decoded.header.last_position:
            raise Corrupt("gap", position, f"position {position}", "nothing", self.environment.path)
        self._keep(first, decoded)
        return decoded

    def _keep(self, first: int, decoded: Decoded) -> None:
        """
        Keep a decoded frame, letting the oldest go.
        """
        with self._lock:
            kept = OrderedDict(self._frames)
            kept[first] = decoded
            while len(kept) > CACHED_FRAMES:
                kept.popitem(last=False)
            self._frames = kept

    def digest_at(self, position: int) -> bytes:
        """
        Return the digest of the log up to a position.

        Raises:
            Corrupt: The log has no such position.
        """
        if position == 0:
            return self._origin().digest
        decoded = self.frame_at(position)
        if position == decoded.header.last_position:
            return decoded.header.digest
        count = position - decoded.header.first_position + 1
        rows = [(str(row[1]), row[2], row[3], row[4]) for row, _ in zip(decoded.rows(), range(count), strict=False)]
        return digest_within(decoded.header.previous, rows)


def split_rows(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """
    Cut a commit into the parts that become frames.

    Raises:
        DataError: A state is too large.
    """
    begin = size = 0
    for at, row in enumerate(rows):
        length = len(row[3])
        if length > STATE_MAX:
            message = f"state of {row[0]} version {row[1]} has {length} bytes, more than {STATE_MAX}"
            raise DataError(message)
        if at > begin and (size + length > PAYLOAD_SOFT_MAX or at - begin >= EVENTS_MAX):
            yield rows[begin:at]
            begin, size = at, 0
        size += length
    yield rows[begin:]


def _seek_frame(cursor: lmdb.Cursor, position: int) -> bool:
    """
    Put a cursor on the frame that holds a position; False when the log ends before it.
    """
    key = number_bytes(position)
    if cursor.set_range(key) and cursor.key() == key:
        return True
    # On a frame behind it, or behind the last one: the frame before is the candidate.
    if not (cursor.prev() if cursor.key() else cursor.last()):
        return False
    header = read_header(cursor.value(), position=number_of(cursor.key()))
    return position <= header.last_position
