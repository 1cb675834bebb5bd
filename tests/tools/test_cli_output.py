"""
What is printed: nothing can drive a terminal, tables stay whole in a pipe, amounts have units.
"""

from __future__ import annotations

import json

import pytest

from domain.errors import Refused
from tools.cli import output


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 漢", "plain é 漢"),
        ("\x1b[2Jgone", r"\x1b[2Jgone"),
        ("two\nlines\ttab\r", r"two\nlines\ttab\r"),
        ("\x9b31m", r"\x9b31m"),
        ("abc\u202etxt.exe", r"abc\u202etxt.exe"),
        ("a\u2066b\u200bc\u2028d\ufeff", r"a\u2066b\u200bc\u2028d\ufeff"),
        ("tag\U000e0041", r"tag\U000e0041"),
        ("half\ud800", r"half\ud800"),
    ],
)
def test_nothing_in_a_text_can_drive_a_terminal_or_hide(text, shown):
    """
    A job's name comes from its user: it must not move an operator's cursor or turn a line around.
    """
    assert shown == output.escape(text)


def test_a_table_in_a_pipe_is_aligned_and_never_cut(capsys):
    """
    Scripts read tables too; a host list that is wrapped or cut breaks them.
    """
    hosts = ":".join(f"host{number:04}" for number in range(200))

    output.table(("JOB", "HOSTS", "NAME"), [(1, hosts, "a\nb"), (12, None, "漢")], numbers="JOB")

    lines = capsys.readouterr().out.splitlines()
    assert ["JOB", "HOSTS", "NAME"] == lines[0].split()
    assert ["1", hosts, r"a\nb"] == lines[1].split()
    assert ["12", "-", "漢"] == lines[2].split()
    assert lines[0].index("NAME") == lines[1].index("a\\n") == lines[2].index("漢")


def test_json_is_ascii_whatever_is_in_it(capsys):
    """
    The escapes of JSON keep marks and controls away from the terminal without changing the value.
    """
    value = {"name": "a\u202eb\x1b漢"}

    output.say_json(value)

    printed = capsys.readouterr().out
    assert printed.isascii()
    assert value == json.loads(printed)


@pytest.mark.parametrize(
    ("microseconds", "shown"),
    [
        (None, "-"),
        (0, "0.00 s"),
        (250_000, "0.25 s"),
        (59_999_999, "59.99 s"),
        (60_000_000, "1 min"),
        (247_000_000, "4 min 7 s"),
        (5_400_000_000, "1 h 30 min"),
        (7_447_000_000, "2 h 4 min 7 s"),
        (266_647_000_000, "3 d 2 h 4 min 7 s"),
    ],
)
def test_a_duration_says_its_units(microseconds, shown):
    """
    A bare number would leave open what it counts, and colons whether it is hours or minutes.
    """
    assert shown == output.show_duration(microseconds)


@pytest.mark.parametrize(
    ("resource", "milli", "shown"),
    [
        ("mem", 512_000, "512 KB"),
        ("mem", 102_400_000, "100 MB"),
        ("mem", 1_572_864_000, "1.5 GB"),
        ("slots", 4_000, "4"),
        ("licence", 1_500, "1.5"),
    ],
)
def test_an_amount_is_shown_in_the_unit_of_its_resource(resource, milli, shown):
    """
    Amounts are thousandths of the base unit inside; people get memory in the unit that fits.
    """
    assert shown == output.show_amount(resource, milli)


def test_an_unknown_column_is_refused_with_the_known_ones():
    """
    A script written for another release learns which columns there are.
    """
    with pytest.raises(Refused) as refused:
        output.chosen("job,nodes", ("JOB", "HOSTS"))

    assert ("columns", "nodes") == (refused.value.field, refused.value.value)
    assert "job,hosts" in refused.value.rule
