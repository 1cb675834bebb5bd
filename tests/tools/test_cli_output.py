"""
What is printed: nothing can drive a terminal, tables stay whole in a pipe, amounts have units.
"""

from __future__ import annotations

import fcntl
import json
import os
import struct
import subprocess
import sys
import termios
import time
from contextlib import suppress

import pytest

from domain.errors import Refused
from domain.units import parse_time_us
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
        (0, "0s"),
        (250_000, "250ms"),
        (59_999_999, "59.99s"),
        (60_000_000, "1m"),
        (247_000_000, "4m7s"),
        (5_400_000_000, "1h30m"),
        (7_447_000_000, "2h4m7s"),
        (266_647_000_000, "3d2h4m7s"),
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
        ("mem", 512_000, "512KB"),
        ("mem", 102_400_000, "100MB"),
        ("mem", 1_572_864_000, "1.5GB"),
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


LISTED = """
import click
from tools.cli.options import columns_option
from tools.cli.output import table

@click.command()
@columns_option
def shown(columns):
    table(("JOB", "REASON"), [(1, "not enough slots: 12 hosts")], is_list=LIST)

shown()
"""


def on_terminal(columns, script, *arguments):
    """
    Return what a script prints on a terminal of so many columns (0: it doesn't tell), both streams.
    """
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen(
        [sys.executable, "-c", script, *arguments], stdout=theirs, stderr=theirs, stdin=theirs
    ) as child:
        os.close(theirs)
        told = b""
        with suppress(OSError):
            while part := os.read(ours, 4096):
                told += part
        os.close(ours)
        assert 0 == child.wait(timeout=30)
    return told.decode().splitlines()


def test_a_list_is_cut_on_a_narrow_terminal_and_says_how_to_see_all():
    """
    Lines that the terminal wraps can't be read down; what is lost must not be lost quietly.
    """
    script = LISTED.replace("LIST", "True")

    cut = on_terminal(20, script)
    wide = on_terminal(20, script, "--wide")

    assert "1    not enough slo…" == cut[1]
    assert 3 == len(cut)
    assert "--wide shows them." in cut[2]
    assert ["JOB  REASON", "1    not enough slots: 12 hosts"] == wide


@pytest.mark.parametrize("columns", [0, 80])
def test_a_list_is_whole_where_the_terminal_is_wide_or_does_not_tell(columns):
    """
    A terminal of unknown width has 0 columns for the system, which nothing fits into.
    """
    told = on_terminal(columns, LISTED.replace("LIST", "True"))

    assert ["JOB  REASON", "1    not enough slots: 12 hosts"] == told


def test_a_list_leaves_columns_out_so_that_its_last_one_can_be_read():
    """
    The reason is what people look for, and it was the first to be cut away; an empty column goes
    before any other, one that isn't spare never.
    """
    cells = ["JOB EMPTY QUEUE TASKS REASON".split(), "7 - normal 12".split()]
    cells[1].append("not enough slots")

    shown = output._narrowed(cells, 40, ["QUEUE"])
    narrower = output._narrowed(cells, 30, ["QUEUE"])

    assert ["JOB", "QUEUE", "TASKS", "REASON"] == shown[0]
    assert ["JOB", "TASKS", "REASON"] == narrower[0]
    assert narrower == output._narrowed(cells, 10, ["QUEUE"])
    assert cells == output._narrowed(cells, 80, ["QUEUE"])


REASONS = """
from tools.cli.output import table

table(
    ("JOB", "STATE", "NAME", "REASON"),
    [(1, "PEND", "short", "held"), (2, "PEND", "x", "not enough slots: 12 hosts; closed: 3 hosts"),
     (3, "RUN", "y", None)],
    is_list=True, spare="NAME", tells=True,
)
"""


@pytest.mark.parametrize("columns", [12, 20, 30, 40, 50, 60])
def test_a_reason_is_never_cut_however_narrow_the_terminal_is(columns):
    """
    It is what people look for: other columns give way, and then it stands below its line.
    """
    lines = on_terminal(columns, REASONS)
    told = " ".join(" ".join(lines).split())

    assert "not enough slots: 12 hosts; closed: 3 hosts" in told
    assert "held" in told
    assert all(len(line) <= columns for line in lines if "--wide" not in line)


def test_a_reason_stands_below_only_where_it_does_not_fit():
    """
    Lines are read down; one that is whole stays so, and a line of none has nothing below it.
    """
    narrow, less = on_terminal(30, REASONS), on_terminal(50, REASONS)

    assert [
        "JOB  STATE  NAME", "1    PEND   short", "    held", "2    PEND   x",
        "    not enough slots: 12", "    hosts; closed: 3 hosts", "3    RUN    y",
    ] == narrow  # fmt: skip
    assert [
        "JOB  STATE  NAME   REASON", "1    PEND   short  held", "2    PEND   x",
        "    not enough slots: 12 hosts; closed: 3 hosts", "3    RUN    y      -",
    ] == less  # fmt: skip


def test_other_tables_are_wrapped_in_their_last_column():
    """
    They are read line by line, and what a field means must not be cut away.
    """
    told = on_terminal(30, LISTED.replace("LIST", "False"))

    assert ["JOB  REASON", "1    not enough slots: 12", "     hosts"] == told


def test_a_moment_of_a_list_is_as_short_as_it_can_be():
    """
    Whole dates left no room for the reason on a terminal of 80 columns.
    """
    now_us = int(time.mktime((2026, 11, 30, 12, 0, 0, 0, 0, -1))) * output.US
    hour_us = 3600 * output.US

    assert "11:00:00" == output.show_moment(now_us - hour_us, now_us)
    assert "11-29 12:00" == output.show_moment(now_us - 24 * hour_us, now_us)
    assert "2025-11-30" == output.show_moment(now_us - 365 * 24 * hour_us, now_us)
    assert "-" == output.show_moment(None, now_us)


@pytest.mark.parametrize(
    ("zone", "shown"),
    [
        ("UTC", "2026-11-30T12:00:00Z"),
        ("CET-1", "2026-11-30T13:00:00+01:00"),
        ("NST+3:30", "2026-11-30T08:30:00-03:30"),
    ],
)
def test_a_moment_is_shown_as_it_can_be_given(monkeypatch, zone, shown):
    """
    Without its offset a local time can't be told from one of the log, which is in UTC.
    """
    noon_us = parse_time_us("2026-11-30T12:00:00Z")
    with monkeypatch.context() as patched:
        patched.setenv("TZ", zone)
        time.tzset()
        told = output.show_time(noon_us)
    time.tzset()

    assert shown == told
    assert noon_us == parse_time_us(told)


def test_a_last_column_without_room_beside_the_others_stands_below():
    """
    The terminal would break it anywhere, and the next line begins where a row does.
    """
    script = (
        "from tools.cli.output import table\n"
        "table(('POSITION', 'COMMAND', 'CHANGED'), [(1, 'define queue', 'priority: 30 -> 40'),"
        " (2, 'x', None)])"
    )

    assert [
        "POSITION  COMMAND",
        "1         define queue",
        "    priority: 30 -> 40",
        "2         x             -",
    ] == on_terminal(30, script)
