"""
Try another future of a log, and set two logs side by side.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tools.cli.options import json_option
from tools.cli.output import counted, note, say, say_json
from tools.cli.replay_state import AT_HELP, bar, log_argument, progress_option

if TYPE_CHECKING:
    from domain.commands import JoinWorker
    from replay.branch import BranchResult
    from replay.branch_changes import Changes
    from store.log import EventLog

DIFFERENT = 1


@click.command(epilog="""
\b
Examples:
  xce replay branch run1 --at 5000 --log same          the same future again
  xce replay branch run1 --at 5000 --log b --set queue.night.priority=90
  xce replay branch run1 --at 2026-11-29T18:00:00 --log c --add-hosts 10x8 --until end
  xce replay branch run1 --at 5000 --log d --picker strict_fcfs --drop-event 5017
FILE of --events holds one JSON object a line: {"time_us": N, "actor": "ann", "command": "KillJob",
"fields": {"job_id": "12"}}. Run times are those of the log; where it doesn't tell them, the user's
estimate or the run limit. Next: xce replay diff run1 b; xce replay verify b.
""")
@log_argument
@click.option("--at", "moment", required=True, metavar="POSITION|TIME", help=AT_HELP)
@click.option("--log", "place", required=True, type=click.Path(path_type=Path), metavar="DIR",
              help="Write the branch's log into this directory, new or empty.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE",
              help="Change queue.NAME.FIELD, queue.FIELD or cluster.FIELD; again for more.")
@click.option("--picker", metavar="NAME", help="The same as --set cluster.picker=NAME.")
@click.option("--add-hosts", "hosts", multiple=True, metavar="HOSTSxSLOTS|FILE",
              help="Let hosts join at the beginning: a size, or a cluster file.")
@click.option("--drop-event", "dropped", multiple=True, type=click.IntRange(min=1),
              metavar="POSITION", help="Leave out an input of the log; again for more.")
@click.option("--events", "file", type=click.Path(path_type=Path), metavar="FILE",
              help="Add inputs from a file.")
@click.option("--until", metavar="POSITION|TIME",
              help="End after this moment of the log; else when everything has ended.")
@progress_option
@json_option
def branch(  # noqa: PLR0913 - options of one command
    log: Path, moment: str, place: Path, settings: tuple[str, ...], picker: str | None,
    hosts: tuple[str, ...], dropped: tuple[int, ...], file: Path | None, until: str | None, *,
    progress: bool | None, as_json: bool,
) -> None:
    """
    Begin at a moment of LOG and run another future, into a log of its own.

    LOG itself is only read. Without a change the branch decides what LOG decided.
    """
    from replay.at import ladder_of
    from replay.branch import Branch
    from replay.branch_changes import Changes, parse_setting, read_inputs
    from replay.moments import parse_moment, position_of, time_at
    from store.log import EventLog

    texts = (*settings, *(() if picker is None else (f"cluster.picker={picker}",)))
    with EventLog.open(log, writable=False) as parent:
        position = position_of(parent, parse_moment("--at", moment), field="--at")
        changes = Changes(
            settings=tuple(map(parse_setting, texts)),
            hosts=_hosts(parent, position, hosts),
            dropped=frozenset(dropped),
            added=() if file is None else read_inputs(file),
        )
        until_us = None
        if until is not None:
            end = parse_moment("--until", until)
            until_us = end.time_us
            if until_us is None:
                until_us = time_at(parent, position_of(parent, end, field="--until"))
        with bar(parent.head(), "branching", shown=progress) as step:
            made = Branch(
                parent, position, changes=changes, until_us=until_us,
                ladder=ladder_of(parent, may_write=False), on_progress=step,
            )  # fmt: skip
            with EventLog.create(place, log_id=made.log_id) as child:
                result = made.run(child)
    if as_json:
        say_json({**asdict(result), "changes": changes.texts(), "log": str(place)})
    else:
        _show(result, changes, place)


def _hosts(parent: EventLog, position: int, texts: tuple[str, ...]) -> tuple[JoinWorker, ...]:
    from replay.at import ladder_of
    from replay.branch_changes import parse_hosts

    if not texts:
        return ()
    taken = set(ladder_of(parent, may_write=False).at(position).core.state.stored.workers)
    found: list[JoinWorker] = []
    for text in texts:
        more = parse_hosts(text, frozenset(taken))
        taken |= {host.worker for host in more}
        found += more
    return tuple(found)


def _show(result: BranchResult, changes: Changes, place: Path) -> None:
    from replay.moments import show_utc

    say(f"Branched from {result.parent_log_id} at position {result.parent_position}; "
        f"log id {result.log_id}")
    for text in changes.texts():
        say(f"  {text}")
    say(f"{counted(result.events, 'event')} with {counted(result.sessions, 'session')} of its own; "
        f"ends {show_utc(result.end_us)}")
    if result.differs_at is None:
        say("Every decision is the parent's.")
    else:
        say(f"The first decision that differs: position {result.differs_at} of the parent, "
            f"{result.differs}")
    if result.run_time_unknown:
        say(f"{counted(result.run_time_unknown, 'run time')} not known from the log; "
            f"{result.without_end:,} of them without an estimate: those jobs don't end")
    for one in result.not_taken:
        note(f"xce: position {one.position}, {one.what}, is left out: {one.why}")
    if result.not_taken_count > len(result.not_taken):
        note(f"xce: and {result.not_taken_count - len(result.not_taken):,} more")
    say(f"The log is in {place}: xce replay diff LOG {place}")
