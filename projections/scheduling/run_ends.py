"""
When running jobs will have ended, in order: what pickers that look ahead ask for.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Final

from domain.job_states import JobState
from projections.scheduling.foreseen import Release
from projections.scheduling.records import JobRecord

MOVES_MAX: Final = 4_096
"""Whoever hasn't asked for so many moves looks at all running jobs again."""


class RunEnds:
    """
    Hold the live jobs, and when those of them that run will have ended.

    ``releases`` says in order when they will and how many slots they give back then: (moment, job
    number, index, slots, stream), of those whose run limit or estimate is known, and ``release_of``
    the same by stream. Both are kept from when somebody first asks, which most pickers never do.
    ``runs_moved`` rises with whatever may change them; which jobs it was about is kept from when
    somebody first asks, too.
    """

    def __init__(self) -> None:
        self.live: dict[str, JobRecord] = {}
        self.runs_moved = 0
        self._releases: list[Release] = []
        self._release_of: dict[str, Release] = {}
        self._keeps_releases = False
        self._moves: list[str] | None = None
        self._moves_before = 0

    def planned_run_us(self, job: JobRecord) -> int | None:
        """
        Return how long a job is planned to run, None when nobody knows; who knows queues says it.
        """
        raise NotImplementedError

    def note_run(self, job: JobRecord) -> None:
        """
        Note when a running job will have ended.
        """
        if not self._keeps_releases:
            self.runs_moved += 1
            return
        self.note_run_over(job)
        release = self._release(job)
        if release is not None:
            self._release_of[job.stream] = release
            insort(self._releases, release)

    def note_run_over(self, job: JobRecord) -> None:
        """
        Note that a job no longer runs.
        """
        self.runs_moved += 1
        if self._moves is not None:
            self._moves.append(job.stream)
            if len(self._moves) >= MOVES_MAX:
                self._moves, self._moves_before = [], self.runs_moved
        if not self._keeps_releases:
            return
        release = self._release_of.pop(job.stream, None)
        if release is not None:
            del self._releases[bisect_left(self._releases, release)]

    def _release(self, job: JobRecord) -> Release | None:
        """
        Return when a running job will have ended, None when nobody knows.
        """
        run_us = self.planned_run_us(job)
        if run_us is None or job.allocation is None:
            return None
        end_us = job.since_us + run_us - job.run_us
        return (end_us, job.number, job.index, job.allocation.tasks(), job.stream)

    def moved_since(self, moved: int | None) -> list[str] | None:
        """
        Return the streams of the jobs that ``runs_moved`` has risen with since it was so much; None
        when that isn't known any more, or it was never asked.
        """
        self._keep_releases()
        if self._moves is None or moved is None or moved < self._moves_before:
            if self._moves is None:
                self._moves, self._moves_before = [], self.runs_moved
            return None
        return self._moves[moved - self._moves_before :]

    @property
    def releases(self) -> list[Release]:
        """
        Return when running jobs will have ended, in order.
        """
        self._keep_releases()
        return self._releases

    @property
    def release_of(self) -> dict[str, Release]:
        """
        Return the same by stream.
        """
        self._keep_releases()
        return self._release_of

    def _keep_releases(self) -> None:
        """
        Work out when running jobs will have ended, once; from then on it is kept.
        """
        if self._keeps_releases:
            return
        self._keeps_releases = True
        for job in self.live.values():
            if job.state is JobState.RUN:
                self.note_run(job)
