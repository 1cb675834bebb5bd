"""
Keep in a log the dictionaries that its frames need.
"""

from __future__ import annotations

import struct

import lmdb

from store.dictionaries import known, learn
from store.embedded.cursors import get, pairs
from store.embedded.environment import Database, Environment
from store.embedded.frames import ZSTD_DICTIONARY
from store.embedded.layout import KEY_DICTIONARY, META

_NUMBER = struct.Struct(">I")
_NUMBER_AT, _CODEC_AT = 40, 4


def dictionary_of(frame: bytes) -> int:
    """
    Return the number of the dictionary that a frame needs, 0 for none.
    """
    if frame[_CODEC_AT] != ZSTD_DICTIONARY:
        return 0
    number: int = _NUMBER.unpack_from(frame, _NUMBER_AT)[0]
    return number


def keep(transaction: lmdb.Transaction, meta: Database | None, number: int) -> bool:
    """
    Put a dictionary into the log, in the transaction of the first frame that needs it; say whether
    it wasn't there.
    """
    key = KEY_DICTIONARY + b"%08x" % number
    content = known(number)
    if content is None or get(transaction, key, meta) is not None:
        return False
    return bool(transaction.put(key, content, db=meta))


def kept(environment: Environment) -> dict[int, bool]:
    """
    Learn a log's dictionaries; return their numbers, each with whether its content is right.
    """
    found: dict[int, bool] = {}
    meta = environment.database(META, create=False)
    with environment.read() as transaction:
        cursor = transaction.cursor(db=meta)
        if not cursor.set_range(KEY_DICTIONARY):
            return found
        for key, content in pairs(cursor):
            name = key.removeprefix(KEY_DICTIONARY)
            if name == key:
                break
            try:
                number = int(name, 16)
            except ValueError:
                number = 0
            found[number] = learn(number, content)
    return found
