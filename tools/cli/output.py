"""
What people and programs see: escaped texts, aligned tables, times, and JSON objects.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
import unicodedata
from collections.abc import Callable, Iterable, Sequence

import click

from domain.errors import Refused

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


def note(text: str) -> None:
    """
    Print one line for people that is no part of the answer: to standard error.
    """
    click.echo(escape(text), err=True)


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


def table(heads: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: str = "") -> None:
    """
    Print rows under their heads, columns aligned by two blanks.

    On a terminal a line that is too long is cut (and ends in an ellipsis); elsewhere it is whole.

    Args:
        heads: One for each column.
        rows: The cells of each row; None shows as "-".
        numbers: The heads of the columns that are aligned to the right, separated by blanks.
    """
    cells = [list(heads), *([_cell(value) for value in row] for row in rows)]
    widths = [max(width(row[column]) for row in cells) for column in range(len(heads))]
    right = set(numbers.split())
    limit = os.get_terminal_size().columns if sys.stdout.isatty() else None
    for row in cells:
        parts = [
            _padded(text, wide, to_the_right=head in right)
            for text, wide, head in zip(row, widths, heads, strict=True)
        ]
        click.echo(_cut("  ".join(parts).rstrip(), limit))


def _cell(value: object) -> str:
    return "-" if value is None or value == "" else escape(str(value))


def _padded(text: str, wide: int, *, to_the_right: bool) -> str:
    blanks = " " * (wide - width(text))
    return blanks + text if to_the_right else text + blanks


def _cut(line: str, limit: int | None) -> str:
    if limit is None or width(line) <= limit:
        return line
    while width(line) > limit - 1:
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
    Return a moment in the local time zone, to the second.
    """
    if time_us is None:
        return "-"
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(time_us // US))


def show_duration(duration_us: int | None) -> str:
    """
    Return a duration with its units: "0.25 s", "4 min 7 s", "2 h 30 min", "3 d 2 h 4 min 7 s".

    Colons would leave open whether "1:30" means hours and minutes, as LSF's options have it.
    """
    if duration_us is None:
        return "-"
    if duration_us < 60 * US:
        return f"{duration_us // US}.{duration_us % US // 10_000:02d} s"
    minutes, seconds = divmod(duration_us // US, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (seconds, "s")]
    while not parts[0][0]:
        del parts[0]
    while not parts[-1][0]:
        del parts[-1]
    return " ".join(f"{count} {unit}" for count, unit in parts)


def show_kib(kib: int | None) -> str:
    """
    Return an amount of memory in the largest unit that keeps it above one.
    """
    if kib is None:
        return "-"
    for unit, size in (("TB", 1 << 30), ("GB", 1 << 20), ("MB", 1 << 10)):
        if kib >= size:
            whole, tenths = divmod(kib * 10 // size, 10)
            return f"{whole}.{tenths} {unit}" if tenths else f"{whole} {unit}"
    return f"{kib} KB"


def show_amount(resource: str, milli: int) -> str:
    """
    Return an amount with its unit: memory is in KiB, whatever else in units of its own.
    """
    if resource == "mem":
        return show_kib(milli // 1000)
    whole, rest = divmod(milli, 1000)
    return f"{whole}.{rest:03d}".rstrip("0") if rest else str(whole)


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
