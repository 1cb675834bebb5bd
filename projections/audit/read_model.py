"""
The read model itself: the tables of one log in one SQLite file, opened, checked, filled and read.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from eventsourcing.persistence import IntegrityError, Tracking
from sqlite_utils import Database

from domain.errors import Conflict, Corrupt, NotFound, StoreUnavailable
from projections.audit.fold import meaning
from projections.audit.fold_state import Batch
from projections.audit.recorder import SqliteTrackingRecorder, connect
from projections.audit.schema import Table, fingerprint, tables
from projections.audit.views import VIEWS

APPLICATION = "log"
REBUILD_HINT = "Make it anew from the log: xce audit rebuild."

_ABOUT_TABLE = """CREATE TABLE "about" (
  "key" TEXT NOT NULL, "value" TEXT NOT NULL, PRIMARY KEY (key)
) STRICT, WITHOUT ROWID"""
# The fold looks jobs up by it.
_JOBS_BY_ID = 'CREATE INDEX "jobs_by_job_id" ON "jobs" (job_id)'
# Not by sqlite-utils' enable_fts: that commits on its way, and indexes jobs without any words.
_SEARCH_TABLE = """CREATE VIRTUAL TABLE "jobs_fts" USING FTS5 (
  name, command, user, tokenize='unicode61', content="jobs", content_rowid="job_key"
)"""
_SEARCHED = "({0}.name <> '' OR {0}.command <> '')"
_FILL_SEARCH = f"""INSERT INTO jobs_fts (rowid, name, command, user)
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


class OtherVersion(Conflict):
    """
    Say that a read model was made by another version of the program; it is made anew, never
    carried on.
    """


def completing_statements() -> list[str]:
    """
    Return the statements that create what isn't needed while a file is filled in bulk.
    """
    made = [_ABOUT_TABLE]
    for table in tables().values():
        made += [one for one in table.index_sql if one != _JOBS_BY_ID]
    return [*made, *(view.create_sql for view in VIEWS)]


def schema_version() -> str:
    """
    Return the version of the tables and of what their rows say.
    """
    made = [table.create_sql for table in tables().values()]
    return fingerprint([*made, *completing_statements(), *SEARCH_TRIGGERS], meaning())


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


class ReadModel(SqliteTrackingRecorder):
    """
    Hold the tables of one log. Made by `create` or `open`.
    """

    def __init__(self, database: Database, path: str, *, log_id: str) -> None:
        super().__init__(database, log_id=log_id)
        self.path = path

    @classmethod
    def create(cls, path: Path | str, *, log_id: str) -> Self:
        """
        Make an empty read model of a log in a new file.
        """
        model = cls.create_for_bulk(path, log_id=log_id)
        model.complete()
        return model

    @classmethod
    def create_for_bulk(cls, path: Path | str, *, log_id: str) -> Self:
        """
        Make an empty read model that is filled faster, and can't be opened before `complete` was
        called.

        Indexes that the fold itself doesn't need are made from the whole tables then.
        """
        with our_errors(str(path)):
            model = cls(connect(str(path)), str(path), log_id=log_id)
            with model.database.atomic():
                for table in tables().values():
                    model.database.execute(table.create_sql)
                model.database.execute(_JOBS_BY_ID)
        return model

    def complete(self) -> None:
        """
        Make what a file that is filled in bulk still lacks, and say whose tables these are.
        """
        with self._lock, our_errors(self.path), self.database.atomic():
            for statement in completing_statements():
                self.database.execute(statement)
            self.database.table("about").insert_all(
                [
                    {"key": "log_id", "value": self.log_id},
                    {"key": "schema_version", "value": schema_version()},
                ]
            )
            for statement in (_SEARCH_TABLE, _FILL_SEARCH, *SEARCH_TRIGGERS):
                self.database.execute(statement)

    @classmethod
    def open(cls, path: Path | str, *, log_id: str) -> Self:
        """
        Open the read model of a log to carry it on.

        Raises:
            NotFound: There is no such file.
            OtherVersion: Another version of the program made it.
            Conflict: It belongs to another log.
            Corrupt: It is no sound database.
        """
        if not Path(path).exists():
            raise NotFound("read model", "there is none", str(path), REBUILD_HINT)
        with our_errors(str(path)):
            database = connect(str(path))
            try:
                about = read_about(database)
                _check_about(about, str(path), log_id)
                return cls(database, str(path), log_id=log_id)
            except BaseException:
                database.conn.close()
                raise

    def position(self) -> int:
        """
        Return the last position that is in the tables, 0 for none.
        """
        with our_errors(self.path):
            return self.max_tracking_id(APPLICATION) or 0

    def digest(self) -> str:
        """
        Return the log's digest at that position, as its feeder gave it.
        """
        with our_errors(self.path):
            found = self.database.execute("SELECT digest FROM tracking").fetchone()
        return "" if found is None else str(found[0])

    def check_against(self, head: int, digest: str) -> None:
        """
        Refuse a log that can't be the one that the tables were made from.

        Args:
            head: Last position of the log.
            digest: Digest of its history up to our position, "" when the position is beyond its
                head.

        Raises:
            Conflict: The tables are ahead of it, or its history differs.
        """
        position = self.position()
        if position > head:
            raise Conflict(
                "the read model is ahead of the log (was the log restored from a backup?)",
                f"position {position} or later",
                f"head {head}",
                REBUILD_HINT,
            )
        if self.digest() != digest and position:
            raise Conflict(
                f"the log's history up to position {position} isn't the one that the read model "
                f"was made from",
                self.digest(),
                digest,
                REBUILD_HINT,
            )

    def write(self, batch: Batch, position: int, digest: str = "") -> None:
        """
        Write the rows of a batch with the position reached, in one transaction.

        Raises:
            Conflict: Another process has been here first.
            StoreUnavailable: There is no room, or the file is locked.
        """
        with (
            our_errors(self.path),
            self.advance(Tracking(APPLICATION, position), digest) as database,
        ):
            for statement, rows in batch:
                database.conn.executemany(statement, rows)

    def rows(self, table: Table, where: str, values: tuple[object, ...] = ()) -> Iterable[Any]:
        """
        Return the rows for which a condition holds, as objects of the table's row class.
        """
        with self._lock, our_errors(self.path):
            found = self.database.execute(f"{table.read_sql} WHERE {where}", values).fetchall()
        return [table.row(*one) for one in found]

    def finish(self) -> None:
        """
        Leave one file: what the write-ahead file holds goes into the database, and statistics are
        made.
        """
        with self._lock, our_errors(self.path):
            self.database.execute("PRAGMA optimize=0x10002")
            self.database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def read_about(database: Database) -> dict[str, str]:
    """
    Return what a read model says of itself; nothing when it is no read model.
    """
    if database.execute("SELECT 1 FROM sqlite_master WHERE name = 'about'").fetchone() is None:
        return {}
    return dict(database.execute("SELECT key, value FROM about").fetchall())


def _check_about(about: dict[str, str], path: str, log_id: str) -> None:
    if about.get("log_id") is None:
        raise Corrupt(
            "foreign", None, "a read model of a log", "another database", path, REBUILD_HINT
        )
    if about["log_id"] != log_id:
        raise Conflict(
            "the read model belongs to another log", about["log_id"], log_id, REBUILD_HINT
        )
    if about.get("schema_version") != schema_version():
        raise OtherVersion(
            "the read model was made by another version",
            schema_version(),
            about.get("schema_version"),
            REBUILD_HINT,
        )
