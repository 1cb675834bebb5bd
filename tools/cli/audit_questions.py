"""
Questions to the tables: a story, why a job waited, who did what, any SQL.
"""

from __future__ import annotations

import json
import os
import pwd
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from domain.errors import Refused
from domain.units import parse_time_us
from tools.cli.options import dir_option, json_option
from tools.cli.output import escape, say, say_json, table

if TYPE_CHECKING:
    from projections.audit.history import Story, Viewer
    from projections.audit.pending import Why
    from projections.audit.reading import Reading

fresh_option = click.option(
    "--no-catch-up",
    "stale",
    is_flag=True,
    help="Ask the tables as they are, without looking at the log.",
)
from_option = click.option("--from", "from_text", metavar="TIME|POSITION", help="Nothing before.")
to_option = click.option("--to", "to_text", metavar="TIME|POSITION", help="Nothing after.")


def viewer_of(path: Path) -> Viewer:
    """
    Return who asks: root and the owner of the tables see everything, others what is theirs.
    """
    from projections.audit.history import EVERYTHING, Viewer

    user_id = os.geteuid()
    if user_id in (0, path.stat().st_uid):
        return EVERYTHING
    try:
        return Viewer(pwd.getpwuid(user_id).pw_name)
    except KeyError:
        return Viewer(f"#{user_id}")


def position_of(reading: Reading, text: str | None, field: str) -> int | None:
    """
    Return the position that a text means: a number, or a time whose last event it is.

    Raises:
        Refused: It is neither.
    """
    if text is None:
        return None
    if text.isdecimal():
        return int(text)
    return reading.position_at(parse_time_us(text, field=field))


def time_of(reading: Reading, text: str | None, field: str) -> int | None:
    """
    Return the time that a text means: a time, or a position whose time it is.
    """
    if text is None:
        return None
    if not text.isdecimal():
        return parse_time_us(text, field=field)
    query = "SELECT time_us FROM events WHERE position >= ? ORDER BY position LIMIT 1"
    found = reading.value(query, (int(text),))
    return reading.last_time_us() if found is None else int(found)


# ----------------------------------------------------------------------------------------- history


@click.command(
    "history",
    epilog="""
\b
Examples:
  xce audit history 4711
  xce audit history alpha --from 2026-11-29T03:00:00Z
  xce audit history queue:normal --jsonl
""",
)
@click.argument("name", metavar="JOB|HOST|QUEUE|KIND:NAME")
@from_option
@to_option
@click.option("--reports", is_flag=True, help="Tell a host's load reports too.")
@click.option("--jsonl", is_flag=True, help="Print one JSON object for each event.")
@fresh_option
@dir_option
@json_option
def history(
    directory: Path,
    name: str,
    from_text: str | None,
    to_text: str | None,
    *,
    reports: bool,
    jsonl: bool,
    stale: bool,
    as_json: bool,
) -> None:
    """
    Tell the story of a job, host, queue or anything else that has one.
    """
    from projections.audit.history import story
    from tools.cli.audit import asked

    with asked(directory, fresh=not stale) as reading:
        told = story(
            reading,
            name,
            viewer=viewer_of(Path(reading.path)),
            from_us=time_of(reading, from_text, "from"),
            to_us=time_of(reading, to_text, "to"),
            with_reports=reports,
        )
    if jsonl:
        for line in told.plain()["events"]:  # type: ignore[attr-defined]
            click.echo(json.dumps(line))
    elif as_json:
        say_json(told.plain())
    else:
        _show_story(told)


def _show_story(told: Story) -> None:
    from projections.audit.times import moment, seconds
    from projections.audit.who import change_words

    say(f"{'Host' if told.kind == 'worker' else told.kind.capitalize()} {told.name}".rstrip())
    wide = len(str(told.position)) + 1
    for line in told.lines:
        by = f" by {line.actor}" if line.actor else ""
        say(f"{'#' + str(line.position):>{wide}}  {moment(line.time_us)}{by}: {line.text}")
        for change in filter(_is_worth_a_line, told_changes(line.changes)):
            say(f"{'':{wide}}    {change_words(change)}")
    if told.in_state_us:
        total_us = sum(told.in_state_us.values())
        say("Seconds in each state:")
        heads = [*told.in_state_us, "TOTAL"]
        table(
            heads,
            [[*map(seconds, told.in_state_us.values()), seconds(total_us)]],
            numbers=" ".join(heads),
        )
    say(f"Told from {_period(told)}, position {told.position} of the log.")


