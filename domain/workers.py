"""
What administrators say about a host, beside what its worker says itself.
"""

from __future__ import annotations

from domain.amounts import Count
from domain.event import Value
from domain.lines import Line
from domain.thresholds import LoadThreshold
from domain.windows import Windows


class HostSettings(Value):
    """
    Hold the settings of a host.

    Args:
        dispatch_windows: Outside of them no job starts there; None for always.
        user_slots_max: Most slots that one user may have there, None for any.
        is_locked: Whether it is locked: no job starts there, those that run go on.
        thresholds: From which load on nothing starts there, and jobs are stopped.
        description: A line for people.
    """

    dispatch_windows: Windows | None = None
    user_slots_max: Count | None = None
    is_locked: bool = False
    description: Line = ""
    thresholds: tuple[LoadThreshold, ...] = ()
