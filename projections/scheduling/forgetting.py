"""
Indexes over jobs that have ended: which can be forgotten, and on which others still wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

from domain.ids import job_stream_of
from domain.job_states import ENDED
from projections.scheduling.records import JobRecord, StoredState
from projections.scheduling.run_ends import RunEnds


class Forgetting(RunEnds):
    """
    Hold what may be forgotten.

    Args:
        stored: The stored state.

    ``children`` maps a job's number to the waiting jobs that depend on it. ``ended`` is a heap of
    (finish, number): jobs and whole arrays that can be forgotten; ``ripe`` holds those that ended
    long enough ago.
    """

    def __init__(self, stored: StoredState) -> None:
        super().__init__()
        self.stored = stored
        self.children: dict[int, dict[str, JobRecord]] = {}
        self.ended: list[tuple[int, int]] = []
        self.ripe: dict[int, int] = {}
        # By array, so many of the first elements had ended when it was looked at last.
        self._ended_first: dict[int, int] = {}

    # hot: an array that is killed comes here once for each element.
    def note_ended(self, job: JobRecord) -> None:
        """
        Remember when a job, or the last element of its array, ended.

        Equivalent to: a look at all elements. Differs in: while one that hadn't ended still hasn't,
        nothing else is looked at.
        """
        array = self.stored.arrays.get(job.number) if job.index else None
        if array is None:
            heappush(self.ended, (job.finish_us or 0, job.number))
            return
        jobs, elements = self.stored.jobs, array.elements
        # Those before may have been put back since: once all behind have ended, all are looked at.
        for begin in (self._ended_first.get(job.number, 0), 0):
            for at in range(begin, len(elements)):
                if not _is_at_its_end(jobs[elements[at]]):
                    self._ended_first[job.number] = at
                    return
        self._ended_first.pop(job.number, None)
        heappush(self.ended, (max(jobs[each].finish_us or 0 for each in elements), job.number))

    def forgettable(self, before_us: int, batch: int) -> list[int]:
        """
        Return the numbers of jobs that ended before a moment and on which nobody waits, rising;
        nothing when there are fewer than a batch.
        """
        while self.ended and self.ended[0][0] <= before_us:
            finish_us, number = heappop(self.ended)
            self.ripe[number] = finish_us
        if len(self.ripe) < batch:
            return []
        numbers = sorted(number for number in self.ripe if self._is_over(number, before_us))
        return numbers if len(numbers) >= batch else []

    def _is_over(self, number: int, before_us: int) -> bool:
        """
        Say whether a job is still ended since before a moment, and has no child that waits.
        """
        if number in self.children:
            return False
        jobs, array = self.stored.jobs, self.stored.arrays.get(number)
        if array is not None:
            elements = [jobs[stream] for stream in array.elements]
            return all(_has_ended(job, before_us) for job in elements)
        job = jobs.get(job_stream_of(number))
        return job is not None and _has_ended(job, before_us)

    def streams_of(self, number: int) -> Sequence[str]:
        """
        Return the streams of a job, or of every element of an array, that the state knows.
        """
        array = self.stored.arrays.get(number)
        if array is not None:
            return array.elements
        stream = job_stream_of(number)
        return (stream,) if stream in self.stored.jobs else ()

    def drop_jobs(self, numbers: set[int]) -> None:
        """
        Forget jobs and whole arrays.
        """
        # Normally they are all ripe; a core that only folds a log makes nobody ripe.
        are_ripe = self.ripe.keys() >= numbers
        jobs, versions, arrays = self.stored.jobs, self.stored.versions, self.stored.arrays
        for number in sorted(numbers):
            stream = job_stream_of(number)
            array = arrays.pop(number, None) if arrays else None
            for each in (stream,) if array is None else array.elements:
                jobs.pop(each, None)
                versions.pop(each, None)
            if array is not None:
                versions.pop(stream, None)
            self.ripe.pop(number, None)
            self._ended_first.pop(number, None)
        if not are_ripe:
            self.ended = sorted(entry for entry in self.ended if entry[1] not in numbers)


def _is_at_its_end(job: JobRecord) -> bool:
    return job.state in ENDED and not job.requeue_why


def _has_ended(job: JobRecord, before_us: int) -> bool:
    return _is_at_its_end(job) and (job.finish_us or 0) <= before_us
