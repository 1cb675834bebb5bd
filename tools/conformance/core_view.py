"""
What can be seen of our core: jobs, why they wait, and the memory of hosts, in the vectors' words.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from domain.amounts import MEM
from domain.job_states import LIVE, WAITING
from domain.reasons import NOTES, PendReason, ReasonCode
from domain.terminations import Termination
from domain.units import MILLI, MINUTE_US
from projections.scheduling.pickers.waiting import key_of
from projections.scheduling.records import JobRecord
from projections.scheduling.state import State
from projections.scheduling.status import status_by_use, why_suspended, why_waiting
from tools.conformance.core_limits import OTHERWISE
from tools.conformance.core_setup import BEGIN_US, MB_MILLI
from tools.conformance.seen import Observed, Waiting

WITH_RESOURCE: Final = frozenset({"HOST_JOB_RUSAGE", "HOST_QUE_RUSAGE", "RES_SHORT", "HOST_LOAD"})
"""Codes that the vectors write with the name of a resource."""


LIMITED: Final = frozenset({"slots", "jobs", "tasks", "mem", "swp", "tmp"})
"""What limits count under names that LSF writes in capitals."""


SHOWN: Final = {
    "window": "closed_Wind",
    "exclusive": "closed_Excl",
    "locked": "closed_Lock",
    "busy": "closed_Busy",
    "blind": "closed_LIM",
}
"""Our words for why a host takes no jobs -> LSF's."""

COUNTED: Final = frozenset({"slots", "jobs", "tasks"})


@dataclass(frozen=True, slots=True)
class MemoryOfHost:
    """
    Hold the memory of a host: what a new job may take, what jobs reserved and don't use, what is
    charged.
    """

    available_milli: int
    slack_milli: int
    charged_milli: int


def memory_of(state: State, host: str) -> MemoryOfHost:
    """
    Return what the core makes of a host's memory.
    """
    number = next(each.number for each in state.hosts if each.name == host)
    column = state.capacity.resources[MEM]
    milli = (column.available[number], column.unused[number], column.charged[number])
    return MemoryOfHost(*map(int, milli))


def see_jobs(state: State, records: Mapping[str, JobRecord], seen: Observed) -> None:
    """
    Note what can be seen of jobs, which are called as the vector calls them.
    """
    for name, record in records.items():
        _see_job(state, name, record, seen)
        _see_shares(state, name, record, seen)
        _see_promise(state, name, record, seen)
    lasting = [(name, each) for name, each in records.items() if each.state in LIVE | WAITING]
    seen.order = [name for name, _ in sorted(lasting, key=lambda each: key_of(state, each[1]))]


def see_hosts(state: State, seen: Observed, silent: Collection[str] = ()) -> None:
    """
    Note the status of each host, by the first cause that keeps jobs away.

    Args:
        state: The core's.
        seen: What it is noted in.
        silent: Hosts that went down, which a core calls unreachable like all that it can't reach.
    """
    gathered = _gathered(state)
    for worker in state.hosts:
        number = worker.number
        status = SHOWN.get(status_by_use(state, worker), "ok")
        taken = int(state.capacity.used[number]) + gathered.get(number, 0)
        if taken >= state.capacity.slots[number]:
            status = "closed_Full"
        if state.capacity.exclusive[number]:
            status = "closed_Excl"
        if worker.closed:
            status = "closed_Adm"
        if worker.unreachable_us is not None:
            status = "unreach"
        is_down = worker.unreachable_us is not None and worker.name in silent
        if worker.left or is_down:
            status = "unavail"
            seen.silent_hosts.add(worker.name)
        seen.host_status[worker.name] = status


def _gathered(state: State) -> dict[int, int]:
    """
    Return the slots that pending jobs have gathered on each host: they count as taken.
    """
    found: dict[int, int] = {}
    for job in state.gatherers.values():
        for run in job.promise.runs if job.promise is not None and job.promise.is_held else ():
            for number in range(run.first, run.first + run.hosts):
                found[number] = found.get(number, 0) + run.slots
    return found


