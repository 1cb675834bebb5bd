"""
What people and programs see: escaped texts, aligned tables, times, and JSON objects.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import textwrap
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import click

from domain.errors import Refused
from domain.units import (
    MILLI,
    show_amount_rounded,
    show_duration_rounded,
    show_memory_rounded,
)

US = 1_000_000

# Control characters could drive a terminal, direction marks and invisible ones could make one name
# look like another, line separators could forge a line: all of them are shown as escapes.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def escape(text: str) -> str:
    """
    Return a text in which nothing can move the cursor, turn the reading direction or hide.
    """
    return _UNSAFE.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x100:
        return {9: r"\t", 10: r"\n", 13: r"\r"}.get(code, f"\\x{code:02x}")
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def say(text: str = "") -> None:
    """
    Print one line for people, escaped.
    """
    click.echo(escape(text))


def say_hanging(text: str, indent: int = 0) -> None:
    """
    Print one line for people, escaped; on a terminal that is too narrow its rest is indented.
    """
    line, limit = escape(text), terminal_width()
    if limit is None or width(line) <= limit or limit - indent < LAST_COLUMN_MIN:
        click.echo(line)
        return
    _echo_wrapped(line[:indent], line[indent:], indent, limit)


def note(text: str) -> None:
    """
    Print one line for people that is no part of the answer: to standard error.
    """
    click.echo(escape(text), err=True)


def as_typed(*words: object) -> str:
    """
    Return a command as it can be pasted into a shell, whatever is in its words.
    """
    return shlex.join(map(str, words))


def note_each(notices: Mapping[str, str]) -> None:
    """
    Print what people should know of fields that they gave.
    """
    for field, words in notices.items():
        note(f"Note: {field}: {words}.")


def say_json(value: object) -> None:
    """
    Print one JSON value: on one line, or indented when a person reads it.

    Only ASCII is printed (the rest as escapes), so that no name can do anything to a terminal.
    """
    indent = 2 if sys.stdout.isatty() else None
    click.echo(json.dumps(value, indent=indent))


# ------------------------------------------------------------------------------------------ tables


def width(text: str) -> int:
    """
    Return how many columns of a terminal a text takes.
    """
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(one) else 2 if unicodedata.east_asian_width(one) in "WF" else 1
        for one in text
    )


WIDE = "xce.wide"
"""Where the option --wide leaves its mark for the tables of a command."""

BELOW_INDENT = 4
"""So far in stands what follows a line of a list on lines of its own."""

LAST_COLUMN_MIN = 24
"""A last column that has fewer columns of the terminal left than these isn't wrapped into them."""


def table(
    heads: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: str = "",
    is_list: bool = False, spare: str = "", tells: bool = False,
) -> None:  # fmt: skip
    """
    Print rows under their heads, columns aligned by two blanks.

    Where the output is no terminal every line is whole. On one that is too narrow a list is made
    to fit, unless --wide was given: columns are left out so that the last one can be read, and
    lines that are still too long end in an ellipsis, or where the last column tells something it
    follows on lines of its own. Of any other table the last column is wrapped, or stands below
    where there is no room for it beside the others.

    Args:
        heads: One for each column.
        rows: The cells of each row; None shows as "-".
        numbers: The heads of the columns that are aligned to the right, separated by blanks.
        is_list: A line for each of many things, which people run their eyes over.
        spare: The heads of the columns of a list that may be left out, the first to go first.
        tells: Whether the last column of a list tells what nobody should miss.
    """
    cells = [list(heads), *([_cell(value) for value in row] for row in rows)]
    limit = terminal_width()
    if limit is None:
        for line in _lines(cells, numbers):
            click.echo(line)
    elif is_list and tells and not _is_wide():
        _echo_telling(cells, numbers, limit, spare.split())
    elif is_list:
        _echo_list(cells, numbers, None if _is_wide() else limit, spare.split())
    else:
        _echo_table(cells, numbers, limit)


