"""
Who may see what of the tables: what a user's jobs run is theirs.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

# Columns of jobs, and fields of changes, that only a job's user may see, and those with the right.
PRIVATE_COLUMNS = frozenset("command cwd stdin stdout stderr pre_exec post_exec transfers".split())
# What SQL shows as NULL to whoever hasn't the right: these hold what a job runs, in some rows.
_PRIVATE = frozenset(
    (
        *(("jobs", column) for column in PRIVATE_COLUMNS),
        ("events", "payload"),
        ("changes", "old"),
        ("changes", "new"),
        # What was given to a refused command, which may have been what a job was to run.
        ("refusals", "value"),
    )
)
# Searching would tell which words are in a command.
_SEARCH = "jobs_fts"


@dataclass(frozen=True, slots=True)
class Viewer:
    """
    Say who looks: whoever isn't privileged sees the command and files of their own jobs only.
    """

    user: str
    is_privileged: bool = False

    def may_see(self, owner: str) -> bool:
        """
        Say whether what is private to a user may be shown.
        """
        return self.is_privileged or self.user == owner


EVERYTHING = Viewer("", is_privileged=True)


def is_shown(field: str, *, is_private: bool) -> bool:
    """
    Say whether a change of a job's field may be told; of somebody else's job not what it runs.
    """
    return not (is_private and field in PRIVATE_COLUMNS)


def authorize_column(table: str | None, column: str | None) -> int:
    """
    Return what a connection of somebody without the right may read of a column.
    """
    if table is not None and table.startswith(_SEARCH):
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_IGNORE if (table, column) in _PRIVATE else sqlite3.SQLITE_OK
