"""
First come, first served: greedy (``builtin_fcfs``) and strict (``strict_fcfs``).

Order: queue priority (high first), job priority (high first), queue time, job number, array index.

Equivalent to: return every ready job once, in that order (strict: until one can't be placed). Differs in: jobs that
ask for the same are one group. Once a group's job couldn't be placed, its other members that already know their
reasons are passed over until something may have changed for their request (``epoch_of``); members that don't know
theirs yet are still returned, so that they get them.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import final

from projections.scheduling.pickers.protocol import PickerView
from projections.scheduling.records import JobRecord, QueueRecord

Key = tuple[int, int, int, int, int, int]
Entry = tuple[Key, JobRecord]


class _Group:
    """
    Hold the pending jobs of one request: ``fresh`` ones don't know their reasons yet, ``known`` ones do.
    """

    __slots__ = ("fingerprint", "fresh", "known", "passed_over", "proved", "proved_still")

    def __init__(self, fingerprint: str) -> None:
        self.fingerprint = fingerprint
        self.fresh: list[Entry] = []
        self.known: list[Entry] = []
        self.proved = -1
        self.proved_still = False
        self.passed_over = False


class _Fcfs:
    """
    Keep the groups, and hand out their jobs in order.
    """

    name = ""
    version = 1
    is_strict = False

    def init(self, view: PickerView) -> None:
        self._view = view
        self._groups: dict[str, _Group] = {}
        self._keys: dict[str, Key] = {}
        self._heads: list[tuple[Key, str]] = []
        self._current: tuple[_Group, Key] | None = None
        self._blocker: JobRecord | None = None
        self._pushes = 0

    def fini(self) -> None:
        self._groups.clear()
        self._keys.clear()

    # -- jobs come and go

    def on_queue_update(self, queue: QueueRecord) -> None:
        for group in list(self._groups.values()):
            entries = [*group.fresh, *group.known]
            if entries and entries[0][1].spec.queue == queue.name:
                jobs = [job for key, job in entries if self._keys.get(job.stream) == key]
                del self._groups[group.fingerprint]
                for job in jobs:
                    self.on_job_push(job)

    def on_job_push(self, job: JobRecord) -> None:
        fingerprint = self._view.fingerprint_of(job)
        group = self._groups.get(fingerprint)
        if group is None:
            group = self._groups[fingerprint] = _Group(fingerprint)
        self._pushes += 1
        key = self._key_of(job)
        self._keys[job.stream] = key
        heappush(group.known if job.reason_set else group.fresh, (key, job))

    def on_job_state_change(self, job: JobRecord) -> None:
        self._keys.pop(job.stream, None)

    def on_job_update(self, job: JobRecord) -> None:
        self.on_job_push(job)

    def _key_of(self, job: JobRecord) -> Key:
        """
        Return the place in order; the count of pushes last tells a job pushed again from its old entry.
        """
        priority = self._view.queue_of(job).spec.priority
        wish = -job.spec.user_priority
        return (-priority, wish, job.queue_us, job.number, job.index, self._pushes)

    # -- a session

    def begin_session(self) -> None:
        self._heads = []
        self._current = None
        self._blocker = None
        for fingerprint in list(self._groups):
            group = self._groups[fingerprint]
            group.proved_still = group.proved == self._view.epoch_of(fingerprint)
            group.passed_over = group.proved_still and not self.is_strict
            key = self._next_key(group)
            if key is not None:
                self._heads.append((key, fingerprint))
            elif not group.known and not group.fresh:
                del self._groups[fingerprint]
        heapify(self._heads)

    def next_job(self) -> JobRecord | None:
        if self._blocker is not None and self.is_strict:
            return None
        while self._heads:
            key, fingerprint = heappop(self._heads)
            group = self._groups[fingerprint]
            job = self._head(group, key)
            if job is not None and self._view.is_ready(job):
                if self.is_strict and group.proved_still and job.reason_set:
                    self._blocker = job
                    return None
                self._current = (group, key)
                return job
        return None

    def on_dispatch(self, job: JobRecord) -> None:
        group = self._taken()
        key = self._next_key(group)
        if key is not None:
            heappush(self._heads, (key, group.fingerprint))

    def on_pend(self, job: JobRecord) -> None:
        group = self._taken()
        self._blocker = job
        group.proved = self._view.epoch_of(group.fingerprint)
        group.passed_over = True
        if group.fresh and group.fresh[0][1] is job:
            heappush(group.known, heappop(group.fresh))
        key = self._next_key(group)
        if key is not None:
            heappush(self._heads, (key, group.fingerprint))

    def end_session(self) -> None:
        self._heads = []
        self._current = None

    def blocker(self) -> JobRecord | None:
        if self._blocker is None or not self.is_strict or len(self._keys) < 2:
            return None
        return self._blocker

    # -- inside

    def _taken(self) -> _Group:
        assert self._current is not None, "on_dispatch and on_pend follow next_job"
        return self._current[0]

    def _next_key(self, group: _Group) -> Key | None:
        """
        Return the key of the group's next job to try, None when none needs trying.
        """
        fresh = self._first(group.fresh)
        if group.passed_over:
            return fresh
        known = self._first(group.known)
        if fresh is None or known is None:
            return known if fresh is None else fresh
        return min(fresh, known)

    def _first(self, heap: list[Entry]) -> Key | None:
        """
        Return the first key of a heap, after dropping jobs that have gone.
        """
        keys = self._keys
        while heap:
            key, job = heap[0]
            if keys.get(job.stream) == key:
                return key
            heappop(heap)
        return None

    def _head(self, group: _Group, key: Key) -> JobRecord | None:
        for heap in (group.fresh, group.known):
            if heap and heap[0][0] == key:
                return heap[0][1]
        return None


@final
class BuiltinFcfs(_Fcfs):
    """
    Be greedy: a job that can't be placed holds nobody back.
    """

    name = "builtin_fcfs"


@final
class StrictFcfs(_Fcfs):
    """
    Be strict: a job that can't be placed holds back all later ones.
    """

    name = "strict_fcfs"
    is_strict = True
