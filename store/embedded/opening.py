"""
Let the engine open a store's files, with errors of ours.
"""

from __future__ import annotations

from functools import partial

import lmdb

from domain.errors import Corrupt, StoreUnavailable
from store.embedded.preflight import DATA_FILE, is_read_only_medium
from store.embedded.settings import Settings
from store.os_errors import unavailable

DATABASES_MAX = 128
ENGINE_VERSION = 0
"""New files are of engine 0.9, which every tool reads; an existing file says its own."""


def open_engine(settings: Settings) -> lmdb.Environment:
    """
    Let the engine open the files of a store.

    Raises:
        Corrupt: They aren't the engine's.
        StoreUnavailable: They can't be opened.
    """
    path = str(settings.path)
    is_new = not (settings.path / DATA_FILE).exists()
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
            lock=not (settings.readonly and is_read_only_medium(settings.path)),
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
