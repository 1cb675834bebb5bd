"""
A snapshot's file: a zstandard skippable frame with a JSON header, then one zstandard frame.

``zstd -dc`` reads it as it is. ``FORMAT.md`` describes each byte.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
import struct
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import IO

import zstandard

from domain.errors import Corrupt
from store.embedded.marker import sync_directory

SNAPSHOT_FORMAT = 1
_SKIPPABLE = 0x184D2A50
_PREFIX = struct.Struct("<II")
HEADER_MAX = 64 << 10
STATE_MAX = 4 << 30
WINDOW_MAX = 1 << 27
LEVEL = 3


@dataclass(frozen=True, slots=True)
class SnapshotHeader:
    """
    What stands before a snapshot's state.

    Args:
        format: Version of the file's form.
        log_id: The log that the state was folded from.
        schema: Schema of the state; another one is never read as this one.
        position: The last event in it.
        chain_digest: Digest of the log up to there, in hexadecimal.
        topic: Name of the kind of content.
        time_us: Log time at the position.
        size: Bytes of the uncompressed state.
        stored_size: Bytes of the compressed state, to the end of the file.
        digest: SHA-256 over all other fields and the uncompressed state, in hexadecimal.
    """

    format: int
    log_id: str
    schema: str
    position: int
    chain_digest: str
    topic: str
    time_us: int
    size: int
    stored_size: int = 0
    digest: str = ""

    def digest_with(self, state: bytes) -> str:
        """
        Return the digest over the header and a state.
        """
        others = {**asdict(self), "digest": ""}
        hashed = hashlib.sha256(json.dumps(others, sort_keys=True).encode() + b"\n")
        hashed.update(state)
        return hashed.hexdigest()


def write_snapshot(path: Path, header: SnapshotHeader, state: bytes) -> None:
    """
    Write a snapshot durably: whole under its name, or not at all.

    Raises:
        FileExistsError: There is a file of that name.
        OSError: It can't be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
    compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True, write_content_size=True)
    stored = compressor.compress(state)
    header = replace(header, stored_size=len(stored))
    header = replace(header, digest=header.digest_with(state))
    encoded = json.dumps(asdict(header), sort_keys=True).encode()
    try:
        with _opened_new(temporary) as file:
            file.write(_PREFIX.pack(_SKIPPABLE, len(encoded)) + encoded)
            file.write(stored)
            file.flush()
            os.fsync(file.fileno())
            # A link never replaces: unique by position and schema holds even between processes.
            os.link(temporary, path)
    finally:
        with suppress(OSError):
            temporary.unlink()
    sync_directory(path.parent)


def _opened_new(path: Path) -> IO[bytes]:
    """
    Return an empty file that is locked while it is written, so that nobody takes it for one that a
    killed writer left.
    """
    while True:
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        file = os.fdopen(number, "wb")
        fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(number).st_nlink:
            return file
        file.close()  # Somebody removed it before it was locked.


def remove_unfinished(directory: Path) -> None:
    """
    Remove what writers left that were killed; of one that is still at it nothing.
    """
    for path in directory.glob(".*.new"):
        with suppress(FileNotFoundError, BlockingIOError), path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()


def read_header(path: Path) -> SnapshotHeader:
    """
    Read the header of a snapshot file.

    Raises:
        Corrupt: There is none, or of a newer format.
    """
    try:
        with path.open("rb") as file:
            return _read_header(file, path)
    except OSError as error:
        raise Corrupt("truncated", None, "a readable file", str(error), str(path)) from None


def _read_header(file: io.BufferedReader, path: Path) -> SnapshotHeader:
    """
    Read the header at the beginning of an open file.
    """
    prefix = file.read(_PREFIX.size)
    if len(prefix) < _PREFIX.size:
        raise Corrupt("truncated", None, "a header", f"{len(prefix)} bytes", str(path))
    magic, length = _PREFIX.unpack(prefix)
    if magic != _SKIPPABLE or length > HEADER_MAX:
        raise Corrupt(
            "foreign", None, "a snapshot", f"magic {magic:#x}, header of {length} bytes", str(path)
        )
    encoded = file.read(length)
    try:
        data = json.loads(encoded)
        version = data["format"]
        if isinstance(version, int) and version > SNAPSHOT_FORMAT:
            raise Corrupt("newer", None, f"snapshot format {SNAPSHOT_FORMAT}", version, str(path))
        header = SnapshotHeader(**data)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        kind = "truncated" if len(encoded) < length else "checksum"
        raise Corrupt(
            kind, None, "a header", f"{type(error).__name__}: {error}"[:200], str(path)
        ) from None
    for field in fields(SnapshotHeader):
        if type(getattr(header, field.name)).__name__ != field.type:
            raise Corrupt(
                "checksum",
                None,
                f"{field.name} of type {field.type}",
                repr(getattr(header, field.name))[:80],
                str(path),
            )
    return header


def read_snapshot(path: Path) -> tuple[SnapshotHeader, bytes]:
    """
    Read and check a snapshot file; no more than its stated size is ever allocated.

    Raises:
        Corrupt: Anything about it is wrong.
    """
    try:
        with path.open("rb") as file:
            header = _read_header(file, path)
            if not 0 <= header.size <= STATE_MAX:
                raise Corrupt(
                    "checksum", None, f"at most {STATE_MAX} bytes", header.size, str(path)
                )
            rest = path.stat().st_size - file.tell()
            if rest != header.stored_size:
                raise Corrupt(
                    "truncated", None, f"{header.stored_size} bytes", f"{rest} bytes", str(path)
                )
            state = _decompress(file, header.size, path)
    except OSError as error:
        raise Corrupt("truncated", None, "a readable file", str(error), str(path)) from None
    if len(state) != header.size:
        raise Corrupt("truncated", None, f"{header.size} bytes", f"{len(state)} bytes", str(path))
    digest = header.digest_with(state)
    if digest != header.digest:
        raise Corrupt("checksum", None, header.digest, digest, str(path))
    return header, state


def _decompress(file: io.BufferedReader, size: int, path: Path) -> bytes:
    """
    Decompress the rest of a file, at most one byte more than *size*.
    """
    decompressor = zstandard.ZstdDecompressor(max_window_size=WINDOW_MAX)
    pieces, rest = [], size + 1
    try:
        with decompressor.stream_reader(file) as reader:
            while rest > 0 and (piece := reader.read(min(rest, 1 << 20))):
                pieces.append(piece)
                rest -= len(piece)
    except (zstandard.ZstdError, MemoryError) as error:
        raise Corrupt(
            "checksum", None, "a state that decompresses", str(error), str(path)
        ) from None
    return b"".join(pieces)
