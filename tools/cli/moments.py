"""
Moments as people type them: LSF's [[[year:]month:]day:]hour:minute, or ISO 8601.
"""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta
from typing import Final

from domain.errors import Refused
from domain.units import EPOCH, SECOND_US, parse_time_us
from tools.cli.client import Json
from tools.cli.output import note, show_time

_FIELDS: Final = re.compile(r"(?:(?:(?:([0-9]{4}):)?([0-9]{1,2}):)?([0-9]{1,2}):)?"
                            r"([0-9]{1,2}):([0-9]{1,2})")  # fmt: skip
MONTHS_MAX: Final = 96
"""Within so many months every day of a year comes, the 29th of February after a year without."""

RULE: Final = (
    "must be [[[YEAR:]MONTH:]DAY:]HOUR:MINUTE in local time, or a time such as 2026-11-29T18:00:00Z"
)


def parse_moment_us(text: str, *, field: str, now_us: int) -> int:
    """
    Return a moment in microseconds UTC.

    What LSF's form leaves out is chosen so that the moment is the next one: "10:30" is that of
    tomorrow when today's is past. With a year it is that one, past or not. It is in the local time
    of this process; of an hour that comes twice the first is meant, and one that clocks are put
    forward by isn't there on that day.

    Raises:
        Refused: It is no moment.
    """
    found = _FIELDS.fullmatch(text.strip())
    if found is None:
        return parse_time_us(text, field=field, rule=RULE)
    year, month, day = (None if part is None else int(part) for part in found.groups()[:3])
    now = datetime.fromtimestamp(now_us // SECOND_US, UTC).astimezone().replace(tzinfo=None)
    for at in _days(now, year, month, day):
        if (moment_us := _moment_us(at, int(found[4]), int(found[5]))) is None:
            continue
        if year is not None or moment_us >= now_us - now_us % (60 * SECOND_US):
            return moment_us
    raise Refused(field, "must be a time that there is", text)


def _days(
    now: datetime, year: int | None, month: int | None, day: int | None
) -> list[datetime]:
    """
    Return the days that may be meant, the earliest first.
    """
    if day is None:
        today = now.replace(hour=0, minute=0, second=0, microsecond=0)
        # Two more, since one of them may lack the hour that clocks are put forward by.
        return [today + timedelta(days=later) for later in range(3)]
    if year is not None:
        firsts = [(year, month or 0)]
    else:
        count = now.year * 12 + now.month - 1
        firsts = [divmod(count + later, 12) for later in range(MONTHS_MAX + 1)]
        firsts = [(one, left + 1) for one, left in firsts]
    found = [_day(*first, day) for first in firsts if month in (None, first[1])]
    return [one for one in found if one is not None]


def _day(year: int, month: int, day: int) -> datetime | None:
    try:
        return datetime(year, month, day)  # noqa: DTZ001 - local, as it was typed
    except ValueError:
        return None


def _moment_us(day: datetime, hour: int, minute: int) -> int | None:
    """
    Return a local time of day as a moment, None when there is no such time on that day.
    """
    if hour > 23 or minute > 59 or day.year < 1970:
        return None
    local = day.replace(hour=hour, minute=minute)
    try:
        moment = local.astimezone(UTC)
        is_there = moment.astimezone().replace(tzinfo=None) == local
    except (OverflowError, ValueError):  # the last day that a date can be
        return None
    if not is_there:
        return None
    return (moment - EPOCH) // timedelta(microseconds=1)


PAST: Final = {
    "begin": ("-b", "begin_us", "nothing keeps the job back"),
    "deadline": ("-t", "deadline_us", "the job is ended instead of started, or at once"),
}
"""What it means that a moment is past, by the option's parameter."""


def tell_moments(options: Json, body: Json) -> None:
    """
    Say which moments were meant by what was typed without a date, and what it means that one is
    past.
    """
    now_us = time.time_ns() // 1000
    for name, (flag, field, means) in PAST.items():
        moment_us, typed = body.get(field), options[name]
        if moment_us is None:
            continue
        is_short = _FIELDS.fullmatch(str(typed).strip()) is not None
        if moment_us < now_us - now_us % (60 * SECOND_US):
            note(f"xce: {flag}: {show_time(moment_us)} is past: {means}.")
        elif is_short:
            note(f"xce: {flag}: {typed} means {show_time(moment_us)}.")
