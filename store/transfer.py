"""
Export a log as JSON lines and import it again: exact inverses, down to the head digest.

The first line is a HEADER, every other one an EVENT or, when the core made it, a DECISION; SNAPSHOT
lines of a recording (``store.recordings``) are passed over. An event that a commit ends with says
so, and the payload stands as it is stored, so that the same frames come out again. ``FORMAT.md``
describes the fields.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from json.encoder import encode_basestring
from pathlib import Path
from typing import IO, TypeVar, cast

import zstandard

from domain.errors import Corrupt, NotFound, Refused, UnknownEventType
from domain.event import event_class
from domain.given_files import unreadable
from store.codec import Parts, decode, join_state, split_state
from store.embedded.environment import acquire
from store.embedded.frames import Header
from store.embedded.journal import Journal
from store.embedded.rows import Decoded, PlacedRow, Row
from store.embedded.settings import Settings
from store.info import found_log, refuse_used
from store.os_errors import unavailable
from store.rebuild import LogBuilder
from store.salvage import Salvage
from store.translation import translated

Kind = TypeVar("Kind", str, int, bool)

RECORDING_FORMAT = 1
LINE_MAX = 1 << 30
"""No line is longer: a snapshot is one line."""
HEADER_MAX = 64 << 10
"""No first line is longer: a file that isn't ours is told by it, whatever it unpacks to."""
EXPORT = "xce log export LOG FILE"

ANONYMISED = "anonymised-"
"""
How the log id of a recording begins that is its own: its names became aliases, so it has no log
whose head it could be held against.
"""

SNAPSHOT_BEGINS = b'{"SNAPSHOT":'
_PAYLOAD = b',"payload":'
_fields = re.compile(rb'\{"(EVENT|DECISION)":(\{.*)\}\n?', re.DOTALL).fullmatch


@dataclass(frozen=True, slots=True)
class RecordingHeader:
    """
    What the HEADER line says.

    Args:
        format: Version of the lines' form.
        log_id: The log's identity.
        first_position: Position of the first event line.
        events: How many event lines there are; None for all up to the file's end, as in a recording
            that was begun on a running scheduler.
        epoch: The log's epoch.
        head_digest: Digest at the last event, in hexadecimal, "" when the lines are no whole log.
    """

    format: int
    log_id: str
    first_position: int
    events: int | None
    epoch: int
    head_digest: str

    def line(self) -> bytes:
        """
        Return it as a line.
        """
        fields = {name: getattr(self, name) for name in self.__slots__}
        return json.dumps({"HEADER": fields}, separators=(",", ":")).encode() + b"\n"


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """
    What an EVENT or DECISION line says.
    """

    position: int
    row: Row
    epoch: int
    ends_commit: bool


def export_log(path: Path, target: Path) -> RecordingHeader:
    """
    Write a log, as it is now, to a file of JSON lines; a name ending in .gz or .zst compresses.

    Raises:
        NotFound: There is no log.
        Refused: The file exists.
        Corrupt: A frame is damaged; nothing is left of the file.
    """
    directory = found_log(path)
    environment = acquire(Settings(directory, readonly=True), create=False)
    try:
        with translated():
            journal = Journal(environment)
            head = journal.head()
            with environment.read() as transaction:
                epoch = environment.epoch(transaction)
            header = RecordingHeader(
                RECORDING_FORMAT, environment.log_id, 1, head.position, epoch, head.digest.hex()
            )
            with created(target) as file:
                file.write(header.line())
                for decoded in journal.iter_frames(0, head.position or None):
                    file.write(b"".join(_frame_lines(decoded)))
    finally:
        environment.release()
    return header


def _frame_lines(decoded: Decoded) -> Iterator[bytes]:
    """
    Yield the lines of a frame.
    """
    header: Header = decoded.header
    for row in decoded.rows():
        is_last = header.is_last_of_commit and row[0] == header.last_position
        yield event_line(row, epoch=header.epoch, ends_commit=is_last)


def event_line(row: PlacedRow, *, epoch: int, ends_commit: bool) -> bytes:
    """
    Return the line of one event.
    """
    position, stream, version, topic, state = row
    fields = [
        f'"position":{position},"stream":{_quoted(str(stream))},"version":{version}',
        f'"type":{_quoted(topic)},"epoch":{epoch},"ends_commit":{str(ends_commit).lower()}',
    ]
    kind = "DECISION" if _is_decision(topic) else "EVENT"
    parts = split_state(state)
    if parts is None or join_state(parts) != state:
        fields.append(f'"state":"{base64.b64encode(state).decode()}"')
        return f'{{"{kind}":{{{",".join(fields)}}}}}\n'.encode()
    fields.append(
        f'"time_us":{parts.time_us},"actor":{_quoted(parts.actor)},"cause":{_quoted(parts.cause)}'
    )
    fields.append(f'"schema":{parts.schema},"ends_step":{str(parts.ends_step).lower()}')
    head = f'{{"{kind}":{{{",".join(fields)}'.encode()
    return b"%b%b%b}}\n" % (head, _PAYLOAD, parts.payload)


