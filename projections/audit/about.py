"""
What a read model is made of and says of itself: statements, version, and errors in our words.

Whoever only reads the tables needs no more of the read model than this; the fold and the library
that fills the tables take a quarter of a second to load.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from eventsourcing.persistence import IntegrityError

import domain.events  # noqa: F401 - defining the events fills the registry
from domain.errors import Conflict, Corrupt, StoreUnavailable
from domain.event import event_classes
from projections.audit.schema import fingerprint, tables
from projections.audit.views import VIEWS

# Raise it whenever the same events give other rows: a read model of another version is made anew.
FOLD_VERSION = 7

APPLICATION = "log"
REBUILD_HINT = "Make it anew from the log: xce audit rebuild."

_ABOUT_TABLE = """CREATE TABLE "about" (
  "key" TEXT NOT NULL, "value" TEXT NOT NULL, PRIMARY KEY (key)
) STRICT, WITHOUT ROWID"""
# The fold looks jobs up by it.
JOBS_BY_ID = 'CREATE INDEX "jobs_by_job_id" ON "jobs" (job_id)'
# Not by sqlite-utils' enable_fts: that commits on its way, and indexes jobs without any words.
SEARCH_TABLE = """CREATE VIRTUAL TABLE "jobs_fts" USING FTS5 (
  name, command, user, tokenize='unicode61', content="jobs", content_rowid="job_key"
)"""
_SEARCHED = "({0}.name <> '' OR {0}.command <> '')"
FILL_SEARCH = f"""INSERT INTO jobs_fts (rowid, name, command, user)
SELECT job_key, name, command, user FROM jobs WHERE {_SEARCHED.format("jobs")} ORDER BY job_key"""
_REWORDED = "(old.name <> new.name OR old.command <> new.command OR old.user <> new.user)"
# A row of jobs is written several times in a job's life; only one whose words changed costs
# anything. Both halves of a change stand in one trigger: the order of several isn't defined.
SEARCH_TRIGGERS = (
    f"""CREATE TRIGGER jobs_searched AFTER INSERT ON jobs WHEN {_SEARCHED.format("new")}
BEGIN
  INSERT INTO jobs_fts (rowid, name, command, user)
    VALUES (new.job_key, new.name, new.command, new.user);
END""",
    f"""CREATE TRIGGER jobs_reworded AFTER UPDATE OF name, command, user ON jobs WHEN {_REWORDED}
BEGIN
  INSERT INTO jobs_fts (jobs_fts, rowid, name, command, user)
    SELECT 'delete', old.job_key, old.name, old.command, old.user WHERE {_SEARCHED.format("old")};
  INSERT INTO jobs_fts (rowid, name, command, user)
    SELECT new.job_key, new.name, new.command, new.user WHERE {_SEARCHED.format("new")};
END""",
)


def completing_statements() -> list[str]:
    """
    Return the statements that create what isn't needed while a file is filled in bulk.
    """
    made = [_ABOUT_TABLE]
    for table in tables().values():
        made += [one for one in table.index_sql if one != JOBS_BY_ID]
    return [*made, *(view.create_sql for view in VIEWS)]


def schema_version() -> str:
    """
    Return the version of the tables and of what their rows say.
    """
    made = [table.create_sql for table in tables().values()]
    return fingerprint([*made, *completing_statements(), *SEARCH_TRIGGERS], _meaning())


def _meaning() -> list[str]:
    """
    Return what decides, besides the tables, what the rows say: the fold and the shapes of the
    events.
    """
    return [
        str(FOLD_VERSION),
        *(f"{code} {one.CLASS_VERSION}" for code, one in event_classes().items()),
    ]


@contextmanager
def our_errors(path: str) -> Iterator[None]:
    """
    Turn the driver's and the library's errors into ours.
    """
    try:
        yield
    except IntegrityError as error:
        raise Conflict("another process fills the read model", path, str(error)) from error
    except (sqlite3.Error, OSError) as error:
        raise _translated(error, path) from error
    except Exception as error:
        cause = error.__cause__
        if isinstance(cause, sqlite3.Error):
            raise _translated(cause, path) from error
        raise


def _translated(error: Exception, path: str) -> Exception:
    code = getattr(error, "sqlite_errorcode", None)
    primary = None if code is None else code & 0xFF
    if primary in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return Corrupt("structure", None, "a sound SQLite database", str(error), path, REBUILD_HINT)
    if primary == sqlite3.SQLITE_FULL:
        return StoreUnavailable(
            "disk full", path, str(error), "Free some space; nothing of the log is lost."
        )
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreUnavailable(
            "read model locked", path, str(error), "Another process writes to it."
        )
    return StoreUnavailable("read model", path, str(error))
