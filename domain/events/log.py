"""
Events of the log itself (stream ``log``); the core ignores them.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from domain.event import Event

Position = Annotated[int, Field(ge=1, le=2**62)]
WallTime = Annotated[int, Field(ge=0, le=2**62)]


class LogBranched(Event):
    """
    Say that everything before was copied from another log, and what was changed from here on.

    Args:
        parent_log_id: The log that was copied.
        parent_position: The last position that was copied; positions up to it are the parent's.
        parent_digest: The parent's digest at that position, in hexadecimal; "" when it was branched
            from a recording, which may not tell it.
        changes: Each change in words; empty for another run of the same future.
    """

    TYPE_CODE: ClassVar[str] = "log.branched"
    parent_log_id: str
    parent_position: Annotated[int, Field(ge=0, le=2**62)]
    parent_digest: str
    changes: tuple[str, ...] = ()


class LogArchived(Event):
    """
    Say that a range of positions was moved to a segment file: its anchor, kept in the chain.

    Args:
        first_position: The first position in the file.
        last_position: The last one.
        digest: The log's digest at the last one, in hexadecimal.
        file: The file's name in the archive directory.
        sha256: The file's own digest, in hexadecimal.
        wall_time_us: When, by the clock of whoever did it; the log's own time stands still.
    """

    TYPE_CODE: ClassVar[str] = "log.archived"
    first_position: Position
    last_position: Position
    digest: str
    file: str
    sha256: str
    wall_time_us: WallTime


class LogPruned(Event):
    """
    Say that archived files are removed for ever; recorded before they are.

    Args:
        first_position: The first position that can't be read any more.
        last_position: The last one.
        digest: The log's digest there, at which verifying begins; in hexadecimal.
        files: How many segment files.
        wall_time_us: When, by the clock of whoever did it; the log's own time stands still.
    """

    TYPE_CODE: ClassVar[str] = "log.pruned"
    first_position: Position
    last_position: Position
    digest: str
    files: Annotated[int, Field(ge=1, le=2**31 - 1)]
    wall_time_us: WallTime