def _quoted(text: str) -> str:
    """
    Return a text as JSON, on one line whatever is in it.
    """
    return encode_basestring(text).replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _is_decision(topic: str) -> bool:
    """
    Say whether the core makes events of a type; an unknown one counts as an event.
    """
    try:
        return event_class(topic).IS_DECISION
    except UnknownEventType:
        return False


def read_header_line(line: bytes) -> RecordingHeader:
    """
    Read a HEADER line.

    Raises:
        Corrupt: It is none, or of a newer format.
    """
    try:
        fields = json.loads(line)["HEADER"]
        version = fields["format"]
        if isinstance(version, int) and version > RECORDING_FORMAT:
            raise Corrupt("newer", None, f"recording format {RECORDING_FORMAT}", version)
        header = RecordingHeader(**fields)
    except (ValueError, KeyError, TypeError, RecursionError):
        hint = "Give a recording, as xce log export and xce scheduler record write it."
        raise Corrupt("foreign", None, "a HEADER line", "something else", hint=hint) from None
    for name in RecordingHeader.__slots__:
        wanted = str if name in ("log_id", "head_digest") else int
        is_open_ended = name == "events" and header.events is None
        if type(getattr(header, name)) is not wanted and not is_open_ended:
            raise Corrupt(
                "schema", None, f"{name} of type {wanted.__name__}", getattr(header, name)
            )
    return header


def read_event_line(line: bytes, *, position: int) -> RecordedEvent:
    """
    Read an EVENT or DECISION line; its state comes out byte for byte as it went in.

    Args:
        line: The line.
        position: Which one it must be.

    Raises:
        Corrupt: It is none, or another one.
    """
    found = _fields(line)
    if found is None:
        raise Corrupt("schema", position, "an EVENT or DECISION line", repr(line[:80]))
    try:
        body = found.group(2)
        at = body.find(_PAYLOAD)
        fields = json.loads(body if at < 0 else body[:at] + b"}")
        if at < 0:
            state = base64.b64decode(fields["state"], validate=True)
        else:
            state = join_state(_parts(fields, body[at + len(_PAYLOAD) : -1]))
        row = (
            typed(fields, "stream", str),
            typed(fields, "version", int),
            typed(fields, "type", str),
            state,
        )
        place, epoch = typed(fields, "position", int), typed(fields, "epoch", int)
        event = RecordedEvent(place, row, epoch, typed(fields, "ends_commit", bool))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        said = f"{type(error).__name__}: {error}"[:200]
        raise Corrupt("schema", position, "an EVENT or DECISION line", said) from None
    if event.position != position:
        kind = "gap" if event.position > position else "order"
        raise Corrupt(kind, position, position, event.position)
    return event


def _parts(fields: dict[str, object], payload: bytes) -> Parts:
    """
    Return the parts of a state from a line's fields.
    """
    return Parts(
        typed(fields, "time_us", int), typed(fields, "actor", str), typed(fields, "cause", str),
        typed(fields, "schema", int), typed(fields, "ends_step", bool), payload,
    )  # fmt: skip


def typed(fields: dict[str, object], name: str, kind: type[Kind]) -> Kind:
    """
    Return a field of exactly a type.
    """
    value = fields[name]
    if type(value) is not kind:
        message = f"{name} must be of type {kind.__name__}"
        raise TypeError(message)
    return value


def import_log(source: Path, directory: Path) -> RecordingHeader:
    """
    Make a new log of exported lines; log id, positions, commits, epochs and head digest are
    restored. An anonymised recording that begins with position 1 becomes a log of its own.

    Nothing is left when it fails. Every event is decoded before it is taken.

    Raises:
        NotFound: There is no such file.
        Refused: There is something in the directory, or the file isn't a whole log.
        Corrupt: The lines are damaged, incomplete, or give another head digest.
    """
    refuse_used(directory)
    building = directory.with_name(f".{directory.name}.importing.{os.getpid()}")
    shutil.rmtree(building, ignore_errors=True)
    try:
        with opened(source) as file:
            header = read_header_line(file.readline(HEADER_MAX))
            has_no_log = header.log_id.startswith(ANONYMISED) and header.events is not None
            if header.first_position != 1 or not (header.head_digest or has_no_log):
                rule = (
                    "must be the export of a whole log; this is a recording or a part of one, from "
                    f"position {header.first_position}"
                )
                typed = shlex.quote(str(source))
                hint = f"It replays as it is: xce replay verify {typed}; xce simulate {typed}."
                raise Refused("file", rule, str(source), hint)
            _build(file, header, building)
        _put_in_place(building, directory)
    except Corrupt as error:
        error.path = error.path or str(source)
        error.hint = error.hint or f"Nothing was made of it. Export the log anew: {EXPORT}."
        raise
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return header


