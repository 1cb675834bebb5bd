"""
The launcher's journal: every attempt that it was asked to start, until the scheduler has taken its
end.

One record a line, its checksum first: ``CRC32 JSON``. A wish to start is on the disk before the
program starts, an end before anybody is told; both are synced once for all that came together. What
a crash left half written at the end of the file never was told to anybody and is dropped.
"""

from __future__ import annotations

import json
import os
import zlib
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from domain.errors import Corrupt
from tools.agent.messages import Attempt, AttemptKey, Phase, attempt_of, plain

COMPACT_BYTES_MIN = 1 << 20
FORGOTTEN_KEPT = 20_000
"""
So many forgotten attempts are still known, so that a late repetition of their start starts nothing.
"""


class Spool:
    """
    Keep the attempts of one worker in memory and in its journal.

    Nothing written is safe before `sync`. Owned by the launcher alone, which holds a lock on the
    directory.

    Args:
        path: The journal; made when it isn't there.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.attempts: dict[AttemptKey, Attempt] = {}
        self.last_order = 0
        self.boot_id = ""
        self._forgotten: deque[AttemptKey] = deque(maxlen=FORGOTTEN_KEPT)
        self._is_forgotten: set[AttemptKey] = set()
        good_bytes = self._load()
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.ftruncate(self._file, good_bytes)
        self._bytes = good_bytes
        self._is_dirty = False

    # --------------------------------------------------------------------------------- what happens

    def knows(self, key: AttemptKey) -> bool:
        """
        Tell whether a start of this attempt was ever asked for.
        """
        return key in self.attempts or key in self._is_forgotten

    def put(self, *attempts: Attempt) -> None:
        """
        Write the newest phase of attempts.
        """
        for attempt in attempts:
            self._apply("attempt", attempt)
        self._write(("attempt", plain(attempt)) for attempt in attempts)

    def order_done(self, order_number: int) -> None:
        """
        Write that an order was carried out; older ones count as carried out too.
        """
        self._apply("order", order_number)
        self._write([("order", order_number)])

    def booted(self, boot_id: str) -> None:
        """
        Write which boot of the machine the attempts that follow belong to.
        """
        self._apply("boot", boot_id)
        self._write([("boot", boot_id)])

    def forget(self, keys: list[AttemptKey]) -> None:
        """
        Drop attempts whose end the scheduler has taken, and keep only that they were there.
        """
        known = [
            key for key in keys if key in self.attempts and self.attempts[key].phase is Phase.ENDED
        ]
        for key in known:
            self._apply("forget", key)
        self._write(("forget", list(key)) for key in known)
        if self._bytes > COMPACT_BYTES_MIN and self._bytes > 512 * (
            len(self.attempts) + FORGOTTEN_KEPT // 8
        ):
            self._compact()

    def sync(self) -> None:
        """
        Wait until everything written is on the disk.
        """
        if self._is_dirty:
            os.fdatasync(self._file)
            self._is_dirty = False

    def close(self) -> None:
        """
        Sync and close the journal.
        """
        self.sync()
        os.close(self._file)

    # ---------------------------------------------------------------------------------- the journal

    def _write(self, records: Any) -> None:
        lines = b"".join(_line(kind, data) for kind, data in records)
        if lines:
            _write_all(self._file, lines)
            self._bytes += len(lines)
            self._is_dirty = True

    def _apply(self, kind: str, data: Any) -> None:
        if kind == "attempt":
            self.attempts[data.key] = data
        elif kind == "forget":
            self.attempts.pop(data, None)
            self._remember_forgotten(data)
        elif kind == "order":
            self.last_order = max(self.last_order, data)
        elif kind == "boot":
            self.boot_id = data

    def _remember_forgotten(self, key: AttemptKey) -> None:
        if len(self._forgotten) == FORGOTTEN_KEPT:
            self._is_forgotten.discard(self._forgotten[0])
        self._forgotten.append(key)
        self._is_forgotten.add(key)

    def _load(self) -> int:
        """
        Read the journal and return how many of its bytes are good.
        """
        raw = self._path.read_bytes() if self._path.exists() else b""
        good_bytes = 0
        for kind, data, end in _records(raw, self._path):
            self._apply(kind, _parsed(kind, data))
            good_bytes = end
        return good_bytes

    def _compact(self) -> None:
        """
        Write the journal anew with what still matters, and put it in the old one's place.
        """
        fresh = self._path.with_suffix(".new")
        file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        lines = b"".join(_line(kind, data) for kind, data in self._live_records())
        _write_all(file, lines)
        os.fsync(file)
        fresh.rename(self._path)
        _sync_directory(self._path.parent)
        os.close(self._file)
        self._file, self._bytes, self._is_dirty = file, len(lines), False

    def _live_records(self) -> Iterator[tuple[str, Any]]:
        yield "boot", self.boot_id
        yield "order", self.last_order
        for key in list(self._forgotten)[-FORGOTTEN_KEPT // 8 :]:
            yield "forget", list(key)
        for attempt in self.attempts.values():
            yield "attempt", plain(attempt)


def _line(kind: str, data: Any) -> bytes:
    body = json.dumps([kind, data], separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(body), body)


def _write_all(file: int, lines: bytes) -> None:
    view = memoryview(lines)
    while view:
        view = view[os.write(file, view) :]


def _records(raw: bytes, path: Path) -> Iterator[tuple[str, Any, int]]:
    """
    Yield kind, data and end of each good record; stop at a torn tail.

    Raises:
        Corrupt: A record that isn't the last one doesn't check.
    """
    start = 0
    while start < len(raw):
        end = raw.find(b"\n", start) + 1
        checksum, _, body = raw[start:end].rstrip(b"\n").partition(b" ")
        if end == 0 or checksum != b"%08x" % zlib.crc32(body):
            if raw.find(b"\n", start) not in (-1, len(raw) - 1):
                raise Corrupt(
                    "checksum",
                    found=f"byte {start}",
                    path=str(path),
                    hint="Move the file away; attempts that it knew will be started again.",
                )
            return
        kind, data = json.loads(body)
        yield kind, data, end
        start = end


def _parsed(kind: str, data: Any) -> Any:
    if kind == "attempt":
        return attempt_of(data)
    return AttemptKey(*data) if kind == "forget" else data


def _sync_directory(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
