"""
An event with everything that surrounds it: its stream, time, actor and cause, and later its
position.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, cast

from domain.event import Event


class Stamped(NamedTuple):
    """
    An event with everything but its position, which only the append can give.

    Fields: the stream it belongs to; its version there, from 1; the driver's stamp in microseconds
        UTC; the acting
    user ("" for the scheduler itself); the cause (a command id or a session number, "" when none);
    the event; and whether it is the last of its step.
    """

    stream: str
    version: int
    time_us: int
    actor: str
    cause: str
    event: Event
    ends_step: bool


class Envelope(NamedTuple):
    """
    A stamped event and its place in the whole log, from 1.
    """

    position: int
    stream: str
    version: int
    time_us: int
    actor: str
    cause: str
    event: Event
    ends_step: bool

    def stamped(self) -> Stamped:
        """
        Return the same without its position, as the core sees it.
        """
        return stamp(Stamped, self[1:])


stamp: Final = cast("Callable[[type[Stamped], tuple[object, ...]], Stamped]", tuple.__new__)
"""Make a stamped event of its fields in order: half the time of calling the class, whose parameters
have names."""
