"""
What users chose as names can't forge lines, turn text around, or run as a formula.
"""

from __future__ import annotations

import csv
import io
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections.audit.escaping import csv_cell, csv_text, plain

TEXTS = st.text(st.characters(exclude_categories=[]))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain name", "plain name"),
        ("naïve 日本", "naïve 日本"),
        ("a\nfake line", r"a\nfake line"),
        ("\x1b[2J", r"\x1b[2J"),
        ("\u202eevil", r"\u202eevil"),
        ("zero\u200bwidth", r"zero\u200bwidth"),
        ("line\u2028sep", r"line\u2028sep"),
        ("\U000e0041tag", r"\U000e0041tag"),
        ("\ud800", r"\ud800"),
    ],
)
def test_what_does_not_show_as_itself_is_written_as_an_escape(text: str, shown: str) -> None:
    """
    Control characters, direction marks and invisible ones; letters of any script stay.
    """
    assert shown == plain(text)


@given(TEXTS)
def test_safety_a_shown_text_is_one_line_without_control_or_format_characters(text: str) -> None:
    """
    Whatever the name is.
    """
    assert not {unicodedata.category(one) for one in plain(text)} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert len(plain(text).splitlines()) <= 1


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@x", "\t=1", " =1", "\r=1", "\uff1d1", "|x", "%0A"]
)
def test_a_text_that_a_spreadsheet_takes_for_a_formula_gets_a_quote(text: str) -> None:
    """
    A job named =cmd|' /C calc'!A0 must not run on the administrator's desktop.
    """
    assert csv_cell(text).startswith("'")


@pytest.mark.parametrize(("value", "cell"), [(-5, "-5"), (None, ""), ("a=b", "a=b"), ("", "")])
def test_what_is_no_formula_stays_as_it_is(value: object, cell: str) -> None:
    """
    A negative number is a number.
    """
    assert cell == csv_cell(value)


@given(st.lists(st.tuples(TEXTS, st.integers(), TEXTS), max_size=5))
def test_safety_csv_reads_back_as_the_same_rows(rows: list[tuple[str, int, str]]) -> None:
    """
    Quotes, commas and line ends in names don't forge fields or rows (K01).
    """
    text = "".join(csv_text(("a", "b", "c"), rows))

    found = list(csv.reader(io.StringIO(text)))

    assert [["a", "b", "c"], *[[csv_cell(a), str(b), csv_cell(c)] for a, b, c in rows]] == found
