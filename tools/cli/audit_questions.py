"""
Questions to the tables: who did what, any SQL.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from domain.errors import Refused
from tools.cli.audit_asking import (
    fresh_option,
    from_option,
    keep_private,
    position_of,
    to_option,
    viewer_of,
)
from tools.cli.options import dir_option, json_option, jsonl_option
from tools.cli.output import US, escape, say, say_json, show_recent, table

# --------------------------------------------------------------------------------------------- who


@click.command(
    "who",
    epilog="""
\b
Examples:
  xce audit who --user ann
  xce audit who --about normal
  xce audit who --refused --json
Submissions are told only with --all, --user or --about. Exit status 0 also when there is nothing.
""",
)
@click.option("--user", metavar="NAME", help="What this user did.")
@click.option("--about", metavar="NAME", help="What was done to this job, queue or host.")
@click.option(
    "--command", "command_words", metavar="WORDS", help='Only this command, such as "close host".'
)
@click.option("--refused", is_flag=True, help="Only what was refused or denied.")
@click.option("--all", "everything", is_flag=True, help="Submissions too.")
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    help="The latest so many.",
)
@from_option
@to_option
@fresh_option
@dir_option
@json_option
def who(  # noqa: PLR0913 - each is an option of the command
    directory: Path,
    user: str | None,
    about: str | None,
    command_words: str | None,
    from_text: str | None,
    to_text: str | None,
    limit: int,
    *,
    refused: bool,
    everything: bool,
    stale: bool,
    as_json: bool,
) -> None:
    """
    Say who did what: commands with what they changed, old and new, refused and denied ones too.
    """
    from projections.audit.who import Question, commands
    from tools.cli.audit import asked

    with asked(directory, fresh=not stale) as reading:
        found = commands(
            reading,
            Question(
                user=user,
                about=about,
                command=_inside(command_words),
                first_position=position_of(reading, from_text, "from"),
                last_position=position_of(reading, to_text, "to"),
                only_refused=refused,
                without_submissions=not (everything or user or about or command_words),
                limit=limit,
            ),
            viewer_of(Path(reading.path)),
        )
        position = reading.position()
    if as_json:
        say_json({"position": position, "commands": found})
        return
    _show_commands(found)


HOST, WORKER = " host", " worker"
"""How a command about a host ends, as people say it and inside."""


def _inside(words: str | None) -> str | None:
    return words.removesuffix(HOST) + WORKER if words and words.endswith(HOST) else words


def _said(words: str) -> str:
    return words.removesuffix(WORKER) + HOST if words.endswith(WORKER) else words


def _show_commands(found: list[dict[str, Any]]) -> None:
    from projections.audit.fields import field_words
    from projections.audit.who import is_removal, told_changes

    rows, now_us = [], int(time.time() * US)
    for one in found:
        kind = one["object_kind"]
        # The command's words mostly name the kind: "define queue".
        is_said = one["command"].endswith(f" {kind}")
        about = " ".join(filter(None, ("" if is_said else kind, one["object"])))
        gone = is_removal(one["command"])
        told = "; ".join(
            told_changes(one["changes"], one["object_kind"], is_new=one["is_new"], is_removal=gone)
        )
        if one["outcome"] != "done":
            kind = "job" if one["command"].endswith(" job") else ""
            rule = f"{field_words(one['field'], kind)} {one['rule']}".strip()
            given = f" (given: {one['value']})" if one["value"] else ""
            told = f"{one['outcome']}: {rule}{given}"
        when = show_recent(one["time_us"], now_us)
        rows.append((one["position"], when, one["actor"], _said(one["command"]), about, told))
    if rows:
        table(("POSITION", "TIME", "WHO", "COMMAND", "ABOUT", "CHANGED"), rows, numbers="POSITION")
    else:
        say("Nothing of that kind is in the log.")


# --------------------------------------------------------------------------------------------- SQL


@dataclass(frozen=True, slots=True)
class Form:
    """
    Say how rows are printed; as a table when nothing is said.

    Raises:
        Refused: In two ways at once.
    """

    as_csv: bool
    as_json: bool
    as_jsonl: bool

    def __post_init__(self) -> None:
        if self.as_csv + self.as_json + self.as_jsonl > 1:
            raise Refused("--csv, --json, --jsonl", "only one of them can be given")


def write_rows(
    heads: Sequence[str], rows: Iterable[Sequence[object]], position: int, form: Form
) -> None:
    """
    Print rows: as a table, as one JSON object, as JSON lines, or as CSV that no spreadsheet takes
    for formulas. Rows are printed as they come: a whole table may have millions.
    """
    from projections.audit.escaping import csv_text

    if form.as_csv:
        for line in csv_text(heads, rows):
            sys.stdout.write(line)
    elif form.as_jsonl:
        for row in rows:
            click.echo(_row_json(heads, row))
    elif form.as_json:
        begin = json.dumps({"position": position, "columns": list(heads)})
        sys.stdout.write(f'{begin[:-1]}, "rows": [')
        for number, row in enumerate(rows):
            sys.stdout.write((", " if number else "") + _row_json(heads, row))
        sys.stdout.write("]}\n")
    else:
        table([escape(head) for head in heads], [[_plain(cell) for cell in row] for row in rows])


def _row_json(heads: Sequence[str], row: Sequence[object]) -> str:
    return json.dumps(dict(zip(heads, map(_plain, row), strict=True)))


def _plain(cell: object) -> object:
    return cell.hex() if isinstance(cell, bytes) else cell


csv_option = click.option("--csv", "as_csv", is_flag=True, help="Print CSV, safe for spreadsheets.")


@click.command(
    "sql",
    epilog="""
\b
Examples:
  xce audit sql "SELECT queue, count(*) FROM jobs GROUP BY queue"
  xce audit sql --csv - < query.sql
  xce audit sql "SELECT job_id, state FROM jobs" --json | jq '.rows[].job_id'
Tables and columns: xce audit tables.
""",
)
@click.argument("query", metavar="QUERY|-")
@csv_option
@fresh_option
@dir_option
@json_option
@jsonl_option
def sql(directory: Path, query: str, *, stale: bool, **form: bool) -> None:
    """
    Ask in SQL; with - the query is read from standard input. Nothing can be changed.

    What jobs run is shown to the owner of the tables only: others read NULL there.
    """
    from tools.cli.audit import asked

    wanted = Form(**form)
    text = sys.stdin.read() if query == "-" else query
    if not text.strip():
        raise Refused("query", "must not be empty")
    with asked(directory, fresh=not stale) as reading:
        keep_private(reading)
        heads, rows = reading.sql(text)
        write_rows(heads, rows, reading.position(), wanted)


QUESTIONS = (who, sql)
