"""
What can be read: jobs, hosts, queues, the cluster, as plain data made from synced state.

Nobody sees a job's environment, and only its owner and operators see its program.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from domain.job_states import STOPPED, JobState
from domain.jobs import Program
from domain.reasons import PendReason, show_grouped
from domain.resources import ResourceScope
from domain.resreq.merge import terms_of
from domain.resreq.render import render
from domain.resreq.syntax import Per, Requirement
from domain.suspensions import show_suspension
from domain.terminations import exit_words, termination_words
from projections.scheduling.queue_windows import is_inside, next_opening_us
from projections.scheduling.records import JobRecord, WorkerRecord
from projections.scheduling.state import State
from projections.scheduling.status import blocker_of, status_by_use, why_suspended, why_waiting
from tools.agent.files import WorkerFiles, expand_path
from tools.daemon.access import Caller
from tools.daemon.job_filter import Filter
from tools.daemon.promised import no_promise_fields, promise_fields

AWAITED = "not heard since the scheduler's start"
NAMES_MAX = 20
WAITS = frozenset({JobState.PEND, JobState.PSUSP, JobState.WAIT})


def job_row(state: State, job: JobRecord) -> dict[str, object]:
    """
    Return what everybody may see of a job.
    """
    spec = job.spec
    never, reason = _reason(state, job)
    return {
        "job_id": job.job_id,
        "state": job.state.value,
        "queue": spec.queue,
        "user": spec.user,
        "name": spec.name,
        "project": spec.project,
        "hosts": hosts_of(state, job),
        "exit_code": job.exit_code,
        "signal": job.signal,
        "why": job.why,
        "tasks": job.allocation.tasks() if job.allocation else spec.tasks_max,
        "tasks_min": spec.tasks_min,
        "tasks_max": spec.tasks_max,
        "resreq": spec.resreq,
        "run_limit_us": spec.run_limit_us,
        "dependency": spec.dependency_text,
        "begin_us": spec.begin_us,
        "deadline_us": spec.deadline_us,
        "suspend_reason": (stopped_by := why_suspended(state, job)),
        "stopped": _stopped(job, stopped_by),
        "requeues": job.requeues,
        "attempt": job.attempt,
        "submit_us": job.submit_us,
        "since_us": job.since_us,
        "dispatch_us": job.dispatch_us,
        "start_us": job.start_us,
        "finish_us": job.finish_us,
        "pid": job.pid,
        "cpu_us": job.cpu_us,
        "max_rss_kib": job.max_rss_kib,
        "processes": job.processes,
        "pend_reason": reason,
        "never": never,
    }


def _stopped(job: JobRecord, why: str) -> str:
    """
    Return in words why a job is stopped, "" for one that isn't.
    """
    return show_suspension(why, job.preemptor) if job.state in STOPPED else ""


def _reason(state: State, job: JobRecord) -> tuple[bool, str]:
    if job.state not in WAITS:
        return False, ""
    never, reasons = why_waiting(state, job)
    return never, show_grouped(reasons)


def hosts_of(state: State, job: JobRecord) -> list[dict[str, object]]:
    """
    Return where a job runs or ran, in claim order.
    """
    if job.allocation is None:
        return []
    return [{"host": host, "tasks": tasks} for host, tasks in state.host_names(job.allocation)]


def job_detail(state: State, job: JobRecord, caller: Caller, cluster: Path) -> dict[str, object]:
    """
    Return a job as its page shows it; the program only to whom it belongs.
    """
    asked = job.spec.model_dump(mode="json", exclude=PARSED_OR_PRIVATE)
    row = job_row(state, job) | {"asked": asked, "effective": effective_row(state, job)}
    program = job.spec.program
    if program is None or not (caller.is_operator or caller.user == job.spec.user):
        return row
    return row | {"program": _program(program)} | _output(state, job, program, cluster)


PARSED_OR_PRIVATE: Final = {"program", "requirement", "dependency"}
"""Fields of a job that are told apart from what it asks for, or are the parsed forms of others."""


def effective_row(state: State, job: JobRecord) -> dict[str, object]:
    """
    Return what holds for a job, its profile's and queue's values filled in.
    """
    values = state.effective(job)
    return {
        "tasks_min": values.tasks_min,
        "tasks_max": values.tasks_max,
        "resreq": render(values.requirement) if values.requirement else "",
        "reserves": list(_reserves(state, values.requirement)),
        "run_limit_us": values.run_limit_us,
        "limits": values.limits.model_dump() if values.limits else {},
        "rerunnable": bool(values.rerunnable),
        "project": state.limits.project_of(job.spec),
        "profile": job.spec.profile,
        "charged": [budget.text() for budget in state.limits.budgets_of(job.spec)],
    }


def _reserves(state: State, requirement: Requirement | None) -> Iterator[dict[str, object]]:
    """
    Yield each amount that a requirement reserves, with what it counts for here: each host, each
    task, or the whole job.
    """
    usual = Per.TASK if state.settings().reserve_per_task else Per.HOST
    for term in () if requirement is None else terms_of(requirement):
        found = state.stored.resources.get(term.resource)
        per = usual
        if found is not None and found.scope is ResourceScope.SHARED and usual is Per.HOST:
            per = Per.JOB
        if term.per is not Per.DEFAULT:
            per = term.per
        yield {"resource": term.resource, "milli": term.milli, "per": per.value}


def _program(program: Program) -> dict[str, object]:
    return {
        "argv": program.argv,
        "shell": program.shell,
        "cwd": program.cwd,
        "umask": program.umask,
        "stdin": program.stdin,
        "stdout": program.stdout,
        "stderr": program.stderr,
        "pre_exec": program.pre_exec,
        "post_exec": program.post_exec,
        "transfers": [one.text() for one in program.transfers],
    }


def _output(state: State, job: JobRecord, program: Program, cluster: Path) -> dict[str, object]:
    """
    Return where a job's output goes: its own paths, or files of its first host's worker.
    """
    hosts = hosts_of(state, job)
    if not hosts:
        return {"stdout": program.stdout, "stderr": program.stderr}
    folder = WorkerFiles(cluster, str(hosts[0]["host"])).jobs / f"{job.job_id}.{job.attempt}"
    return {
        "stdout": expand_path(program.stdout, job.job_id) or str(folder / "stdout"),
        "stderr": expand_path(program.stderr, job.job_id) or str(folder / "stderr"),
    }


def jobs(state: State, wanted: Filter) -> list[dict[str, object]]:
    """
    Return the newest jobs that are wanted, in order of their numbers.
    """
    known: Iterable[JobRecord] = reversed(state.stored.jobs.values())
    if wanted.number:
        streams = reversed(state.streams_of(wanted.number))
        known = [state.stored.jobs[stream] for stream in streams if stream in state.stored.jobs]
    newest = filter(wanted.fits(state), known)
    return [job_row(state, job) for job in reversed(list(islice(newest, wanted.limit)))]


def why(state: State, job: JobRecord) -> dict[str, object]:
    """
    Return why a job waits, every reason with its hosts; or what became of it.
    """
    told: dict[str, object] = {
        "job_id": job.job_id,
        "state": job.state.value,
        "since_us": job.since_us,
        "never": False,
        "reasons": [],
        "blocker": "",
        "proved_by": "",
    }
    if job.state not in WAITS:
        return told | no_promise_fields() | {"verdict": _verdict(state, job)}
    never, reasons = why_waiting(state, job)
    blocker = blocker_of(state, job)
    kept = state.stored.reason_sets.get(job.reason_set)
    is_behind = any(reason.code == "JOB_BEHIND" for reason in reasons)
    return told | {
        "never": never,
        "reasons": [_told_reason(state, reason) for reason in reasons],
        "blocker": blocker.job_id if blocker is not None and is_behind else "",
        "proved_by": kept.proved_by if kept is not None and kept.reasons == reasons else "",
        **promise_fields(state, job),
    }


def _verdict(state: State, job: JobRecord) -> str:
    hosts = [str(one["host"]) for one in hosts_of(state, job)]
    if job.state in STOPPED:
        stopped = _stopped(job, why_suspended(state, job))
        return f"it has started on {', '.join(hosts)} and is stopped: {stopped}."
    return verdict_words(job.state, hosts, job.exit_code, job.signal, job.why)


_LIVE_WORDS: Final[dict[str, str]] = {
    JobState.UNKWN: "it has started on {hosts}, and nothing is heard from there.",
}
"""What is said of started jobs that aren't known to run."""


