"""
Time zones from the pinned tzdata package, never from the machine's own files; times of day in them.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from importlib import resources
from typing import Final
from zoneinfo import ZoneInfo

from domain.errors import Refused
from domain.units import EPOCH, SECOND_US

UTC_NAME: Final = "UTC"

TIME_MAX_US: Final = (datetime(9990, 1, 1, tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
"""Later times are taken for this one: the calendar ends soon after it."""

_NAME: Final = re.compile(r"[A-Za-z0-9_+-]{1,40}(/[A-Za-z0-9_+-]{1,40}){0,3}")
_BEGIN: Final = re.compile(
    r"(?:(?:(?:([0-9]{4}):)?([0-9]{1,2}):)?([0-9]{1,2}):)?([0-9]{1,2}):([0-9]{2})"
)


@lru_cache(maxsize=64)
def zone_of(name: str, *, field: str = "time_zone") -> ZoneInfo:
    """
    Return a time zone by its name, such as Europe/Berlin.

    Raises:
        Refused: There is none of that name.
    """
    if _NAME.fullmatch(name) is not None:
        path = resources.files("tzdata").joinpath("zoneinfo", *name.split("/"))
        if path.is_file():
            with path.open("rb") as file:
                return _zone_from(file, name, field)
    raise Refused(field, "must be a time zone of the IANA database, such as Europe/Berlin", name)


def _zone_from(file: object, name: str, field: str) -> ZoneInfo:
    try:
        return ZoneInfo.from_file(file, key=name)  # type: ignore[arg-type]
    except ValueError:
        raise Refused(
            field, "must be a time zone, not another file of the database", name
        ) from None


@lru_cache(maxsize=1)
def zones_version() -> str:
    """
    Return the version of the time zone data ("2025b"), which belongs to what decisions depend on.
    """
    path = resources.files("tzdata").joinpath("zoneinfo", "tzdata.zi")
    with path.open("r", encoding="utf-8") as file:
        return file.readline().removeprefix("# version").strip()


def local_time(time_us: int, zone: ZoneInfo) -> datetime:
    """
    Return what the clocks of a zone show at a time.
    """
    clamped = min(time_us, TIME_MAX_US)
    return (EPOCH + timedelta(microseconds=clamped)).astimezone(zone)


def time_us_of(moment: datetime) -> int:
    """
    Return the time at which the clocks show *moment* (which knows its zone and, when repeated, its
    fold).
    """
    return (moment.astimezone(UTC) - EPOCH) // timedelta(microseconds=1)


def offset_us(time_us: int, zone: ZoneInfo) -> int:
    """
    Return how far the clocks of a zone are ahead of UTC at a time.
    """
    offset = local_time(time_us, zone).utcoffset()
    assert offset is not None
    return offset // timedelta(microseconds=1)


def transitions(after_us: int, until_us: int, zone: ZoneInfo) -> tuple[int, ...]:
    """
    Return the times in a span at which the clocks of a zone are put forward or back.

    Two transitions within six hours of each other that undo one another aren't found; no zone has
    ever had any.
    """
    step_us = 6 * 3600 * SECOND_US
    found = []
    low_us = after_us
    while low_us < until_us:
        high_us = min(low_us + step_us, until_us)
        if offset_us(low_us, zone) != offset_us(high_us, zone):
            found.append(_transition_between(low_us, high_us, zone))
        low_us = high_us
    return tuple(found)


def _transition_between(low_us: int, high_us: int, zone: ZoneInfo) -> int:
    before_us = offset_us(low_us, zone)
    low, high = low_us // SECOND_US, -(-high_us // SECOND_US)
    while high - low > 1:
        middle = (low + high) // 2
        if offset_us(middle * SECOND_US, zone) == before_us:
            low = middle
        else:
            high = middle
    return high * SECOND_US


def parse_local_time_us(text: str, *, now_us: int, zone: ZoneInfo, field: str = "time") -> int:
    """
    Return the next time that LSF's ``[[[year:]month:]day:]hour:minute`` names, as -b and -t take
    it.

    What is left out is taken so that the time lies ahead: today or tomorrow, this month or the next
    one with that day, this year or the next one with that date. A full date is taken as it is.

    Raises:
        Refused: It isn't such a time, or there is no such day.
    """
    match = _BEGIN.fullmatch(text.strip())
    if match is None:
        raise Refused(field, "must be [[[year:]month:]day:]hour:minute", text)
    year, month, day, hour, minute = (
        None if part is None else int(part) for part in match.groups()
    )
    now = local_time(now_us, zone)
    for tried in range(12 * 8 + 1):
        moment = _moment(now, tried, (year, month, day), (hour or 0, minute or 0))
        if moment is None:
            continue
        time_us = time_us_of(moment.replace(tzinfo=zone))
        if time_us >= now_us or year is not None:
            return time_us
    raise Refused(field, "must be a day and time that the calendar has", text)


def _moment(
    now: datetime,
    tried: int,
    date: tuple[int | None, int | None, int | None],
    clock: tuple[int, int],
) -> datetime | None:
    """
    Return the candidate number *tried* for a time whose leading parts are left out, None where
    there is none.
    """
    year, month, day = date
    try:
        if year is not None and month is not None and day is not None:
            return datetime(year, month, day, *clock) if tried == 0 else None  # noqa: DTZ001
        if month is not None and day is not None:
            return datetime(now.year + tried, month, day, *clock)  # noqa: DTZ001
        if day is not None:
            months = now.year * 12 + now.month - 1 + tried
            return datetime(months // 12, months % 12 + 1, day, *clock)  # noqa: DTZ001
        today = datetime(now.year, now.month, now.day, *clock)  # noqa: DTZ001
        return today + timedelta(days=tried)
    except ValueError:
        return None
