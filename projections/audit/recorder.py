"""
A tracking recorder of the `eventsourcing` library on sqlite-utils: rows and position in one
transaction.

Anything derived from it is a read model whose rows are written exactly once: within ``advance`` the
position goes forward first, which takes the write lock and refuses what was taken already.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eventsourcing.persistence import (
    DatabaseError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    PersistenceError,
    ProgrammingError,
    Tracking,
    TrackingRecorder,
    WaitInterruptedError,
)
from sqlite_utils import Database

BUSY_S = 30
STATEMENTS_KEPT = 512
# How often a waiting reader looks for a position that another process may have written.
LOOK_S = 0.02

TRACKING_TABLE = """CREATE TABLE IF NOT EXISTS "tracking" (
  "application_name" TEXT NOT NULL,
  "notification_id" INTEGER NOT NULL,
  "log_id" TEXT NOT NULL,
  "digest" TEXT NOT NULL,
  PRIMARY KEY (application_name)
) STRICT, WITHOUT ROWID"""

_ADVANCE = """INSERT INTO tracking VALUES (?, ?, ?, ?)
ON CONFLICT (application_name) DO UPDATE
SET notification_id = excluded.notification_id, digest = excluded.digest
WHERE notification_id < excluded.notification_id AND log_id = excluded.log_id
RETURNING notification_id"""


def connect(path: str) -> Database:
    """
    Return a database opened for writing, its file readable by its owner alone.

    The connection is used by several threads, one at a time, under the recorder's lock.
    """
    if path != ":memory:" and not Path(path).exists():
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    connection = sqlite3.connect(
        path, check_same_thread=False, timeout=BUSY_S, cached_statements=STATEMENTS_KEPT
    )
    database = Database(connection, strict=True)
    database.enable_wal()
    # A machine that loses power may lose the last transactions, never the consistency: they are
    # made again from the log.
    database.execute("PRAGMA synchronous=NORMAL")
    return database


@contextmanager
def library_errors() -> Iterator[None]:
    """
    Turn the driver's errors into the library's of the same name.
    """
    kinds: tuple[tuple[type[Exception], type[PersistenceError]], ...] = (
        (sqlite3.IntegrityError, IntegrityError),
        (sqlite3.OperationalError, OperationalError),
        (sqlite3.ProgrammingError, ProgrammingError),
        (sqlite3.InterfaceError, InterfaceError),
        (sqlite3.DatabaseError, DatabaseError),
    )
    try:
        yield
    except sqlite3.Error as error:
        kind = next((ours for theirs, ours in kinds if isinstance(error, theirs)), PersistenceError)
        raise kind(str(error)) from error


class SqliteTrackingRecorder(TrackingRecorder):
    """
    Record how far a projection has got, atomically with its rows.

    Args:
        database: As `connect` made it.
        log_id: The log that it follows, "" when its feeder doesn't tell logs apart.
    """

    def __init__(self, database: Database, *, log_id: str = "") -> None:
        self.database = database
        self.log_id = log_id
        self._lock = threading.RLock()
        self._advanced = threading.Condition()
        with library_errors():
            database.execute(TRACKING_TABLE)

    @contextmanager
    def advance(self, tracking: Tracking, digest: str = "") -> Iterator[Database]:
        """
        Write rows within a transaction that also moves the position.

        Args:
            tracking: Name of the application and the position reached.
            digest: Digest of the log's history up to that position, "" when unknown.

        Raises:
            IntegrityError: The position isn't after the recorded one, or belongs to another log.
        """
        values = [tracking.application_name, tracking.notification_id, self.log_id, digest]
        with self._lock, library_errors(), self.database.atomic():
            # First of all a write: a transaction that begins by reading can't wait for another
            # writer.
            if not self.database.execute(_ADVANCE, values).fetchone():
                message = f"{tracking} is not after the recorded position of this log"
                raise IntegrityError(message)
            yield self.database
        with self._advanced:
            self._advanced.notify_all()

    def insert_tracking(self, tracking: Tracking) -> None:
        """
        Move the position alone.
        """
        with self.advance(tracking):
            pass

    def max_tracking_id(self, application_name: str) -> int | None:
        """
        Return the recorded position, None when there is none.
        """
        query = "SELECT notification_id FROM tracking WHERE application_name = ?"
        with self._lock, library_errors():
            found = self.database.execute(query, [application_name]).fetchone()
        return None if found is None else found[0]

    def wait(
        self,
        application_name: str,
        notification_id: int | None,
        timeout: float = 1.0,
        interrupt: threading.Event | None = None,
    ) -> None:
        """
        Wait until a position is recorded, here or by another process.

        Raises:
            TimeoutError: It wasn't, in time.
            WaitInterruptedError: The interrupt was set.
        """
        # The library's own waiting sleeps 100 ms before it looks again, then up to 800 ms.
        deadline = time.monotonic() + timeout
        while not self.has_tracking_id(application_name, notification_id):
            if interrupt is not None and interrupt.is_set():
                raise WaitInterruptedError
            left = deadline - time.monotonic()
            if left <= 0:
                message = f"timed out waiting for position {notification_id} of {application_name}"
                raise TimeoutError(message)
            with self._advanced:
                self._advanced.wait(min(left, LOOK_S))

    def close(self) -> None:
        """
        Close the database; harmless when called again.
        """
        with self._lock:
            self.database.conn.close()