def verdict_words(
    state: str, hosts: Sequence[str], exit_code: int | None, signal: int | None, why: str
) -> str:
    """
    Return in words what became of a job that doesn't wait.
    """
    if state == JobState.DONE:
        return f"it ran on {', '.join(hosts)} and ended well."
    if state != JobState.EXIT:
        return _LIVE_WORDS.get(state, "it runs on {hosts}.").format(hosts=", ".join(hosts))
    if signal is not None:
        how = f"it was ended by {exit_words(exit_code, signal)}"
    elif exit_code is not None:
        how = f"it ended with {exit_words(exit_code, signal)}"
    elif hosts:
        how = "it ended without an exit code"
    else:
        how = "it ended before it started"
    return f"{how}; {termination_words(why)}." if why else f"{how}."


def _told_reason(state: State, reason: PendReason) -> dict[str, object]:
    return {
        "code": reason.code.value,
        "text": reason.text(),
        "resource": reason.resource,
        "detail": reason.detail,
        "requested_milli": reason.requested_milli,
        "host_count": reason.host_count(),
        "hosts": [
            {"host": state.hosts[number].name, "available_milli": span.available_milli}
            for span in reason.hosts
            for number in range(span.first, span.first + span.hosts)
        ],
    }


def hosts(state: State) -> list[dict[str, object]]:
    """
    Return every host, in host order.
    """
    jobs_on = _jobs_on(state)
    return [_host(state, worker, jobs_on[worker.number]) for worker in state.hosts]