def _widths(cells: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(width, column)) for column in zip(*cells, strict=True)]


def _lines(cells: Sequence[Sequence[str]], numbers: str) -> Iterator[str]:
    widths, right = _widths(cells), set(numbers.split())
    for row in cells:
        parts = [
            _padded(text, wide, to_the_right=head in right)
            for text, wide, head in zip(row, widths, cells[0], strict=True)
        ]
        yield "  ".join(parts).rstrip()


def _echo_list(
    cells: list[list[str]], numbers: str, limit: int | None, spare: list[str]
) -> None:
    lines = list(_lines(cells, numbers))
    if limit is None or all(width(line) <= limit for line in lines):
        for line in lines:
            click.echo(line)
        return
    for line in _lines(_narrowed(cells, limit, spare), numbers):
        click.echo(line if width(line) <= limit else _cut(line, limit))
    _note_narrow()


def _note_narrow() -> None:
    note("The terminal is too narrow for all columns, or whole lines; --wide shows them.")


def _echo_telling(cells: list[list[str]], numbers: str, limit: int, spare: list[str]) -> None:
    """
    Print a list whose last column is never cut: what doesn't fit beside the others stands below.
    """
    if all(width(line) <= limit for line in _lines(cells, numbers)):
        shown = cells
    else:
        shown = _narrowed(cells, limit, spare)
    before = sum(_widths(shown)[:-1]) + 2 * (len(shown[0]) - 1)
    stays = limit - before >= min(_widths(shown)[-1], LAST_COLUMN_MIN)
    if not stays:
        shown = _narrowed([row[:-1] for row in cells], limit, spare)
    is_cut = len(shown[0]) < len(cells[0]) - (not stays)
    kept = [
        [*row[:-1], ""] if stays and before + width(row[-1]) > limit else row for row in shown
    ]
    for line, told, row in zip(_lines(kept, numbers), kept, cells, strict=True):
        is_cut = is_cut or width(line) > limit
        click.echo(line if width(line) <= limit else _cut(line, limit))
        if told[-1] != row[-1] and row[-1] != "-" and row is not cells[0]:
            _echo_wrapped(None, row[-1], BELOW_INDENT, limit)
    if is_cut:
        _note_narrow()


def _narrowed(cells: list[list[str]], limit: int, spare: list[str]) -> list[list[str]]:
    """
    Return a list without columns that may go, as many as the last one needs: first those that are
    empty, then the spare ones in order.
    """
    empty = [column[0] for column in zip(*cells, strict=True) if set(column[1:]) == {"-"}]
    for head in [*(name for name in empty if name != cells[0][-1]), *spare]:
        widths = _widths(cells)
        needed = min(widths[-1], LAST_COLUMN_MIN)
        if limit - sum(widths[:-1]) - 2 * (len(widths) - 1) >= needed:
            break
        if head in cells[0][:-1]:
            at = cells[0].index(head)
            cells = [[*row[:at], *row[at + 1 :]] for row in cells]
    return cells


def _echo_table(cells: list[list[str]], numbers: str, limit: int) -> None:
    widths = _widths(cells)
    before = sum(widths[:-1]) + 2 * (len(widths) - 1)
    for line, row in zip(_lines(cells, numbers), cells, strict=True):
        start = line[: len(line) - len(row[-1])]
        if width(line) <= limit or not row[:-1]:
            click.echo(line)
        elif limit - before >= LAST_COLUMN_MIN:
            _echo_wrapped(start, row[-1], before, limit)
        else:
            click.echo(start.rstrip())
            if row is not cells[0]:
                _echo_wrapped(None, row[-1], BELOW_INDENT, limit)


def terminal_width() -> int | None:
    """
    Return how many columns the terminal has that is written to; None when it is none, or doesn't
    tell.
    """
    return (os.get_terminal_size().columns or None) if sys.stdout.isatty() else None


def _is_wide() -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(WIDE))


