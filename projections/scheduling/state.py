"""
The state of the core: what is stored, and the indexes that are derived from it.

Indexes are never stored: ``apply`` keeps them, ``restore`` rebuilds them, and the rebuilt must
equal the kept.
"""

from __future__ import annotations

from collections import deque

from domain.allocations import Allocation
from domain.cluster import ClusterSettings
from domain.errors import InvariantBroken, NotFound
from domain.ids import job_stream
from domain.job_states import ENDED, LIVE, JobState
from projections.scheduling.capacity import derive
from projections.scheduling.pickers.protocol import JobPicker
from projections.scheduling.records import (
    JobRecord,
    QueueRecord,
    ReasonSet,
    StoredState,
    WorkerRecord,
)
from projections.scheduling.request import Request, fingerprint_of, request_of


class State:
    """
    Hold the stored state and its indexes. Only ``apply`` changes it.

    Args:
        stored: What snapshots hold.
        picker: Learns of every job that begins or stops to wait.
    """

    def __init__(self, stored: StoredState, picker: JobPicker) -> None:
        self.stored = stored
        self.picker = picker
        self.capacity = derive(stored.workers.values(), self._live(stored))
        self.requests: dict[str, Request] = {}
        self.wanted: dict[str, Request] = {}
        self.hosts: list[WorkerRecord] = sorted(
            stored.workers.values(), key=lambda worker: worker.number
        )
        self.sets: dict[str, ReasonSet] = {
            kept.fingerprint: kept for kept in stored.reason_sets.values()
        }
        self.signatures: dict[int, tuple[object, ...]] = {}
        self.members: dict[int, int] = {}
        self.live: dict[str, JobRecord] = {}
        self.ended: deque[JobRecord] = deque()
        self.kills: dict[str, JobRecord] = {}
        self.waiting = 0
        self.volatile = False
        self._index_jobs()

    @staticmethod
    def _live(stored: StoredState) -> list[JobRecord]:
        return [job for job in stored.jobs.values() if job.state in LIVE]

    def _index_jobs(self) -> None:
        """
        Build every index over jobs, and tell the picker of every pending one.
        """
        self.picker.init(self)
        for queue in self.stored.queues.values():
            self.picker.on_queue_update(queue)
        ended = []
        for job in self.stored.jobs.values():
            if job.reason_set:
                self.members[job.reason_set] = self.members.get(job.reason_set, 0) + 1
            if job.kill_actor is not None and not job.kill_order and job.state not in ENDED:
                self.kills[job.stream] = job
            if job.state is JobState.PEND:
                self.waiting += 1
                self.picker.on_job_push(job)
            elif job.state in LIVE:
                self.live[job.stream] = job
            elif job.state in ENDED:
                ended.append(job)
        for job in sorted(ended, key=lambda job: (job.finish_us, job.number, job.index)):
            self.ended.append(job)

    # -- what pickers may ask

    def is_ready(self, job: JobRecord) -> bool:
        """
        Say whether the job may be tried in a session now: it pends, and its queue is active.
        """
        if job.state is not JobState.PEND or job.kill_actor is not None:
            return False
        return self.stored.queues[job.spec.queue].spec.is_active

    def queue_of(self, job: JobRecord) -> QueueRecord:
        """
        Return the job's queue.
        """
        return self.stored.queues[job.spec.queue]

    def fingerprint_of(self, job: JobRecord) -> str:
        """
        Return the job's request in canonical words.
        """
        return self.request_of(job).fingerprint

    def changes(self) -> int:
        """
        Return a count that rises with every change of capacity that can matter to a request that
        waits.

        As long as no request needs more than slots, only freed capacity matters.
        """
        if self.volatile:
            return self.capacity.freed + self.capacity.changed
        return self.capacity.freed

    def epoch_of(self, fingerprint: str) -> int:
        """
        Return a count that rises whenever the outcome, or the reasons, of a request may have
        changed.

        A request for slots alone that failed keeps its reasons until capacity is freed; one that
        also needs other resources may see its short hosts change with every change of capacity.
        """
        request = self.requests.get(fingerprint)
        if request is None or request.needs:
            return self.capacity.freed + self.capacity.changed
        return self.capacity.freed

    # -- looking up

    def request_of(self, job: JobRecord) -> Request:
        """
        Return the job's request, one object for all jobs that ask for the same.

        It is kept while the job waits, so that it is worked out once.
        """
        request = self.wanted.get(job.stream)
        if request is not None:
            return request
        fingerprint = fingerprint_of(job.spec)
        request = self.requests.get(fingerprint)
        if request is None:
            request = self.requests[fingerprint] = request_of(job.spec)
            self.volatile = self.volatile or bool(request.needs)
        if job.state is JobState.PEND:
            self.wanted[job.stream] = request
        return request

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
        Drop reason sets that have been empty since before a moment.
        """
        for number in sorted(self.stored.reason_sets):
            kept = self.stored.reason_sets[number]
            if kept.empty_since_us is not None and kept.empty_since_us <= before_us:
                del self.stored.reason_sets[number]
                del self.sets[kept.fingerprint]
                self.signatures.pop(number, None)
