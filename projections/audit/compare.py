"""
Compare two read models row for row: the proof that nothing was lost or doubled on the way.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import NamedTuple

from projections.audit.reading import Reading
from projections.audit.schema import tables

SEARCHED = "jobs_fts"


class Difference(NamedTuple):
    """
    Hold a row that differs: its table and what each of the two has there, None for nothing.
    """

    table: str
    first: tuple[object, ...] | None
    second: tuple[object, ...] | None


def differences(first: Reading, second: Reading) -> Iterator[Difference]:
    """
    Yield the first difference of each table, the position and the full-text index among them.
    """
    for table in tables().values():
        query = f"{table.read_sql} ORDER BY {', '.join(table.key)}"
        yield from _first_difference(first, second, table.name, query)
    yield from _first_difference(first, second, "tracking", "SELECT * FROM tracking ORDER BY 1")
    indexed = f"SELECT id FROM {SEARCHED}_docsize ORDER BY id"
    yield from _first_difference(first, second, SEARCHED, indexed)


def _first_difference(
    first: Reading, second: Reading, name: str, query: str
) -> Iterator[Difference]:
    for ours, theirs in zip_longest(first.table(query)[1], second.table(query)[1]):
        if ours != theirs:
            yield Difference(name, ours, theirs)
            return
