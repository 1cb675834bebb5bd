"""
Show the state of a log at any moment, check its invariants, and find when something came true.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tools.cli.options import json_option
from tools.cli.output import counted, say, say_json, table

if TYPE_CHECKING:
    from domain.envelope import Envelope
    from projections.scheduling.core import Core
    from replay.at import Ladder, Moment
    from replay.bisect import Hit
    from replay.recordings import History

JOBS_SHOWN = 50
CHANGES_SHOWN = 200
DIFFERENT = 1

AT_HELP = "A position, a time in UTC (2026-11-29T18:30:00), Unix seconds (@1234.5), or end."


def log_argument(command: Callable[..., object]) -> Callable[..., object]:
    """
    Add LOG: the directory of a log, or of a cluster; or a recording where the command takes one.
    """
    return click.argument("log", metavar="LOG", type=click.Path(path_type=Path))(command)


def progress_option(command: Callable[..., object]) -> Callable[..., object]:
    """
    Add --progress.
    """
    return click.option(
        "--progress/--no-progress", default=None,
        help="Show a progress bar; else only on a terminal.",
    )(command)


@contextmanager
def bar(
    head: int, what: str, *, shown: bool | None
) -> Iterator[Callable[[int], None] | None]:
    """
    Give what is called with a position now and then, None when nobody wants to see it.
    """
    if not (sys.stderr.isatty() if shown is None else shown):
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=head)
        yield lambda position: progress.update(task, completed=position)


# ------------------------------------------------------------------------------------------- state


@click.command(epilog="""
\b
Examples:
  xce replay state run1 --at 4711
  xce replay state run1 --at 2026-11-29T18:30:00 job:12
  xce replay state run1 --at 4711 --diff 4800 host:alpha
  xce replay state run1 --hash              one line: equal states, equal digests
