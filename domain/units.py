"""
Amounts, memory, durations and times: parse and show, always whole numbers, never floats.

An amount is in thousandths of its base unit. The base unit of memory is the KiB, and LSF's suffixes
are
binary: 1 MB = 1024 KiB. Durations and times are microseconds, times in UTC.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from fractions import Fraction
from typing import Final

from domain.errors import Refused

MILLI: Final = 1000
"""Thousandths in one base unit."""

MEMORY_NAMES: Final = frozenset({"mem", "swp", "tmp", "maxmem", "maxswp", "maxtmp"})
"""The built-in resources that are measured in units of memory."""

SECOND_US: Final = 1_000_000
MINUTE_US: Final = 60 * SECOND_US
HOUR_US: Final = 60 * MINUTE_US
DAY_US: Final = 24 * HOUR_US

AMOUNT_MAX_MILLI: Final = 2**63 - 1
"""What a stored amount can hold."""

DURATION_MAX_US: Final = 2**62

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)

_NUMBER: Final = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_QUANTITY: Final = re.compile(rf"({_NUMBER})\s*([A-Za-z]*)")
_RUN_LIMIT: Final = re.compile(r"(?:([0-9]{1,6}):)?([0-9]{1,9})")
_DIGITS_MAX: Final = 25
"""More digits than any amount needs; longer ones are refused before any arithmetic."""


_COUNT_DIGITS_MAX: Final = 18


class MemoryUnit(StrEnum):
    """
    Name a unit of memory, as LSF writes it.
    """

    KB = "KB"
    MB = "MB"
    GB = "GB"
    TB = "TB"
    PB = "PB"
    EB = "EB"
    ZB = "ZB"

    @property
    def kib(self) -> int:
        """
        Return how many KiB it holds.
        """
        return _UNIT_KIB[self]


_UNIT_KIB: Final[dict[MemoryUnit, int]] = {
    unit: 1024**power for power, unit in enumerate(MemoryUnit)
}
_SUFFIXES: Final = {name: unit for unit in MemoryUnit for name in (unit.value, unit.value[0])}
_DURATIONS_US: Final = {"h": HOUR_US, "m": MINUTE_US, "s": SECOND_US}
"""What a requirement's durations may end in, as in LSF."""

_UNITS_US: Final = {"d": DAY_US, **_DURATIONS_US, "ms": 1000, "us": 1}
_NUMBER_ALONE: Final = re.compile(_NUMBER)
_DURATION: Final = re.compile(
    "(?=.)" + "".join(rf"(?:{_NUMBER}\s*{unit}\s*)?" for unit in _UNITS_US)
)
_DURATION_PART: Final = re.compile(rf"({_NUMBER})\s*(d|h|ms|m|us|s)")


def memory_unit_of(suffix: str) -> MemoryUnit | None:
    """
    Return the unit that a suffix (K, KB, M ... ZB, in any case) names, or None when it names none.
    """
    return _SUFFIXES.get(suffix.upper())


def whole_number(text: str) -> int | None:
    """
    Return a number that is written in decimal digits, None for what is none, or too long for any
    count: Python itself refuses to read some thousand digits.
    """
    is_one = text.isascii() and text.isdigit() and len(text) <= _COUNT_DIGITS_MAX
    return int(text) if is_one else None


def split_quantity(text: str, *, field: str) -> tuple[Fraction, str]:
    """
    Return the exact number that a text begins with, and the letters after it.

    Raises:
        Refused: The text is no number with optional letters.
    """
    match = _QUANTITY.fullmatch(text.strip())
    if match is None or len(match[1]) > _DIGITS_MAX:
        raise Refused(field, "must be a number, such as 4, 0.5 or 2GB", text)
    whole, _, decimals = match[1].partition(".")
    return Fraction(int((whole + decimals) or "0"), 10 ** len(decimals)), match[2]


def parse_milli(text: str, *, field: str = "amount") -> int:
    """
    Return a plain number in thousandths.

    Raises:
        Refused: It is no number, has a suffix, more than three decimals, or is too large.
    """
    number, suffix = split_quantity(text, field=field)
    if suffix:
        raise Refused(field, "must be a plain number: this isn't an amount of memory", text)
    milli = number * MILLI
    if milli.denominator != 1:
        raise Refused(field, "must have at most three decimals", text)
    return checked_milli(milli.numerator, field=field, text=text)


