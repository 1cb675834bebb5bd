"""
The states of a job, the table of transitions, and the named sets of states.

The words are LSF's. Whatever moves a job asks this table; an event that doesn't fit the state is a
refused command or an ignored report, never a silent change.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class JobState(StrEnum):
    """
    Name where a job is in its life.
    """

    PEND = "PEND"
    PSUSP = "PSUSP"
    WAIT = "WAIT"
    RUN = "RUN"
    USUSP = "USUSP"
    SSUSP = "SSUSP"
    UNKWN = "UNKWN"
    DONE = "DONE"
    EXIT = "EXIT"


S = JobState

WAITING: Final = frozenset({S.PEND, S.PSUSP, S.WAIT})
LIVE: Final = frozenset({S.RUN, S.USUSP, S.SSUSP, S.UNKWN})
STOPPED: Final = frozenset({S.USUSP, S.SSUSP})
ENDED: Final = frozenset({S.DONE, S.EXIT})

TRANSITIONS: Final[dict[str, dict[JobState, JobState]]] = {
    "held": {S.PEND: S.PSUSP},
    "hold lifted": {S.PSUSP: S.PEND},
    "dispatched": {S.PEND: S.RUN},
    "stopped": {S.RUN: S.USUSP, S.SSUSP: S.USUSP},
    "suspended": {S.RUN: S.SSUSP, S.USUSP: S.SSUSP},
    "resumed": {S.SSUSP: S.RUN, S.USUSP: S.SSUSP},
    "contact lost": {S.RUN: S.UNKWN, S.USUSP: S.UNKWN, S.SSUSP: S.UNKWN},
    "contact back": {S.UNKWN: S.RUN},
    "finished well": dict.fromkeys((S.RUN, S.USUSP, S.SSUSP, S.UNKWN), S.DONE),
    "finished badly": dict.fromkeys((S.RUN, S.USUSP, S.SSUSP, S.UNKWN), S.EXIT),
    "ended unstarted": {S.PEND: S.EXIT, S.PSUSP: S.EXIT, S.WAIT: S.EXIT, S.UNKWN: S.EXIT},
    "ended by force": dict.fromkeys((S.RUN, S.USUSP, S.SSUSP, S.UNKWN), S.EXIT),
    "requeued": dict.fromkeys((S.RUN, S.USUSP, S.SSUSP, S.UNKWN, S.DONE, S.EXIT), S.PEND),
}
"""What happened -> state before -> state after; a pair that isn't here doesn't happen."""


def state_after(happening: str, before: JobState) -> JobState | None:
    """
    Return the state after a happening, or None when it doesn't fit the state before it.
    """
    return TRANSITIONS[happening].get(before)
