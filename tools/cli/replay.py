"""
Check a recorded log by deciding everything again.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tools.cli import replay_branch, replay_debug, replay_state, replay_sweep
from tools.cli.groups import Commands
from tools.cli.options import json_option
from tools.cli.output import counted, say, say_json

if TYPE_CHECKING:
    from replay.verify import VerifyResult

SHOWN_MAX = 10
DIFFERENT = 1


@click.group(cls=Commands, epilog="""
\b
Examples:
  xce replay verify ~/.local/state/xce
  xce replay state run1 --at 4711 job:12
LOG is the directory of a log, or of a cluster, or a recording: a file of xce log export or xce
scheduler record. None of these commands changes it. A branch needs a recording of the whole past.
""")
def replay() -> None:
    """
    Look at any moment of a log, check its decisions, and try other futures.
    """


replay.add_command(replay_state.state)
replay.add_command(replay_state.check)
replay.add_command(replay_state.bisect)
replay.add_command(replay_branch.branch)
replay.add_command(replay_branch.diff)
replay.add_command(replay_sweep.sweep)
replay.add_command(replay_debug.debug)


@replay.command(epilog="""
\b
Examples:
  xce replay verify ~/.local/state/xce      also while its scheduler runs
  xce replay verify run1 --json | jq .differences
  xce replay verify run1 --from 2026-11-29T18:00:00 --to 2026-11-29T19:00:00
  xce replay verify evening.jsonl           a recording, also its states
Exit status: 0 when every decision is the same, 1 when one differs, 4 when the log is corrupt.
A difference under the same policy is a fault of XCE: report it with its position.
Next, for the bytes themselves: xce log verify LOG.
""")
@click.argument("log", metavar="LOG", type=click.Path(path_type=Path))
@click.option("--progress/--no-progress", default=None,
              help="Show a progress bar; else only on a terminal.")
@click.option("--from", "first", metavar="POSITION|TIME",
              help=f"Begin here. {replay_state.AT_HELP}")
@click.option("--to", "last", default="end", metavar="POSITION|TIME", help="End here.")
@click.option("--jobs", "processes", type=click.IntRange(min=1), metavar="N",
              help="So many processes at most; else one for each core.")
@json_option
def verify(
    log: Path, *, progress: bool | None, first: str | None, last: str, processes: int | None,
    as_json: bool,
) -> int:
    """
    Decide every session of a log again, and report what differs.

    LOG is the directory of a log, or of a cluster, or a recording.
    """
    from replay.at import states_kept
    from replay.moments import before_of, parse_moment, position_of
    from replay.recordings import first_of, open_history
    from tools.verifying import spans_of, verify_spans

    shown = sys.stderr.isatty() if progress is None else progress
    with open_history(log) as opened:
        after = first_of(opened) - 1
        if first is not None:
            after = max(after, before_of(opened, parse_moment("--from", first)))
        upto = position_of(opened, parse_moment("--to", last), field="--to")
        kept = states_kept(opened)
    spans = spans_of(log, after, upto, kept, processes or len(os.sched_getaffinity(0)))
    with _bar(upto, shown=shown) as step:
        result = verify_spans(spans, step)
    if as_json:
        say_json({**asdict(result), "is_same": result.is_same})
    else:
        _show(result)
    return 0 if result.is_same else DIFFERENT


@contextmanager
def _bar(head: int, *, shown: bool) -> Iterator[Callable[[int], None] | None]:
    """
    Give what is called with the position now and then, None when nobody wants to see it.
    """
    if not shown:
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("deciding again", total=head)
        yield lambda position: bar.update(task, completed=position)


def _show(result: VerifyResult) -> None:
    say(f"{counted(result.events, 'event')} in {counted(result.steps, 'step')}; "
        f"{counted(result.sessions, 'session')} with {counted(result.decisions, 'decision')} "
        f"decided again.")
    if result.states:
        say(f"{counted(result.states, 'recorded state')} compared with the one of the events.")
    if result.is_same:
        say("Every decision is the same.")
        return
    for difference in result.differences[:SHOWN_MAX]:
        say(f"Position {difference.position}, {difference.stream}:")
        say(f"  recorded   {difference.recorded or '(nothing more)'}")
        say(f"  now        {difference.re_decided or '(nothing more)'}")
        if difference.why:
            say(f"  {difference.why}")
    more = result.difference_count - min(SHOWN_MAX, len(result.differences))
    if more:
        say(f"and {counted(more, 'more difference')}.")
    say(f"{counted(result.difference_count, 'difference')}; the first at position "
        f"{result.differences[0].position}.")
