"""
Look entities up by name, and keep which reason set each job is in.
"""

from __future__ import annotations

from typing import Final

from domain.allocations import Allocation
from domain.cluster import ClusterSettings
from domain.errors import InvariantBroken, NotFound
from domain.ids import job_stream
from domain.reasons import PendReason
from projections.scheduling.pickers.protocol import JobPicker
from projections.scheduling.records import (
    JobRecord,
    QueueRecord,
    ReasonSet,
    StoredState,
    WorkerRecord,
)
from projections.scheduling.watches import Watches

REASON_SETS_KEPT: Final = 1_000


class Lookups(Watches):
    """
    Find records, in host order too, and the reason sets by their requests.

    Args:
        stored: What snapshots hold.
        picker: Learns of every job that becomes ready.
    """

    def __init__(self, stored: StoredState, picker: JobPicker) -> None:
        super().__init__(stored, picker)
        self.hosts: list[WorkerRecord] = sorted(
            stored.workers.values(), key=lambda worker: worker.number
        )
        self.sets: dict[str, ReasonSet] = {
            kept.fingerprint: kept for kept in stored.reason_sets.values()
        }
        self.signatures: dict[int, tuple[object, ...]] = {}
        self.members: dict[int, int] = {}
        # Why hosts take no jobs, with the count of changes that it was worked out at.
        self.told_status: tuple[int, tuple[PendReason, ...]] | None = None

    def settings(self) -> ClusterSettings:
        """
        Return the cluster's settings.

        Raises:
            InvariantBroken: None were defined yet.
        """
        if self.stored.cluster is None:
            rule = "the cluster's settings are the log's first events"
            raise InvariantBroken(rule)
        return self.stored.cluster

    def job(self, job_id: str) -> JobRecord:
        """
        Return a job that the state still knows.

        Raises:
            NotFound: It knows none of that id.
        """
        job = self.stored.jobs.get(job_stream(job_id))
        if job is None:
            raise NotFound("job_id", "must name a job that is known", job_id)
        return job

    def worker(self, name: str) -> WorkerRecord:
        """
        Return a worker.

        Raises:
            NotFound: No worker of that name ever joined.
        """
        worker = self.stored.workers.get(name)
        if worker is None:
            raise NotFound("worker", "must name a worker that has joined", name)
        return worker

    def jobs_led_by(self, worker: WorkerRecord) -> list[JobRecord]:
        """
        Return the live jobs whose command runs on this host: it is the first of their allocation.
        """
        return [
            job
            for job in self.live.values()
            if job.allocation is not None and job.allocation.runs[0].first == worker.number
        ]

    def queue(self, name: str) -> QueueRecord:
        """
        Return a queue.

        Raises:
            NotFound: There is none of that name.
        """
        queue = self.stored.queues.get(name)
        if queue is None:
            raise NotFound("queue", "must name a queue that exists", name)
        return queue

    def queue_of(self, job: JobRecord) -> QueueRecord:
        """
        Return the job's queue.
        """
        return self.stored.queues[job.spec.queue]

    def has_victims(self, job: JobRecord) -> bool:
        """
        Say whether others have stopped for a job, or are about to: also when nothing is held for it
        any more, what they give back can let it start.
        """
        job_id = job.job_id
        return any(
            victim.preemptor == job_id and not victim.resume_order
            for victim in self.victims.values()
        )

    def host_names(self, allocation: Allocation) -> list[tuple[str, int]]:
        """
        Return (host name, tasks) in claim order.
        """
        return [(self.hosts[number].name, tasks) for number, tasks, _ in allocation.shares()]

    def next_version(self, stream: str) -> int:
        """
        Return the version that the next event of a stream gets.
        """
        return self.stored.versions.get(stream, 0) + 1

    # -- the set a job is in

    def leave_set(self, job: JobRecord, now_us: int) -> None:
        """
        Take a job out of its reason set; a set left empty is dropped later, when jobs are
        forgotten.
        """
        number = job.reason_set
        if not number:
            return
        job.reason_set = 0
        left = self.members[number] - 1
        if left:
            self.members[number] = left
            return
        del self.members[number]
        self.stored.reason_sets[number].empty_since_us = now_us

    def join_set(self, job: JobRecord, number: int) -> None:
        """
        Put a job into a reason set.
        """
        job.reason_set = number
        self.members[number] = self.members.get(number, 0) + 1
        self.stored.reason_sets[number].empty_since_us = None

    def drop_empty_sets(self, before_us: int) -> None:
        """
        Drop reason sets that have been empty since before a moment, once there are many: the next
        job that asks for the same then finds its set, and no event is needed.
        """
        if len(self.stored.reason_sets) <= REASON_SETS_KEPT:
            return
        for number in sorted(self.stored.reason_sets):
            kept = self.stored.reason_sets[number]
            if kept.empty_since_us is not None and kept.empty_since_us <= before_us:
                del self.stored.reason_sets[number]
                del self.sets[kept.fingerprint]
                self.signatures.pop(number, None)
