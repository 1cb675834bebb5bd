"""
Decisions that belong to no single job: sessions, reason sets, lists held back, jobs forgotten.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from domain.event import Event, Value
from domain.reasons import PendReason


class SessionHeld(Event):
    """
    Say that a session decided something; it comes first in its step (stream ``session``).
    """

    TYPE_CODE: ClassVar[str] = "session.held"
    IS_DECISION: ClassVar[bool] = True
    number: Annotated[int, Field(ge=1)]


class ReasonSetChanged(Event):
    """
    Say why the jobs of one request wait (stream ``reasons``).

    Args:
        set_number: The set's own number; a request keeps its set while jobs are in it.
        fingerprint: The request in canonical words.
        never: Whether even the empty cluster couldn't hold it.
        reasons: Every reason, never empty.
        proved_by: The job whose placement found them, "" when none was tried. Others that ask for
            the same join the set without being tried, and this names whom they owe it to.
    """

    TYPE_CODE: ClassVar[str] = "reasons.set_changed"
    IS_DECISION: ClassVar[bool] = True
    set_number: Annotated[int, Field(ge=1)]
    fingerprint: str
    never: bool = False
    reasons: tuple[PendReason, ...]
    proved_by: str = ""


class ListHeldBack(Event):
    """
    Say that a job which can't start holds back all later ones of its list; written when the blocker
    changes.

    Args:
        blocker: The job's id.
    """

    TYPE_CODE: ClassVar[str] = "list.held_back"
    IS_DECISION: ClassVar[bool] = True
    blocker: str


class IdRange(Value):
    """
    Name the job numbers from first to last.
    """

    first: int
    last: int


class JobsForgotten(Event):
    """
    Say that jobs which ended long ago are dropped from the state (stream ``session``); history
    still knows them.
    """

    TYPE_CODE: ClassVar[str] = "jobs.forgotten"
    IS_DECISION: ClassVar[bool] = True
    ranges: tuple[IdRange, ...]
