"""
Moments at which jobs must be looked at.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

from domain.job_states import ENDED, LIVE, WAITING, JobState
from domain.jobs import JobSpec
from domain.resreq.syntax import Requirement
from projections.scheduling.alternatives import delays_of
from projections.scheduling.forgetting import Forgetting
from projections.scheduling.records import JobRecord, StoredState


class Moments(Forgetting):
    """
    Hold when jobs must be looked at.

    Args:
        stored: The stored state.

    ``timers`` is a heap of (moment, job number, index, stream): an entry may be out of date, and is
    then passed over. ``delaying`` says how long queues keep new jobs back, where they do.
    """

    def __init__(self, stored: StoredState) -> None:
        super().__init__(stored)
        self.timers: list[tuple[int, int, int, str]] = []
        self.delaying: dict[str, int] = {}

    def run_limit_us(self, job: JobRecord) -> int | None:
        """
        Return the run limit in force; who knows queues says it. So do the next two.
        """
        raise NotImplementedError

    def longest_run_us(self, job: JobRecord) -> int | None:
        """
        Return how long the job may run by what ends it.
        """
        raise NotImplementedError

    def requirement_of(self, spec: JobSpec, *, is_checked: bool = True) -> Requirement | None:
        """
        Return the requirement that holds for a job.
        """
        raise NotImplementedError

    # -- setting timers

    def _set_timers(self, job: JobRecord, moments_us: Iterable[int]) -> None:
        for moment in moments_us:
            heappush(self.timers, (moment, job.number, job.index, job.stream))

    def set_waiting_timers(self, job: JobRecord) -> None:
        """
        Have a waiting job looked at when its begin time or deadline comes, the latter also while it
        is held; and when it is too late to start, since it couldn't finish before.
        """
        self._set_timers(job, self._waiting_moments_us(job))

    def set_alternative_timers(self, job: JobRecord) -> None:
        """
        Have a pending job looked at when its hidden alternatives open.
        """
        self._set_timers(job, self._openings_us(job))

    def set_orphan_timer(self, job: JobRecord) -> None:
        """
        Have a job looked at when it has waited in vain for as long as orphans may.
        """
        self._set_timers(job, self._orphan_moments_us(job))

    def set_hung_timer(self, job: JobRecord) -> None:
        """
        Have a job looked at when its worker has had long enough to end it.
        """
        self._set_timers(job, self._hung_moments_us(job))

    def set_live_timers(self, job: JobRecord) -> None:
        """
        Have a started job looked at when it reaches its run limit or deadline, or hangs.
        """
        # hot: once a job, of which few have such moments.
        moments = self._run_moments_us(job)
        if moments:
            self._set_timers(job, moments)

    # -- which they are

    def _moments_us(self, job: JobRecord) -> list[int]:
        """
        Return all moments at which a job must be looked at, as things are.
        """
        if job.state in LIVE:
            return self._run_moments_us(job)
        if job.state not in WAITING:
            return []
        opens_us = self._openings_us(job) if job.state is JobState.PEND else []
        return [*opens_us, *self._waiting_moments_us(job)]

    def _openings_us(self, job: JobRecord) -> list[int]:
        requirement = self.requirement_of(job.spec, is_checked=False)
        return [job.submit_us + delay_us for delay_us in delays_of(requirement)]

    def _waiting_moments_us(self, job: JobRecord) -> list[int]:
        begin_us, deadline_us = job.spec.begin_us, job.spec.deadline_us
        moments = [] if deadline_us is None else [deadline_us]
        if job.state is JobState.PSUSP:
            return moments
        moments += self._orphan_moments_us(job)
        if begin_us is not None:
            moments.append(begin_us)
        if job.spec.queue in self.delaying:
            moments.append(job.submit_us + self.delaying[job.spec.queue])
        limit_us = None if deadline_us is None else self.longest_run_us(job)
        if deadline_us is not None and limit_us is not None:
            moments.append(deadline_us - limit_us + 1)
        return moments

    def _orphan_moments_us(self, job: JobRecord) -> list[int]:
        cluster = self.stored.cluster
        if job.orphan_us is None or cluster is None:
            return []
        return [job.orphan_us + cluster.orphan_grace_us]

    def _run_moments_us(self, job: JobRecord) -> list[int]:
        moments = self._hung_moments_us(job) if job.kill_order else []
        limit_us = self.run_limit_us(job) if job.state is JobState.RUN else None
        if limit_us is not None:
            moments.append(job.since_us + max(0, limit_us - job.run_us))
        if job.spec.deadline_us is not None:
            moments.append(job.spec.deadline_us)
        return moments

    def _hung_moments_us(self, job: JobRecord) -> list[int]:
        cluster = self.stored.cluster
        if not job.kill_order or cluster is None or cluster.hung_after_us is None:
            return []
        return [job.kill_us + cluster.hung_after_us]

    # -- when one comes

    def first_timer_us(self) -> int | None:
        """
        Return the first moment at which a job must be looked at, None when no job waits for one.

        Entries that are out of date are dropped: a restored state doesn't have them, and must wake
        at the same moments.
        """
        while self.timers:
            moment, _, _, stream = self.timers[0]
            job = self.stored.jobs.get(stream)
            if job is not None and moment in self._moments_us(job):
                return moment
            heappop(self.timers)
        return None

    def due(self, now_us: int) -> list[JobRecord]:
        """
        Take out the jobs whose moment has come, in order of the moments, each once.
        """
        found: dict[str, JobRecord] = {}
        while self.timers and self.timers[0][0] <= now_us:
            stream = heappop(self.timers)[3]
            job = self.stored.jobs.get(stream)
            if job is not None and job.state not in ENDED:
                found[stream] = job
        return list(found.values())
