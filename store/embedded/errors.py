"""
Errors of the engine, translated to those that the eventsourcing library promises.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from uuid import UUID

import lmdb
from eventsourcing.persistence import (
    DataError,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    PersistenceError,
    ProgrammingError,
)

_FAMILIES: tuple[
    tuple[type[lmdb.Error] | tuple[type[lmdb.Error], ...], type[PersistenceError]], ...
] = (
    ((lmdb.MapFullError, lmdb.MapResizedError, lmdb.ReadersFullError), OperationalError),
    ((lmdb.DiskError, lmdb.LockError, lmdb.MemoryError, lmdb.TxnFullError), OperationalError),
    (lmdb.BadValsizeError, DataError),
    (lmdb.KeyExistsError, IntegrityError),
    ((lmdb.CorruptedError, lmdb.PageNotFoundError, lmdb.IncompatibleError), InternalError),
    ((lmdb.InvalidError, lmdb.VersionMismatchError), InterfaceError),
    (lmdb.ReadonlyError, NotSupportedError),
    (
        (lmdb.BadTxnError, lmdb.BadDbiError, lmdb.DbsFullError, lmdb.InvalidParameterError),
        ProgrammingError,
    ),
)

SPACE_LOW_BYTES = 1 << 20
"""With less than this free, an I/O error of a write is taken for a full disk: LMDB says EIO for
both."""


class VersionsTakenError(IntegrityError):
    """
    Say which stream versions of an insert were there already, or came twice in it.
    """

    def __init__(self, conflicts: Sequence[tuple[str | UUID, int]]) -> None:
        first = ", ".join(f"{stream} version {version}" for stream, version in conflicts[:3])
        more = f" and {len(conflicts) - 3} more" if len(conflicts) > 3 else ""
        super().__init__(f"already recorded: {first}{more}")
        self.conflicts = list(conflicts)


class EpochPassedError(OperationalError):
    """
    Say that another writer took the log over: its epoch is higher than ours.
    """

    def __init__(self, ours: int, found: int) -> None:
        super().__init__(f"another writer took over: epoch {found} instead of {ours}")
        self.ours = ours
        self.found = found


class MapFullError(OperationalError):
    """
    Say that the map has no room for a commit; nothing of it was written.
    """


class DiskFullError(OperationalError):
    """
    Say that the disk, a quota or a file size limit has no room for a commit; nothing of it counts.
    """


class CommitUnknownError(OperationalError):
    """
    Say that the disk failed during a commit, this one or one before: only a new start can tell
    whether it happened.
    """


@contextmanager
def translated(path: str, map_size: int) -> Iterator[None]:
    """
    Translate the engine's errors.
    """
    try:
        yield
    except lmdb.Error as error:
        raise translation(error, path, map_size) from error


def translation(error: lmdb.Error, path: str, map_size: int) -> PersistenceError:
    """
    Return the library's error for one of the engine's.
    """
    if isinstance(error, lmdb.MapFullError):
        return MapFullError(f"event log {path} is full (map size {map_size}); raise LMDB_MAP_SIZE")
    if isinstance(error, lmdb.ReadersFullError):
        return OperationalError(f"reader table of {path} is full; raise LMDB_MAX_READERS ({error})")
    if getattr(error, "code", 0) == errno.ENOSPC or type(error) is lmdb.DiskError:
        return disk_error(error, path)
    if getattr(error, "code", None) == errno.EIO:
        return disk_error(error, path)
    if getattr(error, "code", None) == errno.EFBIG:
        return DiskFullError(
            f"event log {path} reached the limit of a file's size (see ulimit -f): {error}"
        )
    if isinstance(error, lmdb.PanicError):
        # A meta page couldn't be written: the file is sound, but the engine takes no more of us.
        return CommitUnknownError(f"an earlier write to {path} failed: {error}")
    for kinds, family in _FAMILIES:
        if isinstance(error, kinds):
            return family(f"{path}: {error}")
    if getattr(error, "code", None) == 0:
        return ProgrammingError(f"{path}: {error}")
    return OperationalError(f"{path}: {error}")


def disk_error(error: Exception, path: str) -> PersistenceError:
    """
    Tell a full disk from a failing one: both come as an I/O error.
    """
    free = free_bytes(path)
    if getattr(error, "code", None) == errno.ENOSPC or free < SPACE_LOW_BYTES:
        return DiskFullError(
            f"no space left for {path} ({free >> 10} KiB free); the last commit was not recorded"
        )
    return CommitUnknownError(
        f"I/O error in {path}: {error}; whether the last commit was recorded is unknown"
    )


def free_bytes(path: str) -> int:
    """
    Return how much an ordinary user may still write beside a file, a large number when that can't
    be told.
    """
    try:
        found = os.statvfs(path)
    except OSError:
        return 1 << 62
    return found.f_bavail * found.f_frsize
