"""
Events of the log itself (stream ``log``); the core ignores them.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from domain.event import Event


class LogBranched(Event):
    """
    Say that everything before was copied from another log, and what was changed from here on.

    Args:
        parent_log_id: The log that was copied.
        parent_position: The last position that was copied; positions up to it are the parent's.
        parent_digest: The parent's digest at that position, in hexadecimal.
        changes: Each change in words; empty for another run of the same future.
    """

    TYPE_CODE: ClassVar[str] = "log.branched"
    parent_log_id: str
    parent_position: Annotated[int, Field(ge=0, le=2**62)]
    parent_digest: str
    changes: tuple[str, ...] = ()
