"""
Moments of the log, in words; always UTC.
"""

from __future__ import annotations

from domain.units import show_time


def moment(time_us: int) -> str:
    """
    Return a moment; one beyond the calendar, which only a strange log has, as its number.
    """
    try:
        return show_time(time_us)
    except OverflowError:
        return f"{time_us} us"