def _is_worth_a_line(change: dict[str, Any]) -> bool:
    """
    Say whether a change tells people something: a new thing's empty fields don't.
    """
    return change["old"] is not None or change["new"] not in (None, "", False, [], {})


def told_changes(changes: Sequence[tuple[str, str | None, str | None]]) -> list[dict[str, Any]]:
    """
    Return changes with their values as such.
    """
    return [
        {
            "field": field,
            "old": None if old is None else json.loads(old),
            "new": None if new is None else json.loads(new),
        }
        for field, old, new in changes
    ]


def _period(told: Story) -> str:
    from projections.audit.times import moment

    begin = "the log's beginning" if told.from_us is None else moment(told.from_us)
    return f"{begin} to {moment(told.now_us if told.to_us is None else told.to_us)}"


# --------------------------------------------------------------------------------------------- why


@click.command(
    "why",
    epilog="""
\b
Examples:
  xce audit why 4711
  xce audit why 4711 --at 2026-11-29T03:10:00Z
  xce audit why 4711 --at 15200 --hosts
  xce audit why 4711 --history
""",
)
@click.argument("job_id", metavar="JOB")
@click.option(
    "--at", "at_text", metavar="TIME|POSITION", help="At that moment, not at the log's end."
)
@click.option("--history", "as_history", is_flag=True, help="All reasons over time, with seconds.")
@click.option("--hosts", is_flag=True, help="What each host was short of.")
@fresh_option
@dir_option
@json_option
def why(
    directory: Path,
    job_id: str,
    at_text: str | None,
    *,
    as_history: bool,
    hosts: bool,
    stale: bool,
    as_json: bool,
) -> None:
    """
    Say why a job waits, or waited at some moment, also when it ended long ago.
    """
    from projections.audit.pending import hosts_short, why_at
    from tools.cli.audit import asked

    with asked(directory, fresh=not stale) as reading:
        if as_history:
            _show_intervals(reading, job_id, as_json=as_json)
            return
        told = why_at(reading, job_id, position_of(reading, at_text, "at"))
        short = hosts_short(reading, told) if hosts else []
    if as_json:
        say_json(told.plain() | ({"hosts": short} if hosts else {}))
        return
    _show_why(told)
    if short:
        heads = ("HOST", "REASON", "RESOURCE", "ASKED", "AVAILABLE")
        table(
            heads,
            [
                (
                    row["host"],
                    row["text"],
                    row["resource"],
                    _amount(row, "requested_milli"),
                    _amount(row, "available_milli"),
                )
                for row in short
            ],
        )


def _amount(row: dict[str, Any], which: str) -> str | None:
    from projections.audit.wording import amount_words

    return amount_words(row["resource"], row[which]) if row["resource"] else None


VERDICTS = {
    "waits": "waits: it can start, but not now",
    "never": "can never start on the cluster as it was then",
    "held": "is held",
    "runs": "doesn't wait: it has its hosts",
    "ended": "doesn't wait: it has ended",
    "unknown": "doesn't wait: contact with its host is lost",
}


def _show_why(told: Why) -> None:
    from projections.audit.times import moment

    say(f"Job {told.job_id} {VERDICTS[told.verdict]} ({told.state}).")
    if told.code:
        say(f"Main reason  {told.code}: {told.reasons}")
        for one in told.shortages:
            say(f"             {one.words()}")
        if told.blocker:
            say(f"Held back by job {told.blocker}")
        before = "none" if told.ahead == 0 else f"{told.ahead}"
        say(f"In its queue {before} of the waiting jobs came before it")
    if told.dispatched_instead:
        say(
            f"Ran instead  {told.dispatched_instead} jobs since it was submitted, "
            f"the latest: {', '.join(told.instead)}"
        )
    say(f"Since        {moment(told.since_us)} (position {told.since_position})")
    say(f"As of        {moment(told.time_us)} (position {told.position})")


