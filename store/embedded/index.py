"""
The index of streams: which position holds which version; it is also what refuses a version twice.

One row stands for a run of consecutive versions of a stream: its key ends in the first of them, its
value holds their positions. A version is taken when the row with the greatest first version not
above it covers it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from uuid import UUID

import lmdb

from domain.errors import Corrupt
from store.embedded.cursors import key_of, pairs, value_of
from store.embedded.environment import Database
from store.embedded.errors import VersionsTakenError
from store.embedded.layout import (
    INDEX_VALUE_SOFT_MAX,
    VERSION_BYTES_MAX,
    VERSION_MAX,
    index_prefix,
    run_length,
    run_positions,
    run_value,
    split_index_key,
    version_bytes,
    version_of,
)

Stream = str | UUID
RUN_MAX = 512
"""Most versions that one row of a single commit covers."""


def insert_index(
    transaction: lmdb.Transaction,
    index: Database | None,
    rows: Sequence[tuple[Stream, int, str, bytes]],
    first: int,
) -> None:
    """
    Enter the rows of a commit whose first position is *first*.

    Raises:
        VersionsTakenError: With everything of this commit that is there already.
    """
    streams: dict[Stream, list[tuple[int, int]]] = {}
    for position, row in enumerate(rows, first):
        pairs = streams.get(row[0])
        if pairs is None:
            streams[row[0]] = [(row[1], position)]
        else:
            pairs.append((row[1], position))
    conflicts: list[tuple[Stream, int]] = []
    # In order of the keys, so that every page is touched once.
    cursor = transaction.cursor(db=index)
    for prefix, stream in sorted([(index_prefix(stream), stream) for stream in streams]):
        for version, positions in _runs(stream, streams[stream], conflicts):
            _insert_run(transaction, index, cursor, stream, prefix, version, positions, conflicts)
    if conflicts:
        raise VersionsTakenError(conflicts)


def _runs(
    stream: Stream, pairs: list[tuple[int, int]], conflicts: list[tuple[Stream, int]]
) -> Iterator[tuple[int, list[int]]]:
    """
    Yield first version and positions of each run of consecutive versions and ascending positions.
    """
    if len(pairs) == 1:
        yield pairs[0][0], [pairs[0][1]]
        return
    pairs.sort()
    version, position = pairs[0]
    run = [position]
    for later, place in pairs[1:]:
        if later == version + len(run) and place > run[-1] and len(run) < RUN_MAX:
            run.append(place)
            continue
        if later < version + len(run):
            conflicts.append((stream, later))
            continue
        yield version, run
        version, run = later, [place]
    yield version, run


def _insert_run(
    transaction: lmdb.Transaction, index: Database | None, cursor: lmdb.Cursor, stream: Stream,
        prefix: bytes, version: int,
    positions: list[int], conflicts: list[tuple[Stream, int]],
) -> None:  # fmt: skip
    """
    Put the row of one run, or extend the row that it continues.
    """
    key, value, size = prefix + version_bytes(version), b"", len(prefix)
    last = version + len(positions) - 1
    if cursor.set_range(key):
        behind = key_of(cursor)
        if _belongs(behind, prefix):
            there = version_of(behind, size)
            conflicts.extend(
                (stream, taken) for taken in range(there, min(last, _last(cursor, there)) + 1)
            )
        has_before = cursor.prev()
    else:
        has_before = cursor.last()
    if has_before and _belongs(key_of(cursor), prefix):
        there = version_of(key_of(cursor), size)
        end = _last(cursor, there)
        conflicts.extend((stream, taken) for taken in range(version, min(last, end) + 1))
        if end + 1 == version and len(value_of(cursor)) <= INDEX_VALUE_SOFT_MAX:
            key, value = key_of(cursor), value_of(cursor)
    if not conflicts:
        transaction.put(key, run_value(positions, value), db=index)


def _last(cursor: lmdb.Cursor, first: int) -> int:
    """
    Return the last version that the row under the cursor covers.
    """
    return first + run_length(value_of(cursor)) - 1


def _belongs(key: bytes, prefix: bytes) -> bool:
    """
    Say whether an index key is of the stream with a prefix.
    """
    return (
        key.startswith(prefix) and len(key) > len(prefix) and key[len(prefix)] <= VERSION_BYTES_MAX
    )


def stream_positions(
    transaction: lmdb.Transaction, index: Database | None, stream: Stream, *, gt: int | None, lte:
        int | None, desc: bool,
    limit: int | None,
) -> list[tuple[int, int]]:  # fmt: skip
    """
    Return version and position of a stream's events after one version and up to another.
    """
    prefix = index_prefix(stream)
    low = 0 if gt is None else max(gt + 1, 0)
    found: list[tuple[int, int]] = []
    cursor = transaction.cursor(db=index)
    for first, positions in (_rows_down if desc else _rows_up)(cursor, prefix, low, lte):
        pairs = enumerate(positions, first)
        for version, position in reversed(list(pairs)) if desc else pairs:
            if version >= low and (lte is None or version <= lte):
                found.append((version, position))
                if limit is not None and len(found) >= limit:
                    return found[:limit]
    return found


def _rows_up(
    cursor: lmdb.Cursor, prefix: bytes, low: int, high: int | None
) -> Iterator[tuple[int, list[int]]]:
    """
    Yield a stream's rows that may cover versions from *low* to *high*, ascending.
    """
    key = prefix + version_bytes(low)
    if not (cursor.set_range(key) and key_of(cursor) == key):
        # The row before may cover it.
        is_on = cursor.prev() if key_of(cursor) else cursor.last()
        if not is_on:
            is_on = cursor.first()
        elif not _belongs(key_of(cursor), prefix):
            is_on = cursor.next()
        if not is_on:
            return
    while _belongs(key_of(cursor), prefix):
        first = version_of(key_of(cursor), len(prefix))
        if high is not None and first > high:
            return
        yield first, _positions_under(cursor)
        if not cursor.next():
            return


def _rows_down(
    cursor: lmdb.Cursor, prefix: bytes, low: int, high: int | None
) -> Iterator[tuple[int, list[int]]]:
    """
    Yield a stream's rows that may cover versions from *low* to *high*, descending.
    """
    if high is not None and high < 0:
        return
    after = (
        bytes((VERSION_BYTES_MAX + 1,))
        if high is None
        else version_bytes(min(high, VERSION_MAX)) + b"\x00"
    )
    is_on = cursor.prev() if cursor.set_range(prefix + after) else cursor.last()
    while is_on and _belongs(key_of(cursor), prefix):
        first = version_of(key_of(cursor), len(prefix))
        yield first, _positions_under(cursor)
        if first <= low:
            return
        is_on = cursor.prev()


def index_runs(cursor: lmdb.Cursor) -> Iterator[tuple[bytes, int, list[int]]]:
    """
    Yield encoded id, first version and positions of every row under a cursor on the index.
    """
    for key, value in pairs(cursor):
        try:
            encoded, first = split_index_key(key)
            positions = run_positions(value)
        except (ValueError, IndexError):
            raise _no_row(key, value) from None
        yield encoded, first, positions


def _positions_under(cursor: lmdb.Cursor) -> list[int]:
    """
    Return the positions of the row under a cursor.

    Raises:
        Corrupt: They can't be positions.
    """
    value = value_of(cursor)
    try:
        positions = run_positions(value)
    except ValueError:
        raise _no_row(key_of(cursor), value) from None
    if not 1 <= positions[0] <= positions[-1] <= VERSION_MAX:
        raise _no_row(key_of(cursor), value)
    return positions


def _no_row(key: bytes, value: bytes) -> Corrupt:
    """
    Return the error for an index row that can't be one.
    """
    found = f"{key[:60].hex()} with {value[:60].hex()}"
    return Corrupt("structure", None, "an index row", found)