def parse_memory_milli(text: str, *, unit: MemoryUnit, field: str = "memory") -> int:
    """
    Return an amount of memory in thousandths of a KiB; a number without a suffix is in *unit*.

    What isn't a whole thousandth of a KiB is rounded up: a reservation is never smaller than asked
    for.

    Raises:
        Refused: It is no number, its suffix is unknown, or it is too large.
    """
    number, suffix = split_quantity(text, field=field)
    chosen = memory_unit_of(suffix) if suffix else unit
    if chosen is None:
        raise Refused(field, "must end in K, M, G, T, P, E or Z, with or without B", text)
    milli = number * chosen.kib * MILLI
    return checked_milli(-(-milli.numerator // milli.denominator), field=field, text=text)


def checked_milli(milli: int, *, field: str, text: str) -> int:
    """
    Return an amount that can be stored.

    Raises:
        Refused: It is larger than any stored amount.
    """
    if milli > AMOUNT_MAX_MILLI:
        raise Refused(field, f"must be at most {AMOUNT_MAX_MILLI // MILLI} base units", text)
    return milli


def memory_limit_kib(text: str, *, unit: MemoryUnit, field: str = "memory_limit") -> int:
    """
    Return a memory limit in KiB, rounded up to a whole number of the cluster's unit as LSF does.

    Raises:
        Refused: As for any amount of memory.
    """
    milli = parse_memory_milli(text, unit=unit, field=field)
    return -(-milli // (unit.kib * MILLI)) * unit.kib


def show_amount_rounded(resource: str, milli: int) -> str:
    """
    Return an amount as people read it: of memory the last digits are noise.
    """
    return show_memory_rounded(milli) if resource in MEMORY_NAMES else show_milli(milli)


def show_milli(milli: int) -> str:
    """
    Return thousandths as a decimal number: 1500 is "1.5".
    """
    sign = "-" if milli < 0 else ""
    whole, rest = divmod(abs(milli), MILLI)
    return f"{sign}{whole}" if not rest else f"{sign}{whole}.{rest:03d}".rstrip("0")


def show_memory(milli: int) -> str:
    """
    Return thousandths of a KiB in the largest unit that needs no decimals: 524288000 is "512MB".
    """
    for unit in reversed(MemoryUnit):
        if milli and milli % (unit.kib * MILLI) == 0:
            return f"{milli // (unit.kib * MILLI)}{unit.value}"
    return f"{show_milli(milli)}KB"


def show_memory_rounded(milli: int) -> str:
    """
    Return thousandths of a KiB for people, rounded down to a tenth: 22947582000 is "21.8GB".
    """
    for unit in reversed(MemoryUnit):
        tenths = milli * 10 // (unit.kib * MILLI)
        if tenths >= 10:
            whole, rest = divmod(tenths, 10)
            return f"{whole}.{rest}{unit.value}" if rest else f"{whole}{unit.value}"
    return f"{show_milli(milli)}KB"


def parse_duration_us(text: str, *, field: str = "duration", alone: str = "minutes") -> int:
    """
    Return a duration as it is shown: "1h30m", "4m7.5s", "250ms"; a number alone is minutes.

    Args:
        text: What was given.
        field: What a refusal names.
        alone: What a refusal says that a number without a unit is.

    Raises:
        Refused: It is no such duration, or not a whole number of microseconds.
    """
    given = text.strip()
    if _NUMBER_ALONE.fullmatch(given):
        given += "m"
    if len(given) > _DIGITS_MAX * len(_UNITS_US) or not _DURATION.fullmatch(given):
        raise Refused(field, f"must be {alone}, or have units: 1h30m, 90s, 2d, 250ms", text)
    parts = [(Fraction(number), unit) for number, unit in _DURATION_PART.findall(given)]
    return _checked_us(sum(number * _UNITS_US[unit] for number, unit in parts), field, text)


def parse_lsf_duration_us(text: str, *, field: str = "duration") -> int:
    """
    Return a duration of a resource requirement: a number of minutes, or one that ends in h, m or s.

    Raises:
        Refused: It is no such duration, or not a whole number of microseconds.
    """
    number, suffix = split_quantity(text, field=field)
    unit_us = _DURATIONS_US.get(suffix or "m")
    if unit_us is None:
        raise Refused(field, "must be minutes, or end in h, m or s", text)
    return _checked_us(number * unit_us, field, text)


def _checked_us(duration_us: Fraction | int, field: str, text: str) -> int:
    exact = Fraction(duration_us)
    if exact.denominator != 1 or exact > DURATION_MAX_US:
        raise Refused(
            field, "must be a whole number of microseconds, less than 100,000 years", text
        )
    return exact.numerator


def show_duration(duration_us: int) -> str:
    """
    Return a duration exactly, as it can be given: "1h30m", "3d2h", "4m7.5s", "250ms", "90us".
    """
    if 0 < duration_us < SECOND_US:
        unit = "ms" if duration_us >= _UNITS_US["ms"] else "us"
        return _decimal(duration_us, _UNITS_US[unit]) + unit
    minutes, rest_us = divmod(duration_us, MINUTE_US)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    counts = ((days, "d"), (hours, "h"), (minutes, "m"))
    shown = "".join(f"{count}{unit}" for count, unit in counts if count)
    return shown + (f"{_decimal(rest_us, SECOND_US)}s" if rest_us or not shown else "")


def show_duration_rounded(duration_us: int) -> str:
    """
    Return a duration for people, rounded down to two figures or more: to whole seconds from a
    minute on, to hundredths of a second below.
    """
    steps_us = ((MINUTE_US, SECOND_US), (SECOND_US, 10_000), (10_000, 1_000), (1_000, 100))
    step_us = next((step for least, step in steps_us if duration_us >= least), 1)
    return show_duration(duration_us - duration_us % step_us)


def _decimal(value: int, unit: int) -> str:
    """
    Return a quotient of whole numbers as a decimal, exactly; the divisor is a power of ten.
    """
    whole, rest = divmod(value, unit)
    return f"{whole}.{rest:0{len(str(unit)) - 1}d}".rstrip("0") if rest else str(whole)


def show_lsf_duration(duration_us: int) -> str:
    """
    Return a duration as a resource requirement has it: in the largest of h, m and s that needs no
    decimals, else in decimals of s.
    """
    for suffix, unit_us in _DURATIONS_US.items():
        if duration_us % unit_us == 0 and (duration_us or suffix == "m"):
            return f"{duration_us // unit_us}{suffix}"
    return f"{_decimal(duration_us, SECOND_US)}s"


def show_by_name(name: str, value: int) -> str:
    """
    Return a number as people would say it, in the unit that ends the name of its field.
    """
    if name.endswith("_us") and value:
        return show_duration(value)
    return show_memory(value * MILLI) if name.endswith("_kib") and value else str(value)


def parse_run_limit_us(text: str, *, field: str = "run_limit") -> int:
    """
    Return a limit written as LSF's ``[hours:]minutes``, or as a duration with its units.

    Raises:
        Refused: It is neither.
    """
    match = _RUN_LIMIT.fullmatch(text.strip())
    if match is not None:
        return int(match[1] or 0) * HOUR_US + int(match[2]) * MINUTE_US
    return parse_duration_us(text, field=field, alone="MINUTES or HOURS:MINUTES")


TIME_RULE: Final = "must be a time such as 2026-11-29T18:00:00Z"


def parse_time_us(text: str, *, field: str = "time", rule: str = TIME_RULE) -> int:
    """
    Return a point in time written in ISO 8601 with its offset ("2026-11-29T18:00:00Z").

    Args:
        text: What was given.
        field: What a refusal names.
        rule: What it says of a text that is no time at all.

    Raises:
        Refused: It is no such time, says no offset, or lies before 1970.
    """
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise Refused(field, rule, text) from None
    if moment.tzinfo is None:
        raise Refused(field, "must say its offset from UTC, or end in Z", text)
    time_us = (moment - EPOCH) // _MICROSECOND
    if time_us < 0:
        raise Refused(field, "must not lie before 1970", text)
    return time_us


def show_time(time_us: int) -> str:
    """
    Return a point in time in ISO 8601 and UTC, with microseconds only where there are any.
    """
    return (EPOCH + timedelta(microseconds=time_us)).replace(tzinfo=None).isoformat() + "Z"