def _echo_wrapped(start: str | None, text: str, before: int, limit: int) -> None:
    """
    Print a text in lines that are indented, behind what the first of them starts with.
    """
    lines = textwrap.wrap(text, max(1, limit - before), break_on_hyphens=False) or [""]
    for number, line in enumerate(lines):
        click.echo((" " * before if number or start is None else start) + line)


def _cell(value: object) -> str:
    return "-" if value is None or value == "" else escape(str(value))


def _padded(text: str, wide: int, *, to_the_right: bool) -> str:
    blanks = " " * (wide - width(text))
    return blanks + text if to_the_right else text + blanks


def _cut(line: str, limit: int) -> str:
    while line and width(line) > limit - 1:
        line = line[:-1]
    return line + "…"


def chosen(columns: str | None, heads: Sequence[str]) -> list[int]:
    """
    Return which columns a person asked for, by their numbers; all when nothing was asked.

    Raises:
        Refused: There is no such column.
    """
    if columns is None:
        return list(range(len(heads)))
    names = [head.lower() for head in heads]
    wanted = [name.strip().lower() for name in columns.split(",")]
    for name in wanted:
        if name not in names:
            raise Refused("columns", f"must be some of {','.join(names)}", name)
    return [names.index(name) for name in wanted]


# ------------------------------------------------------------------------------- times and amounts


def show_time(time_us: int | None) -> str:
    """
    Return a moment in the local time zone, to the second, with its offset: as it can be given.
    """
    if time_us is None:
        return "-"
    shown = time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(time_us // US))
    return f"{shown[:-5]}Z" if shown.endswith("+0000") else f"{shown[:-2]}:{shown[-2:]}"


def show_moment(time_us: int | None, now_us: int) -> str:
    """
    Return a moment in the local time zone for a list: of today the time, of this year the day and
    the time, else the day.
    """
    if time_us is None:
        return "-"
    then, now = time.localtime(time_us // US), time.localtime(now_us // US)
    if then[:3] == now[:3]:
        return time.strftime("%H:%M:%S", then)
    return time.strftime("%m-%d %H:%M" if then.tm_year == now.tm_year else "%Y-%m-%d", then)


def show_recent(time_us: int, now_us: int) -> str:
    """
    Return the same for a list of what happened: a day alone would say too little.
    """
    then, now = time.localtime(time_us // US), time.localtime(now_us // US)
    return show_moment(time_us, now_us) if then.tm_year == now.tm_year else show_time(time_us)


def show_duration(duration_us: int | None) -> str:
    """
    Return a duration for people, as it can be given: "250ms", "4m7s", "1h30m", "3d2h".

    Colons would leave open whether "1:30" means hours and minutes, as LSF's options have it.
    """
    return "-" if duration_us is None else show_duration_rounded(duration_us)


def show_kib(kib: int | None) -> str:
    """
    Return an amount of memory in the largest unit that keeps it above one, as it can be given.
    """
    return "-" if kib is None else show_memory_rounded(kib * MILLI)


def show_amount(resource: str, milli: int) -> str:
    """
    Return an amount with its unit: memory is in KiB, whatever else in units of its own.
    """
    return show_amount_rounded(resource, milli)


def counted(count: int, noun: str) -> str:
    """
    Return a count with its noun: "1 host", "3 hosts".
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


# ------------------------------------------------------------------------------------------- watch


def watch(show: Callable[[], None], interval_s: float | None) -> None:
    """
    Show something once, or again and again on a cleared screen until it is interrupted.

    Args:
        show: Prints it.
        interval_s: Seconds between two times, None for once.
    """
    if interval_s is None:
        show()
        return
    while True:
        if sys.stdout.isatty():
            click.clear()
        click.echo(time.strftime("%Y-%m-%d %H:%M:%S") + f"   every {interval_s:g} s, Ctrl-C ends")
        show()
        sys.stdout.flush()
        time.sleep(interval_s)
