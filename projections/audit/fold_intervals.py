"""
The intervals of a job: its states, and what it waited for.
"""

from __future__ import annotations

from domain.envelope import Envelope
from domain.ids import job_of_stream
from domain.job_states import JobState, state_after
from projections.audit.fold_reasons import release
from projections.audit.fold_state import WAITING, FoldState, LiveJob
from projections.audit.rows.jobs import JobStateRow
from projections.audit.rows.reasons import WaitRow


def enter(state: FoldState, job: LiveJob, e: Envelope, to: str) -> None:
    """
    Bring a job to another state: its interval ends, and the next one begins.
    """
    row = job.row
    states = state.written.changed["job_states"]
    if job.state is not None:
        job.state.to_position, job.state.to_us = e.position, e.time_us
        states[job.state.job_id, job.state.from_position] = job.state
    row.state, row.state_since_us = to, e.time_us
    job.state = JobStateRow(row.job_id, e.position, e.time_us, to, row.attempt)
    states[row.job_id, e.position] = job.state
    if to != "PEND":
        release(state, e, row.job_id)
        end_plan(state, job, e)
        end_promise(state, job, e)
    if to not in WAITING:
        end_wait(state, job, e)


def happen(state: FoldState, job: LiveJob, e: Envelope, happening: str) -> bool:
    """
    Bring a job to the state after a happening; say whether that fits the state before it.
    """
    after = state_after(happening, JobState(job.row.state))
    if after is not None and after != job.row.state:
        enter(state, job, e, str(after))
    return after is not None


def begin_wait(
    state: FoldState, job: LiveJob, e: Envelope, kind: str, reason_set: int | None = None
) -> None:
    """
    Begin an interval of waiting for another cause.
    """
    end_wait(state, job, e)
    job.wait = WaitRow(job.row.job_id, e.position, e.time_us, job.row.queue, kind, reason_set)
    state.written.changed["waits"][job.row.job_id, e.position] = job.wait


def end_wait(state: FoldState, job: LiveJob, e: Envelope) -> None:
    """
    End the interval of waiting that is open, if one is.
    """
    if job.wait is None:
        return
    job.wait.to_position, job.wait.to_us = e.position, e.time_us
    state.written.changed["waits"][job.wait.job_id, job.wait.from_position] = job.wait
    job.wait = None


def end_plan(state: FoldState, job: LiveJob, e: Envelope) -> None:
    """
    End the time in which hosts were held for a job that suspends others, if they were.
    """
    if job.plan is None:
        return
    job.plan.to_position, job.plan.to_us = e.position, e.time_us
    state.written.changed["preemption_plans"][job.plan.job_id, job.plan.from_position] = job.plan
    job.plan = None


def end_promise(state: FoldState, job: LiveJob, e: Envelope) -> None:
    """
    End the time in which a start was promised to a job, if one was.
    """
    promise = job.promise
    if promise is None:
        return
    promise.to_position, promise.to_us = e.position, e.time_us
    state.written.changed["start_promises"][promise.job_id, promise.from_position] = promise
    job.promise = None


def touch(state: FoldState, job: LiveJob, e: Envelope) -> None:
    """
    Note that a job's row changed at an event.
    """
    job.row.last_position = e.position
    state.written.changed["jobs"][job.row.job_key] = job.row


def found(state: FoldState, e: Envelope) -> LiveJob | None:
    """
    Return the job whose event this is, noted as changed; None when its submission isn't in the log.
    """
    job = state.job(job_of_stream(e.stream))
    if job is not None:
        touch(state, job, e)
    return job
