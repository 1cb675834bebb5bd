"""
The commands about logs and snapshots as files: they need no running scheduler.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from domain.errors import NEWER_PROGRAM, Corrupt, XceError
from domain.units import show_duration
from store.log import EventLog
from store.snapshot_files import read_header
from store.snapshots import Entry, entries_of
from store.verify import VerifyReport, verify
from tools.cli.client import Client
from tools.cli.groups import Commands
from tools.cli.log_files import COMMANDS
from tools.cli.log_places import serving_cluster, snapshot_directory
from tools.cli.log_snapshots import COMMANDS as SNAPSHOT_COMMANDS
from tools.cli.options import json_option
from tools.cli.output import as_typed, counted, say_json, table

CORRUPT = 4
# What a scheduler tells of its snapshots is an addition: nobody waits long for it.
LIVE_S = 5.0
LOG = click.argument("log", metavar="LOG", type=click.Path(path_type=Path))


@click.group(
    cls=Commands,
    epilog="""
\b
Examples:
  xce log info ~/.local/state/xce
  xce log verify run1
Next, for the decisions in it: xce replay verify LOG.
"""
)
def log_group() -> None:
    """
    Look at an event log, and verify it.

    LOG is the directory of a log, or of a cluster.
    """


@click.group(
    cls=Commands,
    epilog="""
\b
Example:
  xce snapshot list ~/.local/state/xce
"""
)
def snapshot_group() -> None:
    """
    Look at the snapshots of a log.

    LOG is the directory of a log, or of a cluster.
    """


@log_group.command(
    "info",
    epilog="""
\b
Example:
  xce log info run1 --json | jq .events
Next: xce log verify run1.
""",
)
@LOG
@json_option
def log_info(log: Path, as_json: bool) -> None:  # noqa: FBT001 - click's way
    """
    Describe a log.
    """
    with EventLog.open(log, writable=False) as opened:
        info = opened.info()
    if as_json:
        say_json(asdict(info))
        return
    _show(
        {
            "log": info.path,
            "id": info.log_id,
            "events": info.events,
            "frames": info.frames,
            "size": f"{info.bytes} bytes" + _each(info.bytes, info.events),
            "archived": f"{info.archived_events} events in {info.archived_bytes} bytes",
            "begins at": info.first_position,
            "first event": _time(info.first_time_us, "T"),
            "last event": _time(info.last_time_us, "T"),
            "head digest": info.head_digest,
            "epoch": info.epoch,
            "last writer": info.writer,
            "open readers": f"{info.readers}, the oldest {info.oldest_reader_lag} commits behind",
        }
    )


@log_group.command(
    "verify",
    epilog="""
\b
Example:
  xce log verify run1 && echo sound
Also while its scheduler runs. Next, for the decisions in it: xce replay verify run1.
""",
)
@LOG
@json_option
@click.option(
    "--fast", is_flag=True, help="Don't decode the events: checksum, chain, order and index only."
)
def log_verify(log: Path, as_json: bool, fast: bool) -> int:  # noqa: FBT001 - click's way
    """
    Walk a log and name what is wrong with it; exit status 4 when something is.
    """
    report = verify(log, decoded=not fast)
    if as_json:
        click.echo(report.as_json())
    else:
        _show_report(report, log)
    return 0 if report.is_good else CORRUPT


def _show_report(report: VerifyReport, log: Path) -> None:
    """
    Print what a walk over a log found.
    """
    depth = "and decoded" if report.is_decoded else "(not decoded)"
    click.echo(
        f"{report.events} events in {report.frames} frames and {report.commits} commits "
        f"read {depth}."
    )
    if report.first_position > 1:
        click.echo(f"Everything before position {report.first_position} was pruned.")
    for problem in report.problems:
        click.echo(problem.text())
    if report.problem_count > len(report.problems):
        click.echo(f"and {report.problem_count - len(report.problems)} more")
    if report.is_good:
        click.echo("The log is good.")
        return
    kept = report.problems
    if len(kept) == report.problem_count and all(problem.kind == "newer" for problem in kept):
        click.echo(f"Nothing is damaged; a newer program wrote this. {NEWER_PROGRAM}")
        return
    found = counted(report.problem_count, "problem")
    repair = f"{as_typed('xce', 'log', 'repair', log)} NEW"
    click.echo(f"{found} in {report.path}. To save what is good: {repair}.")


@snapshot_group.command(
    "list",
    epilog="""
