"""
Start and stop the scheduler of a cluster, and worker agents.
"""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import Any

import click

from domain.errors import NotFound
from tools.cli.options import dir_option, json_option
from tools.cli.output import as_typed, counted, note, say, say_json


@click.command(epilog="""
\b
Examples:
  xce up --workers 2                 try it out: a scheduler and two agents on this machine
  xce up --dir /shared/cluster       a scheduler; workers join by: xce worker --dir ...
It runs in the foreground until Ctrl-C, SIGTERM or xce down; jobs and agents outlive it, and the
next xce up finds them again. Where one runs already, only missing workers are added.
With --json one line {"ready": true, "pid": ...} says that it serves.
Next, in another terminal: xce submit -- sleep 10; xce jobs.
""")
@click.option("--workers", default=0, show_default=True, type=click.IntRange(0, 1000), metavar="N",
              help="So many local worker agents there are to be.")
@click.option("--slots", type=click.IntRange(min=1), metavar="N",
              help="Tasks at a time of each worker that is added; else one a processor.")
@click.option("--audit/--no-audit", "with_audit", default=True, show_default=True,
              help="Keep the audit tables up meanwhile, in a process of its own.")
@dir_option
@json_option
def up(
    directory: Path, workers: int, slots: int | None, *, with_audit: bool, as_json: bool
) -> int:
    """
    Start the scheduler of a cluster, and local workers; the first time it begins a new cluster.
    """
    from tools.daemon.process import run_scheduler

    told = say_ready_json if as_json else _say_ready
    return run_scheduler(
        directory, workers=workers, worker_slots=slots, on_ready=told, with_audit=with_audit
    )


def say_ready_json(ready: dict[str, Any]) -> None:
    """
    Print that it serves, for a program that waits for it.
    """
    say_json(ready)
    sys.stdout.flush()


def _say_ready(ready: dict[str, Any]) -> None:
    added = ready.get("workers_added") or []
    joined = f"; {counted(len(added), 'worker')} started: {', '.join(added)}" if added else ""
    if ready.get("already_running"):
        say(f"A scheduler runs already for the cluster in {ready['dir']}{joined}.")
        return
    who = f"The scheduler of the cluster in {ready['dir']}"
    say(f"{who} is ready (process {ready['pid']}){joined}.")
    say("Ctrl-C ends it, its jobs go on; xce down ends all.")
    where = as_typed(ready["dir"])
    say(f"In another terminal: export XCE_DIR={where}; xce submit -- sleep 10; xce jobs")
    sys.stdout.flush()


@click.command(epilog="""
\b
Example:
  xce down --dir demo
Running jobs are ended and counted as killed; to stop the scheduler alone, press Ctrl-C at xce up.
Next: xce up begins where this one ended.
""")
@dir_option
@json_option
def down(directory: Path, *, as_json: bool) -> None:
    """
    Stop the scheduler of a cluster, its local workers, and what still runs on them.
    """
    from tools.daemon.process import stop_all

    if not directory.is_dir():
        raise NotFound("dir", "must be the directory of a cluster", str(directory))
    ended = stop_all(directory)
    if as_json:
        say_json(ended)
        return
    parts = [counted(count, kind.removesuffix("s")) for kind, count in ended.items() if count]
    say(f"Ended: {', '.join(parts)}." if parts else f"Nothing was running in {directory}.")


@click.command(epilog="""
\b
Examples:
  xce worker --dir /shared/cluster
  xce worker --name alpha --slots 8
It runs in the foreground and writes a line of JSON to standard error for whatever happens.
Its jobs go on when it ends; started again it finds them. Next: xce hosts.
""")
@click.option("--name", metavar="NAME", help="The host's name in the cluster; else this machine's.")
@click.option("--slots", type=click.IntRange(min=1), metavar="N",
              help="Tasks at a time; else one a processor.")
@dir_option
def worker(directory: Path, name: str | None, slots: int | None) -> int:
    """
    Run a worker agent on this host until it is told to end (Ctrl-C or SIGTERM).
    """
    from domain.ids import check_name
    from tools.agent.agent import run_agent

    if not directory.is_dir():
        # It would wait there for a scheduler for ever, in a directory that it makes itself.
        hint = f"{as_typed('xce', 'up', '--dir', directory)} makes one."
        raise NotFound("dir", "must be the directory of a cluster", str(directory), hint)
    chosen = check_name("--name", name or socket.gethostname())
    note(f"xce: worker {chosen} of the cluster in {directory}; Ctrl-C ends it, its jobs go on.")
    return run_agent(directory, chosen, slots)
