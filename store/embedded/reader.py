"""
Read one log in an environment: frames from the store or the archive, checked, linked and decoded.

Every read happens in a short read transaction whose bytes are copied out.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from enum import Enum

import lmdb

from domain.errors import Corrupt, NotFound
from store.chain import digest_within, genesis
from store.embedded.anchors import Anchors
from store.embedded.cursors import pair, pairs
from store.embedded.environment import Environment
from store.embedded.frames import (
    Frame,
    Header,
    check_crc,
    open_frame,
    read_header,
    topic_mask,
)
from store.embedded.index import stream_positions
from store.embedded.kept import dictionary_of, kept
from store.embedded.layout import number_bytes, number_of, space_names
from store.embedded.rows import Decoded, Head, PlacedRow, Stream, streams_of

IndexRun = tuple[bytes, int, list[int]]
"""Encoded id, first version, positions."""

READ_BYTES = 256 << 10
READ_FRAMES = 256
"""How much one read transaction copies out before it ends."""
CACHED_FRAMES = 16


class Reader:
    """
    A log of rows in an environment, under the names of one application and purpose, as it is read.
    """

    def __init__(
        self, environment: Environment, *, name: str = "", purpose: str = "events"
    ) -> None:
        self.environment = environment
        self._names = space_names(name, purpose)
        self._log = environment.database(self._names.frames)
        self._index = environment.database(self._names.streams)
        self.anchors = Anchors(environment, self._names.anchors)
        self._cached_head: tuple[int, Head] = (-1, self._origin())
        self._frames: OrderedDict[int, Decoded] = OrderedDict()
        self._lock = threading.Lock()
        self._learn_dictionaries()

    def _learn_dictionaries(self) -> None:
        """
        Learn which dictionaries the log has now.
        """
        found = kept(self.environment)
        self._kept = {number for number, is_right in found.items() if is_right}
        self._has_new_dictionary = False

    @property
    def is_there(self) -> bool:
        """
        Say whether the log's databases exist; a reader may come before the first writer.
        """
        return self._log is not None and self._index is not None

    def _origin(self) -> Head:
        """
        Return the head of the empty log.
        """
        return Head(0, genesis(self.environment.log_id, self._names.frames))

    def head(self) -> Head:
        """
        Return where the log ends now.
        """
        if not self.is_there:
            return self._origin()
        with self.environment.read() as transaction:
            return self._head(transaction, transaction.id())

    def glance(self) -> tuple[int, int]:
        """
        Return the number of the commit that a reader sees now, and where the log ends in it.
        """
        if not self.is_there:
            return self.environment.last_transaction(), 0
        with self.environment.read() as transaction:
            number = transaction.id()
            return number, self._head(transaction, number).position

    def _head(self, transaction: lmdb.Transaction, last_commit: int) -> Head:
        """
        Return where the log ends in a transaction; the last frame is checked unless we wrote it
        ourselves.
        """
        number, head = self._cached_head
        if number == last_commit:
            return head
        cursor = transaction.cursor(db=self._log)
        if not cursor.last():
            return self._origin()
        key, frame = pair(cursor)
        position = number_of(key)
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
        Yield key and bytes of every frame as it lies there, whatever it holds, archived ones first.
        """
        for segment in self.anchors.segments():
            # A missing or damaged file is the business of who verifies; the rest is read on.
            with suppress(Corrupt, NotFound):
                yield from self.anchors.frames(segment, segment.first_position)
        after: bytes | None = None
        while self.is_there:
            batch: list[tuple[bytes, bytes]] = []
            size = 0
            with self.environment.read() as transaction:
                cursor = transaction.cursor(db=self._log)
                is_on = cursor.first() if after is None else cursor.set_range(after + b"\x00")
                while is_on and size < READ_BYTES and len(batch) < READ_FRAMES:
                    batch.append(pair(cursor))
                    size += len(batch[-1][1])
                    is_on = cursor.next()
            if not batch:
                return
            yield from ((number_of(key), frame) for key, frame in batch)
            after = batch[-1][0]

    def frame_after(self, position: int) -> tuple[int, bytes]:
        """
        Return the key behind a position and the digest that its frame builds on; the head when
        there is none.
        """
        with self.environment.read() as transaction:
            cursor = transaction.cursor(db=self._log)
            if not cursor.set_range(number_bytes(position + 1)):
                return position + 1, b""
            stored = pair(cursor)
            key = number_of(stored[0])
            return key, read_header(stored[1], position=key).previous

    def read_index(self, read: Callable[[lmdb.Cursor], Iterator[IndexRun]]) -> Iterator[IndexRun]:
        """
        Yield what *read* makes of a cursor on the index, in one read transaction; for verifying
        only.
        """
        if self.is_there:
            with self.environment.read() as transaction:
                yield from read(transaction.cursor(db=self._index))

    def unfound_keys(self) -> Iterator[tuple[str, bytes]]:
        """
        Yield the keys of frames and of index rows that whoever looks for them doesn't find, though
        they stand there: a damaged branch of the tree leads elsewhere. For verifying only.
        """
        if not self.is_there:
            return
        for what, database in (("a frame", self._log), ("an index row", self._index)):
            with self.environment.read() as transaction:
                find = transaction.cursor(db=database).set_key
                for key in transaction.cursor(db=database).iternext(keys=True, values=False):
                    if not find(key):
                        yield what, bytes(key)

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
                rows = (row for row in rows if after < row[0] and (upto is None or row[0] <= upto))
            if topics:
                rows = (row for row in rows if row[3] in topics)
            yield from rows

    def iter_frames(
        self, after: int = 0, upto: int | None = None, topics: Sequence[str] = ()
    ) -> Iterator[Decoded]:
        """
        Yield the decoded frames that hold positions after one and up to another, each checked and
        linked to the last.
        """
        previous: Header | None = None
        mask = topic_mask(topics)
        for position, stored in self._stored_frames(after + 1):
            if upto is not None and position > upto:
                return
            header = read_header(stored, position=position)
            if previous is None and position > after + 1:
                found = f"position {position}"
                raise Corrupt(
                    "gap", after + 1, f"position {after + 1}", found, self.environment.path
                )
            self._check_link(previous, header, position)
            previous = header
            if topics and not header.topic_mask & mask:
                check_crc(stored, position=position)
                continue
            yield self._decode(self._opened(stored, position))

    def _check_link(self, previous: Header | None, header: Header, position: int) -> None:
        """
        Compare a frame with the one before it.
        """
        if header.first_position != position:
            raise Corrupt("order", position, position, header.first_position, self.environment.path)
        if previous is None:
            if position == 1 and header.previous != self._origin().digest:
                raise Corrupt(
                    "chain",
                    1,
                    self._origin().digest.hex(),
                    header.previous.hex(),
                    self.environment.path,
                )
            return
        if header.first_position != previous.last_position + 1:
            expected = previous.last_position + 1
            raise Corrupt("gap", expected, expected, header.first_position, self.environment.path)
        if header.previous != previous.digest:
            raise Corrupt(
                "chain",
                position,
                previous.digest.hex(),
                header.previous.hex(),
                self.environment.path,
            )

    def _stored_frames(self, position: int) -> Iterator[tuple[int, bytes]]:
        """
        Yield key and bytes of the frames from the one that holds a position on, in short read
        transactions.
        """
        while self.is_there:
            batch = self._copy_frames(position)
            if not batch:
                return
            yield from batch
            key, frame = batch[-1]
            position = key + max(1, read_header(frame, position=key).events)

    def _copy_frames(self, position: int) -> list[tuple[int, bytes]]:
        """
        Copy some frames out of one read transaction, beginning with the one that holds a position.
        """
        batch: list[tuple[int, bytes]] = []
        with self.environment.read() as transaction:
            cursor = transaction.cursor(db=self._log)
            place = seek_frame(cursor, position, self.environment.path)
            size = 0
            for key, frame in pairs(cursor) if place is Place.HERE else ():
                batch.append((number_of(key), frame))
                size += len(frame)
                if size >= READ_BYTES or len(batch) >= READ_FRAMES:
                    break
        return self._archived_frames(position) if place is Place.BEFORE else batch

    def _archived_frames(self, position: int) -> list[tuple[int, bytes]]:
        """
        Copy some frames out of the archive, beginning with the one that holds a position.
        """
        segment = self.anchors.segment_of(position)
        if segment is None:
            found = "the first frame behind it"
            raise Corrupt("gap", position, f"position {position}", found, self.environment.path)
        batch: list[tuple[int, bytes]] = []
        size = 0
        for first, frame in self.anchors.frames(segment, position):
            batch.append((first, frame))
            size += len(frame)
            if size >= READ_BYTES:
                break
        return batch

    def _opened(self, stored: bytes, position: int) -> Frame:
        """
        Check and decode a frame, with a dictionary that a writer may have put there meanwhile.
        """
        if (number := dictionary_of(stored)) and number not in self._kept:
            self._learn_dictionaries()
        return open_frame(stored, position=position)

    def _decode(self, frame: Frame) -> Decoded:
        """
        Put names in the place of numbers.
        """
        columns = frame.columns
        streams = streams_of(columns.ids, frame.header.first_position, self.environment.path)
        return Decoded(
            frame.header,
            list(map(streams.__getitem__, columns.id_indexes)),
            columns.versions,
            list(map(columns.topic_names.__getitem__, columns.topics)),
            columns.states,
        )

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
            found = stream_positions(
                transaction, self._index, stream, gt=gt, lte=lte, desc=desc, limit=limit
            )
        rows = []
        for version, position in found:
            row = self.frame_at(position).row(position)
            if row[1] != stream or row[2] != version:
                there = f"{row[1]} version {row[2]}"
                raise Corrupt(
                    "order", position, f"{stream} version {version}", there, self.environment.path
                )
            rows.append(row)
        return rows

    def positions_of(self, stream: Stream) -> list[int]:
        """
        Return the positions of a stream's events, by version; those of pruned ones too.
        """
        if not self.is_there:
            return []
        with self.environment.read() as transaction:
            found = stream_positions(
                transaction, self._index, stream, gt=None, lte=None, desc=False, limit=None
            )
        return [position for _, position in found]

    def last_version(self, stream: Stream) -> int:
        """
        Return the last version of a stream, 0 when it has none; pruned events count.
        """
        if not self.is_there:
            return 0
        with self.environment.read() as transaction:
            found = stream_positions(
                transaction, self._index, stream, gt=None, lte=None, desc=True, limit=1
            )
        return found[0][0] if found else 0

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
            place = seek_frame(cursor, position, self.environment.path)
            stored = [pair(cursor)] if place is Place.HERE else []
        found = [(number_of(key), frame) for key, frame in stored]
        if place is Place.BEFORE:
            found = self._archived_frames(position)[:1]
        if not found:
            raise Corrupt("gap", position, f"position {position}", "nothing", self.environment.path)
        first, frame = found[0]
        decoded = self._decode(self._opened(frame, first))
        if not first <= position <= decoded.header.last_position:
            # Behind the frame, or before it where the tree leads elsewhere.
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
        rows = [
            (str(row[1]), row[2], row[3], row[4])
            for row, _ in zip(decoded.rows(), range(count), strict=False)
        ]
        return digest_within(decoded.header.previous, rows)


class Place(Enum):
    """
    Say where a position lies, as seen from the frames in the store.
    """

    HERE = "here"
    BEFORE = "before the first frame: in the archive"
    BEHIND = "behind the last frame"


def seek_frame(cursor: lmdb.Cursor, position: int, path: str) -> Place:
    """
    Put a cursor on the frame that holds a position, if one does.

    Raises:
        Corrupt: It lies between two frames.
    """
    key = number_bytes(position)
    has_behind = cursor.set_range(key)
    if has_behind and cursor.key() == key:
        return Place.HERE
    # On a frame behind it, or behind the last one: the frame before is the candidate.
    if not (cursor.prev() if has_behind else cursor.last()):
        return Place.BEFORE if has_behind else Place.BEHIND
    first, frame = pair(cursor)
    last = read_header(frame, position=number_of(first)).last_position
    if position > last and has_behind:
        raise Corrupt("gap", last + 1, f"position {last + 1}", "a later frame", path)
    return Place.HERE if position <= last else Place.BEHIND
