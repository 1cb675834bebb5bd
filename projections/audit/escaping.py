"""
Show texts that users chose so that they can do nothing: no line of their own, no hidden direction,
no formula.
"""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Iterable, Sequence

# Control and format characters (direction marks, invisible ones), surrogates, private ones,
# separators of lines and paragraphs.
_UNSAFE = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
# A spreadsheet takes a cell that begins so for a formula, also behind blanks.
_FORMULA = "=+-@\t\r\n|%\uff1d\uff0b\uff0d\uff20"


def plain(text: str) -> str:
    """
    Return a text on one line, everything that doesn't show as itself written as an escape.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_shown, text))


def _shown(character: str) -> str:
    if unicodedata.category(character) not in _UNSAFE:
        return character
    code = ord(character)
    if code < 0x100:
        return _SHORT.get(character, f"\\x{code:02x}")
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def csv_cell(value: object) -> str:
    """
    Return a value as a cell that no spreadsheet takes for a formula: a text that could be one gets
    a quote.

    A whole number stays as it is, also a negative one.
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        return str(value)
    begin = value.lstrip(" \u00a0\ufeff")[:1]
    return plain("'" + value if begin and begin in _FORMULA else value)


def csv_text(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterable[str]:
    """
    Yield the lines of a CSV file (RFC 4180, every text quoted), safe for spreadsheets.
    """
    yield _csv_line(heads)
    yield from map(_csv_line, rows)


def _csv_line(row: Sequence[object]) -> str:
    out = io.StringIO()
    cells = [csv_cell(value) if isinstance(value, str) or value is None else value for value in row]
    csv.writer(out, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\r\n").writerow(cells)
    return out.getvalue()
