"""
Build a log anew from frames: the way of repair, import and compacting.

Frames are taken as they are, so positions, commits, epochs and the head digest stay what they were;
the index is made again from the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

from store.embedded.environment import Environment, acquire
from store.embedded.frames import Header, decode_columns, raw_payload, read_header
from store.embedded.journal import Journal
from store.embedded.layout import KEY_EPOCH, META, number_bytes
from store.embedded.rows import Row
from store.embedded.settings import MAP_SIZE, Settings
from store.info import refuse_used
from store.lock import WriterLock
from store.translation import translated

BATCH_EVENTS = 20_000
"""About how many events one transaction takes."""


class LogBuilder:
    """
    Write a new log of frames that exist; use it as a context manager.

    Raises:
        Refused: There is something in the directory already.
    """

    def __init__(self, directory: Path, *, log_id: str, map_size: int = MAP_SIZE) -> None:
        refuse_used(directory)
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.directory = directory.resolve()
        self._lock = WriterLock(self.directory)
        try:
            settings = Settings(self.directory, map_size=map_size)
            self._environment = acquire(settings, create=True, log_id=log_id)
        except BaseException:
            self._lock.release()
            raise
        self.journal = Journal(self._environment)
        self._waiting: list[tuple[Header, bytes]] = []
        self._waiting_events = 0
        self._epoch = 0

    def add(self, frame: bytes) -> None:
        """
        Append one frame.

        Raises:
            Corrupt: It is damaged, or doesn't follow the one before it.
        """
        header = read_header(frame)
        self._waiting.append((header, frame))
        self._waiting_events += header.events
        self._epoch = max(self._epoch, header.epoch)
        if header.is_last_of_commit and self._waiting_events >= BATCH_EVENTS:
            self._flush()

    def add_commit(self, rows: Sequence[Row], *, epoch: int) -> None:
        """
        Append rows as one commit of an epoch, cut into frames as they were cut first.
        """
        self._flush()
        self._epoch = max(self._epoch, epoch)
        with translated():
            self.journal.insert_rows(rows, written_epoch=epoch)

    def add_all(self, frames: Iterable[bytes]) -> None:
        """
        Append frames.
        """
        for frame in frames:
            self.add(frame)

    def _flush(self) -> None:
        """
        Write what waits in one transaction.
        """
        if not self._waiting:
            return
        frames = []
        for header, frame in self._waiting:
            raw = raw_payload(frame, header)
            columns = decode_columns(raw, header.events, position=header.first_position)
            frames.append((header, columns, raw, frame))
        with translated():
            self.journal.adopt(frames)
        self._waiting, self._waiting_events = [], 0

    def finish(self, *, epoch: int = 0) -> Environment:
        """
        Write the rest and the epoch, which never falls; return the environment, still open.
        """
        self._flush()
        value = number_bytes(max(epoch, self._epoch))
        with translated():
            meta = self._environment.database(META)
            self._environment.write(lambda transaction: transaction.put(KEY_EPOCH, value, db=meta))
        return self._environment

    def close(self) -> None:
        """
        Close the new log.
        """
        self._environment.release()
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
