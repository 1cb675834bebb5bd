"""
Try another future of a log, and set two logs side by side.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tools.cli.options import json_option
from tools.cli.output import (
    as_typed,
    counted,
    note,
    note_each,
    say,
    say_hanging,
    say_json,
    show_duration,
    table,
)
from tools.cli.replay_state import AT_HELP, bar, log_argument, progress_option

if TYPE_CHECKING:
    from fractions import Fraction

    from domain.commands import JoinWorker
    from replay.at import Ladder
    from replay.branch import BranchResult
    from replay.branch_changes import Changes
    from replay.diff import Comparison, Group, Moved, Side

DIFFERENT = 1
IDS_SHOWN = 20


@click.command(epilog="""
\b
Examples:
  xce replay branch run1 --at 5000 --log same          the same future again
  xce replay branch run1 --at 5000 --log b --set queue.night.priority=90
  xce replay branch run1 --at 2026-11-29T18:00:00 --log c --add-hosts 10x8 --until end
  xce replay branch run1 --at 5000 --log d --picker strict_fcfs --drop-event 5017
  xce replay branch run1.jsonl.zst --at 5000 --log e   from a recording of the whole log
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
    from domain.definition_texts import unit_notices
    from replay.at import ladder_of
    from replay.branch import Branch
    from replay.branch_changes import Changes, check_picker, parse_setting, read_inputs
    from replay.moments import parse_moment, position_of, time_at
    from replay.parent import check_is_whole
    from replay.plugins import found_plugins
    from replay.recordings import open_history
    from store.log import EventLog
    from tools.cli.log_places import check_new

    check_new(place)
    plugins = found_plugins()
    if picker is not None:
        check_picker("--picker", picker, plugins)
    texts = (*settings, *(() if picker is None else (f"cluster.picker={picker}",)))
    with open_history(log) as parent:
        check_is_whole(parent)
        position = position_of(parent, parse_moment("--at", moment), field="--at")
        changes = Changes(
            settings=tuple(map(parse_setting, texts)),
            hosts=_hosts(ladder_of(parent, may_write=False, plugins=plugins), position, hosts),
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
                ladder=ladder_of(parent, may_write=False, plugins=plugins), plugins=plugins,
                on_progress=step,
            )  # fmt: skip
            with EventLog.create(place, log_id=made.log_id) as child:
                result = made.run(child)
    if as_json:
        say_json({**asdict(result), "changes": changes.texts(), "log": str(place)})
    else:
        _show(result, changes, log, place, asked=position)
    note_each(unit_notices(settings))


def _hosts(ladder: Ladder, position: int, texts: tuple[str, ...]) -> tuple[JoinWorker, ...]:
    from replay.branch_changes import parse_hosts

    if not texts:
        return ()
    taken = set(ladder.at(position).core.state.stored.workers)
    found: list[JoinWorker] = []
    for text in texts:
        more = parse_hosts(text, frozenset(taken))
        taken |= {host.worker for host in more}
        found += more
    return tuple(found)


def _show(
    result: BranchResult, changes: Changes, log: Path, place: Path, *, asked: int
) -> None:
    from replay.moments import show_utc

    say(f"Branched from {result.parent_log_id} at position {result.parent_position}; "
        f"log id {result.log_id}")
    if asked != result.parent_position:
        say(f"  position {asked} lies inside a step; this is the boundary before it")
    for text in changes.texts():
        say(f"  {text}")
    say(f"{counted(result.events, 'event')} with {counted(result.sessions, 'session')} of its own; "
        f"ends {show_utc(result.end_us)}")
    if result.differs_at is None:
        say("Every decision is the parent's, up to its end.")
    else:
        say_hanging(f"The first decision that differs: position {result.differs_at} of the parent, "
            f"{result.differs}")
    if changes:
        say_hanging(
            "Why jobs wait isn't compared: memory and load that were measured in the parent aren't "
            "carried into a changed branch."
        )
    if result.run_time_unknown:
        say(f"{counted(result.run_time_unknown, 'run time')} not known from the log; "
            f"{result.without_end:,} of them without an estimate: those jobs don't end")
    say(f"The log is in {place}: {as_typed('xce', 'replay', 'diff', log, place)}")
    _note_left_out(result)


def _note_left_out(result: BranchResult) -> None:
    """
    Tell which inputs aren't in a branch, in the words of the commands that made them.
    """
    from projections.audit.views import COMMANDS
    from projections.audit.wording import command_words

    if result.not_taken:
        note(f"Left out of the branch: {counted(result.not_taken_count, 'input')}.")
    for one in result.not_taken:
        plain = one.what.replace(".", " ").replace("_", " ")
        words = COMMANDS.get(one.what) or (plain if "." in one.what else command_words(one.what))
        where = f"position {one.position}" if one.position else "added"
        note(f"  {where}: {words} {one.name}".rstrip() + f": {one.why.removesuffix('.')}.")
    if result.not_taken_count > len(result.not_taken):
        note(f"  and {result.not_taken_count - len(result.not_taken):,} more")


# -------------------------------------------------------------------------------------------- diff


