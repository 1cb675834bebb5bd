"""
Read the tables: a connection that can't change anything, whatever SQL it is given.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

from domain.errors import Corrupt, NotFound, Refused
from projections.audit.about import APPLICATION, REBUILD_HINT, our_errors, schema_version
from projections.audit.privacy import authorize_column

if TYPE_CHECKING:
    from projections.audit.read_model import ReadModel

Row = dict[str, Any]

# What a query may do; attaching, writing, loading and changing settings aren't among it.
_ALLOWED = frozenset(
    (
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_RECURSIVE,
    )
)
_PRAGMAS = frozenset(
    "table_info table_xinfo table_list index_list index_info index_xinfo foreign_key_list "
    "database_list compile_options function_list data_version integrity_check quick_check".split()
)
_FUNCTIONS_REFUSED = frozenset(
    ("load_extension", "fts3_tokenizer", "writefile", "readfile", "edit")
)
BUSY_S = 30


def _authorize(action: int, first: str | None, second: str | None, *_: object) -> int:
    if action in _ALLOWED:
        is_refused = action == sqlite3.SQLITE_FUNCTION and second in _FUNCTIONS_REFUSED
        return sqlite3.SQLITE_DENY if is_refused else sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_PRAGMA and first in _PRAGMAS:
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


def _authorize_others(action: int, first: str | None, second: str | None, *_: object) -> int:
    if action == sqlite3.SQLITE_READ:
        return authorize_column(first, second)
    return _authorize(action, first, second)


class Reading:
    """
    Read one read model; close it, or use it as a context manager.

    Args:
        path: The database file.

    Raises:
        NotFound: There is none.
        Corrupt: It is no read model.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = str(path)
        if not Path(path).exists():
            raise NotFound(
                "read model",
                "there is none",
                self.path,
                "Make it from the log: xce audit catch-up.",
            )
        with our_errors(self.path):
            address = f"file:{quote(str(Path(path).absolute()))}?mode=ro"
            self._connection = sqlite3.connect(address, uri=True, timeout=BUSY_S)
            try:
                self._prepare()
            except BaseException:
                self._connection.close()
                raise

    @classmethod
    def of(cls, model: ReadModel) -> Self:
        """
        Read a read model through its own connection, once nothing more is written to it.
        """
        reading = cls.__new__(cls)
        reading._begin(model.path, model.database.conn)  # noqa: SLF001 - its own
        return reading

    def _begin(self, path: str, connection: sqlite3.Connection) -> None:
        self.path, self._connection = path, connection
        self._prepare()

    def _prepare(self) -> None:
        connection = self._connection
        connection.execute("PRAGMA query_only=ON")
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'about'").fetchone():
            raise Corrupt(
                "foreign",
                None,
                "a read model of a log",
                "another database",
                self.path,
                REBUILD_HINT,
            )
        # Connecting to the full-text index makes statements of its own, which the authorizer
        # refuses.
        connection.execute("SELECT 1 FROM jobs_fts LIMIT 0").fetchall()
        # One transaction for all queries: what they say belongs together, whatever is written
        # meanwhile.
        connection.execute("BEGIN")
        connection.execute("SELECT 1 FROM about").fetchall()
        connection.set_authorizer(_authorize)

    def hide_private(self) -> None:
        """
        Read what users' jobs run as NULL from now on, whatever is asked, and let nobody search it.
        """
        self._connection.set_authorizer(_authorize_others)

    def rows(self, query: str, values: Sequence[object] = ()) -> list[Row]:
        """
        Return the rows of a query of ours, each by the names of its columns.
        """
        heads, found = self.table(query, values)
        return [dict(zip(heads, row, strict=True)) for row in found]

    def one(self, query: str, values: Sequence[object] = ()) -> Row | None:
        """
        Return the first row, or None.
        """
        return next(iter(self.rows(query, values)), None)

    def value(self, query: str, values: Sequence[object] = ()) -> Any:
        """
        Return the first column of the first row, or None.
        """
        _, found = self.table(query, values)
        first = next(iter(found), None)
        return None if first is None else first[0]

    def table(
        self, query: str, values: Sequence[object] = ()
    ) -> tuple[tuple[str, ...], Iterator[tuple[Any, ...]]]:
        """
        Return names of columns and rows, read as they are asked for.
        """
        with our_errors(self.path):
            cursor = self._connection.execute(query, tuple(values))
        heads = tuple(column[0] for column in cursor.description or ())
        return heads, self._fetched(cursor)

    def _fetched(self, cursor: sqlite3.Cursor) -> Iterator[tuple[Any, ...]]:
        # No `yield from`: when rows are given up, it would close the cursor, which fails once the
        # connection is closed.
        with our_errors(self.path):
            for row in cursor:  # noqa: UP028
                yield row

    def sql(self, query: str) -> tuple[tuple[str, ...], Iterable[tuple[Any, ...]]]:
        """
        Return names of columns and rows of somebody else's query.

        Raises:
            Refused: SQLite doesn't understand it, or it would do more than read.
        """
        try:
            cursor = self._connection.execute(query)
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise _refusal(error) from None
        if cursor.description is None:
            raise Refused(
                "query", "must be a query that gives rows", None, "Only reading is allowed here."
            )
        return tuple(column[0] for column in cursor.description), _checked(cursor)

    def problems(self) -> list[str]:
        """
        Return what SQLite finds wrong with the whole file; this takes time in proportion to it.
        """
        found = [str(row[0]) for row in self.table("PRAGMA integrity_check")[1]]
        return [] if found == ["ok"] else found

    def position(self) -> int:
        """
        Return the last position of the log that the tables hold.
        """
        found = self.value(
            "SELECT notification_id FROM tracking WHERE application_name = ?", (APPLICATION,)
        )
        return int(found or 0)

    def is_of(self, log_id: str, head: int, digest: str) -> bool:
        """
        Say whether these are the tables of a log's whole history, as this program makes them.

        Args:
            log_id: The log's identity.
            head: Its last position.
            digest: Digest of its history up to there.
        """
        about = self.rows("SELECT key, value FROM about")
        mine = {row["key"]: row["value"] for row in about}
        made = self.one(
            "SELECT notification_id AS position, digest FROM tracking WHERE application_name = ?",
            (APPLICATION,),
        )
        return (
            made == {"position": head, "digest": digest}
            and (mine.get("log_id"), mine.get("schema_version")) == (log_id, schema_version())
        )

    def first_position(self) -> int:
        """
        Return where the recorded history begins: after 1 when the log's beginning was pruned before
        the tables were made.
        """
        return int(self.value("SELECT min(position) FROM events") or 1)

    def boundary(self, position: int) -> int:
        """
        Return the last end of a step that isn't after a position, 0 for none.
        """
        found = self.value(
            "SELECT position FROM events WHERE position <= ? AND ends_step = 1 "
            "ORDER BY position DESC LIMIT 1",
            (position,),
        )
        return int(found or 0)

    def last_time_us(self) -> int:
        """
        Return the time of the last event, 0 for none.
        """
        return int(self.value("SELECT time_us FROM events ORDER BY position DESC LIMIT 1") or 0)

    def position_at(self, time_us: int) -> int:
        """
        Return the last position whose event isn't later than a time, 0 for none.

        Stamps never fall, so it is found by halving, without an index of times.
        """
        low, high = 0, self.position()
        while low < high:
            middle = (low + high + 1) // 2
            found = self.one(
                "SELECT position, time_us FROM events WHERE position <= ? ORDER BY position DESC "
                "LIMIT 1",
                (middle,),
            )
            if found is None or found["time_us"] <= time_us:
                low = middle
            else:
                high = min(middle, found["position"]) - 1
        return low

    def close(self) -> None:
        """
        Close the connection; harmless when called again.
        """
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _refusal(error: Exception) -> Refused:
    is_barred = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_AUTH
    rule = "must only read: it may query tables and views" if is_barred else str(error)
    return Refused("query", rule, None, "Tables and columns: xce audit tables.")


def _checked(cursor: sqlite3.Cursor) -> Iterator[tuple[Any, ...]]:
    try:
        for row in cursor:  # noqa: UP028 - as in `_fetched`
            yield row
    except sqlite3.Error as error:
        raise _refusal(error) from None