def _build(file: IO[bytes], header: RecordingHeader, directory: Path) -> None:
    """
    Build the log of the lines behind a header.
    """
    with LogBuilder(directory, log_id=header.log_id) as builder:
        position, commit = 0, []
        while line := file.readline(LINE_MAX):
            if line.startswith(SNAPSHOT_BEGINS):
                continue
            event = read_event_line(line, position=position + 1)
            stream, version, topic, state = event.row
            decode(event.position, str(stream), version, topic, state)
            position = event.position
            commit.append(event.row)
            if event.ends_commit:
                builder.add_commit(commit, epoch=event.epoch)
                commit = []
        if commit or position != header.events:
            raise Corrupt("truncated", position + 1, f"{header.events} whole events", position)
        builder.finish(epoch=header.epoch)
        head = builder.journal.head()
        if header.head_digest and head.digest.hex() != header.head_digest:
            raise Corrupt("chain", head.position, header.head_digest, head.digest.hex())


def _put_in_place(building: Path, directory: Path) -> None:
    """
    Give a finished log its name.
    """
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        if directory.exists():
            directory.rmdir()
        building.rename(directory)
    except OSError as error:
        raise unavailable(directory, error) from None


def write_rest(target: Path, log_id: str, found: Salvage) -> int:
    """
    Write the good events behind a loss to a file of JSON lines; return how many they are.
    """
    first = found.rest[0].header.first_position
    count = sum(each.header.events for each in found.rest)
    with created(target) as file:
        file.write(RecordingHeader(RECORDING_FORMAT, log_id, first, count, 0, "").line())
        for each in found.rest:
            for row in each.rows():
                is_last = each.header.is_last_of_commit and row[0] == each.header.last_position
                file.write(event_line(row, epoch=each.header.epoch, ends_commit=is_last))
    return count


@contextmanager
def opened(source: Path) -> Iterator[IO[bytes]]:
    """
    Open a file of lines for reading, decompressing what is compressed.

    Raises:
        Refused: It can't be read; as NotFound when there is none.
        Corrupt: It can't be decompressed.
    """
    try:
        file = source.open("rb")
    except OSError as error:
        raise unreadable("file", source, error) from None
    try:
        with file as raw:
            magic = raw.read(4)
            raw.seek(0)
            if magic[:2] == b"\x1f\x8b":
                yield io.BufferedReader(gzip.GzipFile(fileobj=raw))
            elif magic == b"\x28\xb5\x2f\xfd":
                decompressor = zstandard.ZstdDecompressor(max_window_size=1 << 27)
                yield io.BufferedReader(decompressor.stream_reader(raw))
            else:
                yield raw
    except (zstandard.ZstdError, EOFError, gzip.BadGzipFile) as error:
        raise Corrupt(
            "truncated", None, "a whole compressed file", str(error), str(source)
        ) from None


@contextmanager
def created(target: Path) -> Iterator[IO[bytes]]:
    """
    Create a file whole or not at all, compressed by its name, synced.

    Raises:
        NotFound: There is no such directory.
        Refused: It exists.
        StoreUnavailable: It can't be written.
    """
    if not target.parent.is_dir():
        raise NotFound("file", "must be in a directory that is there", str(target))
    # Its name is short: that of the target may be as long as a name can be.
    temporary = target.with_name(f".{target.name[:40]}.{os.getpid()}.new")
    try:
        if target.exists():
            raise Refused("file", "must not exist yet", str(target))
        with temporary.open("wb") as raw:
            if target.suffix == ".gz":
                with gzip.GzipFile(fileobj=raw, mode="wb", mtime=0, filename="") as packed:
                    yield cast("IO[bytes]", packed)
            elif target.suffix == ".zst":
                compressor = zstandard.ZstdCompressor(level=10, write_checksum=True)
                with compressor.stream_writer(raw, closefd=False) as packing:
                    yield packing
            else:
                yield raw
            raw.flush()
            os.fsync(raw.fileno())
        os.link(temporary, target)
    except FileExistsError:
        raise Refused("file", "must not exist yet", str(target)) from None
    except OSError as error:
        raise unavailable(target, error) from None
    finally:
        temporary.unlink(missing_ok=True)
