"""
Hosts that take no jobs for a time or not those of lower queues, and hosts whose load is too much
for jobs that run there.
"""

from __future__ import annotations

from domain.allocations import Allocation
from domain.job_states import JobState
from domain.reasons import ReasonCode
from domain.resources import Catalogue
from domain.thresholds import LoadThreshold, is_beyond
from domain.windows import is_open, next_change_us
from projections.scheduling.load_bounds import lower_is_better
from projections.scheduling.pickers.protocol import JobPicker
from projections.scheduling.records import JobRecord, StoredState, WorkerRecord
from projections.scheduling.sight import Sight


class ShutHosts(Sight):
    """
    Note what the moment and the load make of hosts.

    ``timed_hosts`` are those that a moment may open or shut; ``pressed`` those whose load is beyond
    what stops the jobs of the host itself or of some queue.

    Args:
        stored: What snapshots hold.
        picker: Learns of every job that becomes ready.
    """

    def __init__(self, stored: StoredState, picker: JobPicker) -> None:
        super().__init__(stored, picker)
        self.timed_hosts: dict[str, WorkerRecord] = {}
        self._stops: list[LoadThreshold] = []
        self._barring: dict[int, tuple[JobRecord, ...]] = {}

    def note_host(self, worker: WorkerRecord, now_us: int) -> None:
        """
        Note whether a host is shut for a time: outside its windows, or because a job has just been
        started there.
        """
        number, shut = worker.number, self.capacity.shut
        code = self._shut_for(worker, now_us)
        if code is None:
            shut.pop(number, None)
        else:
            shut[number] = code
        if worker.settings.dispatch_windows is None and code is None:
            self.timed_hosts.pop(worker.name, None)
        else:
            self.timed_hosts[worker.name] = worker

    def _shut_for(self, worker: WorkerRecord, now_us: int) -> ReasonCode | None:
        windows = worker.settings.dispatch_windows
        if windows is not None and not is_open(windows, now_us):
            return ReasonCode.HOST_WINDOW
        interval_us = self.stored.cluster.accept_interval_us if self.stored.cluster else 0
        if worker.accepted_us is not None and now_us < worker.accepted_us + interval_us:
            return ReasonCode.HOST_ACCPT_ONE
        return None

    def note_hosts(self, now_us: int) -> None:
        """
        Note which hosts are shut for a time now.
        """
        for worker in list(self.timed_hosts.values()):
            before = self.capacity.shut.get(worker.number)
            self.note_host(worker, now_us)
            if self.capacity.shut.get(worker.number) != before:
                self.capacity.set_status(worker)

    def pace_hosts(self, allocation: Allocation, now_us: int) -> None:
        """
        Shut the hosts of a job that has just been started for a time, where starts are paced.
        """
        if self.stored.cluster is None or not self.stored.cluster.accept_interval_us:
            return
        for number, _, _ in allocation.shares():
            worker = self.hosts[number]
            worker.accepted_us = now_us
            self.note_host(worker, now_us)
            self.capacity.set_status(worker)

    def host_moments_us(self, now_us: int) -> list[int]:
        """
        Return the moments at which hosts open or shut for a time.
        """
        found = []
        interval_us = self.stored.cluster.accept_interval_us if self.stored.cluster else 0
        for worker in self.timed_hosts.values():
            windows = worker.settings.dispatch_windows
            change = None if windows is None else next_change_us(windows, now_us)
            if change is not None:
                found.append(change)
            if worker.accepted_us is not None:
                found.append(worker.accepted_us + interval_us)
        return found

    # -- hosts of suspended jobs

    def barring(self, queue: str) -> tuple[JobRecord, ...]:
        """
        Return the jobs on whose hosts a queue's jobs can't start: those that were stopped for
        others, and whose queue is as high. They go on before.
        """
        if not self.victims:
            return ()
        own = self.stored.queues[queue].spec.priority
        found = self._barring.get(own)
        if found is None:
            found = self._barring[own] = tuple(
                job
                for job in self.victims.values()
                if job.state is JobState.SSUSP
                and self.stored.queues[job.spec.queue].spec.priority >= own
            )
        return found

    def note_suspensions(self) -> None:
        """
        Note that a job is suspended by the system, or no longer: other hosts may be open.
        """
        self._barring.clear()
        self.capacity.freed += 1
        self.capacity.changed += 1

    # -- load

    @property
    def catalogue(self) -> Catalogue:
        """
        Return the resources that a requirement may name; who knows them says which.
        """
        raise NotImplementedError

    def note_loads(self) -> None:
        """
        Note which hosts' load is too much: what bounds it has changed.
        """
        self._stops = [
            each
            for queue in self.stored.queues.values()
            for each in queue.spec.thresholds
            if each.stop_milli is not None
        ]
        self.has_stop_conditions = any(
            queue.spec.stop_when is not None for queue in self.stored.queues.values()
        )
        self.pressed.clear()
        for worker in self.hosts:
            self.note_load(worker)

    def note_load(self, worker: WorkerRecord) -> None:
        """
        Note whether a host's load is too much for jobs that run there.
        """
        stops = worker.settings.thresholds
        if not (stops or self._stops or self.pressed):
            return
        if any(self.is_too_much(worker, each) for each in (*stops, *self._stops)):
            self.pressed[worker.number] = worker
        else:
            self.pressed.pop(worker.number, None)

    def is_too_much(self, worker: WorkerRecord, threshold: LoadThreshold) -> bool:
        """
        Say whether a host's load, as it reported it, is beyond what stops jobs.
        """
        return self._is_beyond(worker, threshold.index, threshold.stop_milli)

    def is_light(self, worker: WorkerRecord, threshold: LoadThreshold) -> bool:
        """
        Say whether a host's load, as it reported it, lets stopped jobs go on.
        """
        is_ceiling = lower_is_better(threshold.index, self.catalogue)
        bound = threshold.stricter(is_ceiling=is_ceiling)
        return not self._is_beyond(worker, threshold.index, bound)

    def _is_beyond(self, worker: WorkerRecord, index: str, bound: int | None) -> bool:
        load = worker.load.get(index)
        if load is None or bound is None:
            return False
        return is_beyond(load, bound, is_ceiling=lower_is_better(index, self.catalogue))