@click.command(epilog="""
\b
Examples:
  xce replay diff run1 branch1
  xce replay diff run1 branch1 --by size --moved 30
  xce replay diff run1 branch1 --html curves.html
  xce replay diff run1 branch1 --json | jq .moved
wait = dispatch - submit; bounded slowdown = max(1, (wait + run) / max(run, 10 s)); utilisation =
slot-time used by the group / slot-time of all hosts. A job that starts later was displaced by those
who had more slot-time than before while it waited longer.
Exit status: 0 when every job starts at the same time, 1 otherwise.
""")
@click.argument("before", metavar="A", type=click.Path(path_type=Path))
@click.argument("after", metavar="B", type=click.Path(path_type=Path))
@click.option("--by", "kinds", multiple=True, type=click.Choice(["queue", "user", "size"]),
              help="Show these groups only; again for more. All of them by default.")
@click.option("--moved", "moved_kept", type=click.IntRange(min=0), default=10, show_default=True,
              metavar="COUNT", help="Name so many of the jobs that moved most.")
@click.option("--html", "drawing", type=click.Path(path_type=Path), metavar="FILE",
              help="Draw jobs that wait, slots in use and waits into a page of its own.")
@json_option
def diff(
    before: Path, after: Path, *, kinds: tuple[str, ...], moved_kept: int, drawing: Path | None,
    as_json: bool,
) -> int:
    """
    Set the schedules of two logs side by side, by job id: a log and its branch.
    """
    from replay.diff import compare, schedule_of
    from replay.recordings import open_history

    schedules = []
    for place in (before, after):
        with open_history(place) as log:
            schedules.append(schedule_of(log, log.log_id))
    found = compare(schedules[0], schedules[1], moved_kept=moved_kept)
    if drawing is not None:
        from tools.cli.plots import page

        drawing.write_text(page(schedules, [str(before), str(after)]), encoding="utf-8")
    wanted = set(kinds or ("queue", "user", "size"))
    if as_json:
        say_json(_plain(found, wanted))
    else:
        _show_comparison(found, wanted)
    return 0 if found.is_same else DIFFERENT


def _plain(found: Comparison, kinds: set[str]) -> dict[str, object]:
    groups = [
        {"kind": one.kind, "name": one.name, "before": _plain_side(one.before),
         "after": _plain_side(one.after)}
        for one in found.groups if one.kind in {"all", *kinds}
    ]  # fmt: skip
    return {**asdict(found), "groups": groups, "is_same": found.is_same}


def _plain_side(side: Side) -> dict[str, object]:
    return {
        "jobs": side.jobs, "open": side.open,
        "mean_wait_s": _decimal(side.mean_wait_us, 1_000_000, 6),
        "mean_bounded_slowdown": _decimal(side.mean_bounded_slowdown, 1, 6),
        "utilisation": _decimal(side.utilisation, 1, 6),
    }  # fmt: skip


def _decimal(value: Fraction | None, unit: int, decimals: int) -> float | None:
    from projections.figures import shown

    return None if value is None else float(shown(value / unit, decimals))


def _show_comparison(found: Comparison, kinds: set[str]) -> None:
    for kind in ("all", "queue", "user", "size"):
        groups = [one for one in found.groups if one.kind == kind]
        if kind == "all" or kind in kinds:
            _show_groups(kind, groups)
            say()
    say(f"{counted(found.moved_count, 'job')} start at another time: {found.later_count:,} later, "
        f"{found.moved_count - found.later_count:,} earlier")
    for one in found.moved:
        _show_moved(one)
    for words, ids in (
        ("only in A", found.only_before), ("only in B", found.only_after),
        ("started in A only", found.started_only_before),
        ("started in B only", found.started_only_after),
    ):
        if ids:
            more = f" and {len(ids) - IDS_SHOWN:,} more" if len(ids) > IDS_SHOWN else ""
            named = "job" if len(ids) == 1 else "jobs"
            say(f"{words}: {named} {', '.join(ids[:IDS_SHOWN])}{more}")


def _show_groups(kind: str, groups: list[Group]) -> None:
    rows = []
    for one in groups:
        sides = (one.before, one.after)
        rows.append((
            one.name or "jobs", *(side.jobs for side in sides),
            *(_decimal(side.mean_wait_us, 1_000_000, 1) for side in sides),
            *(_decimal(side.mean_bounded_slowdown, 1, 2) for side in sides),
            *(_decimal(side.utilisation, 1, 4) for side in sides),
        ))  # fmt: skip
    numbers = "JOBS_A JOBS_B WAIT_A_S WAIT_B_S SLOW_A SLOW_B UTIL_A UTIL_B"
    table([kind.upper(), *numbers.split()], rows, numbers=numbers)


def _show_moved(one: Moved) -> None:
    how = "later" if one.later_us > 0 else "earlier"
    say(f"  job {one.job_id} ({one.user}, {one.queue}, {counted(one.tasks, 'task')}) "
        f"{show_duration(abs(one.later_us))} {how}")
    for displacer in one.by:
        word = "displaced by" if one.later_us > 0 else "in the place of"
        say(f"    {word} job {displacer.job_id}: "
            f"{show_duration(displacer.gained_slot_us)} of slot-time")
