"""
Moments and durations of the log, in words; always UTC.
"""

from __future__ import annotations

from domain.units import show_duration, show_time

SECOND_US = 1_000_000


def moment(time_us: int) -> str:
    """
    Return a moment; one beyond the calendar, which only a strange log has, as its number.
    """
    try:
        return show_time(time_us)
    except OverflowError:
        return f"{time_us} us"


def seconds(duration_us: int, decimals: int = 3) -> str:
    """
    Return a duration in seconds, rounded down.
    """
    whole, rest = divmod(duration_us, SECOND_US)
    return f"{whole}.{rest:06d}"[: len(str(whole)) + 1 + decimals] if decimals else str(whole)


__all__ = ["SECOND_US", "moment", "seconds", "show_duration"]
