"""
Handle reports of workers. A report that is stale or doesn't fit gives *report ignored* and changes
nothing.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from domain.allocations import HostRun
from domain.commands.reports import (
    JobCouldNotStartReport,
    JobFinishedReport,
    JobResumedReport,
    JobStartedReport,
    JobSuspendedReport,
    JoinWorker,
    LeaveWorker,
    MarkUnreachable,
    OrderDoneReport,
    WorkerReport,
)
from domain.errors import Refused
from domain.event import Event, sure
from domain.events.jobs import (
    JobCouldNotStart,
    JobFinished,
    JobResumed,
    JobStarted,
    JobSuspended,
)
from domain.events.refusals import ReportIgnored
from domain.events.workers import (
    WorkerBecameUnreachable,
    WorkerCameBack,
    WorkerJoined,
    WorkerLeft,
    WorkerOrderDone,
    WorkerReported,
)
from domain.ids import REFUSALS, job_stream, worker_stream
from domain.job_states import LIVE
from domain.units import MILLI
from projections.scheduling.handle.answers import NewEvents
from projections.scheduling.records import JobRecord, WorkerRecord
from projections.scheduling.state import State

TERM_OWNER: Final = "TERM_OWNER"
TERM_ADMIN: Final = "TERM_ADMIN"
TERM_EXTERNAL_SIGNAL: Final = "TERM_EXTERNAL_SIGNAL"

JobReport = (
    JobStartedReport
    | JobCouldNotStartReport
    | JobFinishedReport
    | JobSuspendedReport
    | JobResumedReport
)


def join(state: State, command: JoinWorker, actor: str) -> NewEvents:
    """
    Let a worker in: the first time under the next host number, later in its next incarnation.
    """
    names = [resource.name for resource in command.resources]
    if len(set(names)) < len(names):
        raise Refused("resources", "must name each resource once", ", ".join(names))
    _check_units(command)
    known = state.stored.workers.get(command.worker)
    event = WorkerJoined(
        incarnation=1 if known is None else known.incarnation + 1,
        host_number=len(state.stored.workers) if known is None else known.number,
        slots=command.slots,
        resources=command.resources,
        attributes=command.attributes,
    )
    return [(worker_stream(command.worker), event)]


def _check_units(command: JoinWorker) -> None:
    """
    Refuse a total that isn't the count of its named units.
    """
    for resource in command.resources:
        units = [unit.name for unit in resource.units]
        if units and resource.total_milli != len(units) * MILLI:
            rule = f"must have a total of {len(units)}, one for each unit"
            raise Refused("resources", rule, resource.name)
        if len(set(units)) < len(units):
            raise Refused("resources", "must name each unit once", resource.name)


def leave(state: State, command: LeaveWorker, actor: str) -> NewEvents:
    """
    Let a worker go.
    """
    worker = state.worker(command.worker)
    stale = _stale_worker(worker, command.incarnation)
    if stale or worker.left:
        return _ignored("leave", command, stale or "it has left already")
    return [(worker_stream(worker.name), WorkerLeft(incarnation=command.incarnation))]


def mark_unreachable(state: State, command: MarkUnreachable, actor: str) -> NewEvents:
    """
    Note that a worker is silent; noting it twice changes nothing, nor does it for one that left and
    leads no job.
    """
    worker = state.worker(command.worker)
    if worker.incarnation != command.incarnation or worker.unreachable_us is not None:
        return []
    if worker.left and not state.jobs_led_by(worker):
        return []
    event = WorkerBecameUnreachable(silent_us=command.silent_us)
    return [(worker_stream(worker.name), event)]


def usage(state: State, command: WorkerReport, actor: str) -> NewEvents:
    """
    Take in load and usage. A job's usage that is stale is left out.
    """
    worker = state.worker(command.worker)
    stale = _stale_worker(worker, command.incarnation)
    if stale:
        return _ignored("usage", command, stale)
    current = tuple(
        seen
        for seen in command.jobs
        if (job := state.live.get(job_stream(seen.job_id))) is not None
        and job.attempt == seen.attempt
        and _runs_on(job, worker)
    )
    event = WorkerReported(
        incarnation=command.incarnation,
        load=command.load,
        jobs=current,
        is_blind=command.is_blind,
    )
    return [*_back(worker), (worker_stream(worker.name), event)]


def started(state: State, command: JobStartedReport, actor: str) -> NewEvents:
    """
    Take in that an attempt began; the second report of it is ignored.
    """
    worker, job, problem = _attempt(state, command)
    if job is None or problem:
        return _ignored("started", command, problem)
    if job.start_us is not None:
        return _ignored("started", command, "it is known already")
    event = _started(command.attempt, command.pid, command.process_group)
    return _for_job(worker, job, event)


@lru_cache(maxsize=256)
def _started(attempt: int, pid: int, process_group: int) -> JobStarted:
    # In a simulation nearly all are equal, and one object can be all of them.
    return sure(JobStarted, attempt=attempt, pid=pid, process_group=process_group)


def could_not_start(state: State, command: JobCouldNotStartReport, actor: str) -> NewEvents:
    """
    Take in that an attempt couldn't begin.
    """
    worker, job, problem = _attempt(state, command)
    if job is None or problem:
        return _ignored("could not start", command, problem)
    event = JobCouldNotStart(
        attempt=command.attempt,
        why=command.why,
        pre_exec_of=command.pre_exec_of,
        pre_exec_exit=command.pre_exec_exit,
        fault=command.fault,
    )
    return _for_job(worker, job, event)


def finished(state: State, command: JobFinishedReport, actor: str) -> NewEvents:
    """
    Take in that an attempt ended; a kill that was ordered is then the reason.
    """
    worker, job, problem = _attempt(state, command)
    if job is None or problem:
        return _ignored("finished", command, problem)
    exit_code, signal = command.exit_code, command.signal
    why = "" if signal is None and not job.kill_order else _why_ended(job, signal)
    usage = command.cpu_us, command.max_rss_kib
    event = _finished(command.attempt, exit_code, signal, why, *usage)
    return _for_job(worker, job, event)


@lru_cache(maxsize=256)
def _finished(
    attempt: int, exit_code: int | None, signal: int | None, why: str, cpu_us: int, rss_kib: int
) -> JobFinished:
    # As above.
    return sure(
        JobFinished,
        attempt=attempt,
        exit_code=exit_code,
        signal=signal,
        why=why,
        cpu_us=cpu_us,
        max_rss_kib=rss_kib,
    )


def _why_ended(job: JobRecord, signal: int | None) -> str:
    """
    Return why an attempt ended before its time: as ordered, by a signal that somebody had sent, or
    by one that nobody knows of.
    """
    if job.kill_order:
        return job.why
    for sent in job.signalled:
        if sent.signal.number == signal:
            return TERM_OWNER if sent.by == job.spec.user else TERM_ADMIN
    return TERM_EXTERNAL_SIGNAL


def why_killed(job: JobRecord) -> str:
    """
    Return LSF's termination reason of a job that somebody asked to kill.
    """
    return TERM_OWNER if job.kill_actor == job.spec.user else TERM_ADMIN


def suspended(state: State, command: JobSuspendedReport, actor: str) -> NewEvents:
    """
    Take in that an attempt was stopped as ordered.
    """
    worker, job, problem = _attempt(state, command)
    if job is not None and not problem and not job.suspend_order:
        problem = "no such order is open"
    if job is None or problem:
        return _ignored("suspended", command, problem)
    return _for_job(worker, job, JobSuspended(attempt=command.attempt))


def resumed(state: State, command: JobResumedReport, actor: str) -> NewEvents:
    """
    Take in that an attempt goes on as ordered.
    """
    worker, job, problem = _attempt(state, command)
    if job is not None and not problem and not job.resume_order:
        problem = "no such order is open"
    if job is None or problem:
        return _ignored("resumed", command, problem)
    return _for_job(worker, job, JobResumed(attempt=command.attempt))


def order_done(state: State, command: OrderDoneReport, actor: str) -> NewEvents:
    """
    Take in that an order was carried out.
    """
    worker = state.worker(command.worker)
    stale = _stale_worker(worker, command.incarnation)
    if not stale and not worker.last_order_done < command.order_number <= worker.last_order:
        stale = "no such order is open"
    if stale:
        return _ignored("order done", command, stale)
    event = WorkerOrderDone(
        incarnation=command.incarnation,
        order_number=command.order_number,
        outcome=command.outcome,
    )
    return [*_back(worker), (worker_stream(worker.name), event)]


# -- what is stale


def _stale_worker(worker: WorkerRecord, incarnation: int) -> str:
    if worker.incarnation == incarnation:
        return ""
    return f"its incarnation is {worker.incarnation} now"


# hot: the simulator needs it twice a job.
def _attempt(state: State, command: JobReport) -> tuple[WorkerRecord, JobRecord | None, str]:
    """
    Return the worker and the job whose live attempt a report is about, and "", or what is wrong
    with the report.
    """
    worker = state.stored.workers.get(command.worker) or state.worker(command.worker)
    if worker.incarnation != command.incarnation:
        return worker, None, _stale_worker(worker, command.incarnation)
    job = state.stored.jobs.get(job_stream(command.job_id))
    if job is None:
        return worker, None, "no such job is known"
    if job.attempt != command.attempt:
        return worker, job, f"its attempt is {job.attempt} now"
    if job.state not in LIVE:
        return worker, job, f"the job is {job.state.value}"
    runs = job.allocation.runs if job.allocation is not None else ()
    # Mostly the first host reports, which needs no call.
    if not (runs and runs[0].first == worker.number) and not _is_among(runs, worker):
        return worker, job, "the job isn't on this worker"
    return worker, job, ""


def _runs_on(job: JobRecord, worker: WorkerRecord) -> bool:
    return job.allocation is not None and _is_among(job.allocation.runs, worker)


def _is_among(runs: tuple[HostRun, ...], worker: WorkerRecord) -> bool:
    return any(run.first <= worker.number < run.first + run.hosts for run in runs)


def _for_job(worker: WorkerRecord, job: JobRecord, event: Event) -> NewEvents:
    if worker.is_awaited or worker.unreachable_us is not None:
        return [*_back(worker), (job.stream, event)]
    return [(job.stream, event)]


def _back(worker: WorkerRecord) -> NewEvents:
    if not worker.is_silent:
        return []
    return [(worker_stream(worker.name), WorkerCameBack(incarnation=worker.incarnation))]


def _ignored(report: str, command: Any, why: str) -> NewEvents:
    event = ReportIgnored(
        report=report,
        worker=command.worker,
        incarnation=command.incarnation,
        job_id=getattr(command, "job_id", ""),
        attempt=getattr(command, "attempt", 0),
        why=why,
    )
    return [(REFUSALS, event)]


HANDLE: Final[dict[Any, Any]] = {
    JoinWorker: join,
    LeaveWorker: leave,
    MarkUnreachable: mark_unreachable,
    WorkerReport: usage,
    JobStartedReport: started,
    JobCouldNotStartReport: could_not_start,
    JobFinishedReport: finished,
    JobSuspendedReport: suspended,
    JobResumedReport: resumed,
    OrderDoneReport: order_done,
}
