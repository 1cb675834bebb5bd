"""
Segment files: frames that were moved out of the embedded store, compressed harder, for good.

A segment holds consecutive frames of whole commits and a table of where each lies, so that any
position is one short read away. The frames stand as they are described in ``FORMAT.md``, only with
a payload that was compressed again; their digests are what they were.
"""

from __future__ import annotations

import bisect
import hashlib
import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from domain.errors import Corrupt
from store.embedded.frames import join_frame, pack, raw_payload, read_header
from store.embedded.marker import sync_directory
from store.os_errors import unavailable

ARCHIVE = "archive"
SEGMENT_FORMAT = 1
LEVEL = 12
_HEAD = struct.Struct(">4sBxxxQQI32s32s")
_ENTRY = struct.Struct(">QQI")
_CRC = struct.Struct(">I")
_MAGIC = b"XSEG"


@dataclass(frozen=True, slots=True)
class Segment:
    """
    Describe a segment file: its anchor in the log.

    Args:
        first_position: Position of its first event.
        last_position: Position of its last event.
        frames: How many frames.
        previous: The log's digest before it, in hexadecimal.
        digest: The log's digest at its end, in hexadecimal.
        file: Its name in the archive directory.
        bytes: Its size.
        sha256: Digest of the file, in hexadecimal.
        is_pruned: Whether the file was removed on purpose.
    """

    first_position: int
    last_position: int
    frames: int
    previous: str
    digest: str
    file: str
    bytes: int
    sha256: str
    is_pruned: bool = False


def write_segment(directory: Path, frames: Iterable[bytes]) -> Segment:
    """
    Write frames to a new segment file, durably; return its description.

    Raises:
        Corrupt: A frame is damaged.
        StoreUnavailable: The file can't be written.
    """
    packed = [recompressed(frame) for frame in frames]
    headers = [read_header(frame) for frame in packed]
    first, last = headers[0], headers[-1]
    offset = _HEAD.size + _ENTRY.size * len(packed) + _CRC.size
    table = bytearray(
        _HEAD.pack(
            _MAGIC, SEGMENT_FORMAT, first.first_position, last.last_position, len(packed),
            first.previous, last.digest,
        )
    )  # fmt: skip
    for header, frame in zip(headers, packed, strict=True):
        table += _ENTRY.pack(header.first_position, offset, len(frame))
        offset += len(frame)
    content = b"".join((table, _CRC.pack(zlib.crc32(table)), *packed))
    name = f"{first.first_position:020d}-{last.last_position:020d}.segment"
    _write_durably(directory / name, content)
    return Segment(
        first.first_position, last.last_position, len(packed), first.previous.hex(),
        last.digest.hex(), name, len(content), hashlib.sha256(content).hexdigest(),
    )  # fmt: skip


def recompressed(frame: bytes) -> bytes:
    """
    Return a checked frame with its payload compressed harder; its meaning and digest stay.
    """
    header = read_header(frame)
    raw = raw_payload(frame, header)
    codec, number, stored = pack(raw, level=LEVEL)
    changed = header._replace(codec=codec, dictionary_id=number, stored_length=len(stored))
    return join_frame(changed, stored)


def _write_durably(path: Path, content: bytes) -> None:
    """
    Write a file whole or not at all; one of the same name is replaced.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        temporary.touch(mode=0o600)
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_directory(path.parent)
    except OSError as error:
        raise unavailable(path, error) from None
    finally:
        temporary.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class Table:
    """
    Where the frames of a segment lie.
    """

    firsts: tuple[int, ...]
    offsets: tuple[int, ...]
    lengths: tuple[int, ...]


def read_table(path: Path) -> Table:
    """
    Read and check the table of a segment file.

    Raises:
        Corrupt: It is missing, damaged or of a newer format.
        StoreUnavailable: It can't be read.
    """
    with _opened(path) as file:
        found = os.fstat(file.fileno())
    return _read_table(path, found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=16)
def _read_table(path: Path, size: int, modified: int) -> Table:  # noqa: ARG001 - part of the key
    """
    Read a table; kept as long as the file stays as it is.
    """
    with _opened(path) as file:
        head = file.read(_HEAD.size)
        if len(head) < _HEAD.size or head[:4] != _MAGIC:
            raise Corrupt("foreign", None, "a segment file", repr(head[:4]), str(path))
        _, version, _, _, count, _, _ = _HEAD.unpack(head)
        if version != SEGMENT_FORMAT:
            raise Corrupt("newer", None, f"segment format {SEGMENT_FORMAT}", version, str(path))
        if count * _ENTRY.size > size:
            raise Corrupt(
                "truncated", None, f"a table of {count} entries", f"{size} bytes", str(path)
            )
        entries = file.read(count * _ENTRY.size)
        crc = file.read(_CRC.size)
    if len(crc) < _CRC.size or _CRC.unpack(crc)[0] != zlib.crc32(head + entries):
        raise Corrupt("checksum", None, "a table that checks", "another one", str(path))
    firsts, offsets, lengths = zip(*_ENTRY.iter_unpack(entries), strict=True)
    return Table(firsts, offsets, lengths)


def frames_of(path: Path, position: int) -> Iterator[tuple[int, bytes]]:
    """
    Yield first position and bytes of the frames of a segment from the one with a position on.

    Raises:
        Corrupt: The file is missing or its table is damaged.
        StoreUnavailable: It can't be read.
    """
    table = read_table(path)
    at = max(0, bisect.bisect_right(table.firsts, position) - 1)
    with _opened(path) as file:
        for first, offset, length in zip(
            table.firsts[at:], table.offsets[at:], table.lengths[at:], strict=True
        ):
            file.seek(offset)
            yield first, file.read(length)


def _opened(path: Path) -> BinaryIO:
    """
    Open a segment file.
    """
    try:
        return path.open("rb")
    except FileNotFoundError as error:
        raise Corrupt("gap", None, "a segment file", str(error), str(path)) from None
    except OSError as error:
        raise unavailable(path, error) from None


def check_file(path: Path, segment: Segment) -> None:
    """
    Hold a segment file against its anchor.

    Raises:
        Corrupt: It is missing or another one.
    """
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise Corrupt(
            "gap", segment.first_position, "a segment file", str(error), str(path)
        ) from None
    if digest != segment.sha256:
        raise Corrupt("checksum", segment.first_position, segment.sha256, digest, str(path))