def _show_intervals(reading: Reading, job_id: str, *, as_json: bool) -> None:
    from dataclasses import asdict

    from projections.audit.pending import reason_history
    from projections.audit.times import moment, seconds

    found = reason_history(reading, job_id)
    now_us = reading.last_time_us()
    total_us = sum((now_us if one.to_us is None else one.to_us) - one.from_us for one in found)
    if as_json:
        intervals = [asdict(one) for one in found]
        say_json(
            {
                "job_id": job_id,
                "position": reading.position(),
                "now_us": now_us,
                "waited_us": total_us,
                "intervals": intervals,
            }
        )
        return
    rows = [
        (
            moment(one.from_us),
            seconds((now_us if one.to_us is None else one.to_us) - one.from_us),
            one.code,
            ("never: " if one.never else "") + one.reasons,
        )
        for one in found
    ]
    table(("SINCE", "SECONDS", "CODE", "REASONS"), rows, numbers="SECONDS")
    say(f"Waited {seconds(total_us)} s in all, as of position {reading.position()}.")


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
                command=command_words,
                first_position=position_of(reading, from_text, "from"),
                last_position=position_of(reading, to_text, "to"),
                only_refused=refused,
                without_submissions=not (everything or user or about or command_words),
                limit=limit,
            ),
        )
        position = reading.position()
    if as_json:
        say_json({"position": position, "commands": found})
        return
    _show_commands(found)


def _show_commands(found: list[dict[str, Any]]) -> None:
    from projections.audit.who import change_words

    rows = []
    for one in found:
        about = " ".join(filter(None, (one["object_kind"], one["object"])))
        told = "; ".join(
            change_words(change) for change in filter(_is_worth_a_line, one["changes"])
        )
        if one["outcome"] != "done":
            told = f"{one['field']} {one['rule']}".strip() + (
                f" (given: {one['value']})" if one["value"] else ""
            )
        rows.append(
            (
                one["position"],
                one["time"],
                one["actor"],
                one["command"],
                about,
                one["outcome"],
                told,
            )
        )
    if rows:
        table(
            ("POSITION", "TIME", "WHO", "COMMAND", "ABOUT", "OUTCOME", "CHANGED"),
            rows,
            numbers="POSITION",
        )
    else:
        say("Nothing of that kind is in the log.")


# --------------------------------------------------------------------------------------------- SQL


def write_rows(
    heads: Sequence[str], rows: Iterable[Sequence[object]], *, as_json: bool, as_csv: bool
) -> None:
    """
    Print rows: as a table, as JSON lines, or as CSV that no spreadsheet takes for formulas.
    """
    from projections.audit.escaping import csv_text

    if as_csv:
        for line in csv_text(heads, rows):
            sys.stdout.write(line)
    elif as_json:
        for row in rows:
            click.echo(json.dumps(dict(zip(heads, map(_plain, row), strict=True))))
    else:
        table([escape(head) for head in heads], [[_plain(cell) for cell in row] for row in rows])


def _plain(cell: object) -> object:
    return cell.hex() if isinstance(cell, bytes) else cell


csv_option = click.option("--csv", "as_csv", is_flag=True, help="Print CSV, safe for spreadsheets.")
lines_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object for each row."
)


@click.command(
    "sql",
    epilog="""
\b
Examples:
  xce audit sql "SELECT queue, count(*) FROM jobs GROUP BY queue"
  xce audit sql --csv - < query.sql
Tables and columns: xce audit tables.
""",
)
@click.argument("query", metavar="QUERY|-")
@csv_option
@fresh_option
@dir_option
@lines_option
def sql(directory: Path, query: str, *, as_csv: bool, stale: bool, as_json: bool) -> None:
    """
    Ask in SQL; with - the query is read from standard input. Nothing can be changed.
    """
    from tools.cli.audit import asked

    text = sys.stdin.read() if query == "-" else query
    if not text.strip():
        raise Refused("query", "must not be empty")
    with asked(directory, fresh=not stale) as reading:
        heads, rows = reading.sql(text)
        write_rows(heads, rows, as_json=as_json, as_csv=as_csv)


QUESTIONS = (history, why, who, sql)
