"""
Moments in LSF's form, in local time, and in ISO 8601.
"""

from __future__ import annotations

import time
from datetime import datetime

import pytest

from domain.errors import Refused
from domain.units import parse_time_us, show_time
from tools.cli.moments import parse_moment_us, tell_moments

NOON = "2026-11-29T12:00:20Z"


@pytest.fixture
def zone(monkeypatch):
    """
    Return what sets the zone of this process.
    """

    def put(name: str) -> None:
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield put
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("12:00", "2026-11-29T12:00:00Z"),
        ("12:01", "2026-11-29T12:01:00Z"),
        ("11:59", "2026-11-30T11:59:00Z"),
        ("9:5", "2026-11-30T09:05:00Z"),
        ("29:13:00", "2026-11-29T13:00:00Z"),
        ("29:11:00", "2026-12-29T11:00:00Z"),
        ("31:0:00", "2026-12-31T00:00:00Z"),
        ("11:29:11:00", "2027-11-29T11:00:00Z"),
        ("12:24:18:30", "2026-12-24T18:30:00Z"),
        ("2:29:0:00", "2028-02-29T00:00:00Z"),
        ("2026:1:2:3:04", "2026-01-02T03:04:00Z"),
        ("2030:12:31:23:59", "2030-12-31T23:59:00Z"),
        (" 2026-11-29T18:00:00+02:00 ", "2026-11-29T16:00:00Z"),
    ],
)
def test_what_is_left_out_makes_it_the_next_such_moment(zone, text, moment):
    """
    LSF's [[[year:]month:]day:]hour:minute; only a year says that a past one is meant.
    """
    zone("UTC")

    found_us = parse_moment_us(text, field="-b", now_us=parse_time_us(NOON))

    assert moment == show_time(found_us)


def test_a_moment_is_in_local_time_whatever_the_season(zone):
    """
    A user types what the clock on the wall will say then; the job has one moment.
    """
    zone("Europe/Berlin")
    now_us = parse_time_us(NOON)

    assert "2026-11-30T09:30:00Z" == show_time(
        parse_moment_us("10:30", field="-b", now_us=now_us)
    )
    assert "2027-07-01T08:30:00Z" == show_time(
        parse_moment_us("7:1:10:30", field="-b", now_us=now_us)
    )
    # 2027-10-31 has the hour from 2 to 3 twice.
    assert "2027-10-31T00:30:00Z" == show_time(
        parse_moment_us("2027:10:31:2:30", field="-b", now_us=now_us)
    )


def test_a_time_that_clocks_leave_out_is_no_moment(zone):
    """
    It was an hour earlier, before what was asked; without a year the next day that has it is meant.
    """
    zone("Europe/Berlin")
    # On 2027-03-28 the clocks go from 2 to 3.
    for text in ("2027:3:28:2:00", "2027:3:28:2:30", "2027:3:28:2:59"):
        with pytest.raises(Refused, match="must be a time that there is"):
            parse_moment_us(text, field="-b", now_us=0)
    for name in ("America/New_York", "Asia/Tokyo"):
        zone(name)
        with pytest.raises(Refused, match="must be a time that there is"):
            parse_moment_us("9999:12:31:23:59", field="-b", now_us=0)
    zone("Europe/Berlin")
    for text, now, moment in (
        ("2027:3:28:1:59", "2027-03-01T00:00:00Z", "2027-03-28T00:59:00Z"),
        ("2027:3:28:3:00", "2027-03-01T00:00:00Z", "2027-03-28T01:00:00Z"),
        ("2:30", "2027-03-27T12:00:00Z", "2027-03-29T00:30:00Z"),
        ("2:30", "2027-03-28T12:00:00Z", "2027-03-29T00:30:00Z"),
        ("28:2:30", "2027-03-27T12:00:00Z", "2027-04-28T00:30:00Z"),
    ):
        found_us = parse_moment_us(text, field="-b", now_us=parse_time_us(now))
        assert moment == show_time(found_us), text


@pytest.mark.parametrize(
    "text",
    ["24:00", "10:60", "2026:2:30:0:00", "13:1:0:00", "32:0:00", "0:0:00", "1969:1:1:0:00"],
)
def test_a_moment_that_there_never_is_is_refused(text):
    """
    Nothing is rounded to the next day behind a user's back.
    """
    with pytest.raises(Refused) as refused:
        parse_moment_us(text, field="-b", now_us=parse_time_us(NOON))

    assert ("-b", "must be a time that there is") == (refused.value.field, refused.value.rule)


@pytest.mark.parametrize("text", ["", "tomorrow", "10", "1:2:3:4:5:6", "10:3x", "27:1:1:1:00:00"])
def test_what_is_no_moment_is_told_both_forms(text):
    """
    Whoever knows one of them learns the other.
    """
    with pytest.raises(Refused) as refused:
        parse_moment_us(text, field="-t", now_us=parse_time_us(NOON))

    assert "[[[YEAR:]MONTH:]DAY:]HOUR:MINUTE in local time, or a time such as" in refused.value.rule


def test_which_moment_is_meant_is_told_and_that_one_is_past(zone, capsys):
    """
    Nobody counts days in their head; a past one isn't refused, so it must be said what it means.
    """
    zone("UTC")
    later = (datetime.now().hour + 2) % 24  # noqa: DTZ005 - local, as it is typed
    options = {"begin": f"{later}:00", "deadline": "2026:1:1:0:00"}
    now_us = time.time_ns() // 1000
    body = {
        "begin_us": parse_moment_us(options["begin"], field="-b", now_us=now_us),
        "deadline_us": parse_moment_us(options["deadline"], field="-t", now_us=now_us),
    }

    tell_moments(options, body)
    told = capsys.readouterr().err.splitlines()
    tell_moments({"begin": None, "deadline": "none"}, {"deadline_us": None})

    assert f"xce: -b: {later}:00 means {show_time(body['begin_us'])}." == told[0]
    assert "-t: 2026-01-01T00:00:00Z is past: the job is ended" in told[1]
    assert "" == capsys.readouterr().err
