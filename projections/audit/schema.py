"""
What a table of the read model is: a row class says its columns, and everything else is made from
that.

The statements that create and fill the tables, their documentation and the metadata for Datasette
all come from here, so that a column can't exist without its description.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

SqlValue = int | str | None
Row = TypeVar("Row", bound=type)

_tables: dict[str, Table] = {}


@dataclass(frozen=True, slots=True)
class Column:
    """
    Describe one column: its name, INTEGER or TEXT, whether it may be NULL, and what it says.
    """

    name: str
    kind: str
    is_optional: bool
    doc: str

    @property
    def ddl(self) -> str:
        """
        Return the column's definition in SQL.
        """
        return f'"{self.name}" {self.kind}{"" if self.is_optional else " NOT NULL"}'


@dataclass(frozen=True, slots=True)
class Index:
    """
    Describe an index; *where* makes it a partial one.
    """

    columns: tuple[str, ...]
    where: str = ""


@dataclass(frozen=True)
class Table:
    """
    Describe one table.

    Args:
        name: Its name in SQL.
        doc: What one row is, as a sentence or two.
        columns: In order; the same order as the fields of the row class.
        key: Columns of the primary key.
        grows: Whether rows are only ever added, never changed.
        fixed: Columns that a later version of a row doesn't change, but when it is rewritten.
        indexes: Besides the primary key.
        row: The class of its rows; called with the columns in order.
    """

    name: str
    doc: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    grows: bool
    fixed: tuple[str, ...]
    indexes: tuple[Index, ...]
    row: type = field(repr=False)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """
        Return the names of the columns, in order.
        """
        return tuple(column.name for column in self.columns)

    @cached_property
    def values(self) -> Callable[[Any], tuple[SqlValue, ...]]:
        """
        Return the function that takes a row apart, in the order of the columns.
        """
        return attrgetter(*self.names)

    @cached_property
    def create_sql(self) -> str:
        """
        Return the statement that creates the table.

        A key that is one whole number is the row id itself; any other key is the table's own tree,
        which saves a second one.
        """
        lines = [column.ddl for column in self.columns]
        lines.append(f"PRIMARY KEY ({', '.join(self.key)})")
        kinds = [column.kind for column in self.columns if column.name in self.key]
        has_row_id = kinds == ["INTEGER"]
        body = ",\n  ".join(lines)
        return f'CREATE TABLE "{self.name}" (\n  {body}\n) STRICT' + (
            "" if has_row_id else ", WITHOUT ROWID"
        )

    @cached_property
    def index_sql(self) -> tuple[str, ...]:
        """
        Return the statements that create the indexes.
        """
        statements = []
        for index in self.indexes:
            name = f"{self.name}_by_{'_'.join(index.columns)}"
            where = f" WHERE {index.where}" if index.where else ""
            statements.append(
                f'CREATE INDEX "{name}" ON "{self.name}" ({", ".join(index.columns)}){where}'
            )
        return tuple(statements)

    @cached_property
    def write_sql(self) -> str:
        """
        Return the statement that writes one row: added, or changed where a row with its key exists.

        Fixed columns stay as they are, so that the indexes on them aren't written again.
        """
        return self._write_sql(self.fixed)

    @cached_property
    def rewrite_sql(self) -> str:
        """
        Return the statement that writes one row, fixed columns too.
        """
        return self._write_sql(())

    def _write_sql(self, fixed: tuple[str, ...]) -> str:
        marks = ", ".join("?" * len(self.columns))
        insert = f'INSERT INTO "{self.name}" ({", ".join(self.names)}) VALUES ({marks})'
        if self.grows:
            return insert
        kept = {*self.key, *fixed}
        changes = ", ".join(f"{name}=excluded.{name}" for name in self.names if name not in kept)
        return f"{insert} ON CONFLICT ({', '.join(self.key)}) DO UPDATE SET {changes}"

    @cached_property
    def read_sql(self) -> str:
        """
        Return the beginning of a query for whole rows; a WHERE clause may follow.
        """
        return f'SELECT {", ".join(self.names)} FROM "{self.name}"'


@dataclass(frozen=True, slots=True)
class View:
    """
    Describe a view: its name, what one row is, its columns with what they say, and its query.
    """

    name: str
    doc: str
    columns: tuple[tuple[str, str], ...]
    query: str

    @property
    def create_sql(self) -> str:
        """
        Return the statement that creates the view.
        """
        names = ", ".join(name for name, _ in self.columns)
        return f'CREATE VIEW "{self.name}" ({names}) AS\n{self.query.strip()}'


def table(
    name: str,
    *,
    key: str,
    grows: bool = False,
    fixed: str = "",
    indexes: tuple[Index, ...] = (),
) -> Callable[[Row], Row]:
    """
    Make a row class the definition of a table: its docstring and annotated fields describe it.
    """

    def define(row: Row) -> Row:
        doc = " ".join((row.__doc__ or "").split())
        _tables[name] = Table(
            name, doc, _columns(row), tuple(key.split()), grows, tuple(fixed.split()), indexes, row
        )
        return row

    return define


def _columns(row: type) -> tuple[Column, ...]:
    columns = []
    for name, hint in get_type_hints(row, include_extras=True).items():
        if get_origin(hint) is not Annotated:
            continue
        of, doc = get_args(hint)[:2]
        kinds = set(get_args(of)) or {of}
        is_optional = type(None) in kinds
        kind = "TEXT" if kinds - {type(None)} == {str} else "INTEGER"
        columns.append(Column(name, kind, is_optional, doc))
    return tuple(columns)


def tables() -> dict[str, Table]:
    """
    Return every table by name, in the order in which they are described.
    """
    import projections.audit.rows  # noqa: F401 - defining the rows fills the registry

    return dict(_tables)


def fingerprint(statements: list[str], meaning: list[str]) -> str:
    """
    Return the version of a read model: another one can't be carried on, only made anew.

    Args:
        statements: Every statement that creates something.
        meaning: Whatever else decides what the rows say, such as the version of the fold.
    """
    digest = hashlib.blake2b(digest_size=8)
    for text in (*statements, *meaning):
        digest.update(text.encode() + b"\0")
    return digest.hexdigest()
