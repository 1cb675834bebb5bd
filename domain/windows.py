"""
Run and dispatch windows: is one open at a time, and when does that change next.

A window is written in local time: ``8:00-18:00`` every day, ``5:19:00-1:8:30`` from Friday evening
to Monday morning (Sunday is 0). It is open from its first minute up to, but not in, its last one.
Where clocks are put forward or back, what the clocks show decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Annotated, Final
from zoneinfo import ZoneInfo

from pydantic import Field

from domain.event import Value
from domain.ids import MaybeName
from domain.texts import NotUnderstood
from domain.units import DAY_US
from domain.zones import UTC_NAME, local_time, time_us_of, transitions, zone_of

DAY_MINUTES: Final = 24 * 60
WEEK_MINUTES: Final = 7 * DAY_MINUTES

HORIZONS_DAYS: Final = (2, 16)
"""How far ahead a change is looked for: most are near; every window comes twice within the
second."""

_PIECE: Final = re.compile(r"[^\s,]+")
_TIME: Final = r"(?:([0-9]{1,2}):)?([0-9]{1,2}):([0-9]{2})|([0-9]{1,2})"
_WINDOW: Final = re.compile(rf"(?:{_TIME})-(?:{_TIME})")


class Window(Value):
    """
    Hold one window in minutes of the day, or of the week from Sunday on; one that ends before it
    begins goes round.
    """

    begin_minute: Annotated[int, Field(ge=0, lt=WEEK_MINUTES)]
    end_minute: Annotated[int, Field(ge=0, le=WEEK_MINUTES)]
    is_weekly: bool = False

    def holds(self, day: int, minute: int) -> bool:
        """
        Say whether it is open on a day of the week (Sunday is 0) in a minute of the day.
        """
        at = day * DAY_MINUTES + minute if self.is_weekly else minute
        if self.begin_minute < self.end_minute:
            return self.begin_minute <= at < self.end_minute
        return at >= self.begin_minute or at < self.end_minute

    def edges(self, day: int) -> Iterator[int]:
        """
        Yield the minutes of that day at which it begins or ends.
        """
        for edge in (self.begin_minute, self.end_minute):
            if not self.is_weekly or edge % WEEK_MINUTES // DAY_MINUTES == day:
                yield edge % DAY_MINUTES


class Windows(Value):
    """
    Hold the windows of a queue or host; without any it is always open.

    Args:
        zone: Name of the time zone whose clocks they go by.
    """

    windows: tuple[Window, ...] = ()
    zone: MaybeName = UTC_NAME


ALWAYS: Final = Windows()
"""No windows: always open."""


def parse_windows(text: str, *, zone: str = UTC_NAME, field: str = "windows") -> Windows:
    """
    Return the windows of a text such as ``8:00-18:00 5:19:00-1:8:30``; an empty text is always
    open.

    Raises:
        Refused: A window isn't as LSF has it, or there is no such zone.
    """
    zone_of(zone)
    windows = tuple(_window(piece, text, field) for piece in _PIECE.finditer(text))
    return Windows(windows=windows, zone=zone)


def _window(piece: re.Match[str], text: str, field: str) -> Window:
    match = _WINDOW.fullmatch(piece[0])
    column = piece.start() + 1
    if match is None:
        rule = "expected [day:]hour[:minute]-[day:]hour[:minute]"
        raise NotUnderstood(field, rule, text, column)
    begin, end = (
        tuple(None if part is None else int(part) for part in match.groups()[at : at + 4])
        for at in (0, 4)
    )
    is_weekly = begin[0] is not None
    if is_weekly != (end[0] is not None):
        rule = "both ends must name a day of the week, or neither"
        raise NotUnderstood(field, rule, text, column)
    begin_minute = _minute(begin, latest=DAY_MINUTES - 1)
    end_minute = _minute(end, latest=DAY_MINUTES)
    if begin_minute is None or end_minute is None:
        rule = "days go from 0 (Sunday) to 6, hours to 23, minutes to 59"
        raise NotUnderstood(field, rule, text, column)
    if begin_minute == end_minute:
        raise NotUnderstood(field, "must end at another time than it begins", text, column)
    return Window(begin_minute=begin_minute, end_minute=end_minute, is_weekly=is_weekly)


def _minute(parts: tuple[int | None, ...], *, latest: int) -> int | None:
    """
    Return the minute of the day or week, None when the clock has no such time; 24:00 may end a day.
    """
    day, hour, minute, bare_hour = parts
    hour, minute = (bare_hour, 0) if hour is None else (hour, minute or 0)
    assert hour is not None
    if (day or 0) > 6 or minute > 59 or hour * 60 + minute > latest:
        return None
    return (day or 0) * DAY_MINUTES + hour * 60 + minute


def show_windows(windows: Windows) -> str:
    """
    Return windows as they are written, without their zone.
    """
    return " ".join(_show_window(window) for window in windows.windows)


def _show_window(window: Window) -> str:
    ends = []
    for at, minute in enumerate((window.begin_minute, window.end_minute)):
        is_end_of_day = at == 1 and minute % DAY_MINUTES == 0 and minute > 0
        day, rest = divmod(minute - is_end_of_day, DAY_MINUTES)
        rest += is_end_of_day
        clock = f"{rest // 60:02d}:{rest % 60:02d}"
        ends.append(f"{day}:{clock}" if window.is_weekly else clock)
    return "-".join(ends)


def is_open(windows: Windows, time_us: int) -> bool:
    """
    Say whether any window is open at a time.
    """
    return not windows.windows or _is_open(windows, zone_of(windows.zone), time_us)


def _is_open(windows: Windows, zone: ZoneInfo, time_us: int) -> bool:
    moment = local_time(time_us, zone)
    day, minute = moment.isoweekday() % 7, moment.hour * 60 + moment.minute
    return any(window.holds(day, minute) for window in windows.windows)


def next_change_us(windows: Windows, time_us: int) -> int | None:
    """
    Return the first later time at which the windows open or close, None when they never do.
    """
    if not windows.windows:
        return None
    zone = zone_of(windows.zone)
    is_open_now = _is_open(windows, zone, time_us)
    for days in HORIZONS_DAYS:
        until_us = time_us + days * DAY_US
        for candidate_us in _candidates(windows, zone, time_us, until_us):
            if _is_open(windows, zone, candidate_us) != is_open_now:
                return candidate_us
    return None


def _candidates(windows: Windows, zone: ZoneInfo, after_us: int, until_us: int) -> list[int]:
    """
    Return every time in a span at which something could change: edges of windows, and changes of
    the clocks.
    """
    found = set(transitions(after_us, until_us, zone))
    day = local_time(after_us, zone).replace(tzinfo=None, hour=0, minute=0, second=0, microsecond=0)
    last = local_time(until_us, zone).replace(tzinfo=None)
    while day <= last:
        weekday = day.isoweekday() % 7
        for window in windows.windows:
            for minute in window.edges(weekday):
                found.update(_times(day + timedelta(minutes=minute), zone))
        day += timedelta(days=1)
    return sorted(found_us for found_us in found if after_us < found_us <= until_us)


def _times(clock: datetime, zone: ZoneInfo) -> Iterator[int]:
    """
    Yield the times at which the clocks of a zone show something: two where it is repeated.
    """
    for fold in (0, 1):
        yield time_us_of(clock.replace(tzinfo=zone, fold=fold))
