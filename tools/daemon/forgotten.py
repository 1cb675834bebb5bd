"""
Jobs that the state has forgotten, read back from the log, each from its own stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from domain.envelope import Envelope
from domain.errors import NotFound
from domain.events.jobs import (
    JobCouldNotStart,
    JobDispatched,
    JobEnded,
    JobFinished,
    JobStarted,
    JobSubmitted,
)
from domain.ids import job_stream, job_stream_of, split_job_id
from domain.job_states import JobState
from projections.scheduling.records import JobRecord
from projections.scheduling.state import State
from store.log import EventLog


def numbers(state: State) -> list[int]:
    """
    Return the numbers of jobs that are no longer in the state, newest first.
    """
    known = {job.number for job in state.stored.jobs.values()}
    if len(known) == state.stored.highest_job:
        return []
    return [number for number in range(state.stored.highest_job, 0, -1) if number not in known]


def read_job(log: EventLog, job_id: str) -> JobRecord:
    """
    Return an ended job as its events tell it.

    Raises:
        NotFound: The log knows no such job, or it has not ended.
    """
    number, index = split_job_id(job_id)
    job = _fold(number, index, log.read_stream(job_stream(job_id)))
    if job is None:
        raise NotFound("job_id", "must name a job that is known", job_id)
    return job


def read_jobs(
    log: EventLog, wanted: Iterable[int], fits: Callable[[JobRecord], bool], limit: int
) -> list[JobRecord]:
    """
    Return at most so many of the jobs with these numbers that fit, in the order given.
    """
    found: list[JobRecord] = []
    for number in wanted:
        if len(found) >= limit:
            break
        job = _fold(number, 0, log.read_stream(job_stream_of(number)))
        if job is not None and fits(job):
            found.append(job)
    return found


def _fold(number: int, index: int, envelopes: Iterator[Envelope]) -> JobRecord | None:
    """
    Return what the events of one stream make of a job, None unless it has ended.
    """
    job: JobRecord | None = None
    for envelope in envelopes:
        event, time_us = envelope.event, envelope.time_us
        if isinstance(event, JobSubmitted):
            job = JobRecord(
                number=number,
                index=index,
                stream=envelope.stream,
                spec=event.spec,
                submit_us=time_us,
                queue_us=time_us,
                since_us=time_us,
                key=event.key,
            )
        elif job is not None:
            _apply(job, event, time_us)
    return job if job is not None and job.finish_us is not None else None


def _apply(job: JobRecord, event: object, time_us: int) -> None:
    if isinstance(event, JobDispatched):
        job.attempt, job.allocation = event.attempt, event.allocation
        job.dispatch_us, job.start_us, job.finish_us = time_us, None, None
    elif isinstance(event, JobStarted):
        job.start_us, job.pid, job.process_group = time_us, event.pid, event.process_group
    elif isinstance(event, JobFinished):
        job.exit_code, job.signal, job.why = event.exit_code, event.signal, event.why
        job.cpu_us, job.max_rss_kib = event.cpu_us, event.max_rss_kib
        well = event.exit_code == 0 and event.signal is None and not event.why
        _end(job, JobState.DONE if well else JobState.EXIT, time_us)
    elif isinstance(event, JobCouldNotStart | JobEnded):
        job.why = event.why
        _end(job, JobState.EXIT, time_us)


def _end(job: JobRecord, state: JobState, time_us: int) -> None:
    job.state, job.since_us, job.finish_us = state, time_us, time_us
