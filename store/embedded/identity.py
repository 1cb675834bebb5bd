"""
The identity of a store: its format and its log, read from the store or given to a new one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import lmdb

from domain.errors import Corrupt
from store.embedded.cursors import get
from store.embedded.errors import translated
from store.embedded.layout import (
    FORMAT,
    KEY_EPOCH,
    KEY_FORMAT,
    KEY_LOG_ID,
    META,
    number_bytes,
    unmatched_names,
)
from store.embedded.marker import write_marker

if TYPE_CHECKING:
    from store.embedded.environment import Environment


def identify(environment: Environment, marked: str | None, wanted: str | None) -> str:
    """
    Read the store's identity, or give a new store one; return it.
    """
    with translated(environment.path, environment.settings.map_size):
        meta = environment.database(META, create=False)
    if meta is None or _is_unfinished(environment, marked, wanted):
        if environment.settings.readonly or marked is not None:
            found = "an LMDB file that is no log"
            raise Corrupt("foreign", None, f"the log {marked}", found, environment.path)
        return _begin(environment, wanted or uuid4().hex)
    version, log_id = _identity(environment)
    if version > FORMAT:
        raise Corrupt("newer", None, f"log format {FORMAT}", version, environment.path)
    if log_id != (marked or wanted or log_id):
        found = f"the log {log_id}"
        raise Corrupt("foreign", None, f"the log {marked or wanted}", found, environment.path)
    _check_names(environment)
    if marked is None and not environment.settings.readonly:
        write_marker(environment.settings.path, log_id)
    return log_id


def _check_names(environment: Environment) -> None:
    """
    Refuse a store with a database that has entries and a name which nothing here has: that of
    the log may be damaged, which would read as empty otherwise.
    """
    for name in unmatched_names(_names(environment)):
        database = environment.database(name, create=False)
        with environment.read() as transaction:
            is_used = transaction.stat(db=database)["entries"] > 0
        # One that another process has just begun has its index by now.
        if is_used and name in unmatched_names(_names(environment)):
            expected = "the databases of a log"
            raise Corrupt("structure", None, expected, repr(name)[:60], environment.path)


def _names(environment: Environment) -> list[bytes]:
    with environment.read() as transaction:
        return [bytes(name) for name in transaction.cursor().iternext(values=False)]


def _is_unfinished(environment: Environment, marked: str | None, wanted: str | None) -> bool:
    """
    Say whether a creation was cut short here: the marker comes before anything but identity.
    """
    with environment.read() as transaction:
        is_alone = transaction.stat()["entries"] == 1
        found = get(transaction, KEY_LOG_ID, environment.database(META, create=False))
    is_ours = found is not None and found == (wanted.encode() if wanted else found)
    return marked is None and is_alone and not is_ours


def _identity(environment: Environment) -> tuple[int, str]:
    """
    Return format and log id as the store itself has them.
    """
    meta = environment.database(META, create=False)
    with environment.read() as transaction:
        version = get(transaction, KEY_FORMAT, meta)
        found = get(transaction, KEY_LOG_ID, meta)
    if version is None or found is None:
        there = "an LMDB file without its identity"
        raise Corrupt("foreign", None, "an XCE log", there, environment.path)
    try:
        return int(version), found.decode()
    except ValueError:
        there = f"format {version[:20]!r} of {found[:60]!r}"
        raise Corrupt("structure", None, "an XCE log", there, environment.path) from None


def _begin(environment: Environment, log_id: str) -> str:
    """
    Make a new store of an empty file, or of one whose making was cut short.
    """
    has_meta = environment.database(META, create=False) is not None
    with environment.read() as transaction:
        entries = transaction.stat()["entries"]
        if entries > 1 or (entries == 1 and not has_meta):
            found = "one that holds other data"
            raise Corrupt("foreign", None, "an empty LMDB file", found, environment.path)
    meta = environment.database(META)

    def put_identity(transaction: lmdb.Transaction) -> None:
        transaction.put(KEY_FORMAT, str(FORMAT).encode(), db=meta)
        transaction.put(KEY_LOG_ID, log_id.encode(), db=meta)
        transaction.put(KEY_EPOCH, number_bytes(0), db=meta)

    environment.write(put_identity)
    write_marker(environment.settings.path, log_id)
    return log_id
