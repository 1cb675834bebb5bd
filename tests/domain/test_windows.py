"""
Windows in local time, over midnight, over the week's end and through changes of the clocks.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.errors import Refused
from domain.units import DAY_US, MINUTE_US, parse_time_us, show_time
from domain.windows import (
    ALWAYS,
    DAY_MINUTES,
    WEEK_MINUTES,
    Window,
    Windows,
    is_open,
    next_change_us,
    parse_windows,
    show_windows,
)
from domain.zones import (
    local_time,
    parse_local_time_us,
    transitions,
    zone_of,
    zones_version,
)

BERLIN = "Europe/Berlin"
SUNDAY_US = parse_time_us("2026-11-29T00:00:00Z")


def at(text):
    return parse_time_us(text)


def opening(text, when, zone="UTC"):
    return is_open(parse_windows(text, zone=zone), at(when))


def change_after(text, when, zone="UTC"):
    changes_us = next_change_us(parse_windows(text, zone=zone), at(when))
    return None if changes_us is None else show_time(changes_us)


def test_a_window_is_open_from_its_first_minute_up_to_its_last():
    """
    18:00 is outside 8:00-18:00, so that windows can follow each other without a gap or an overlap.
    """
    expected = {
        "07:59:59.999999": False,
        "08:00:00": True,
        "17:59:59.999999": True,
        "18:00:00": False,
    }

    assert expected == {clock: opening("08:00-18:00", f"2026-11-29T{clock}Z") for clock in expected}


def test_a_window_may_go_over_midnight():
    """
    19:00-7:00 is open in the night.
    """
    assert opening("19:00-7:00", "2026-11-29T23:00:00Z")
    assert opening("19-7", "2026-11-29T06:59:00Z")
    assert not opening("19:00-7:00", "2026-11-29T07:00:00Z")


def test_a_weekly_window_may_go_over_the_weeks_end():
    """
    5:19:00-1:8:30 is Friday evening to Monday morning; Sunday is 0.
    """
    text = "5:19:00-1:8:30"

    assert opening(text, "2026-11-29T12:00:00Z")
    assert opening(text, "2026-11-27T19:00:00Z")
    assert not opening(text, "2026-11-27T18:59:00Z")
    assert opening(text, "2026-11-30T08:29:00Z")
    assert not opening(text, "2026-11-30T08:30:00Z")
    assert "2026-12-04T19:00:00Z" == change_after(text, "2026-11-30T08:30:00Z")


def test_several_windows_are_open_when_one_of_them_is():
    """
    They are separated by blanks or commas.
    """
    text = "8:00-9:00 10:00-11:00, 10:30-12:00"

    assert [True, False, True, True, False] == [
        opening(text, f"2026-11-29T{clock}:00Z")
        for clock in ("08:30", "09:30", "10:45", "11:59", "12:00")
    ]
    assert "2026-11-29T12:00:00Z" == change_after(text, "2026-11-29T10:45:00Z")


def test_without_windows_it_is_always_open():
    """
    And never changes; the same for windows that cover the whole day.
    """
    assert is_open(ALWAYS, 0)
    assert next_change_us(ALWAYS, 0) is None
    assert ALWAYS == parse_windows("")
    assert change_after("0:00-12:00 12:00-24:00", "2026-11-29T12:00:00Z") is None


@pytest.mark.parametrize(
    "text",
    ["8:00", "8:00-", "x-y", "25:00-26:00", "24:00-8:00", "8:60-9:00", "7:08:00-1:08:00",
     "1:8:00-9:00",
     "8:00-8:00", "8:00-18:00 nonsense", "1:2:3:4-5:6", "24:01-2:00", "8:00-24:30"],
)  # fmt: skip
def test_a_wrong_window_is_refused(text):
    """
    A queue that silently never opened would be worse.
    """
    with pytest.raises(Refused) as refused:
        parse_windows(text, field="run_window")

    assert "run_window" == refused.value.field


def test_an_unknown_zone_is_refused():
    """
    And no name reaches other files.
    """
    for name in ("Mars/Base", "../zones", "tzdata.zi", "zone.tab", "leapseconds", "", "Europe"):
        with pytest.raises(Refused):
            zone_of(name)
    assert zones_version()[:2] == "20"


def test_zones_do_not_come_from_the_machine(monkeypatch):
    """
    Decisions must not depend on the machine's time zone files.
    """
    monkeypatch.setenv("PYTHONTZPATH", "/nonexistent")
    zone_of.cache_clear()

    assert timedelta(hours=1) == local_time(SUNDAY_US, zone_of(BERLIN)).utcoffset()


# ------------------------------------------------------------------------- changes of the clocks


def test_a_window_goes_by_the_clocks_of_its_zone():
    """
    8:00 in Berlin is 7:00 UTC in winter and 6:00 UTC in summer.
    """
    assert "2026-01-15T07:00:00Z" == change_after("8:00-18:00", "2026-01-15T00:00:00Z", BERLIN)
    assert "2026-07-15T06:00:00Z" == change_after("8:00-18:00", "2026-07-15T00:00:00Z", BERLIN)


def test_a_window_that_begins_in_the_hour_put_forward_opens_when_the_clocks_jump():
    """
    On 2026-03-29 clocks in Berlin go from 2:00 to 3:00: at 3:00, 2:30-4:00 is open.
    """
    assert "2026-03-29T01:00:00Z" == change_after("2:30-4:00", "2026-03-28T12:00:00Z", BERLIN)
    assert "2026-03-29T02:00:00Z" == change_after("2:30-4:00", "2026-03-29T01:00:00Z", BERLIN)


def test_a_window_within_the_hour_put_forward_is_left_out_that_day():
    """
    2:15-2:45 doesn't happen on 2026-03-29; the next one is a day later.
    """
    assert "2026-03-30T00:15:00Z" == change_after("2:15-2:45", "2026-03-28T12:00:00Z", BERLIN)
    assert "2026-04-05T00:15:00Z" == change_after("0:2:15-0:2:45", "2026-03-28T12:00:00Z", BERLIN)


def test_a_window_in_the_hour_put_back_is_open_twice():
    """
    On 2026-10-25 clocks in Berlin show 2:00 to 3:00 twice.
    """
    edges = ["2026-10-24T22:00:00Z"]
    for _ in range(4):
        edges.append(change_after("2:15-2:45", edges[-1], BERLIN))

    clocks = ["25T00:15", "25T00:45", "25T01:15", "25T01:45"]
    assert clocks == [edge[8:16] for edge in edges[1:]]


def test_the_days_on_which_clocks_change_are_found():
    """
    To the second, also where the change is half an hour.
    """
    year = (at("2026-01-01T00:00:00Z"), at("2027-01-01T00:00:00Z"))

    assert ["2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z"] == [
        show_time(each) for each in transitions(*year, zone_of(BERLIN))
    ]
    assert ["2026-04-04T15:00:00Z", "2026-10-03T15:30:00Z"] == [
        show_time(each) for each in transitions(*year, zone_of("Australia/Lord_Howe"))
    ]
    assert () == transitions(*year, zone_of("UTC"))


minutes = st.integers(0, DAY_MINUTES - 1)
daily = st.tuples(minutes, minutes).filter(lambda ends: ends[0] != ends[1])
windows = st.builds(
    lambda ends: Window(begin_minute=ends[0], end_minute=ends[1]), daily
) | st.builds(
    lambda ends, days: Window(
        begin_minute=ends[0] + days[0] * DAY_MINUTES,
        end_minute=ends[1] + days[1] * DAY_MINUTES,
        is_weekly=True,
    ),
    daily,
    st.tuples(st.integers(0, 6), st.integers(0, 6)),
)
several = st.builds(
    lambda found, zone: Windows(windows=tuple(found), zone=zone),
    st.lists(windows, min_size=1, max_size=3),
    st.sampled_from(["UTC", BERLIN, "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"]),
)


@given(several)
def test_parse_is_the_inverse_of_show(found):
    """
    What is shown can be configured again.
    """
    assert found == parse_windows(show_windows(found), zone=found.zone)


@pytest.mark.slow
@settings(max_examples=25)
@given(several, st.integers(0, 400 * 24 * 4))
def test_the_next_change_is_the_first_one_that_a_minute_by_minute_walk_finds(found, quarter):
    """
    Against the obvious way: nothing changes before the answer, and something does at it.
    """
    start_us = SUNDAY_US + quarter * 15 * MINUTE_US
    changes_us = next_change_us(found, start_us)
    end_us = start_us + 2 * DAY_US if changes_us is None else min(changes_us, start_us + 2 * DAY_US)

    state = is_open(found, start_us)
    walked = (start_us + step * MINUTE_US for step in range((end_us - start_us) // MINUTE_US))
    assert all(is_open(found, each) == state for each in walked)
    assert changes_us is None or is_open(found, changes_us) != state


def test_times_beyond_the_calendar_are_answered():
    """
    A stamp may be as large as its field allows.
    """
    assert next_change_us(parse_windows("8:00-18:00"), 2**62) is None
    assert WEEK_MINUTES == 7 * DAY_MINUTES


# ----------------------------------------------------------------------------------- begin times


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("20:00", "2026-11-29T19:00:00Z"),
        ("8:00", "2026-11-30T07:00:00Z"),
        ("30:8:00", "2026-11-30T07:00:00Z"),
        ("31:8:00", "2026-12-31T07:00:00Z"),
        ("1:8:00", "2026-12-01T07:00:00Z"),
        ("2:28:8:00", "2027-02-28T07:00:00Z"),
        ("2:29:8:00", "2028-02-29T07:00:00Z"),
        ("7:1:8:00", "2027-07-01T06:00:00Z"),
        ("2030:7:1:8:00", "2030-07-01T06:00:00Z"),
        ("2020:7:1:8:00", "2020-07-01T06:00:00Z"),
    ],
)
def test_a_begin_time_lies_ahead_unless_its_year_is_named(text, expected):
    """
    Whatever is left out is taken so that it does.
    """
    now_us = at("2026-11-29T12:00:00Z")

    assert expected == show_time(parse_local_time_us(text, now_us=now_us, zone=zone_of(BERLIN)))


@pytest.mark.parametrize(
    "text", ["", "8", "25:00", "8:60", "32:8:00", "13:1:8:00", "2:30:8:00", "2026:2:29:8:00"]
)
def test_a_begin_time_that_the_calendar_lacks_is_refused(text):
    """
    The job would otherwise wait for ever.
    """
    with pytest.raises(Refused):
        parse_local_time_us(text, now_us=SUNDAY_US, zone=zone_of("UTC"))


def test_local_time_is_exact():
    """
    To the microsecond, without floats.
    """
    moment = local_time(1_234_567_890_123_457, zone_of("UTC"))

    assert datetime(2009, 2, 13, 23, 31, 30, 123457, tzinfo=UTC) == moment
