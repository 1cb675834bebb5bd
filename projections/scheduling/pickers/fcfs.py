"""
First come, first served: greedy (``builtin_fcfs``) and strict (``strict_fcfs``).

Order: queue priority (high first), job priority (high first), place (as moved by top and bottom),
queue time, job number, array index.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import final

from projections.scheduling.pickers.grouped import GroupedPicker, Heap, Order
from projections.scheduling.pickers.protocol import PickerView
from projections.scheduling.pickers.waiting import NO_PROOF, key_of, named_keys, proof_of
from projections.scheduling.records import JobRecord, QueueRecord


@final
class BuiltinFcfs(GroupedPicker):
    """
    Be greedy: a job that can't be placed holds nobody back. The order is the usual one.
    """

    name = "builtin_fcfs"
    version = 1


@final
class StrictFcfs:
    """
    Be strict: a job that can't be placed holds back all later ones.

    Equivalent to: return every ready job once, in order, until one couldn't be placed. Differs in:
    a first job that proved impossible, and for which nothing can have changed since (``epoch_of``),
    isn't tried again.
    """

    name = "strict_fcfs"
    version = 1

    def init(self, view: PickerView) -> None:
        self._view = view
        self._order = Order(lambda job: key_of(view, job))
        self._heap: Heap = []
        self._aside: Heap = []
        self._blocker: JobRecord | None = None
        self._proved = NO_PROOF

    def fini(self) -> None:
        self._heap.clear()

    def on_queue_update(self, queue: QueueRecord) -> None:
        for job in self._order.waiting(self._heap):
            if job.spec.queue == queue.name:
                self._order.push(self._heap, job)

    def on_job_push(self, job: JobRecord) -> None:
        # Also of those that aren't tried for long the core then knows what they ask for.
        self._view.fingerprint_of(job)
        self._order.push(self._heap, job)

    def on_job_state_change(self, job: JobRecord) -> None:
        self._order.keys.pop(job.stream, None)

    def on_job_update(self, job: JobRecord) -> None:
        self.on_job_push(job)

    def begin_session(self) -> None:
        self._blocker = None

    def next_job(self) -> JobRecord | None:
        while self._blocker is None and (entry := self._order.first(self._heap)) is not None:
            job = entry[1]
            if not self._view.is_ready(job):
                self._aside.append(heappop(self._heap))
                continue
            is_same = self._proved[0] == job.stream and job.reason_set
            if is_same and self._proved == proof_of(self._view, job):
                self._blocker = job
                return None
            return job
        return None

    def on_dispatch(self, job: JobRecord) -> None:
        """
        Do nothing: the job stopped to wait, so its entry is passed over.
        """

    def on_pend(self, job: JobRecord) -> None:
        self._blocker = job
        self._proved = proof_of(self._view, job)

    def end_session(self) -> None:
        for entry in self._aside:
            heappush(self._heap, entry)
        self._aside = []

    def order_keys(self, job: JobRecord) -> list[tuple[str, int | str]]:
        """
        Return by name what gives a job its place in the order.
        """
        return named_keys(self._view, job)

    def blocker(self) -> JobRecord | None:
        return self._blocker if len(self._order.keys) > 1 else None

    def blocked_by(self) -> JobRecord | None:
        return self._blocker
