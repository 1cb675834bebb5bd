"""
The commands that look after snapshots as files.
"""

from __future__ import annotations

from pathlib import Path

import click

from domain.errors import Conflict, NotFound
from store.info import log_directory
from store.lock import is_held, read_holder
from store.log import EventLog
from store.snapshots import SnapshotStore
from tools.cli.client import Client
from tools.cli.log_places import serving_cluster, snapshot_directory
from tools.cli.options import examples, json_option
from tools.cli.output import as_typed, counted, say_json

CORRUPT = 4
# A process of its own folds the log and gives way to the scheduler meanwhile.
MAKE_S = 3600.0
LOG = click.argument("log", metavar="LOG", type=click.Path(path_type=Path))


@click.command(
    "make",
    epilog=examples(
        "xce snapshot make ~/.local/state/xce", after="Next: xce snapshot list ~/.local/state/xce."
    ),
)
@LOG
@json_option
def snapshot_make(log: Path, *, as_json: bool) -> None:
    """
    Keep a snapshot of the state at the end of a log, so that the next start is quick.

    A running scheduler is asked for it.
    """
    cluster = serving_cluster(log)
    if cluster is None:
        made = _made_here(log)
    else:
        with Client(cluster, answer_s=MAKE_S) as client:
            made = client.post("/v1/snapshot")
    told = f"The state at position {made['position']} is kept in {made['file']}."
    if as_json:
        say_json(made)
    else:
        click.echo(told)


def _made_here(log: Path) -> dict[str, object]:
    """
    Recover the state from a log that nobody writes and keep it.

    Raises:
        Conflict: Somebody writes it, who takes snapshots of their own.
    """
    # Recovering imports the whole core; the other commands do without.
    from replay.engine import Engine
    from replay.plugins import found_plugins

    with EventLog.open(log, writable=False) as opened:
        directory = log_directory(log).resolve()
        if is_held(directory) and (holder := read_holder(directory)):
            raise Conflict("the log has a writer", "none", holder.text(), "Ask it, or end it.")
        store = SnapshotStore(snapshot_directory(log), log_id=opened.log_id)
        engine = Engine.recover(opened, plugins=found_plugins(), snapshots=store)
        return {"position": engine.position, "file": str(engine.take_snapshot())}


@click.command(
    "check",
    epilog="""
\b
Example:
  xce snapshot check ~/.local/state/xce
""",
)
@LOG
@json_option
def snapshot_check(log: Path, *, as_json: bool) -> int:
    """
    Hold every snapshot against its log; exit status 4 when one is bad.
    """
    with EventLog.open(log, writable=False) as opened:
        store = SnapshotStore(snapshot_directory(log), log_id=opened.log_id)
        found = store.check(head=opened.head(), digest_at=opened.digest_at)
    if as_json:
        rows = [{"file": str(entry.path), "position": entry.position, "problem": problem}
                for entry, problem in found]  # fmt: skip
        say_json({"snapshots": rows})
    for entry, problem in () if as_json else found:
        click.echo(f"{entry.position:>12}  {problem or 'good'}")
    if not (found or as_json):
        click.echo("0 snapshots.")
    return CORRUPT if any(problem for _, problem in found) else 0


@click.command(
    "prune",
    epilog="""
\b
Example:
  xce snapshot prune --keep 5 --daily 7 ~/.local/state/xce
""",
)
@LOG
@click.option("--keep", type=click.IntRange(1), default=3, show_default=True,
              help="How many of the newest stay.")  # fmt: skip
@click.option("--daily", type=click.IntRange(0), default=0, show_default=True,
              help="For how many days the last one of the day stays too.")  # fmt: skip
@json_option
def snapshot_prune(log: Path, *, keep: int, daily: int, as_json: bool) -> None:
    """
    Remove old snapshots; pinned ones stay.
    """
    with EventLog.open(log, writable=False) as opened:
        log_id = opened.log_id
    removed = SnapshotStore(snapshot_directory(log), log_id=log_id).prune(keep, daily=daily)
    if as_json:
        say_json({"removed": [str(each) for each in removed]})
    else:
        click.echo(f"{counted(len(removed), 'snapshot')} removed.")


@click.command(
    "pin",
    epilog="""
\b
Example:
  xce snapshot pin ~/.local/state/xce 120000
""",
)
@LOG
@click.argument("position", type=click.IntRange(1))
@click.option("--off", is_flag=True, help="Let it be pruned again.")
@json_option
def snapshot_pin(log: Path, position: int, *, off: bool, as_json: bool) -> int:
    """
    Keep the snapshot at a position for good.
    """
    with EventLog.open(log, writable=False) as opened:
        log_id = opened.log_id
    store = SnapshotStore(snapshot_directory(log), log_id=log_id)
    changed = store.pin(position, is_pinned=not off)
    if not changed:
        rule = "must be that of a snapshot"
        hint = f"List them: {as_typed('xce', 'snapshot', 'list', log)}."
        raise NotFound("POSITION", rule, position, hint=hint)
    if as_json:
        files = [str(each) for each in changed]
        say_json({"position": position, "pinned": not off, "files": files})
    else:
        click.echo(f"{counted(len(changed), 'snapshot')} {'let go' if off else 'pinned'}.")
    return 0


COMMANDS = (snapshot_make, snapshot_check, snapshot_prune, snapshot_pin)
