"""
Snapshots in files: a whole state at a position of the log, complete, compressed, checked.

The store is an aggregate recorder of the eventsourcing library whose stored events are snapshots:
the id is the schema of the state, the version the position.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

from eventsourcing.persistence import AggregateRecorder, IntegrityError, StoredEvent

from domain.errors import Corrupt
from store.os_errors import unavailable
from store.snapshot_files import (
    SNAPSHOT_FORMAT,
    SnapshotHeader,
    read_header,
    read_snapshot,
    remove_unfinished,
    write_snapshot,
)

TOPIC = "snapshot"
DAY_US = 86_400_000_000
_NAME = re.compile(r"(\d{20})-([0-9a-f]{16})\.snapshot")


class Snapshot(NamedTuple):
    """
    A state that was read and checked.
    """

    position: int
    schema: str
    state: bytes
    time_us: int
    path: Path


class Entry(NamedTuple):
    """
    A snapshot file as the directory lists it; nothing is checked.
    """

    position: int
    schema_key: str
    path: Path
    size: int
    is_pinned: bool


def schema_key(schema: str) -> str:
    """
    Return what stands for a schema in a file's name.
    """
    return hashlib.sha256(schema.encode()).hexdigest()[:16]


class SnapshotRecorder(AggregateRecorder):
    """
    Keep stored events in a file each: the id is a schema, the version a position.
    """

    def __init__(self, directory: Path, *, log_id: str = "") -> None:
        super().__init__()
        self.directory = directory
        self.log_id = log_id
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise unavailable(directory, error) from None

    def insert_events(
        self, stored_events: Sequence[StoredEvent], **kwargs: Any
    ) -> Sequence[int] | None:
        """
        Write snapshots, all or none.

        Args:
            stored_events: What to write.
            kwargs: ``chain_digest`` and ``time_us`` for the headers.
        """
        written: list[Path] = []
        try:
            for event in stored_events:
                path = self.path_of(event.originator_id, event.originator_version)
                write_snapshot(path, self._header(event, **kwargs), event.state)
                written.append(path)
        except FileExistsError:
            self._undo(written)
            message = f"there is a snapshot {event.originator_id} at {event.originator_version}"
            raise IntegrityError(message) from None
        except OSError as error:
            self._undo(written)
            raise unavailable(self.directory, error) from None
        return None

    @staticmethod
    def _undo(written: Iterable[Path]) -> None:
        """
        Take back what was written.
        """
        for path in written:
            path.unlink(missing_ok=True)

    def _header(
        self, event: StoredEvent, *, chain_digest: bytes = b"", time_us: int = 0, **_: Any
    ) -> SnapshotHeader:
        """
        Return the header of a stored event.
        """
        return SnapshotHeader(
            SNAPSHOT_FORMAT, self.log_id, _schema_text(event.originator_id),
            event.originator_version, chain_digest.hex(), event.topic, time_us, len(event.state),
        )  # fmt: skip

    def path_of(self, schema: UUID | str, position: int) -> Path:
        """
        Return the file of a schema at a position.
        """
        return self.directory / f"{position:020d}-{schema_key(_schema_text(schema))}.snapshot"

    def positions(self, schema: UUID | str) -> list[int]:
        """
        Return the positions at which there are files of a schema, ascending.
        """
        key = schema_key(_schema_text(schema))
        return sorted(
            entry.position for entry in entries_of(self.directory) if entry.schema_key == key
        )

    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredEvent]:
        """
        Return the snapshots of a schema by position; a bad one raises.
        """
        found: list[StoredEvent] = []
        for position in sorted(self.positions(originator_id), reverse=desc):
            if (gt is not None and position <= gt) or (lte is not None and position > lte):
                continue
            if limit is not None and len(found) >= limit:
                break
            header, state = read_snapshot(self.path_of(originator_id, position))
            if header.position != position or header.schema != _schema_text(originator_id):
                raise Corrupt(
                    "order",
                    position,
                    f"{originator_id} at {position}",
                    f"{header.schema} at {header.position}",
                )
            found.append(StoredEvent(originator_id, position, header.topic, state))
        return found


def _schema_text(schema: UUID | str) -> str:
    """
    Return a schema's name; the library's suites use UUIDs too.
    """
    return f"uuid:{schema}" if isinstance(schema, UUID) else schema


def entries_of(directory: Path) -> Iterator[Entry]:
    """
    Yield what the directory lists, in order of position.
    """
    try:
        names = sorted(path.name for path in directory.iterdir())
    except FileNotFoundError:
        return
    for name in names:
        match = _NAME.fullmatch(name)
        if match is None:
            continue
        path = directory / name
        with suppress(FileNotFoundError):
            size = path.stat().st_size
            yield Entry(int(match[1]), match[2], path, size, pin_of(path).exists())


def pin_of(path: Path) -> Path:
    """
    Return the file whose being there pins a snapshot.
    """
    return path.with_suffix(".pinned")


class SnapshotStore:
    """
    Keep the snapshots of one log's state in a directory beside it.

    Args:
        directory: Where; made if need be.
        log_id: The log's identity.
        keep: After each new one only so many of the newest of its schema stay; all when None.
        daily: For so many of the last days the last one of the day stays too.
    """

    def __init__(
        self, directory: str | Path, *, log_id: str, keep: int | None = None, daily: int = 0
    ) -> None:
        self.directory = Path(directory)
        self.log_id = log_id
        self._keep = keep
        self._daily = daily
        self.problems: list[Corrupt] = []
        """What the last `newest_good` skipped, newest first."""
        self._recorder = SnapshotRecorder(self.directory, log_id=log_id)
        remove_unfinished(self.directory)

    def put(
        self, *, position: int, schema: str, state: bytes, chain_digest: bytes, time_us: int
    ) -> Path:
        """
        Keep a state; return its file. One that is there already, whole, is left as it is; a bad one
        is replaced.

        Raises:
            StoreUnavailable: It can't be written.
        """
        path = self._recorder.path_of(schema, position)
        event = StoredEvent(schema, position, TOPIC, state)
        try:
            self._recorder.insert_events([event], chain_digest=chain_digest, time_us=time_us)
        except IntegrityError:
            if self._is_same(path, state, chain_digest):
                return path
            path.unlink(missing_ok=True)
            self._recorder.insert_events([event], chain_digest=chain_digest, time_us=time_us)
        if self._keep is not None:
            self.prune(self._keep, daily=self._daily, schema=schema)
        return path

    def _is_same(self, path: Path, state: bytes, chain_digest: bytes) -> bool:
        """
        Say whether a file holds this very state of this very log.
        """
        try:
            header, there = read_snapshot(path)
        except Corrupt:
            return False
        return (
            there == state
            and header.log_id == self.log_id
            and header.chain_digest == chain_digest.hex()
        )

    def newest_good(
        self, *, schema: str, head: int, digest_at: Callable[[int], bytes], upto: int | None = None
    ) -> Snapshot | None:
        """
        Return the newest good snapshot of a schema at or before a position, None when there is
        none.

        Bad ones are skipped; `problems` names them.

        Args:
            schema: Only states of it count.
            head: The log's last position: a later snapshot is of another history.
            digest_at: Gives the log's digest at a position.
            upto: The position, the log's end when None.
        """
        self.problems = []
        for position in reversed(self._recorder.positions(schema)):
            if upto is not None and position > upto:
                continue
            path = self._recorder.path_of(schema, position)
            try:
                header, state = self._checked(path, schema, position, head, digest_at)
            except Corrupt as problem:
                self.problems.append(problem)
                continue
            return Snapshot(position, schema, state, header.time_us, path)
        return None

    def _checked(
        self, path: Path, schema: str, position: int, head: int, digest_at: Callable[[int], bytes]
    ) -> tuple[SnapshotHeader, bytes]:
        """
        Read a snapshot and hold it against the log.
        """
        header, state = read_snapshot(path)
        if header.log_id != self.log_id:
            raise Corrupt(
                "foreign", position, f"the log {self.log_id}", f"the log {header.log_id}", str(path)
            )
        if (header.schema, header.position) != (schema, position):
            raise Corrupt(
                "order",
                position,
                f"{schema} at {position}",
                f"{header.schema} at {header.position}",
                str(path),
            )
        if position > head:
            raise Corrupt("foreign", position, f"at most the log's end {head}", position, str(path))
        digest = digest_at(position).hex()
        if header.chain_digest != digest:
            raise Corrupt("chain", position, digest, header.chain_digest, str(path))
        return header, state

    def entries(self) -> list[Entry]:
        """
        Return all snapshots of all schemas, by position.
        """
        return list(entries_of(self.directory))

    def check(self, *, head: int, digest_at: Callable[[int], bytes]) -> list[tuple[Entry, str]]:
        """
        Hold every snapshot of every schema against the log; return each with "" or what is wrong.
        """
        found = []
        for entry in self.entries():
            try:
                header, _ = read_snapshot(entry.path)
                self._checked(entry.path, header.schema, entry.position, head, digest_at)
                if schema_key(header.schema) != entry.schema_key:
                    raise Corrupt("order", entry.position, entry.schema_key, header.schema)  # noqa: TRY301
            except Corrupt as error:
                found.append((entry, error.text()))
            else:
                found.append((entry, ""))
        return found

    def pin(self, position: int, *, is_pinned: bool = True) -> list[Path]:
        """
        Keep the snapshots at a position from being pruned, or let them go; return which these are.
        """
        changed = [entry.path for entry in self.entries() if entry.position == position]
        for path in changed:
            if is_pinned:
                pin_of(path).touch()
            else:
                pin_of(path).unlink(missing_ok=True)
        return changed

    def prune(self, keep: int = 3, *, daily: int = 0, schema: str | None = None) -> list[Path]:
        """
        Remove snapshots, of each schema or of one; return what was removed.

        Args:
            keep: How many of the newest stay.
            daily: For how many of the last days (of log time) the last one of the day stays too.
            schema: Only this one.
        """
        removed = []
        by_schema: dict[str, list[Entry]] = {}
        for entry in self.entries():
            if schema is None or entry.schema_key == schema_key(schema):
                by_schema.setdefault(entry.schema_key, []).append(entry)
        for entries in by_schema.values():
            staying = {entry.path for entry in entries[max(0, len(entries) - keep) :]}
            staying |= _last_of_days(entries, daily)
            for entry in entries:
                if entry.path not in staying and not entry.is_pinned:
                    entry.path.unlink(missing_ok=True)
                    removed.append(entry.path)
        return removed


def _last_of_days(entries: list[Entry], days: int) -> set[Path]:
    """
    Return the last snapshot of each of the last days that have one; bad ones don't count.
    """
    last: dict[int, Path] = {}
    for entry in entries if days else []:
        with suppress(Corrupt):
            last[read_header(entry.path).time_us // DAY_US] = entry.path
    return {last[day] for day in sorted(last)[-days:]} if days else set()
