"""
Let the engine open a store's files, with errors of ours.
"""

from __future__ import annotations

import errno
import os
from functools import partial

import lmdb

from domain.errors import Corrupt, StoreUnavailable
from store.embedded.metas import BLANK_BYTES_MAX
from store.embedded.preflight import DATA_FILE, is_read_only_medium
from store.embedded.settings import Settings
from store.os_errors import unavailable

ENGINE_LOCK_FILE = "lock.mdb"
READER_BYTES = 64
LOCK_HEAD_BYTES = 192
DATABASES_MAX = 128
ENGINE_VERSION = 0
"""New files are of engine 0.9, which every tool reads; an existing file says its own."""


def open_engine(settings: Settings) -> lmdb.Environment:
    """
    Let the engine open the files of a store.

    Raises:
        Corrupt: They aren't the engine's.
        StoreUnavailable: They can't be opened, or the disk is full.
    """
    path = str(settings.path)
    is_new = not (settings.path / DATA_FILE).exists()
    is_locked = not (settings.readonly and is_read_only_medium(settings.path))
    if is_locked:
        reserve_blocks(settings, is_new=is_new)
    opener = partial(lmdb.open, lib_version=ENGINE_VERSION) if is_new else lmdb.open
    try:
        return opener(
            path,
            map_size=settings.map_size,
            subdir=True,
            readonly=settings.readonly,
            create=not settings.readonly,
            metasync=settings.durability == "full",
            sync=settings.durability != "none",
            mode=settings.mode,
            max_readers=settings.readers_max,
            max_dbs=DATABASES_MAX,
            lock=is_locked,
        )
    except lmdb.LockError as error:
        hint = "Processes in different containers (pid namespaces) can't share a log."
        raise StoreUnavailable("lock", path, str(error), hint) from None
    except lmdb.MemoryError as error:
        hint = "Lower LMDB_MAP_SIZE or raise ulimit -v."
        raise StoreUnavailable("address space", path, str(error), hint) from None
    except lmdb.InvalidError as error:
        raise Corrupt("foreign", None, "an LMDB data file", str(error), path) from None
    except lmdb.Error as error:
        raise unavailable(path, error) from None


def reserve_blocks(settings: Settings, *, is_new: bool) -> None:
    """
    Give a new lock file its disk blocks before the engine maps it; look for those of a new store.

    The engine only sets the length of its lock file: on a full disk the first write to the map
    would be answered with SIGBUS, which ends the process without a word.

    Args:
        settings: Where, and how many readers the file has room for.
        is_new: A store is begun here, which mustn't end half-made for want of a few blocks.

    Raises:
        StoreUnavailable: The disk is full.
    """
    path = settings.path / ENGINE_LOCK_FILE
    size = LOCK_HEAD_BYTES + (settings.readers_max - 1) * READER_BYTES
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, settings.mode)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise unavailable(path, error) from None
        return  # The engine will say what is wrong.
    try:
        # Closing drops this process's locks on it; it has none, as the registry says. A file that
        # others have mapped has blocks, and is left alone.
        found = os.fstat(handle)
        if is_new:
            os.posix_fallocate(handle, 0, size + BLANK_BYTES_MAX)
            os.ftruncate(handle, size)
        elif found.st_size < size or found.st_blocks == 0:
            os.posix_fallocate(handle, 0, size)
    except OSError as error:
        raise unavailable(path, error) from None
    finally:
        os.close(handle)
