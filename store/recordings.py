"""
Recordings: a part of a log as JSON lines, with whole states among them; read like a log.

A recording begins with a HEADER. A SNAPSHOT line holds the whole state at a boundary between steps
and stands before the event that follows it; a recording that doesn't begin with position 1 begins
with one, so that it can be replayed by itself. ``FORMAT.md`` describes the lines.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import shutil
import tempfile
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, Self

from domain.envelope import Envelope
from domain.errors import Corrupt, InvariantBroken, Refused
from store.codec import PlacedRow, decode, time_us_of
from store.embedded.environment import acquire
from store.embedded.journal import Journal
from store.embedded.settings import Settings
from store.info import found_log
from store.snapshots import Snapshot
from store.transfer import (
    HEADER_MAX,
    LINE_MAX,
    SNAPSHOT_BEGINS,
    RecordedEvent,
    RecordingHeader,
    created,
    event_line,
    opened,
    read_event_line,
    read_header_line,
    typed,
)
from store.translation import translated

HEADER_BEGINS: Final = b'{"HEADER":'
_STATE: Final = b',"state":'
_snapshot = re.compile(rb'\{"SNAPSHOT":(\{.*)\}\n?', re.DOTALL).fullmatch


@dataclass(frozen=True, slots=True)
class SnapshotLine:
    """
    What a SNAPSHOT line says.

    Args:
        position: The last position that is in the state.
        time_us: The stamp of that event.
        schema: Names the shape of the state.
        chain_digest: The log's digest there in hexadecimal, "" when nobody knows it.
        state: The whole state, JSON on one line.
    """

    position: int
    time_us: int
    schema: str
    chain_digest: str
    state: bytes

    def line(self) -> bytes:
        """
        Return it as a line.
        """
        if b"\n" in self.state or not self.state.startswith(b"{"):
            raise InvariantBroken("a recorded state is a JSON object on one line")
        fields = {
            "position": self.position, "time_us": self.time_us, "schema": self.schema,
            "chain_digest": self.chain_digest, "sha256": hashlib.sha256(self.state).hexdigest(),
        }  # fmt: skip
        head = json.dumps({"SNAPSHOT": fields}, separators=(",", ":")).encode()
        return b"%b%b%b}}\n" % (head[:-2], _STATE, self.state)


def read_snapshot_line(line: bytes) -> SnapshotLine:
    """
    Read a SNAPSHOT line; its state comes out byte for byte as it went in.

    Raises:
        Corrupt: It is none, or its state doesn't check.
    """
    found = _snapshot(line)
    try:
        body = b"" if found is None else found.group(1)
        at = body.index(_STATE)
        fields = json.loads(body[:at] + b"}")
        expected = fields.pop("sha256")
        state = body[at + len(_STATE) : -1]
        place, time_us = typed(fields, "position", int), typed(fields, "time_us", int)
        names = (typed(fields, "schema", str), typed(fields, "chain_digest", str))
        made = SnapshotLine(place, time_us, *names, state)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        said = f"{type(error).__name__}: {error}"[:200]
        raise Corrupt("schema", None, "a SNAPSHOT line", said) from None
    digest = hashlib.sha256(made.state).hexdigest()
    if digest != expected:
        raise Corrupt("checksum", made.position, expected, digest)
    return made


# ----------------------------------------------------------------------------------------- writing


class LogLines:
    """
    Give the events of a log in a directory as they are recorded; use it as a context manager.

    Raises:
        NotFound: There is no log.
    """

    def __init__(self, path: Path) -> None:
        directory = found_log(path)
        with translated():
            self._environment = acquire(Settings(directory, readonly=True), create=False)
            try:
                self._journal = Journal(self._environment)
            except BaseException:
                # Else this process would go on seeing the damaged file after it was replaced.
                self.close()
                raise
        self.log_id = self._environment.log_id

    def head(self) -> int:
        """
        Return the last position.
        """
        with translated():
            return self._journal.head().position

    def epoch(self) -> int:
        """
        Return how many writers the log has had.
        """
        with translated(), self._environment.read() as transaction:
            return self._environment.epoch(transaction)

    def events(self, after: int, upto: int) -> Iterator[RecordedEvent]:
        """
        Yield the events after a position up to and with another.

        Raises:
            Corrupt: A frame is damaged.
        """
        with translated():
            for frame in self._journal.iter_frames(after, upto) if upto > after else ():
                header = frame.header
                for position, *row in frame.rows():
                    ends = header.is_last_of_commit and position == header.last_position
                    if after < position <= upto:
                        yield RecordedEvent(position, tuple(row), header.epoch, ends)  # type: ignore[arg-type]

    def close(self) -> None:
        """
        Let the log go.
        """
        self._environment.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def line_of(event: RecordedEvent) -> bytes:
    """
    Return the line of an event.
    """
    return event_line(
        (event.position, *event.row), epoch=event.epoch, ends_commit=event.ends_commit
    )


def write_recording(
    target: Path,
    header: RecordingHeader,
    events: Iterable[RecordedEvent],
    snapshots: Iterable[SnapshotLine] = (),
) -> None:
    """
    Write a recording to a new file; a name ending in .gz or .zst compresses.

    Args:
        target: The file.
        header: Its first line.
        events: In order of position.
        snapshots: In order of position too; each goes before the event that follows it.

    Raises:
        Refused: The file exists.
        StoreUnavailable: It can't be written; nothing is left of it.
    """
    waiting = iter(snapshots)
    following = next(waiting, None)
    with created(target) as file:
        file.write(header.line())
        for event in events:
            while following is not None and following.position < event.position:
                file.write(following.line())
                following = next(waiting, None)
            file.write(line_of(event))
        if following is not None:
            file.write(following.line())


# ----------------------------------------------------------------------------------------- reading


def is_recording(path: Path) -> bool:
    """
    Say whether a file begins as a recording does; compressed or not.
    """
    if not path.is_file():
        return False
    try:
        with opened(path) as file:
            return file.read(len(HEADER_BEGINS)) == HEADER_BEGINS
    except (Corrupt, OSError):
        return False


class _Place(NamedTuple):
    position: int
    offset: int


class Recording:
    """
    Be a recording that is read like a log: by position, in order, or by stream.

    Its lines are looked at once, to know where each position is; a compressed file is unpacked
    beside, into a temporary one. Of a recording that was begun on a running scheduler only whole
    commits are there: the rest was being written when the scheduler was killed.

    Args:
        path: The file.

    Raises:
        NotFound: There is no such file.
        Corrupt: It is no recording, or a line is missing.
    """

    def __init__(self, path: Path) -> None:
        self.file = path
        self.path: Path | None = None
        self._unpacked: Any = None
        try:
            self._plain = self._unpack(path)
            self._offsets = array("Q")
            self._places: list[_Place] = []
            with self._plain.open("rb") as file:
                line = file.readline(HEADER_MAX)
                self.header = read_header_line(line)
                self._look(file, len(line))
        except BaseException:
            self.close()
            raise
        self.log_id = self.header.log_id
        self.snapshots = RecordedSnapshots(
            self._snapshot_lines, tuple(place.position for place in self._places)
        )

    def _unpack(self, path: Path) -> Path:
        """
        Return a plain file with the same lines.
        """
        with opened(path) as file:
            if not isinstance(file, io.BufferedReader) or isinstance(file.raw, io.FileIO):
                return path
            plain = tempfile.NamedTemporaryFile(prefix="xce-recording-")  # noqa: SIM115 - closed by `close`
            self._unpacked = plain
            shutil.copyfileobj(file, plain, 1 << 20)
            plain.flush()
        return Path(plain.name)

    def _look(self, file: IO[bytes], offset: int) -> None:
        """
        Learn where every line is.
        """
        whole = 0
        while line := file.readline(LINE_MAX):
            if not line.endswith(b"\n"):
                break
            if line.startswith(SNAPSHOT_BEGINS):
                self._places.append(_Place(self.head(), offset))
            else:
                self._offsets.append(offset)
                if _ends_commit(line):
                    whole = len(self._offsets)
            offset += len(line)
        expected = self.header.events
        if expected is None:
            del self._offsets[whole:]
        elif expected != len(self._offsets):
            found = f"{len(self._offsets)} of them"
            raise Corrupt(
                "truncated", self.head() + 1, f"{expected} whole events", found, str(self.file)
            )

    @property
    def first_position(self) -> int:
        """
        Return the position of the first event.
        """
        return self.header.first_position

    def head(self) -> int:
        """
        Return the last position.
        """
        return self.header.first_position + len(self._offsets) - 1

    def events(self, after: int = 0, upto: int | None = None) -> Iterator[RecordedEvent]:
        """
        Yield the events after a position, up to and with another, as they are recorded.

        Raises:
            Refused: The recording begins later.
            Corrupt: A line is damaged.
        """
        last = self.head() if upto is None else min(upto, self.head())
        if last <= after:
            return
        if after + 1 < self.first_position:
            raise Refused(
                "position",
                f"must not be before the recording's first, {self.first_position}, "
                "and its first SNAPSHOT must be of this program's version",
                after + 1,
            )
        with self._plain.open("rb") as file:
            file.seek(self._offsets[after + 1 - self.first_position])
            position = after
            while position < last:
                line = file.readline(LINE_MAX)
                if line.startswith(SNAPSHOT_BEGINS):
                    continue
                yield read_event_line(line, position=position + 1)
                position += 1

    def read(self, after: int = 0, upto: int | None = None) -> Iterator[Envelope]:
        """
        Yield the envelopes after a position, up to and with another.
        """
        for event in self.events(after, upto):
            yield decode(event.position, *event.row)  # type: ignore[arg-type]

    def rows(self, after: int = 0, upto: int | None = None) -> Iterator[PlacedRow]:
        """
        Yield the same as rows, not decoded.
        """
        for event in self.events(after, upto):
            yield (event.position, *event.row)  # type: ignore[misc]

    def read_stream(self, stream: str, after_version: int = 0) -> Iterator[Envelope]:
        """
        Yield the envelopes of one stream after a version.
        """
        for event in self.events(self.first_position - 1):
            if event.row[0] == stream and event.row[1] > after_version:
                yield decode(event.position, *event.row)  # type: ignore[arg-type]

    def time_at(self, position: int) -> int:
        """
        Return the time of an event, 0 for position 0.
        """
        found = next(self.events(position - 1, position), None) if position else None
        return 0 if found is None else time_us_of(found.row[3])

    def last_time_us(self) -> int:
        """
        Return the time of the last event, 0 when there is none.
        """
        return self.time_at(self.head()) if self._offsets else 0

    def digest_at(self, position: int) -> bytes:
        """
        Return a digest that stands for a position: a recording doesn't hold the log's own.
        """
        return hashlib.sha256(f"{self.log_id} {position}".encode()).digest()

    def _snapshot_lines(self, upto: int | None = None) -> Iterator[SnapshotLine]:
        """
        Yield the states at or before a position, the last one first.
        """
        with self._plain.open("rb") as file:
            for place in reversed(self._places):
                if upto is None or place.position <= upto:
                    file.seek(place.offset)
                    yield self._checked(read_snapshot_line(file.readline(LINE_MAX)), place)

    def _checked(self, found: SnapshotLine, place: _Place) -> SnapshotLine:
        if found.position != place.position:
            raise Corrupt(
                "order", place.position, f"the state at {place.position}",
                f"the one at {found.position}", str(self.file),
            )  # fmt: skip
        return found

    def close(self) -> None:
        """
        Remove what was unpacked.
        """
        if self._unpacked is not None:
            self._unpacked.close()
            self._unpacked = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _ends_commit(line: bytes) -> bool:
    return line.find(b',"ends_commit":true', 0, line.find(b',"payload":')) >= 0


class RecordedSnapshots:
    """
    Be the states of a recording, asked for as a log's snapshots are.

    Args:
        lines: Gives the states at or before a position, the last one first.
        positions: Where there are states.
    """

    def __init__(
        self, lines: Callable[[int | None], Iterator[SnapshotLine]], positions: tuple[int, ...]
    ) -> None:
        self._lines = lines
        self.positions = positions

    def newest_good(
        self,
        *,
        schema: str,
        head: int,  # noqa: ARG002 - a recording's states belong to it
        digest_at: Callable[[int], bytes],  # noqa: ARG002 - so does its history
        upto: int | None = None,
    ) -> Snapshot | None:
        """
        Return the newest state of a schema at or before a position, None when there is none.
        """
        for found in self._lines(upto):
            if found.schema == schema:
                return Snapshot(found.position, found.schema, found.state, found.time_us, Path())
        return None

    def at(self, position: int, schema: str) -> bytes | None:
        """
        Return the state of a schema at a position, None when there is none.
        """
        found = next(self._lines(position), None)
        is_it = found is not None and found.position == position and found.schema == schema
        return found.state if found is not None and is_it else None
