"""
Each event as one sentence.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from domain.allocations import Allocation
from domain.amounts import Amount
from domain.event import Event, event_class
from domain.events import jobs, log, queues, refusals, scheduler, session, workers
from domain.jobs import JobSpec, hosts_text
from domain.reasons import show_grouped
from domain.reservations import BackfillReservation
from domain.signals import signal_words
from domain.terminations import exit_words, termination_words
from domain.units import (
    MEMORY_NAMES,
    MILLI,
    show_amount_rounded,
    show_duration,
    show_duration_rounded,
    show_memory,
    show_memory_rounded,
    show_milli,
)
from projections.audit.fields import JOB, field_words
from projections.audit.fold_spec import reserved
from projections.audit.times import moment

HostName = Callable[[int], str]
# First host, hosts, tasks or slots on each, amounts on each.
Run = tuple[int, int, int, tuple[Amount, ...]]
HOSTS_SHOWN = 8


def event_of(type_code: str, payload: str) -> Event:
    """
    Return the event that a row of the table ``events`` was made from, without the environment.
    """
    return event_class(type_code).model_validate_json(payload)


def amount_words(resource: str, milli: int) -> str:
    """
    Return an amount with its unit where it has one.
    """
    return show_memory(milli) if resource in MEMORY_NAMES else show_milli(milli)


def _amounts(amounts: tuple[Amount, ...]) -> str:
    return ", ".join(f"{one.resource} {amount_words(one.resource, one.milli)}" for one in amounts)


def allocation_words(allocation: Allocation, host_name: HostName) -> str:
    """
    Return what a job got where: "4*h1 2*h2 .. h9 (mem 2GB each)".
    """
    runs = [(run.first, run.hosts, run.tasks, run.amounts) for run in allocation.runs]
    return _where(runs, allocation.shared, host_name)


def _where(runs: Sequence[Run], shared: tuple[Amount, ...], host_name: HostName) -> str:
    parts = []
    for first, hosts, slots, amounts in runs[:HOSTS_SHOWN]:
        ends = [first] if hosts == 1 else [first, first + hosts - 1]
        each = f" ({_amounts(amounts)} each)" if amounts else ""
        parts.append(f"{slots}*{'..'.join(map(host_name, ends))}{each}")
    more = len(runs) - HOSTS_SHOWN
    if more > 0:
        parts.append(f"and {more} more runs of hosts")
    return " ".join(parts) + (f", shared {_amounts(shared)}" if shared else "")


def spec_words(spec: JobSpec, *, is_private: bool) -> str:
    """
    Return what was asked for.

    Args:
        spec: The job as submitted.
        is_private: Leave out what only its user may see: the command and its files.
    """
    span = (
        f"{spec.tasks_min}"
        if spec.tasks_min == spec.tasks_max
        else f"{spec.tasks_min} to {spec.tasks_max}"
    )
    parts = [f"queue {spec.queue}", f"{span} task{'' if span == '1' else 's'}"]
    named = (("name", spec.name), ("project", spec.project), ("profile", spec.profile))
    parts += [f"{word} {value}" for word, value in named if value]
    parts += [f"-R {text}" for text in spec.resreq]
    for resource, milli, per_task in reserved(spec):
        each = "task" if per_task else "host"
        parts.append(f"needs {resource} {amount_words(resource, milli)} a {each}")
    if spec.user_priority:
        parts.append(f"priority {spec.user_priority}")
    if spec.run_limit_us is not None:
        parts.append(f"run limit {show_duration(spec.run_limit_us)}")
    if spec.program is not None:
        shell = spec.program.shell
        told = shlex.join(spec.program.argv) if shell is None else shell
        parts.append("command private" if is_private else f"command: {told}")
    return ", ".join(parts)


def _finished(event: jobs.JobFinished) -> str:
    how = "finished, nobody knows how"
    if event.signal is not None:
        how = f"ended by {signal_words(event.signal)}"
    elif event.exit_code is not None:
        code = event.exit_code
        how = f"ended with {exit_words(code, None)}" if code else "done"
    why = _why(event.why)
    used = f"; processor time {show_duration_rounded(event.cpu_us)}" if event.cpu_us else ""
    peak = show_memory_rounded(event.max_rss_kib * MILLI)
    memory = f", memory {peak} at most" if event.max_rss_kib else ""
    return f"attempt {event.attempt} {how}{why}{used}{memory}"


def _joined(event: workers.WorkerJoined) -> str:
    totals = "".join(
        f", {one.name} {show_amount_rounded(one.name, one.total_milli)}"
        for one in event.resources
    )
    as_what = f"incarnation {event.incarnation}, host number {event.host_number}"
    return f"joined as {as_what}, {event.slots} slots{totals}"


def _reported(event: workers.WorkerReported) -> str:
    if event.is_blind:
        return "reported that it can't measure its load"
    free = _measured(one for one in event.load if one.resource in MEMORY_NAMES)
    busy = _measured(one for one in event.load if one.resource not in MEMORY_NAMES)
    told = [f"free {free}"] * bool(free) + [f"load {busy}"] * bool(busy)
    load = ", ".join(told) or "nothing"
    jobs_told = f"{len(event.jobs)} job{'' if len(event.jobs) == 1 else 's'}"
    return f"reported: {load}; usage of {jobs_told}"


def _measured(amounts: Iterable[Amount]) -> str:
    show = show_amount_rounded
    return ", ".join(f"{one.resource} {show(one.resource, one.milli)}" for one in amounts)


def _moved(event: jobs.JobMoved) -> str:
    if event.beside is None:
        return f"moved among its equals, place {event.place}"
    return "moved beside another job of its user"


def _started(event: jobs.JobStarted) -> str:
    return f"attempt {event.attempt} started" + (f" as process {event.pid}" if event.pid else "")


def _suspend_words(event: jobs.JobSuspendOrdered) -> str:
    order = f"worker {event.worker} ordered to stop attempt {event.attempt}"
    whom = f" for job {event.preemptor}" if event.preemptor else ""
    return f"{order} with {event.signal}{whom} (order {event.order_number}): {event.why}"


def promise_words(reservation: BackfillReservation | None, host_name: HostName) -> str:
    """
    Return what is promised to a pending job: "promised to start by 1970-01-01T00:01:40Z on 4*h1
    (easy)".
    """
    if reservation is None:
        return "no start is promised any more"
    runs = [(run.first, run.hosts, run.slots, run.amounts) for run in reservation.runs]
    where = _where(runs, reservation.shared, host_name)
    start_us = reservation.start_us
    when = "nobody knows when" if start_us is None else f"by {moment(start_us)}"
    if not reservation.is_held:
        return f"promised to start {when} on {where} ({reservation.policy})"
    until_us = reservation.until_us
    until = "" if until_us is None else f" until {moment(until_us)} at most"
    return f"gathers {where}{until}; starts {when}"


def _why(why: str) -> str:
    """
    Return why something ended, in words after a colon.
    """
    return _said(termination_words(why))


def _said(why: str) -> str:
    return f": {why}" if why else ""


STILL_WANTED = ", still to start on the hosts that an operator named"

DEFINED = "defined"
PENDED = "waits"

# One line an event type; whatever is new in the vocabulary shows with its fields until it has one.
_WORDS: dict[type[Event], Callable[[Any], str]] = {
    jobs.JobHeld: lambda _: "held",
    jobs.JobHoldLifted: lambda _: "hold lifted",
    jobs.JobKillRequested: lambda e: "asked to end" + (" by force" if e.force else ""),
    jobs.JobRunRequested: lambda e: f"asked to start at once on {hosts_text(e.hosts)}",
    jobs.JobSignalRequested: lambda e: f"asked to get {e.signal.value}",
    jobs.JobSignalOrdered: lambda e: (
        f"worker {e.worker} ordered to send {e.signal.value} to attempt {e.attempt} "
        f"(order {e.order_number})"
    ),
    jobs.JobStarted: _started,
    jobs.JobCouldNotStart: lambda e: f"attempt {e.attempt} could not start{_said(e.why)}",
    jobs.JobFinished: _finished,
    jobs.JobPended: lambda _: PENDED,
    jobs.JobKillOrdered: lambda e: (
        f"worker {e.worker} ordered to end attempt {e.attempt} (order {e.order_number})"
        f"{_why(e.why)}"
    ),
    jobs.JobEnded: lambda e: f"ended{_why(e.why)}",
    jobs.JobModified: lambda e: (
        "modified" + (STILL_WANTED if e.wishes_kept == "all" else "")
    ),
    jobs.JobSwitched: lambda e: (
        f"switched to queue {e.queue}" + (STILL_WANTED if e.is_wish_kept else "")
    ),
    jobs.JobMoved: _moved,
    jobs.JobRequeueRequested: lambda e: (
        "asked to go back to pending" + (", held" if e.hold else "")
    ),
    jobs.JobRequeued: lambda e: f"back to pending{_why(e.why)}" + (", held" if e.hold else ""),
    jobs.JobStopRequested: lambda _: "asked to stop",
    jobs.JobResumeRequested: lambda _: "asked to go on",
    jobs.JobPreemptionPlanned: lambda e: (
        f"hosts are held for it while jobs {', '.join(e.victims)} stop"
    ),
    jobs.JobPreemptionEnded: lambda _: "no hosts are held for it any more",
    jobs.JobSuspendOrdered: _suspend_words,
    jobs.JobSuspended: lambda e: f"attempt {e.attempt} stopped",
    jobs.JobResumeOrdered: lambda e: (
        f"worker {e.worker} ordered to let attempt {e.attempt} go on (order {e.order_number})"
    ),
    jobs.JobResumed: lambda e: f"attempt {e.attempt} goes on",
    queues.QueueOpened: lambda _: "opened",
    queues.QueueClosed: lambda _: "closed",
    queues.QueueActivated: lambda _: "activated",
    queues.QueueInactivated: lambda _: "inactivated",
    workers.WorkerJoined: _joined,
    workers.WorkerReported: _reported,
    workers.WorkerConfigured: lambda _: "configured",
    workers.WorkerDrained: lambda e: f"draining{_said(e.why)}",
    workers.WorkerClosed: lambda e: f"closed{_said(e.why)}",
    workers.WorkerOpened: lambda _: "opened",
    workers.WorkerBecameUnreachable: lambda e: (
        f"unreachable: silent for {show_duration(e.silent_us)}"
    ),
    workers.WorkerCameBack: lambda _: "came back",
    workers.WorkerLeft: lambda _: "left",
    workers.WorkerOrderDone: lambda e: f"order {e.order_number} carried out{_said(e.outcome)}",
    session.SessionHeld: lambda e: f"session {e.number} held",
    session.ReasonSetChanged: lambda e: (
        ("can never start: " if e.never else "reasons: ")
        + show_grouped(e.reasons)
        + (f" (found for job {e.proved_by})" if e.proved_by else "")
    ),
    session.ListHeldBack: lambda e: f"held back by job {e.blocker}, which can't start",
    session.JobsForgotten: lambda e: (
        f"{sum(r.last - r.first + 1 for r in e.ranges)} jobs dropped from the state"
    ),
    refusals.AccessDenied: lambda e: f"denied: {e.action} {e.subject}",
    refusals.ReportIgnored: lambda e: (
        f"ignored: {e.report} of {e.worker} about {e.job_id or 'itself'}: {e.why}"
    ),
    scheduler.SchedulerStarted: lambda e: (
        f"scheduler {e.code_version} started by {e.holder}, epoch {e.epoch}"
    ),
    scheduler.SchedulerStopped: lambda e: f"scheduler stopped{_said(e.why)}",
    scheduler.ClockCorrected: lambda e: f"log time moved forward by {show_duration(e.forward_us)}",
    log.LogArchived: lambda e: (
        f"positions {e.first_position} to {e.last_position} moved to the file {e.file}"
    ),
    log.LogPruned: lambda e: (
        f"positions {e.first_position} to {e.last_position} removed for ever ({e.files} files)"
    ),
    log.LogBranched: lambda e: (
        f"branched from log {e.parent_log_id} at position {e.parent_position}"
        + (f": {'; '.join(e.changes)}" if e.changes else "")
    ),
}


def words(event: Event, host_name: HostName, *, is_private: bool = False) -> str:
    """
    Return an event as one sentence, names as they are (not escaped).

    Args:
        event: What happened.
        host_name: Name of a host of a number.
        is_private: Leave out what only a job's user may see, and what a refused command was given.
    """
    if isinstance(event, jobs.JobSubmitted):
        held = ", held" if event.spec.hold else ""
        asked = spec_words(event.spec, is_private=is_private)
        return f"submitted for {event.spec.user}: {asked}{held}"
    if isinstance(event, jobs.JobDispatched):
        ahead = f", ahead of job {event.ahead_of}" if event.ahead_of else ""
        where = allocation_words(event.allocation, host_name)
        forced = ", as an operator asked" if event.is_forced else ""
        return f"dispatched, attempt {event.attempt}: {where}{ahead}{forced}"
    if isinstance(event, jobs.JobStartPromised):
        return promise_words(event.reservation, host_name)
    if isinstance(event, refusals.CommandRefused):
        asked = f"{command_words(event.command)} {event.subject}".rstrip()
        return f"refused: {asked}: {_broken(event, is_private=is_private)}"
    if isinstance(event, refusals.AccessDenied) and event.rule:
        asked = f"{command_words(event.action)} {event.subject}".rstrip()
        return f"denied: {asked}: {_broken(event, is_private=is_private)}"
    known = _WORDS.get(type(event))
    if known is not None:
        return known(event)
    return _generic(event)


def command_words(name: str) -> str:
    """
    Return the name of a command's class as people say it: "modify job".

    Older logs have the route instead ("POST /v1/define/queue"): it stays as it is.
    """
    if " " in name:
        return name
    return re.sub(r"(?<!^)(?=[A-Z])", " ", name).lower()


def _broken(event: refusals.CommandRefused | refusals.AccessDenied, *, is_private: bool) -> str:
    given = f" (given: {event.value})" if event.value and not is_private else ""
    asked = event.command if isinstance(event, refusals.CommandRefused) else event.action
    kind = JOB if command_words(asked).endswith(f" {JOB}") else ""
    return f"{field_words(event.field, kind)} {event.rule}{given}"


def _generic(event: Event) -> str:
    what = event.TYPE_CODE.partition(".")[2].replace("_", " ")
    if what in (DEFINED, "removed"):
        return what
    fields = event.model_dump(mode="json", exclude_defaults=True)
    return what + (": " + json.dumps(fields, ensure_ascii=False) if fields else "")