An entity is job:12, host:NAME, queue:NAME, cluster, reasons, keys, documents, or a bare name.
The first question about a long log leaves snapshots beside it (one every 5,000 events), so that
later ones take less than a second; they can be removed at any time.
Exit status: 1 when there is no such log or entity, and with --diff when something differs.
""")
@log_argument
@click.argument("entity", metavar="[ENTITY]", required=False)
@click.option("--at", "moment", default="end", metavar="POSITION|TIME", show_default=True,
              help=AT_HELP)
@click.option("--diff", "other", metavar="POSITION|TIME", help="Show what differs at this moment.")
@click.option("--hash", "as_hash", is_flag=True, help="Print the digest of the state, no more.")
@progress_option
@json_option
def state(
    log: Path, entity: str | None, moment: str, other: str | None, *,
    as_hash: bool, progress: bool | None, as_json: bool,
) -> int:
    """
    Show the whole state at any moment, or one entity of it, or what differs between two moments.

    A position inside a step means the boundary before it: only between steps there is a state.
    """
    from replay.recordings import open_history

    with open_history(log) as opened:
        if other is not None:
            return _differences(
                opened, (moment, other), entity, progress=progress, as_json=as_json
            )
        found = _found(opened, moment, "--at", progress=progress)
        if as_hash:
            _show_hash(found, as_json=as_json)
        elif entity is not None:
            _show_entity(found, entity, as_json=as_json)
        elif as_json:
            from replay.entities import whole

            say_json({**_place(found), "state": whole(found.core)})
        else:
            _show_whole(found)
    return 0


def _found(log: History, text: str, field: str, *, progress: bool | None) -> Moment:
    from replay.moments import parse_moment, position_of

    position = position_of(log, parse_moment(field, text), field=field)
    with bar(position, "folding", shown=progress) as step:
        return _ladder(log, step).at(position)


def _ladder(log: History, step: Callable[[int], None] | None) -> Ladder:
    from replay.at import ladder_of
    from replay.plugins import found_plugins

    return ladder_of(log, plugins=found_plugins(), on_progress=step)


def _place(found: Moment) -> dict[str, object]:
    from replay.entities import digest_of

    return {
        "position": found.position, "asked": found.asked, "time_us": found.time_us,
        "hash": digest_of(found.core),
    }  # fmt: skip


def _show_hash(found: Moment, *, as_json: bool) -> None:
    if as_json:
        say_json(_place(found))
        return
    say(f"{_place(found)['hash']}  position {found.position}")


def _say_place(found: Moment) -> None:
    from replay.moments import show_utc

    say(f"Position {found.position}, {show_utc(found.time_us)}")
    if found.asked != found.position:
        say(f"  position {found.asked} lies inside a step; this is the boundary before it")


def _show_entity(found: Moment, text: str, *, as_json: bool) -> None:
    from replay.entities import entity, flat, for_people, text_words

    shown = entity(found.core, text)
    if as_json:
        say_json({**_place(found), "entity": text, "state": shown})
        return
    _say_place(found)
    for path, value in flat(for_people(shown)):
        say(f"  {path:<28} {text_words(path, value)}")


def _show_whole(found: Moment) -> None:
    from replay.entities import digest_of, job_counts

    core = found.core
    stored = core.state.stored
    _say_place(found)
    counts = ", ".join(f"{count:,} {state}" for state, count in job_counts(core).items())
    say(f"  jobs        {len(stored.jobs):,} known{': ' + counts if counts else ''}")
    say(f"  hosts       {len(stored.workers):,} with {int(core.state.capacity.slots.sum()):,} "
        f"slots, {int(core.state.capacity.used.sum()):,} used")
    say(f"  sessions    {stored.session_number:,}")
    say(f"  digest      {digest_of(core)}")
    _show_queues(core)
    _show_jobs(core)


def _show_queues(core: Core) -> None:
    say()
    rows = [
        (queue.name, queue.spec.priority, "open" if queue.spec.is_open else "closed",
         "active" if queue.spec.is_active else "inactive")
        for queue in core.state.stored.queues.values()
    ]  # fmt: skip
    table(("QUEUE", "PRIORITY", "TAKES_JOBS", "STARTS_JOBS"), rows, numbers="PRIORITY")


def _show_jobs(core: Core) -> None:
    from domain.job_states import ENDED
    from replay.entities import hosts_of, reasons_of
    from replay.moments import show_utc

    jobs = [one for one in core.state.stored.jobs.values() if one.state not in ENDED]
    if not jobs:
        return
    say()
    rows = [
        (one.job_id, one.state.value, one.spec.user, one.spec.queue, one.spec.tasks_min,
         show_utc(one.submit_us), hosts_of(core, one.allocation) or reasons_of(core, one))
        for one in jobs[:JOBS_SHOWN]
    ]  # fmt: skip
    heads = ("JOB", "STATE", "USER", "QUEUE", "TASKS", "SUBMITTED", "WHERE_OR_WHY")
    table(heads, rows, numbers="TASKS")
    if len(jobs) > JOBS_SHOWN:
        more = counted(len(jobs) - JOBS_SHOWN, "more job")
        say(f"and {more} that haven't ended; --json has all.")


def _differences(
    log: History, texts: tuple[str, str], entity: str | None, *, progress: bool | None,
    as_json: bool,
) -> int:
    """
    Show what differs between two moments; return the exit status.
    """
    from replay.entities import change_lines, changes, whole
    from replay.entities import entity as entity_of

    found, plains = [], []
    for text, field in zip(texts, ("--at", "--diff"), strict=True):
        moment = _found(log, text, field, progress=progress)
        plains.append(whole(moment.core) if entity is None else entity_of(moment.core, entity))
        found.append(moment)
    differing = list(changes(plains[0], plains[1]))
    if as_json:
        before, after = (_place(one) for one in found)
        say_json({"before": before, "after": after, "changes": [asdict(one) for one in differing]})
        return DIFFERENT if differing else 0
    say(f"Position {found[0].position} -> {found[1].position}: "
        f"{counted(len(differing), 'value')} differ")
    for one in differing[:CHANGES_SHOWN]:
        for line in change_lines(one):
            say(f"  {line}")
    if len(differing) > CHANGES_SHOWN:
        say(f"and {len(differing) - CHANGES_SHOWN:,} more; --json has all.")
    return DIFFERENT if differing else 0


# ------------------------------------------------------------------------------------------- check


@click.command(epilog="""
\b
Examples:
  xce replay check ~/.local/state/xce     also while its scheduler runs
  xce replay check run1 --every 1         rebuild the whole state after each step (slow)
Exit status: 0 when every invariant holds, 1 when one doesn't, 4 when the log is corrupt.
Next: xce replay verify decides every session again.
""")
@log_argument
@click.option("--every", type=click.IntRange(min=1), metavar="EVENTS", show_default=True,
              default=5000, help="Rebuild the whole state after so many events.")
@progress_option
@json_option
def check(log: Path, *, every: int, progress: bool | None, as_json: bool) -> int:
    """
    Hold the invariants at every step of a log.

    Versions, stamps, transitions of jobs, one live attempt a job, and accounts worked out again;
    at sampled steps the whole state is rebuilt from its own snapshot.
    """
    from replay.at import ladder_of
    from replay.check import check as run_check
    from replay.plugins import found_plugins
    from replay.recordings import first_of, open_history

    with (
        open_history(log) as opened,
        bar(opened.head(), "checking", shown=progress) as step,
    ):
        plugins, first = found_plugins(), first_of(opened)
        begin = ladder_of(opened, plugins=plugins).at(first - 1) if first > 1 else None
        result = run_check(
            opened, plugins=plugins, begin=begin, sample_events=every, on_progress=step
        )
    if as_json:
        say_json({**asdict(result), "is_good": result.is_good})
        return 0 if result.is_good else DIFFERENT
    say(f"{counted(result.events, 'event')} in {counted(result.steps, 'step')}; accounts of hosts "
        f"worked out again {result.accounts:,} times, the whole state rebuilt "
        f"{counted(result.rebuilds, 'time')}.")
    for one in result.findings:
        say(f"Position {one.position}, {one.subject}: {one.rule}")
        if one.expected or one.found:
            say(f"  expected {one.expected or '-'}, found {one.found or '-'}")
    more = result.finding_count - len(result.findings)
    if more:
        say(f"and {more:,} more, which aren't told: the first of each rule and subject are.")
    say("Every invariant holds." if result.is_good else
        f"{counted(result.finding_count, 'finding')}; the first at position "
        f"{result.findings[0].position}.")
    return 0 if result.is_good else DIFFERENT


# ------------------------------------------------------------------------------------------ bisect


@click.command(epilog="""
\b
Examples:
  xce replay bisect run1 "job(12).state = RUN"
  xce replay bisect run1 "slots.free = 0 and jobs.PEND > 100"
  xce replay bisect run1 "count(jobs, state = PEND and queue = night) >= 3" --from 5000
  xce replay bisect run1 "job(12).wait > 2h"
  xce replay bisect run1 "time >= time('2026-11-29T18:00:00') and alpha in job(12).hosts"

