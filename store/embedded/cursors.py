"""
Copies of what cursors and transactions show: bytes that stay valid when the transaction has ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import lmdb


def get(transaction: lmdb.Transaction, key: bytes, database: lmdb._Database | None) -> bytes | None:
    """
    Return a copy of the value of a key, None without one.
    """
    return cast("bytes | None", transaction.get(key, db=database))


def key_of(cursor: lmdb.Cursor) -> bytes:
    """
    Return a copy of the key under a cursor, empty when it is on none.
    """
    return cast("bytes", cursor.key())


def value_of(cursor: lmdb.Cursor) -> bytes:
    """
    Return a copy of the value under a cursor.
    """
    return cast("bytes", cursor.value())


def pair(cursor: lmdb.Cursor) -> tuple[bytes, bytes]:
    """
    Return a copy of key and value under a cursor.
    """
    return cast("tuple[bytes, bytes]", cursor.item())


def pairs(cursor: lmdb.Cursor) -> Iterator[tuple[bytes, bytes]]:
    """
    Yield copies of keys and values from a cursor's place on.
    """
    return cast("Iterator[tuple[bytes, bytes]]", iter(cursor))
