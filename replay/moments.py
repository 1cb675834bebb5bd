"""
Moments of a log as people name them: a position, or a time in UTC.

Texts are read and shown in UTC, whatever the time zone of the process: the same words mean the
same moment everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol, final

from domain.envelope import Envelope
from domain.errors import Refused
from store.recordings import Recording

US: Final = 1_000_000
HEAD: Final = "end"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_position = re.compile(r"[0-9]{1,18}")
_unix = re.compile(r"@(-?[0-9]{1,12})(?:\.([0-9]{1,6}))?")
_HOW: Final = (
    "Give a position (4711), a time in UTC (2026-11-29T18:30:00), Unix seconds (@1234.5), "
    f"or {HEAD}."
)


class ReadableLog(Protocol):
    """
    Be a log that can be read.
    """

    def head(self) -> int:
        """
        Return the last position.
        """
        ...

    def read(self, after: int = 0, upto: int | None = None) -> Iterator[Envelope]:
        """
        Yield envelopes after a position.
        """
        ...


class SearchableLog(ReadableLog, Protocol):
    """
    Be a log that can be read, also by stream.
    """

    def read_stream(self, stream: str, after_version: int = 0) -> Iterator[Envelope]:
        """
        Yield the envelopes of one stream.
        """
        ...


@final
@dataclass(frozen=True, slots=True)
class NamedMoment:
    """
    Hold what somebody named: exactly one of the two, or neither for the end of the log.
    """

    position: int | None = None
    time_us: int | None = None


def parse_moment(field: str, text: str) -> NamedMoment:
    """
    Return the moment that a text names.

    Raises:
        Refused: It names none; the field says whose text it was.
    """
    text = text.strip()
    if text == HEAD:
        return NamedMoment()
    if _position.fullmatch(text):
        return NamedMoment(position=int(text))
    unix = _unix.fullmatch(text)
    if unix:
        return NamedMoment(time_us=int(unix[1]) * US + int((unix[2] or "").ljust(6, "0")))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise Refused(field, "must be a position or a time", text, _HOW) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return NamedMoment(time_us=(moment - _EPOCH) // timedelta(microseconds=1))


def position_of(log: ReadableLog, moment: NamedMoment, *, field: str = "at") -> int:
    """
    Return the position that a moment means: for a time the last event that isn't after it.

    Raises:
        Refused: The log ends before that position.
    """
    head = log.head()
    if moment.time_us is not None:
        return position_at_time(log, moment.time_us)
    if moment.position is None:
        return head
    if moment.position > head:
        raise Refused(field, f"must not be after the log's last position {head}", moment.position)
    return moment.position


def before_of(log: ReadableLog, moment: NamedMoment, *, field: str = "--from") -> int:
    """
    Return the position before the first event of a span that begins at a moment.
    """
    if moment.time_us is not None:
        return position_at_time(log, moment.time_us - 1)
    return max(0, position_of(log, moment, field=field) - 1)


def position_at_time(log: ReadableLog, time_us: int) -> int:
    """
    Return the position of the last event that isn't after a time; 0 when all are.
    """
    # A recording begins with the state before its first event, and there is nothing earlier in it.
    before = log.first_position - 1 if isinstance(log, Recording) else 0
    after = log.head() + 1
    while after - before > 1:
        middle = (before + after) // 2
        if time_at(log, middle) <= time_us:
            before = middle
        else:
            after = middle
    return before


def time_at(log: ReadableLog, position: int) -> int:
    """
    Return the stamp of the event at a position; 0 before the first.
    """
    return next((one.time_us for one in log.read(position - 1, position)), 0) if position else 0


def show_utc(time_us: int | None) -> str:
    """
    Return a moment in UTC, with decimals only where there are some.
    """
    if time_us is None:
        return "-"
    try:
        moment = _EPOCH + timedelta(microseconds=time_us)
    except OverflowError:
        return f"@{time_us // US}.{time_us % US:06d}"
    text = moment.strftime("%Y-%m-%dT%H:%M:%S")
    rest = time_us % US
    return f"{text}.{rest:06d}".rstrip("0") + "Z" if rest else f"{text}Z"