def _jobs_on(state: State) -> Counter[int]:
    """
    Return how many jobs each host has, by its number.
    """
    jobs_on: Counter[int] = Counter()
    for job in state.live.values():
        if job.allocation is not None:
            jobs_on.update(number for number, _, _ in job.allocation.shares())
    return jobs_on


def _host(state: State, worker: WorkerRecord, job_count: int) -> dict[str, object]:
    return {
        "host": worker.name,
        "status": (status := _status(state, worker, job_count)),
        "why": _why_no_jobs(state, worker, status),
        "slots": worker.slots,
        "slots_used": int(state.capacity.used[worker.number]),
        "jobs": job_count,
        "resources": list(_resources(state, worker)),
        "attributes": {one.name: one.value for one in worker.attributes},
        "load": [{"index": name, "milli": milli} for name, milli in worker.load.items()],
        "incarnation": worker.incarnation,
        "joined_us": worker.joined_us,
        "report_us": worker.report_us,
    }


def _why_no_jobs(state: State, worker: WorkerRecord, status: str) -> str:
    """
    Return more than the status tells of why a host takes no jobs, "" when there is nothing to tell.
    """
    if worker.is_awaited:
        return AWAITED
    if worker.closed:
        return worker.closed_why
    if status != "busy":
        return ""
    over = [one.index for one in worker.settings.thresholds if not state.is_light(worker, one)]
    return f"load beyond its threshold: {', '.join(over)}"


def _status(state: State, worker: WorkerRecord, job_count: int) -> str:
    """
    Return why a host takes no jobs, "ok" when it does; the first cause that holds counts, in LSF's
    order.
    """
    if worker.left:
        return "left"
    if worker.is_silent:
        return "unreachable"
    if worker.is_draining:
        return "draining" if job_count else "drained"
    if worker.closed:
        return "closed"
    return status_by_use(state, worker)


def _resources(state: State, worker: WorkerRecord) -> Iterator[dict[str, object]]:
    for resource in worker.resources:
        column = state.capacity.resources[resource.name]
        yield {
            "name": resource.name,
            "total_milli": resource.total_milli,
            "available_milli": int(column.available[worker.number]),
        }


def queues(state: State) -> list[dict[str, object]]:
    """
    Return every queue, the first considered first.
    """
    counts: dict[str, Counter[str]] = {name: Counter() for name in state.stored.queues}
    for job in state.stored.jobs.values():
        counts[job.spec.queue][job.state.value] += 1
    now_us = max(state.session_us, state.stored.time_us)
    found: list[dict[str, object]] = [
        {
            "queue": queue.name,
            "priority": queue.spec.priority,
            "is_open": queue.spec.is_open,
            "is_active": queue.spec.is_active,
            "is_in_windows": (is_in := is_inside(state, queue)),
            "opens_us": None if is_in else next_opening_us(queue.spec, now_us),
            "picker": queue.spec.picker or state.settings().picker,
            "description": queue.spec.description,
            "jobs": dict(counts[queue.name]),
        }
        for queue in state.stored.queues.values()
    ]
    return sorted(found, key=lambda queue: (-int(str(queue["priority"])), str(queue["queue"])))


def status(state: State) -> dict[str, object]:
    """
    Return how the cluster is: its jobs by state, its hosts by status.
    """
    by_state = Counter(job.state.value for job in state.stored.jobs.values())
    jobs_on = _jobs_on(state)
    by_status = Counter(_status(state, worker, jobs_on[worker.number]) for worker in state.hosts)
    return {
        "cluster": state.settings().name,
        "epoch": state.stored.epoch,
        "jobs": dict(sorted(by_state.items())),
        "hosts": dict(sorted(by_status.items())),
        "slots": int(state.capacity.slots.sum()),
        "slots_used": int(state.capacity.used.sum()),
        "highest_job": state.stored.highest_job,
    }
