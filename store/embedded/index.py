"""
The index of streams: which position holds which version; it is also what refuses a version twice.

One row stands for a run of consecutive versions of a stream: its key ends in the first of them, its
value holds their positions. A version is taken when the row with the greatest first version not
above it covers it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

import lmdb

from domain.errors import Corrupt
from store.embedded.cursors import key_of, pairs, value_of
from store.embedded.environment import Database
from store.embedded.errors import VersionsTakenError
from store.embedded.layout import (
    INDEX_VALUE_SOFT_MAX,
    VERSION_BYTES_MAX,
    VERSION_MAX,
    encoded_stream,
    index_prefix,
    run_length,
    run_positions,
    run_value,
    split_index_key,
    version_bytes,
    version_of,
)
from store.embedded.rows import Stream

Run = tuple[int, list[int]]
"""First version, positions."""
RUN_MAX = 512
"""Most versions that one row of a single commit covers."""


def insert_index(
    cursor: lmdb.Cursor, streams: Sequence[Stream], versions: Sequence[int], first: int
) -> None:
    """
    Enter the rows of a commit, by their streams and versions.

    Args:
        cursor: On the index.
        streams: Whose events the rows are.
        versions: Their counts in the streams.
        first: Position of the first row.

    Raises:
        VersionsTakenError: With everything of this commit that is there already.
    """
    entering = _Entering(cursor)
    if len(streams) == 1:
        entering.enter_run(streams[0], versions[0], [first])
    else:
        entering.enter_all(streams, versions, first)
    if entering.conflicts:
        raise VersionsTakenError(entering.conflicts)


class _Entering:
    """
    Enter the runs of one commit, and gather what is there already.
    """

    __slots__ = ("_cursor", "conflicts")

    def __init__(self, cursor: lmdb.Cursor) -> None:
        self._cursor = cursor
        self.conflicts: list[tuple[Stream, int]] = []

    # hot: the simulator has 1.3 rows a job and commit.
    def enter_all(self, streams: Sequence[Stream], versions: Sequence[int], first: int) -> None:
        """
        Enter the rows of a commit.

        Equivalent to: `enter_run` of every run of every stream, in order of the keys, so that every
        page is touched once. Differs in: what follows the last row of the index is put in one go,
        without being looked for.
        """
        found = self._runs(streams, versions, first)
        behind: list[tuple[bytes, bytes]] = []
        is_last = False
        for prefix, stream in sorted(zip(map(index_prefix, found), found, strict=True)):
            runs = found[stream]
            if is_last:
                behind.extend(
                    (prefix + version_bytes(version), run_value(positions))
                    for version, positions in runs
                )
                continue
            end = -1
            for version, positions in runs:
                # Of two runs of one commit, the later versions may have the smaller positions.
                is_last = self.enter_run(stream, version, positions, may_extend=version != end)
                end = version + len(positions)
        if behind and not self.conflicts:
            append_rows(self._cursor, behind)

    def enter_run(
        self, stream: Stream, version: int, positions: list[int], *, may_extend: bool = True
    ) -> bool:
        """
        Put the row of one run, or extend the row that it continues; say whether none is behind it.
        """
        prefix, cursor, conflicts = encoded_stream(stream)[1], self._cursor, self.conflicts
        key, value = prefix + version_bytes(version), b""
        last = version + len(positions) - 1
        is_last = not cursor.set_range(key)
        if is_last:
            has_before = cursor.last()
        else:
            if _belongs(key_of(cursor), prefix):
                self._refuse_taken(stream, prefix, last)
                cursor.set_range(key)
            has_before = cursor.prev()
        if has_before and _belongs(before := key_of(cursor), prefix):
            row = value_of(cursor)
            end = version_of(before, len(prefix)) + run_length(row) - 1
            conflicts += [(stream, taken) for taken in range(version, min(last, end) + 1)]
            if may_extend and end + 1 == version and len(row) <= INDEX_VALUE_SOFT_MAX:
                key, value = before, row
        if not conflicts:
            cursor.put(key, run_value(positions, value))
        return is_last

    def _refuse_taken(self, stream: Stream, prefix: bytes, last: int) -> None:
        """
        Gather the versions up to a last one that rows from the cursor's on have.
        """
        cursor, is_on = self._cursor, True
        while is_on and _belongs(key_of(cursor), prefix):
            there = version_of(key_of(cursor), len(prefix))
            if there > last:
                return
            end = there + run_length(value_of(cursor)) - 1
            self.conflicts += [(stream, taken) for taken in range(there, min(last, end) + 1)]
            is_on = cursor.next()

    def _runs(
        self, streams: Sequence[Stream], versions: Sequence[int], first: int
    ) -> dict[Stream, list[Run]]:
        """
        Return each stream's runs of consecutive versions and ascending positions.
        """
        found: dict[Stream, Run] = {}
        known = found.get
        odd: dict[Stream, list[tuple[int, int]]] = {}
        for stream, version, position in zip(streams, versions, count(first)):
            run = known(stream)
            if run is None:
                found[stream] = (version, [position])
            elif version == run[0] + len(run[1]):
                run[1].append(position)
            else:
                odd[stream] = []
        runs = {
            stream: [run] if len(run[1]) <= RUN_MAX else _cut(*run) for stream, run in found.items()
        }
        if odd:
            for stream, version, position in zip(streams, versions, count(first)):
                if stream in odd:
                    odd[stream].append((version, position))
            for stream, pairs in odd.items():
                runs[stream] = self._sorted_runs(stream, pairs)
        return runs

    def _sorted_runs(self, stream: Stream, pairs: list[tuple[int, int]]) -> list[Run]:
        """
        Return the runs of versions that came in any order.
        """
        pairs.sort()
        version, position = pairs[0]
        run = [position]
        runs = [(version, run)]
        for later, place in pairs[1:]:
            if later < version + len(run):
                self.conflicts.append((stream, later))
            elif later == version + len(run) and place > run[-1] and len(run) < RUN_MAX:
                run.append(place)
            else:
                version, run = later, [place]
                runs.append((version, run))
        return runs


def _cut(version: int, positions: list[int]) -> list[Run]:
    """
    Cut a run that is too long for one row.
    """
    starts = range(0, len(positions), RUN_MAX)
    return [(version + at, positions[at : at + RUN_MAX]) for at in starts]


def append_rows(cursor: lmdb.Cursor, rows: list[tuple[bytes, bytes]]) -> None:
    """
    Put rows behind all that are there.

    Raises:
        Corrupt: The engine says that they don't belong there.
    """
    _, count_added = cursor.putmulti(rows, append=True)
    if count_added != len(rows):
        raise Corrupt("order", None, f"{len(rows)} index rows behind all others", count_added)


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
