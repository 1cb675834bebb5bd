"""
The read model itself: the tables of one log in one SQLite file, opened, checked, filled and read.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

from eventsourcing.persistence import Tracking
from sqlite_utils import Database

from domain.errors import Conflict, Corrupt, NotFound
from projections.audit.about import (
    APPLICATION,
    FILL_SEARCH,
    JOBS_BY_ID,
    REBUILD_HINT,
    SEARCH_TABLE,
    SEARCH_TRIGGERS,
    completing_statements,
    our_errors,
    schema_version,
)
from projections.audit.fold_state import Batch
from projections.audit.recorder import SqliteTrackingRecorder, connect
from projections.audit.schema import Table, tables


class OtherVersion(Conflict):
    """
    Say that a read model was made by another version of the program; it is made anew, never
    carried on.
    """


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
                model.database.execute(JOBS_BY_ID)
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
            for statement in (SEARCH_TABLE, FILL_SEARCH, *SEARCH_TRIGGERS):
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
