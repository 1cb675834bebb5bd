"""
Write states and events as lines: always the same for the same state, in UTC, safe for a terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

from domain.envelope import Envelope
from domain.ids import job_of_stream
from domain.job_states import ENDED
from domain.reasons import show_grouped
from domain.terminations import exit_words, termination_words
from projections.scheduling.core import Core
from projections.scheduling.records import JobRecord
from replay.debugger.breakpoints import Breakpoint
from replay.entities import (
    accounts_of,
    flat,
    for_people,
    hosts_of,
    is_moment,
    job_counts,
    reasons_of,
    show_event,
)
from replay.moments import US, show_utc

TIMES: Final = ("utc", "seconds", "us")
AMOUNTS: Final = ("natural", "milli")


@final
@dataclass(frozen=True, slots=True)
class Units:
    """
    Say how times and amounts are written.

    Args:
        times: utc, seconds (Unix), or us.
        amounts: natural (memory in MB, else whole units), or milli (thousandths, KiB for memory).
    """

    times: str = "utc"
    amounts: str = "natural"

    def time(self, time_us: int | None) -> str:
        """
        Return a moment.
        """
        if time_us is None:
            return "-"
        if self.times == "utc":
            return show_utc(time_us)
        return str(time_us) if self.times == "us" else f"{time_us // US}.{time_us % US:06d}"

    def amount(self, resource: str, milli: int) -> str:
        """
        Return an amount of a resource.
        """
        if self.amounts == "milli":
            return str(milli)
        if resource == "mem":
            return f"{milli // 1000 // 1024}MB"
        return str(milli // 1000) if milli % 1000 == 0 else f"{milli // 1000}.{milli % 1000:03d}"


def printable(text: str) -> str:
    """
    Return a text in which whatever can't be printed is an escape.
    """
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape", "backslashreplace").decode()
        for one in text
    )


def columns(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """
    Yield the lines of a table, columns two blanks apart.
    """
    cells = [list(heads), *([printable(_cell(cell)) for cell in row] for row in rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(heads))]
    for row in cells:
        yield "  ".join(cell.ljust(wide) for cell, wide in zip(row, widths, strict=True)).rstrip()


def _cell(value: object) -> str:
    return "-" if value in (None, "") else str(value)


def event_line(envelope: Envelope, units: Units) -> str:
    """
    Return an event on one line; which job it is, comes first.
    """
    line = show_event(envelope)
    if units.times != "utc":
        line = line.replace(show_utc(envelope.time_us), units.time(envelope.time_us), 1)
    if envelope.stream.startswith("job:"):
        line = line.replace(envelope.stream, f"job {job_of_stream(envelope.stream)}", 1)
    return printable(line)


def state_lines(core: Core, position: int, head: int, units: Units) -> Iterator[str]:
    """
    Yield where we are, and the state in a few lines.
    """
    stored = core.state.stored
    yield f"position {position} of {head}, {units.time(stored.time_us)}"
    counts = ", ".join(f"{count} {state}" for state, count in job_counts(core).items())
    yield f"jobs     {len(stored.jobs)} known{': ' + counts if counts else ''}"
    capacity = core.state.capacity
    yield (f"hosts    {len(stored.workers)}, {int(capacity.used.sum())} of "
           f"{int(capacity.slots.sum())} slots used")  # fmt: skip
    yield f"session  {stored.session_number}"


def job_lines(core: Core, jobs: Sequence[JobRecord], limit: int, units: Units) -> Iterator[str]:
    """
    Yield a table of jobs, the first few of them.
    """
    rows = [
        (job.job_id, job.state.value, job.spec.user, job.spec.queue, job.spec.tasks_min,
         units.time(job.submit_us), units.time(job.dispatch_us),
         hosts_of(core, job.allocation) if job.state not in ENDED else _ended(job, units)
         if job.allocation is not None or job.state in ENDED else "")
        for job in jobs[:limit]
    ]  # fmt: skip
    heads = ("JOB", "STATE", "USER", "QUEUE", "TASKS", "SUBMITTED", "DISPATCHED", "WHERE OR WHY")
    shown = [(*row[:-1], row[-1] or reasons_of(core, job))
             for row, job in zip(rows, jobs, strict=False)]  # fmt: skip
    yield from columns(heads, shown)
    yield from _more(len(jobs), limit)


def _ended(job: JobRecord, units: Units) -> str:
    how = exit_words(job.exit_code, job.signal)
    told = "; ".join(filter(None, (how, termination_words(job.why))))
    return f"ended {units.time(job.finish_us)} {told}".rstrip()


def _more(count: int, limit: int) -> Iterator[str]:
    if count > limit:
        yield f"and {count - limit} more"


def host_lines(core: Core, limit: int, units: Units) -> Iterator[str]:
    """
    Yield a table of hosts with their accounts.
    """
    hosts = core.state.hosts
    rows = []
    for worker in hosts[:limit]:
        accounts = accounts_of(core, worker)
        resources = ", ".join(
            f"{name} {units.amount(name, one['available_milli'])} of "
            f"{units.amount(name, one['total_milli'])}"
            for name, one in accounts.items() if isinstance(one, dict)
        )  # fmt: skip
        rows.append((
            worker.name, _status(worker), accounts["slots"], accounts["slots_used"],
            accounts["slots_usable"], resources,
        ))  # fmt: skip
    yield from columns(("HOST", "STATUS", "SLOTS", "USED", "USABLE", "AVAILABLE"), rows)
    yield from _more(len(hosts), limit)


def _status(worker: Any) -> str:
    if worker.left:
        return "left"
    if worker.is_silent:
        return "unreachable"
    if worker.is_draining:
        return "draining"
    return "closed" if worker.closed else "ok"


def queue_lines(core: Core) -> Iterator[str]:
    """
    Yield a table of queues with their jobs by state.
    """
    rows = []
    for queue in core.state.stored.queues.values():
        counts: dict[str, int] = {}
        for job in core.state.stored.jobs.values():
            if job.spec.queue == queue.name:
                counts[job.state.value] = counts.get(job.state.value, 0) + 1
        rows.append((
            queue.name, queue.spec.priority, "open" if queue.spec.is_open else "closed",
            "active" if queue.spec.is_active else "inactive",
            ", ".join(f"{count} {state}" for state, count in sorted(counts.items())),
        ))  # fmt: skip
    yield from columns(("QUEUE", "PRIORITY", "SUBMISSIONS", "STARTS", "JOBS"), rows)


def reason_lines(core: Core, limit: int) -> Iterator[str]:
    """
    Yield the reason sets with how many jobs are in each.
    """
    sets = list(core.state.stored.reason_sets.values())
    rows = [
        (kept.number, core.state.members.get(kept.number, 0), "never" if kept.never else "not now",
         show_grouped(kept.reasons), kept.fingerprint)
        for kept in sets[:limit]
    ]  # fmt: skip
    yield from columns(("SET", "JOBS", "WHEN", "REASONS", "REQUEST"), rows)
    yield from _more(len(sets), limit)


def breakpoint_lines(breakpoints: Iterable[Breakpoint]) -> Iterator[str]:
    """
    Yield a table of breakpoints.
    """
    rows = [
        (one.number, one.stop.text(), "on" if one.is_enabled else "off", one.hits)
        for one in breakpoints
    ]
    yield from columns(("NUMBER", "STOPS AT", "IS", "HITS"), rows)


def plain_lines(value: Any, units: Units) -> Iterator[str]:
    """
    Yield every value of plain data by its path; empty ones are left out.
    """
    for path, shown in flat(for_people(value)):
        is_time = is_moment(path) and shown.isdecimal()
        yield f"{path:<28} {printable(units.time(int(shown)) if is_time else shown)}"
