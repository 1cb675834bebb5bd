"""
Take rows of `sacct --parsable` apart: which column is which, and what free text has broken.

Columns are separated by `|`, and sacct escapes nothing: a job's name or comment may hold the
separator, or a line break. A row with too many cells is put right when one way of joining cells
makes every column that can be checked sound; a row with too few goes on in the next line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import final

SEPARATOR = "|"
# Asked for by an accounting portal: sacct --parsable2 --noheader --allocations --duplicates.
PORTAL_COLUMNS = tuple(
    "jobid jobidraw cluster partition qos account group gid user uid submit eligible start end "
    "elapsed exitcode state nnodes ncpus reqcpus reqmem reqtres alloctres timelimit nodelist "
    "jobname".split()
)
# Asked for by a cost simulator; the last column came later.
COST_COLUMNS = tuple(
    "state jobid reqcpus reqmem reqnodes constraints submit eligible start elapsed suspended end "
    "exitcode derivedexitcode allocnodes ncpus maxdiskread maxdiskwrite maxpages maxrss maxvmsize "
    "cputime usercpu systemcpu totalcpu partition".split()
)
# With --parsable a row ends in a separator: an empty column without a name.
LAYOUTS = (
    PORTAL_COLUMNS, COST_COLUMNS, COST_COLUMNS[:-1], (*PORTAL_COLUMNS, ""), (*COST_COLUMNS, ""),
)  # fmt: skip

# What may hold anything, the likeliest first.
FREE_TEXT = ("jobname", "constraints", "comment", "admincomment", "systemcomment", "workdir")
# A row that free text has broken into more lines than these is no row any more.
LINES_JOINED_MAX = 8
EXCESS_MAX = 24

_STAMP = r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}|Unknown|None|)"
_DURATION = r"([0-9-]*[0-9:]*[0-9](\.[0-9]+)?|Partition_Limit|UNLIMITED|INVALID|)"
_COUNT = r"[0-9]*"
_checks = {
    name: re.compile(pattern)
    for names, pattern in (
        ("submit eligible start end", _STAMP),
        ("elapsed timelimit suspended cputime reserved", _DURATION),
        ("jobid", r"[0-9]+(_([0-9]+|\[[0-9,:%-]+\]))?(\+[0-9]+)?(\.[\w+-]+)?"),
        ("state", r"[A-Z_]+( by .*)?|"),
        ("nnodes ncpus reqcpus alloccpus allocnodes cputimeraw elapsedraw uid gid", _COUNT),
        ("jobidraw", r"[0-9]*(\.[\w+-]+)?"),
        ("reqmem", r"[0-9.]*[KMGTP]?[nc]?|\?"),
        ("exitcode derivedexitcode", r"([0-9]+:[0-9]+)?"),
        ("priority resvcpuraw timelimitraw", r"[0-9]*|Partition_Limit|UNLIMITED"),
        ("consumedenergyraw qosraw associd dbindex", _COUNT),
        ("reqtres alloctres", r"([\w/:-]+=[^,=]+(,[\w/:-]+=[^,=]+)*)?"),
    )
    for name in names.split()
} | {"": re.compile("")}


def header_columns(line: str) -> tuple[str, ...] | None:
    """
    Return the columns that a header line names, in lower case, or None when it is no header.
    """
    names = tuple(line.rstrip("\r\n").lower().split(SEPARATOR))
    is_header = {"submit", "state"} <= set(names) and len(set(names)) == len(names)
    return names if is_header else None


def layout_of(cells: list[str]) -> tuple[str, ...] | None:
    """
    Return the known columns that a row without a header has, or None when it fits none.
    """
    by_excess = sorted(LAYOUTS, key=lambda names: abs(len(cells) - len(names)))
    return next((names for names in by_excess if fitted(cells, names) is not None), None)


@final
@dataclass(frozen=True, slots=True)
class Row:
    """
    Hold one row: the line that it begins in, its cells by name, and whether cells were joined.
    """

    line_number: int
    cells: dict[str, str]
    is_repaired: bool


@final
@dataclass(frozen=True, slots=True)
class BadRow:
    """
    Name a row that can't be read.
    """

    line_number: int
    rule: str


def rows_of(
    lines: Iterable[tuple[int, str]], columns_of: Callable[[list[str]], tuple[str, ...] | None]
) -> Iterator[Row | BadRow]:
    """
    Yield the rows of numbered lines; columns_of gives the columns that a row's cells have.
    """
    held: list[tuple[int, str]] = []
    for number, line in lines:
        row = _row(number, line, columns_of)
        if row is None and held:
            whole = "\n".join([*(text for _, text in held), line])
            row = _row(held[0][0], whole, columns_of)
            held = [] if row is not None else held
        if row is not None:
            yield from map(_incomplete, held)
            held = []
            yield row
            continue
        if len(held) == LINES_JOINED_MAX:
            yield from map(_incomplete, held)
            held = []
        held.append((number, line))
    yield from map(_incomplete, held)


def _incomplete(held: tuple[int, str]) -> BadRow:
    """
    Return what is said of a line that was held and made no row.
    """
    number, line = held
    count = line.count(SEPARATOR) + 1
    return BadRow(number, f"has {count} cells between '|', which fit no row of sacct")


def _row(
    number: int, line: str, columns_of: Callable[[list[str]], tuple[str, ...] | None]
) -> Row | None:
    cells = line.split(SEPARATOR)
    columns = columns_of(cells)
    fitting = None if columns is None else fitted(cells, columns)
    if columns is None or fitting is None:
        return None
    return Row(number, dict(zip(columns, fitting, strict=True)), len(cells) > len(columns))


def fitted(cells: list[str], columns: tuple[str, ...]) -> list[str] | None:
    """
    Return one cell for each column, or None when the cells fit the columns in no way.
    """
    excess = len(cells) - len(columns)
    if excess < 0 or excess > EXCESS_MAX:
        return None
    if excess == 0:
        return cells if _is_sound(cells, columns) else None
    names = [name for name in FREE_TEXT if name in columns]
    for shares in _shares(excess, len(names)):
        wide = {columns.index(name): share for name, share in zip(names, shares, strict=True)}
        joined = _joined(cells, wide, len(columns))
        if _is_sound(joined, columns):
            return joined
    return None


def _shares(total: int, count: int) -> Iterator[tuple[int, ...]]:
    """
    Yield every way to share a total out over columns, most to the first ones first.
    """
    if count == 0:
        return
    if count == 1:
        yield (total,)
        return
    for first in range(total, -1, -1):
        for rest in _shares(total - first, count - 1):
            yield (first, *rest)
        if total > 6 and count > 2 and first < total - 6:
            return


def _joined(cells: list[str], wide: dict[int, int], count: int) -> list[str]:
    joined = []
    begin = 0
    for index in range(count):
        end = begin + 1 + wide.get(index, 0)
        joined.append(SEPARATOR.join(cells[begin:end]))
        begin = end
    return joined


def _is_sound(cells: list[str], columns: tuple[str, ...]) -> bool:
    """
    Tell whether every cell that can be checked is what its column holds.
    """
    return all(
        check is None or check.fullmatch(cell)
        for check, cell in zip(map(_checks.get, columns), cells, strict=True)
    )