\b
Example:
  xce snapshot list ~/.local/state/xce
They may all be removed: the log alone gives the same state, only later.
""",
)
@LOG
@json_option
def snapshot_list(log: Path, as_json: bool) -> None:  # noqa: FBT001 - click's way
    """
    List the snapshots of a log.

    Of a running scheduler it also says which one is being made, and why the last one wasn't.
    """
    rows = [_snapshot_row(entry) for entry in entries_of(snapshot_directory(log))]
    live = _live(log)
    if as_json:
        say_json({"snapshots": rows} | live)
        return
    if rows:
        heads = ("POSITION", "TIME", "SCHEMA", "BYTES", "PINNED")
        told = [
            (row["position"], _shown(row["time"]), row["schema"], row["bytes"],
             "pinned" if row["pinned"] else "")
            for row in rows
        ]  # fmt: skip
        table(heads, told, numbers="POSITION BYTES")
    click.echo(f"{counted(len(rows), 'snapshot')}.")
    if making := live.get("making"):
        click.echo(f"One is being made, of position {making['position']}; it may take "
                   f"{show_duration(round(live['limit_s'] * 1e6))}.")  # fmt: skip
    if "problem" in (last := live.get("last") or {}):
        click.echo(f"The last one, of position {last['position']}, wasn't made: {last['problem']}")


def _live(log: Path) -> dict[str, Any]:
    """
    Return what the scheduler of a log tells of its snapshots, nothing where none answers.
    """
    cluster = serving_cluster(log)
    if cluster is None:
        return {}
    try:
        with Client(cluster, answer_s=LIVE_S) as client:
            found: dict[str, Any] = client.get("/v1/status")["snapshots"]
            return found
    except XceError:
        return {}


def _shown(text: object) -> str:
    """
    Return the time of a snapshot as all commands show times to people.
    """
    return f"{str(text).replace(' ', 'T')}Z" if " " in str(text) else str(text)


def _snapshot_row(entry: Entry) -> dict[str, object]:
    """
    Describe a snapshot by its file and header; nothing else is checked.
    """
    row: dict[str, object] = {"position": entry.position, "time": "-", "schema": "?"}
    try:
        header = read_header(entry.path)
        row |= {"time": _time(header.time_us), "schema": header.schema, "state_bytes": header.size}
    except Corrupt as error:
        row["problem"] = error.text()
    return row | {"bytes": entry.size, "pinned": entry.is_pinned, "file": str(entry.path)}


for command in COMMANDS:
    log_group.add_command(command)
for command in SNAPSHOT_COMMANDS:
    snapshot_group.add_command(command)


def _show(fields: dict[str, object]) -> None:
    """
    Print names and values in two columns.
    """
    width = max(map(len, fields))
    for name, value in fields.items():
        click.echo(f"{name:<{width}}  {value}")


def _each(size: int, count: int) -> str:
    """
    Return how much that is for each event.
    """
    return f", {size / count:.1f} an event" if count else ""


def _time(time_us: int | None, between: str = " ") -> str:
    """
    Return a log time in UTC to the second: with a T in between as all commands show it to people.
    """
    if time_us is None:
        return "-"
    from datetime import UTC, datetime

    try:
        moment = datetime.fromtimestamp(time_us // 1_000_000, UTC)
        return moment.strftime(f"%Y-%m-%d{between}%H:%M:%S{'Z' * (between == 'T')}")
    except (OverflowError, ValueError, OSError):
        return f"{time_us} us"
