"""
Jobs that the state has forgotten, read back from the log, each from its own stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from domain.envelope import Envelope
from domain.errors import NotFound
from domain.event import Event
from domain.events.jobs import (
    JobCouldNotStart,
    JobDispatched,
    JobEnded,
    JobFinished,
    JobModified,
    JobRequeued,
    JobStarted,
    JobSubmitted,
    JobSwitched,
)
from domain.ids import job_stream_of, split_job_id
from domain.job_states import JobState
from domain.jobs import ExitRules
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


class Archive:
    """
    Read ended jobs from a log.

    Args:
        log: Where they are.
        rules: Returns what the exit values of a job mean.
    """

    def __init__(self, log: EventLog, rules: Callable[[JobRecord], ExitRules]) -> None:
        self._log = log
        self._rules = rules

    def job(self, job_id: str) -> JobRecord:
        """
        Return an ended job as its events tell it.

        Raises:
            NotFound: The log knows no such job, or it has not ended.
        """
        number, index = split_job_id(job_id)
        found = [job for job in self._of_number(number) if job.index == index]
        if not found:
            raise NotFound("job_id", "must name a job that is known", job_id)
        return found[0]

    def jobs(
        self, wanted: Iterable[int], fits: Callable[[JobRecord], bool], limit: int
    ) -> list[JobRecord]:
        """
        Return at most so many of the ended jobs with these numbers that fit, in the order given.
        """
        fitting = (job for number in wanted for job in self._of_number(number) if fits(job))
        return list(islice(fitting, limit))

    def _of_number(self, number: int) -> Iterator[JobRecord]:
        """
        Yield the ended job of a number, or the ended elements of an array, last one first.
        """
        envelopes = list(self._log.read_stream(job_stream_of(number)))
        if not envelopes or not isinstance(envelopes[0].event, JobSubmitted):
            return
        array = envelopes[0].event.spec.array
        for index in (0,) if array is None else reversed(array.indices()):
            stream = job_stream_of(number, index)
            rest = self._log.read_stream(stream) if index else envelopes[1:]
            job = _new(number, index, stream, envelopes[0])
            for envelope in rest:
                self._apply(job, envelope.event, envelope.time_us)
            if job.finish_us is not None:
                yield job

    def _apply(self, job: JobRecord, event: Event, time_us: int) -> None:
        if isinstance(event, JobDispatched):
            job.attempt, job.allocation = event.attempt, event.allocation
            job.dispatch_us = time_us
        elif isinstance(event, JobStarted):
            job.start_us, job.pid, job.process_group = time_us, event.pid, event.process_group
        elif isinstance(event, JobModified):
            job.spec = event.spec
        elif isinstance(event, JobSwitched):
            job.spec = job.spec.model_copy(update={"queue": event.queue})
        elif isinstance(event, JobRequeued):
            job.allocation = job.start_us = job.finish_us = job.exit_code = job.signal = None
            job.why = ""
            job.requeues += 1
        else:
            self._end(job, event, time_us)

    def _end(self, job: JobRecord, event: Event, time_us: int) -> None:
        if not isinstance(event, JobFinished | JobCouldNotStart | JobEnded):
            return
        well = False
        job.why = event.why
        if isinstance(event, JobFinished):
            job.exit_code, job.signal = event.exit_code, event.signal
            job.cpu_us = max(job.cpu_us, event.cpu_us)
            job.max_rss_kib = max(job.max_rss_kib, event.max_rss_kib)
            is_success = event.exit_code in (0, *self._rules(job).success)
            well = is_success and event.signal is None and not event.why
        job.state = JobState.DONE if well else JobState.EXIT
        job.since_us = job.finish_us = time_us


def _new(number: int, index: int, stream: str, submitted: Envelope) -> JobRecord:
    event, time_us = submitted.event, submitted.time_us
    assert isinstance(event, JobSubmitted)
    return JobRecord(
        number=number,
        index=index,
        stream=stream,
        spec=event.spec,
        key=event.key,
        submit_us=time_us,
        queue_us=time_us,
        since_us=time_us,
    )
