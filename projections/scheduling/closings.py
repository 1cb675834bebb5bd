"""
The moments from which the windows of their queues close too soon for jobs that wait: what they are
told changes then, though nothing happens.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

from domain.job_states import JobState
from domain.windows import is_open, next_change_us
from projections.scheduling.records import JobRecord

if TYPE_CHECKING:
    from projections.scheduling.state import State


class Closings:
    """
    Hold these moments. An entry may be out of date, and is then passed over; each says itself
    whether it is.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, int, str]] = []
        self._new: dict[str, JobRecord] = {}

    def note(self, job: JobRecord) -> None:
        """
        Note a job that begins to wait: its moment is found when the time is known.
        """
        self._new[job.stream] = job

    def note_all(self, state: State) -> None:
        """
        Do so for all that wait in queues with run windows: one has opened, or is another.
        """
        queues = state.stored.queues
        self._heap.clear()
        for stream, job in state.stored.jobs.items():
            if job.state is JobState.PEND and queues[job.spec.queue].spec.run_windows is not None:
                self._new[stream] = job

    def are_due(self, state: State, now_us: int) -> bool:
        """
        Take out the moments that have come; say whether there were any.
        """
        self._settle(state, now_us)
        found = False
        while self._heap and self._heap[0][0] <= now_us:
            found = self._is_valid(state, self._heap[0]) or found
            heappop(self._heap)
        return found

    def first_us(self, state: State, now_us: int) -> int | None:
        """
        Return the first moment to come, None when there is none.
        """
        self._settle(state, now_us)
        while self._heap and not self._is_valid(state, self._heap[0]):
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def _settle(self, state: State, now_us: int) -> None:
        for stream, job in self._new.items():
            moment_us = _closing_us(state, job, now_us)
            if moment_us is not None and moment_us > now_us:
                heappush(self._heap, (moment_us, job.number, job.index, stream))
        self._new.clear()

    def _is_valid(self, state: State, entry: tuple[int, int, int, str]) -> bool:
        job = state.stored.jobs.get(entry[3])
        return job is not None and _closing_us(state, job, entry[0] - 1) == entry[0]


def _closing_us(state: State, job: JobRecord, at_us: int) -> int | None:
    """
    Return from when the window that is open at a moment closes too soon for a job, None when it
    never does: as ``readiness.closes_too_soon`` says it.
    """
    if job.state is not JobState.PEND or job.forced_on:
        return None
    queue, limit_us = state.queue_of(job).spec, state.longest_run_us(job)
    if queue.run_windows is None or queue.ignore_deadline or limit_us is None:
        return None
    if not is_open(queue.run_windows, at_us):
        return None
    closes_us = next_change_us(queue.run_windows, at_us)
    return None if closes_us is None else closes_us - limit_us + 1
