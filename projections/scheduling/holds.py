"""
What is held for jobs that preempt others, and what they may no longer ask for.
"""

from __future__ import annotations

from domain.allocations import Allocation
from domain.ids import job_stream
from domain.job_states import JobState
from projections.scheduling.records import JobRecord, WorkerRecord
from projections.scheduling.state import State


def keep(state: State, job: JobRecord, allocation: Allocation | None) -> None:
    """
    Hold hosts for a pending job that preempts others, or nothing any more; it asks as one of its
    own meanwhile.
    """
    if job.keeps == allocation:
        return
    job.keeps = allocation
    if allocation is None:
        state.keepers.pop(job.stream, None)
        state.capacity.freed += 1
    else:
        state.keepers[job.stream] = job
    state.capacity.changed += 1
    _asks_anew(state, job)


def drop_kept(state: State, job: JobRecord) -> None:
    """
    Hold nothing any more for a job that stops to wait.
    """
    job.keeps = None
    state.keepers.pop(job.stream, None)
    state.capacity.freed += 1


def lose_kept(state: State, worker: WorkerRecord) -> None:
    """
    Hold nothing any more for jobs one of whose hosts is lost.
    """
    for job in list(state.keepers.values()):
        shares = job.keeps.shares() if job.keeps is not None else ()
        if any(number == worker.number for number, _, _ in shares):
            keep(state, job, None)


def note_spared(state: State, job_id: str) -> None:
    """
    Note that a job was stopped for this one and has gone on: it isn't stopped for it again, so this
    one no longer asks as others do.
    """
    job = state.stored.jobs.get(job_stream(job_id))
    if job is not None and not job.has_spared:
        job.has_spared = True
        _asks_anew(state, job)


def waits_to_be_ready(state: State, job: JobRecord) -> bool:
    """
    Say whether the picker doesn't know a job, because it isn't ready or nobody has looked yet.
    """
    stream = job.stream
    return stream in state.unready or stream in state.unchecked or stream in state.put_back


def _asks_anew(state: State, job: JobRecord) -> None:
    state.wanted.pop(job.stream, None)
    if job.state is JobState.PEND and not waits_to_be_ready(state, job):
        state.picker.on_job_push(job)