def _see_job(state: State, name: str, record: JobRecord, seen: Observed) -> None:
    seen.states[name] = record.state.value
    seen.queues[name] = record.spec.queue
    seen.terms[name] = record.why
    seen.suspended_for[name] = why_suspended(state, record)
    limit_us = state.run_limit_us(record)
    seen.run_limits_min[name] = None if limit_us is None else limit_us // MINUTE_US
    seen.exit_codes[name] = shown_exit(record)
    with suppress(ValueError):
        seen.term_numbers[name] = Termination(record.why).number
    values = state.values_of(record)
    least, most = values.tasks_min, values.tasks_max
    seen.tasks[name] = least if least == most else [least, most]
    seen.dependencies[name] = record.spec.dependency_text or None
    seen.queued_min[name] = (record.queue_us - BEGIN_US) // MINUTE_US
    seen.submitted_min[name] = (record.submit_us - BEGIN_US) // MINUTE_US


def see_limits(state: State, seen: Observed) -> None:
    """
    Note what each limit is charged, over all whom it is charged for.
    """
    for (name, resource, _), used in state.limits.in_use().items():
        unit_milli = MB_MILLI if resource in LIMITED - COUNTED else MILLI
        told = resource.upper() if resource in LIMITED else resource
        amounts = seen.usage.setdefault(name, {})
        amounts[told] = amounts.get(told, 0) + sum(used) // unit_milli


def _see_promise(state: State, name: str, record: JobRecord, seen: Observed) -> None:
    promise = record.promise
    if promise is None:
        return
    start_us = promise.start_us
    seen.estimated_start[name] = None if start_us is None else (start_us - BEGIN_US) // MINUTE_US
    for run in promise.runs:
        for number in range(run.first, run.first + run.hosts):
            host = state.hosts[number].name
            if run.slots:
                seen.reserved.setdefault(name, {})[host] = run.slots
            for amount in run.amounts:
                if amount.resource == MEM:
                    seen.reserved_mem.setdefault(name, {})[host] = amount.milli // MB_MILLI


def _see_shares(state: State, name: str, record: JobRecord, seen: Observed) -> None:
    if record.state in WAITING:
        seen.waiting[name] = waiting_of(state, record)
    if record.state not in LIVE or record.allocation is None:
        return
    seen.shares[name] = dict(state.host_names(record.allocation))
    for amount in record.allocation.shared:
        if record.is_aside and amount.resource in state.capacity.released:
            continue
        before = seen.used.get(amount.resource, 0)
        seen.used[amount.resource] = before + amount.milli // MILLI


def waiting_of(state: State, record: JobRecord) -> Waiting:
    """
    Return why a job waits; notes of what wasn't tried are no reasons.
    """
    _, every = why_waiting(state, record)
    reasons = [reason for reason in every if reason.code not in NOTES]
    main = next((each for each in reasons if not each.hosts), None)
    if main is not None and main.code is ReasonCode.JOB_MISS_DEADLINE:
        # LSF has no such reason of the whole job: it holds on every host.
        hosts = {worker.name: [code_of(main)] for worker in state.hosts}
        return Waiting(hosts=hosts)
    waiting = Waiting(main="" if main is None else code_of(main))
    for reason in reasons:
        for host, available_milli in _hosts_of(state, reason):
            waiting.hosts.setdefault(host, []).append(code_of(reason, available_milli))
    for codes in waiting.hosts.values():
        # That a tile doesn't fit, though slots are free, comes after what can't be reserved.
        codes.sort(key=lambda code: code == "JOB_NO_SPAN")
    return waiting


def _hosts_of(state: State, reason: PendReason) -> Iterator[tuple[str, int]]:
    for span in reason.hosts:
        for number in range(span.first, span.first + span.hosts):
            yield state.hosts[number].name, span.available_milli


def shown_exit(record: JobRecord) -> int | None:
    """
    Return a job's exit code as shells show it: 128 and the signal's number for a signal.
    """
    return record.exit_code if record.signal is None else 128 + record.signal


def code_of(reason: PendReason, available_milli: int = 0) -> str:
    """
    Return a reason's code as the vectors write it, with the resource or limit that it is about.

    Too few slots have one code with the amount that is left; LSF has one code for none and one for
    some.
    """
    code = reason.code.value
    if code == "JOB_MISS_DEADLINE":
        return "HOST_MISS_DEADLINE"
    if code == "HOST_SLOTS":
        return "HOST_LESS_SLOTS" if available_milli else "HOST_JOB_LIMIT"
    if code == "JOB_NO_SPAN" and not available_milli:
        return "HOST_JOB_LIMIT"
    if code == "RES_LIMIT":
        resource = reason.resource
        name = reason.detail.removesuffix(OTHERWISE)
        return f"{code}({name},{resource.upper() if resource in LIMITED else resource})"
    return f"{code}({reason.resource})" if code in WITH_RESOURCE else code