\b
Names: position, time, session, jobs.STATE, jobs.known, hosts.known, slots.total|used|free,
cluster.FIELD; job(ID).FIELD (any field of its record; also wait, hosts, reasons, user, queue,
tasks), host(NAME).FIELD (also slots_used, slots_usable, RESOURCE.available_milli),
queue(NAME).FIELD (also STATE); count|any|all(jobs|hosts|queues, CONDITION).
Signs: and or not = != < <= > >= in + - * ( ). Durations: 90s, 5m, 2h, 1d. What isn't there is none.
Exit status: 0 when it holds somewhere, 1 when it doesn't, or when the log knows no job, host or
queue that it names.
""")
@log_argument
@click.argument("condition", metavar="CONDITION")
@click.option("--from", "first", metavar="POSITION|TIME", help=f"Begin here. {AT_HELP}")
@click.option("--to", "last", default="end", metavar="POSITION|TIME", help="End here.")
@click.option("--lasting", is_flag=True,
              help="It stays true once it is: halve the log instead of looking at every step.")
@progress_option
@json_option
def bisect(
    log: Path, condition: str, first: str | None, last: str, *, lasting: bool,
    progress: bool | None, as_json: bool,
) -> int:
    """
    Find the first position at which a condition holds, and the events that made it so.
    """
    from replay.at import ladder_of
    from replay.bisect import check_entities, first_hold
    from replay.conditions import Condition
    from replay.moments import before_of, parse_moment, position_of
    from replay.plugins import found_plugins
    from replay.recordings import first_of, open_history

    wanted = Condition(condition, field="CONDITION", is_truth=True)
    with open_history(log) as opened:
        after = first_of(opened) - 1
        if first is not None:
            after = max(after, before_of(opened, parse_moment("--from", first)))
        upto = position_of(opened, parse_moment("--to", last), field="--to")
        with bar(upto, "looking", shown=progress) as step:
            ladder = ladder_of(opened, plugins=found_plugins(), on_progress=step)
            check_entities(opened, ladder, wanted, field="CONDITION")
            hit = first_hold(
                opened, ladder, wanted,
                after=after, upto=upto, is_lasting=lasting, on_progress=step,
            )  # fmt: skip
    if as_json:
        say_json(_plain_hit(hit))
    elif hit is None:
        say(f"It holds nowhere from position {after} to {upto}.")
    else:
        _show_hit(hit)
    return DIFFERENT if hit is None else 0


def _plain_hit(hit: Hit | None) -> dict[str, object]:
    if hit is None:
        return {"holds": False}
    return {
        "holds": True, "position": hit.position, "time_us": hit.time_us,
        "held_at_start": hit.held_at_start,
        "event": None if hit.event is None else plain_event(hit.event),
        **{name: [plain_event(one) for one in getattr(hit, name)]
           for name in ("before", "inputs", "step")},
    }  # fmt: skip


def plain_event(envelope: Envelope) -> dict[str, object]:
    """
    Return an event with what surrounds it, as JSON has it.
    """
    from replay.entities import plain

    return {
        "position": envelope.position, "stream": envelope.stream, "version": envelope.version,
        "time_us": envelope.time_us, "actor": envelope.actor, "cause": envelope.cause,
        "type": envelope.event.TYPE_CODE, "event": plain(envelope.event),
    }  # fmt: skip


def _show_hit(hit: Hit) -> None:
    from replay.entities import show_event
    from replay.moments import show_utc

    say(f"Position {hit.position}, {show_utc(hit.time_us)}")
    if hit.event is None:
        say("  it holds already where the search begins")
        return
    say(f"  {show_event(hit.event)}")
    for words, events in (
        ("Earlier events of what it names:", hit.before),
        ("Came in since the session before:", hit.inputs),
        # A step of that event alone was told above.
        ("The whole step:", () if hit.step == (hit.event,) else hit.step),
    ):
        if events:
            say(words)
        for one in events:
            say(f"  {show_event(one)}")
