"""
Copies of what cursors and transactions show: bytes that stay valid when the transaction has ended.

The engine's types allow for views of its memory, which no transaction of ours gives.
"""

from __future__ import annotations

from collections.abc import Iterator

import lmdb


def get(transaction: lmdb.Transaction, key: bytes, database: lmdb._Database | None) -> bytes | None:
    """
    Return a copy of the value of a key, None without one.
    """
    return transaction.get(key, db=database)  # type: ignore[return-value]


def key_of(cursor: lmdb.Cursor) -> bytes:
    """
    Return a copy of the key under a cursor, empty when it is on none.
    """
    return cursor.key()  # type: ignore[return-value]


def value_of(cursor: lmdb.Cursor) -> bytes:
    """
    Return a copy of the value under a cursor.
    """
    return cursor.value()  # type: ignore[return-value]


def pair(cursor: lmdb.Cursor) -> tuple[bytes, bytes]:
    """
    Return a copy of key and value under a cursor.
    """
    return cursor.item()  # type: ignore[return-value]


def pairs(cursor: lmdb.Cursor) -> Iterator[tuple[bytes, bytes]]:
    """
    Yield copies of keys and values from a cursor's place on.
    """
    return iter(cursor)  # type: ignore[arg-type]
