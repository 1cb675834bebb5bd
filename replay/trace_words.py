"""
Write a decision trace as lines of text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Protocol

from domain.reasons import TEXTS, ReasonCode
from projections.scheduling.trace import (
    DecisionTrace,
    Kind,
    Line,
    Outcome,
    OutcomeHost,
    Passed,
    Row,
    Verdict,
)

INDENT: Final = "  "
FORCED: Final = (
    "passed over: the order of jobs, begin times and dependencies, queues, windows, limits,",
    "  selects, spans, load, closed hosts and free slots",
    "not passed over: hosts that aren't reached, exclusive jobs, and what it reserves",
)
"""What it means that an operator wants a job on certain hosts."""


class Writing(Protocol):
    """
    Say how times and amounts are written.
    """

    def time(self, time_us: int | None) -> str:
        """
        Return a moment.
        """
        ...

    def amount(self, resource: str, milli: int) -> str:
        """
        Return an amount of a resource.
        """
        ...


def trace_lines(trace: DecisionTrace, units: Writing) -> Iterator[str]:
    """
    Yield a trace as text.
    """
    session = trace.session
    which = f"session {session.number}" if session.is_recorded else (
        f"a session behind session {session.number - 1} that isn't recorded"
    )  # fmt: skip
    yield f"job {trace.job_id}: {which}, {units.time(session.time_us)}, {trace.level.value} trace"
    if trace.forced_on:
        place = f"tried as number {trace.place}, before all that wait their turn"
        yield f"{INDENT}{place}: an operator wants it on {trace.forced_on}"
        yield from (f"{INDENT}{line}" for line in FORCED)
    elif trace.place:
        keys = ", ".join(
            f"{key.name} {units.time(int(key.value)) if key.name.endswith('_us') else key.value}"
            for key in trace.keys
        )
        by = f", ordered by {keys}" if keys else ""
        yield f"{INDENT}tried as number {trace.place} by {trace.picker}{by}"
    if trace.request:
        yield f"{INDENT}asks for {trace.request}"
    for line in trace.lines:
        yield f"{INDENT * (line.depth + 1)}{line_text(line, units)}"
    if trace.left_out:
        yield f"{INDENT}{_counted(trace.left_out, 'line')} left out, beyond the bound"
    if trace.broken:
        yield f"{INDENT}the trace ends here, since writing it failed: {trace.broken}"
    yield from _outcome_lines(trace.outcome, units)
    if trace.passed is not None:
        yield from _passed_lines(trace.passed, units)


# ------------------------------------------------------------------------------------------- lines


def line_text(line: Line, units: Writing) -> str:
    """
    Return one line.
    """
    text = _TEXTS[line.kind](line)
    outcome = line.outcome.replace("_", " ")
    row_text_of = _need_text if line.kind is Kind.USAGE else row_text
    rows = "; ".join(row_text_of(row, units) for row in line.rows)
    parts = [text, *([outcome] if outcome else []), *([rows] if rows else [])]
    shown = ": ".join(part for part in parts if part)
    return f"{shown} ({line.detail})" if line.detail and line.kind not in _OWN_DETAIL else shown


def row_text(row: Row, units: Writing) -> str:
    """
    Return one amount that was checked.
    """
    def amount(milli: int) -> str:
        return units.amount(row.name, milli)

    flags = f" [{', '.join((row.type, *row.flags))}]"
    used = f"{amount(row.in_use_milli)} of {amount(row.total_milli)} in use"
    reserved = f", {amount(row.reserved_milli)} reserved"
    told = f"{row.name}{flags} {used}{reserved}, {amount(row.available_milli)} available"
    asked = f"{told}, {amount(row.requested_milli)} requested"
    if row.is_met:
        return f"{asked}, met"
    if "ceiling" in row.flags:
        return f"{asked} at most, not met"
    return f"{asked}, short of {amount(row.missing_milli)}"


def _need_text(row: Row, units: Writing) -> str:
    flags = ", ".join(flag.replace("_", " ") for flag in row.flags)
    return f"{row.name} {units.amount(row.name, row.requested_milli)} ({flags})"


def _counted(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def _tasks(line: Line) -> str:
    if line.tasks_max > line.tasks:
        return f"{line.tasks:,} to {_counted(line.tasks_max, 'task')}"
    return _counted(line.tasks, "task")


def _numbered(word: str, line: Line) -> str:
    return f"{word} {line.number}" if line.number else word


def _hosts(line: Line) -> str:
    if not line.host:
        return _counted(line.hosts, "host")
    last = f" to {line.last_host} ({_counted(line.hosts, 'host')})" if line.last_host else ""
    return f"{line.host}{last}"


def _why(line: Line) -> str:
    words = TEXTS[ReasonCode(line.code)].format(resource=line.name) if line.code else ""
    return f"{words} ({line.detail})" if line.detail else words


def _limit(line: Line) -> str:
    return f"limit {line.name} for {line.detail}"


def _readiness(line: Line) -> str:
    if line.code:
        return _why(line)
    kept = f", {_counted(line.hosts, 'host')}" if line.hosts else ""
    return f"{line.detail}{kept}"


def _unavailable(line: Line) -> str:
    return f"{_hosts(line)} not open: {_why(line)}"


def _compound(line: Line) -> str:
    alike = f", {line.name} on {_counted(line.hosts, 'like host')}" if line.name else ""
    return f"{_counted(line.count, 'member')} together{alike}"


def _primary(line: Line) -> str:
    return f"{_numbered('member' if line.number else 'primary', line)}, {_tasks(line)}"


def _candidates(line: Line) -> str:
    return f"{_counted(line.hosts, 'candidate host')}{f' by {line.name}' if line.name else ''}"


def _usage(line: Line) -> str:
    return _numbered("reservation", line) if line.rows else "slots alone"


def _check(line: Line) -> str:
    return f"all together, {line.name}{f' for {line.detail}' if line.detail else ''}"


def _allocator(line: Line) -> str:
    if not line.name:
        return f"{_counted(line.count, 'count')}, {_tasks(line)}"
    plans = f", {_counted(line.count, 'plan')} on {_counted(line.hosts, 'host')}"
    return f"{line.name}, {_tasks(line)}{plans if line.outcome != 'not_tried' else ''}"


def _plan(line: Line) -> str:
    if line.outcome == "not_tried":
        later = _counted(line.count, "later plan") if line.count else "later plans"
        return f"{later} {line.name}".rstrip()
    return f"plan {line.number} {line.name}"


def _bucket(line: Line) -> str:
    found = f", {line.hosts:,} found a host" if line.count > 1 else ""
    return f"{_counted(line.count, 'bucket')} of {_counted(line.tasks, 'task')}{found}"


_TEXTS: Final[dict[Kind, Callable[[Line], str]]] = {
    Kind.LIMIT: _limit,
    Kind.READINESS: _readiness,
    Kind.UNAVAILABLE: _unavailable,
    Kind.ALTERNATIVE: lambda line: _numbered("alternative", line) if line.number else "requirement",
    Kind.COMPOUND: _compound,
    Kind.PRIMARY: _primary,
    Kind.GUARD: lambda line: f"allocator {line.name}",
    Kind.CANDIDATES: _candidates,
    Kind.SELECTED_OUT: lambda line: f"{_hosts(line)} selected out: {_why(line)}",
    Kind.USAGE: _usage,
    Kind.CHECK: _check,
    Kind.ALLOCATOR: _allocator,
    Kind.PLAN: _plan,
    Kind.BUCKET: _bucket,
    Kind.HOST: _hosts,
    Kind.MERGE: lambda line: f"{_counted(line.count, 'member')}, amounts per host",
    Kind.PREEMPTION: lambda line: f"preemption, {_counted(line.count, 'job')}",
    Kind.VICTIM: lambda line: f"victim {line.number}, job {line.name}",
}
_OWN_DETAIL: Final = frozenset(
    {
        Kind.LIMIT, Kind.READINESS, Kind.UNAVAILABLE, Kind.SELECTED_OUT, Kind.CHECK,
    }
)  # fmt: skip
"""Kinds whose text has the detail in it."""


# ----------------------------------------------------------------------------------------- outcome


_VERDICTS: Final = {
    Verdict.DISPATCHED: "dispatched",
    Verdict.PENDED: "pends",
    Verdict.PREEMPTS: "pends until jobs that were ordered to stop have stopped",
    Verdict.SKIPPED: "skipped",
    Verdict.NOT_TRIED: "no decision",
    Verdict.FAILED: "its placement failed",
    Verdict.REBUILT: "dispatched, rebuilt from the log",
}


def outcome_text(outcome: Outcome) -> str:
    """
    Return an outcome in one line.
    """
    words = [_VERDICTS[outcome.verdict]]
    if outcome.why:
        words.append(outcome.why)
    if outcome.because_of:
        words.append(f"that is job {outcome.because_of}")
    if outcome.tasks:
        tasks, hosts = _counted(outcome.tasks, "task"), _counted(outcome.host_count, "host")
        words.append(f"{tasks} on {hosts}")
    if outcome.shortfalls:
        words.append(_counted(outcome.shortfalls, "shortfall"))
    if outcome.limits_reached:
        words.append(f"{_counted(outcome.limits_reached, 'limit')} reached")
    if outcome.is_never:
        words.append("it could never start as things are")
    if outcome.reason_set:
        words.append(f"reason set {outcome.reason_set}")
    return ", ".join(words)


def _outcome_lines(outcome: Outcome, units: Writing) -> Iterator[str]:
    yield f"{INDENT}outcome: {outcome_text(outcome)}"
    yield from _whole(outcome)
    for name, milli in outcome.shared:
        yield f"{INDENT * 2}shared: {name} {units.amount(name, milli)}"
    for host in outcome.hosts:
        yield f"{INDENT * 2}{_outcome_host(host, units)}"
    for rest in outcome.rest:
        what = _reason(rest.code, rest.resource, rest.detail) if rest.code else (
            _counted(rest.tasks, "task")
        )  # fmt: skip
        yield f"{INDENT * 2}and {_counted(rest.hosts, 'more host')}: {what}"


def _whole(outcome: Outcome) -> Iterator[str]:
    """
    Yield the reasons of the whole job that aren't told yet.
    """
    for reason in outcome.reasons:
        words = _reason(*reason)
        if words != outcome.why:
            yield f"{INDENT * 2}{words}"


def _reason(code: str, resource: str, detail: str) -> str:
    words = TEXTS[ReasonCode(code)].format(resource=resource)
    return f"{words} ({detail})" if detail else words


def _outcome_host(host: OutcomeHost, units: Writing) -> str:
    if not host.code:
        amounts = "".join(
            f", {name} {units.amount(name, milli)}" for name, milli in host.amounts
        )
        return f"{host.host}: {_counted(host.tasks, 'task')}{amounts}"
    words = _reason(host.code, host.resource, host.detail)
    if not host.resource:
        return f"{host.host}: {words}"
    available = units.amount(host.resource, host.available_milli)
    requested = units.amount(host.resource, host.requested_milli)
    return f"{host.host}: {words}, {available} available, {requested} requested"


def _passed_lines(passed: Passed, units: Writing) -> Iterator[str]:
    session = passed.session
    which = f"session {session.number}" if session.is_recorded else "a session not recorded"
    yield f"{INDENT}since then: {which}, {units.time(session.time_us)}"
    yield f"{INDENT * 2}{outcome_text(passed.outcome)}"
    yield from _whole(passed.outcome)
