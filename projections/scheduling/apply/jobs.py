"""
Apply events of jobs.
"""

from __future__ import annotations

from typing import Any, Final

from domain.envelope import Stamped
from domain.events.jobs import (
    JobCouldNotStart,
    JobDispatched,
    JobEnded,
    JobFinished,
    JobHeld,
    JobHoldLifted,
    JobKillOrdered,
    JobKillRequested,
    JobPended,
    JobStarted,
    JobSubmitted,
)
from domain.ids import job_of_stream, split_job_id
from domain.job_states import JobState
from projections.scheduling.apply.transitions import move
from projections.scheduling.records import JobRecord, KeyRecord
from projections.scheduling.state import State


def submitted(state: State, stamped: Stamped, event: JobSubmitted) -> None:
    """
    Add the job.
    """
    number, index = split_job_id(job_of_stream(stamped.stream))
    now_us = stamped.time_us
    job = JobRecord(
        number=number,
        index=index,
        stream=stamped.stream,
        spec=event.spec,
        submit_us=now_us,
        queue_us=now_us,
        since_us=now_us,
        key=event.key,
    )
    stored = state.stored
    stored.jobs[stamped.stream] = job
    stored.highest_job = max(stored.highest_job, number)
    if event.key:
        stored.keys[event.key] = KeyRecord(stamped.stream, event.digest, now_us)
    if event.spec.hold:
        job.state = JobState.PSUSP
        return
    _begin_waiting(state, job)


def _begin_waiting(state: State, job: JobRecord) -> None:
    state.waiting += 1
    state.picker.on_job_push(job)


def _stop_waiting(state: State, job: JobRecord, now_us: int) -> None:
    """
    Take a pending job out of everything that waits.
    """
    if job.state is JobState.PEND:
        state.waiting -= 1
    state.leave_set(job, now_us)
    state.picker.on_job_state_change(job)
    state.wanted.pop(job.stream, None)
    if state.stored.blocker == job.stream:
        state.stored.blocker = ""


def held(state: State, stamped: Stamped, event: JobHeld) -> None:
    """
    Keep a pending job back.
    """
    job = state.stored.jobs[stamped.stream]
    _stop_waiting(state, job, stamped.time_us)
    move(job, JobState.PSUSP, stamped.time_us)


def hold_lifted(state: State, stamped: Stamped, event: JobHoldLifted) -> None:
    """
    Let a held job wait again; it keeps its place among equals.
    """
    job = state.stored.jobs[stamped.stream]
    move(job, JobState.PEND, stamped.time_us)
    _begin_waiting(state, job)


def kill_requested(state: State, stamped: Stamped, event: JobKillRequested) -> None:
    """
    Remember who wants the job ended; the next session decides how.
    """
    job = state.stored.jobs[stamped.stream]
    if job.kill_actor is None:
        job.kill_actor = stamped.actor
        state.kills[stamped.stream] = job


def pended(state: State, stamped: Stamped, event: JobPended) -> None:
    """
    Put the job into its reason set.
    """
    job = state.stored.jobs[stamped.stream]
    state.leave_set(job, stamped.time_us)
    state.join_set(job, event.reason_set)


def dispatched(state: State, stamped: Stamped, event: JobDispatched) -> None:
    """
    Give the job its hosts and run it.
    """
    job = state.stored.jobs[stamped.stream]
    now_us = stamped.time_us
    _stop_waiting(state, job, now_us)
    move(job, JobState.RUN, now_us)
    job.attempt = event.attempt
    job.allocation = event.allocation
    job.session_number = state.stored.session_number
    job.session_index = event.index
    job.dispatch_us = now_us
    job.start_us = None
    state.live[stamped.stream] = job
    state.capacity.take(event.allocation)


def started(state: State, stamped: Stamped, event: JobStarted) -> None:
    """
    Remember when and as which process the attempt began.
    """
    job = state.stored.jobs[stamped.stream]
    job.start_us = stamped.time_us
    job.pid = event.pid
    job.process_group = event.process_group


def finished(state: State, stamped: Stamped, event: JobFinished) -> None:
    """
    End the job and give back what it held.
    """
    job = state.stored.jobs[stamped.stream]
    job.exit_code = event.exit_code
    job.signal = event.signal
    job.why = event.why
    job.cpu_us = max(job.cpu_us, event.cpu_us)
    job.max_rss_kib = max(job.max_rss_kib, event.max_rss_kib)
    well = event.exit_code == 0 and event.signal is None and not event.why
    _end(state, job, JobState.DONE if well else JobState.EXIT, stamped.time_us)


def could_not_start(state: State, stamped: Stamped, event: JobCouldNotStart) -> None:
    """
    End a job whose program couldn't be started.
    """
    job = state.stored.jobs[stamped.stream]
    job.why = event.why
    _end(state, job, JobState.EXIT, stamped.time_us)


def ended(state: State, stamped: Stamped, event: JobEnded) -> None:
    """
    End a job without its worker.
    """
    job = state.stored.jobs[stamped.stream]
    job.why = event.why
    _end(state, job, JobState.EXIT, stamped.time_us)


def _end(state: State, job: JobRecord, after: JobState, now_us: int) -> None:
    if job.stream in state.live:
        state.capacity.give_back(job)
        del state.live[job.stream]
    else:
        _stop_waiting(state, job, now_us)
    move(job, after, now_us)
    job.finish_us = now_us
    state.kills.pop(job.stream, None)
    state.ended.append(job)


def kill_ordered(state: State, stamped: Stamped, event: JobKillOrdered) -> None:
    """
    Remember the order; it stands until its worker reports it done or the job has ended.
    """
    job = state.stored.jobs[stamped.stream]
    job.kill_order = event.order_number
    state.stored.workers[event.worker].last_order = event.order_number
    state.kills.pop(stamped.stream, None)


APPLY: Final[dict[Any, Any]] = {
    JobSubmitted: submitted,
    JobHeld: held,
    JobHoldLifted: hold_lifted,
    JobKillRequested: kill_requested,
    JobPended: pended,
    JobDispatched: dispatched,
    JobStarted: started,
    JobFinished: finished,
    JobCouldNotStart: could_not_start,
    JobEnded: ended,
    JobKillOrdered: kill_ordered,
}
