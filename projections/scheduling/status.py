"""
Why hosts take no jobs, whatever the job; and why a job waits by its own state alone.
"""

from __future__ import annotations

import numpy as np

from domain.ids import queue_stream
from domain.job_states import JobState
from domain.reasons import PendReason, ReasonCode
from projections.scheduling.placement.shortages import status_reasons
from projections.scheduling.records import JobRecord, WorkerRecord
from projections.scheduling.state import State

STATUS_CODES = (
    ReasonCode.LOAD_UNAVAIL,
    ReasonCode.SBD_UNREACH,
    ReasonCode.HOST_WINDOW,
    ReasonCode.HOST_DISABLED,
    ReasonCode.HOST_EXCLUSIVE,
    ReasonCode.HOST_LOCKED,
    ReasonCode.HOST_ACCPT_ONE,
)
"""Why hosts take no jobs, in the order in which causes are tested."""


def with_status(reasons: tuple[PendReason, ...], state: State) -> tuple[PendReason, ...]:
    """
    Return a placement's reasons after those of hosts that take no jobs; never empty.
    """
    status = state.capacity.status
    if state.told_status is None or state.told_status[0] != status:
        state.told_status = (status, tuple(status_of_hosts(state)))
    return (*state.told_status[1], *reasons)


def status_of_hosts(state: State) -> list[PendReason]:
    """
    Return the reasons of hosts that take no jobs; the first cause that holds counts, in LSF's
    order: left, unreachable, outside its windows, closed, exclusive, locked, just used.
    """
    capacity = state.capacity
    shut = np.flatnonzero(~capacity.takes_jobs).tolist()
    if capacity.hosts and not shut:
        return []
    masks = {code: np.zeros(capacity.hosts, np.bool_) for code in STATUS_CODES}
    for number in shut:
        code = _status_code(state, state.hosts[number])
        if code is not None:
            masks[code][number] = True
    return status_reasons(capacity, list(masks.items()))


def _status_code(state: State, worker: WorkerRecord) -> ReasonCode | None:
    if worker.left:
        return ReasonCode.LOAD_UNAVAIL
    if worker.is_silent:
        return ReasonCode.SBD_UNREACH
    shut = state.capacity.shut.get(worker.number)
    if shut is ReasonCode.HOST_WINDOW:
        return shut
    if worker.closed:
        return ReasonCode.HOST_DISABLED
    if state.capacity.exclusive[worker.number]:
        return ReasonCode.HOST_EXCLUSIVE
    return ReasonCode.HOST_LOCKED if worker.settings.is_locked else shut


def blocker_of(state: State, job: JobRecord) -> JobRecord | None:
    """
    Return the job that holds back the list of a job, None when none does.
    """
    stored, queue = state.stored, state.queue_of(job)
    stream = stored.blockers.get(queue_stream(queue.name), "")
    if not stream and queue.spec.picker in ("", state.settings().picker):
        stream = stored.blocker
    return stored.jobs.get(stream)


def why_waiting(state: State, job: JobRecord) -> tuple[bool, tuple[PendReason, ...]]:
    """
    Return whether a waiting job can never start as things are, and every recorded reason why it
    waits now.

    A job that is in no reason set waits for the list that holds it back, or hasn't been considered
    yet.
    """
    if job.state is JobState.PSUSP:
        return False, (PendReason(code=ReasonCode.USER_STOP),)
    if not state.queue_of(job).spec.is_active:
        return False, (PendReason(code=ReasonCode.QUE_INACT, detail=job.spec.queue),)
    if not state.windows_open.get(job.spec.queue, True):
        return False, (PendReason(code=ReasonCode.QUE_WINDOW, detail=job.spec.queue),)
    blocker = blocker_of(state, job)
    if job.reason_set:
        kept = state.stored.reason_sets[job.reason_set]
        return kept.never, kept.reasons
    if blocker is not None and blocker is not job:
        return False, (PendReason(code=ReasonCode.JOB_BEHIND, detail=f"job {blocker.job_id}"),)
    return False, (PendReason(code=ReasonCode(job.fresh)),)
