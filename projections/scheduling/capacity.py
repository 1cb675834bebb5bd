"""
What hosts have left, in columns: one integer array per resource, indexed by host number.

All of it is derived from workers and live jobs, kept up to date by ``apply`` and rebuilt after a
restore; the rebuilt columns must equal the kept ones. Amounts are thousandths, slots are whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from domain.allocations import Allocation, HostRun, Instances
from domain.errors import InvariantBroken
from domain.reasons import ReasonCode
from domain.resources import ResourceDescriptor
from projections.scheduling.facts import HostFacts, Vocabulary
from projections.scheduling.limits import Limits
from projections.scheduling.load_bounds import HostBounds
from projections.scheduling.placement.selecting import Selector
from projections.scheduling.placement.stopping import Stopping
from projections.scheduling.pools import Pools
from projections.scheduling.records import JobRecord, StoredState, WorkerRecord
from projections.scheduling.resource_column import NOTHING_REPORTED, ResourceColumn
from projections.scheduling.touches import Touches
from projections.scheduling.unit_shares import UnitShares

Column = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

FEW_HOSTS = 6
"""So many neighbours are changed one by one in the time that arrays need for any number of them."""


class Capacity:
    """
    Hold the free slots and the resources of all hosts.

    ``freed`` counts what may let a job start that couldn't before; ``claimed`` counts the exclusive
    jobs that have shut hosts to others; ``changed`` counts every change of capacity; ``let_go``
    counts what was held for jobs and no longer is; ``status`` counts changes of which hosts there
    are and which of them take jobs. ``is_plain`` says that every host takes jobs and none is
    oversubscribed, so that usable slots are just the free ones. ``aside`` counts the jobs that have
    been stopped.
    """

    def __init__(self) -> None:
        self.hosts = 0
        self.is_plain = True
        self.slots: Column = np.zeros(0, np.int64)
        self._used: Column = np.zeros(0, np.int64)
        self._is_used_behind = False
        self.takes_jobs: Mask = np.zeros(0, np.bool_)
        self.usable: Column = np.zeros(0, np.int64)
        self._usable_cells = self.usable.data
        self.usable_total = 0
        self.resources: dict[str, ResourceColumn] = {}
        self.freed = 0
        self.claimed = 0
        self.let_go = 0
        self.changed = 0
        self.status = 0
        self.workers: list[WorkerRecord] = []
        self.facts: list[HostFacts] = []
        self.names = Vocabulary()
        self.described = 0
        self.revision: Column = np.zeros(0, np.int64)
        self.loads: dict[str, Column] = {}
        self.load_bounds = HostBounds()
        self.pools = Pools()
        self.exclusive: Column = np.zeros(0, np.int64)
        self.units = UnitShares()
        self.shut: dict[int, ReasonCode] = {}
        self.touches = Touches()
        self.selector = Selector(self)
        self.stopping = Stopping(self)
        self.reports = 0
        self.reported: Column = np.zeros(0, np.int64)
        self.limits = Limits(StoredState(), self)
        self.aside = 0
        self.released: frozenset[str] = frozenset()

    @property
    def used(self) -> Column:
        """
        Return the slots that jobs have on each host.

        As long as usable slots are just the free ones, it is worked out from these when somebody
        asks. Equivalent to: adding every job's slots as it comes, and taking them off as it goes.
        """
        if self._is_used_behind:
            np.subtract(self.slots, self.usable, out=self._used)
            self._is_used_behind = False
        return self._used

    @property
    def vocabulary(self) -> int:
        """
        Return a count that rises when the names that hosts use change.
        """
        return self.names.changes

    def descriptors(self) -> list[ResourceDescriptor]:
        """
        Return what the names are that hosts use.
        """
        return self.names.descriptors()

    # -- hosts

    def set_host(self, worker: WorkerRecord) -> None:
        """
        Take over what a worker has, and whether it takes jobs.
        """
        if worker.number >= self.hosts:
            self._grow(worker.number + 1)
        number = worker.number
        self._describe(worker)
        # Slots in use must be known before those of a host change.
        self._used = self.used
        self.slots[number] = worker.slots
        for column in self.resources.values():
            column.total[number] = 0
            column.is_real[number] = False
            column.present[number] = False
        for resource in worker.resources:
            column = self.resources.setdefault(resource.name, ResourceColumn(self.hosts))
            column.total[number] = resource.total_milli
            column.is_real[number] = resource.is_real
            column.present[number] = True
        self.set_thresholds(worker)
        self.set_load(worker)
        self.set_status(worker)

    def set_thresholds(self, worker: WorkerRecord) -> None:
        """
        Take over which load is too much for the worker.
        """
        thresholds = worker.settings.thresholds
        if thresholds or self.load_bounds:
            self.load_bounds.set_host(worker.number, self.hosts, thresholds)

    def _describe(self, worker: WorkerRecord) -> None:
        """
        Take over what the host is.
        """
        number = worker.number
        facts = HostFacts(worker)
        self.units.set_host(number, facts.units)
        if number < len(self.facts):
            self.names.add(self.facts[number], -1)
            self.facts[number] = facts
            self.workers[number] = worker
        else:
            self.facts.append(facts)
            self.workers.append(worker)
        self.names.add(facts, 1)
        self.described += 1
        self.revision[number] = self.described
        self.pools.add_host(number, worker.name)

    def set_shared(self, descriptor: ResourceDescriptor, live: Iterable[Allocation]) -> None:
        """
        Take over the totals of a shared resource.
        """
        self.pools.define(descriptor, live)
        self.status += 1
        self.freed += 1
        self.changed += 1

    def set_status(self, worker: WorkerRecord) -> None:
        """
        Take over whether the worker takes jobs; a host that runs an exclusive job takes none.
        """
        number = worker.number
        self.takes_jobs[number] = self._is_open(number)
        self._settle_slots(worker.number, worker.number + 1)
        self.is_plain = self._would_be_plain()
        self.status += 1
        self.freed += 1
        self.changed += 1

    def _is_open(self, number: int) -> bool:
        return not self.exclusive[number] and self.is_fit(number)

    def is_fit(self, number: int) -> bool:
        """
        Say whether a host takes jobs if no exclusive job is on it.
        """
        return number not in self.shut and self.workers[number].takes_jobs

    def set_load(self, worker: WorkerRecord) -> None:
        """
        Take over what the worker reported as free.
        """
        number = worker.number
        self.touches.note(number, number + 1)
        self.reports += 1
        self.reported[number] = self.reports
        for name, column in self.resources.items():
            measured = worker.load.get(name) if column.is_real[number] else None
            column.reported[number] = NOTHING_REPORTED if measured is None else measured
            column.settle(number, number + 1)
        for name, values in self.loads.items():
            values[number] = worker.load.get(name, NOTHING_REPORTED)
        for name, milli in worker.load.items():
            if name not in self.loads:
                self.loads[name] = np.full(self.hosts, NOTHING_REPORTED, np.int64)
                self.loads[name][number] = milli
        self.freed += 1
        self.changed += 1

    def _grow(self, hosts: int) -> None:
        more = hosts - self.hosts
        self._used = np.append(self.used, np.zeros(more, np.int64))
        self.slots = np.append(self.slots, np.zeros(more, np.int64))
        self.usable = np.append(self.usable, np.zeros(more, np.int64))
        self._usable_cells = self.usable.data
        self.takes_jobs = np.append(self.takes_jobs, np.zeros(more, np.bool_))
        self.revision = np.append(self.revision, np.zeros(more, np.int64))
        self.exclusive = np.append(self.exclusive, np.zeros(more, np.int64))
        self.reported = np.append(self.reported, np.zeros(more, np.int64))
        for column in self.resources.values():
            column.grow(hosts)
        for name, values in self.loads.items():
            self.loads[name] = np.append(values, np.full(more, NOTHING_REPORTED, np.int64))
        self.hosts = hosts

    def settle_all(self) -> None:
        """
        Work out again the usable slots of all hosts, and whether there is any that is special.
        """
        self.is_plain = self._would_be_plain()
        self._settle_slots(0, self.hosts)

    def _would_be_plain(self) -> bool:
        is_open = not self.aside and self.takes_jobs.all()
        return bool(is_open and (self.used <= self.slots).all())

    def _settle_slots(self, first: int, stop: int) -> None:
        """
        Work out again the slots that a new job may take on the hosts from first up to stop.
        """
        span = slice(first, stop)
        before = int(self.usable[span].sum())
        free = np.maximum(self.slots[span] - self.used[span], 0)
        self.usable[span] = np.where(self.takes_jobs[span], free, 0)
        self.usable_total += int(self.usable[span].sum()) - before

    def counts(self, name: str) -> bool:
        """
        Say whether some host counts a resource; one that joined again without it, while jobs have
        some of it, doesn't.
        """
        column = self.resources.get(name)
        return column is not None and bool(column.present.any())

    # -- jobs

    def know(self, allocation: Allocation) -> None:
        """
        Make room for what an allocation has, also where its host joined again without that.
        """
        for run in allocation.runs:
            for amount in run.amounts:
                if amount.resource not in self.resources:
                    self.resources[amount.resource] = ResourceColumn(self.hosts)

    def take(self, allocation: Allocation) -> None:
        """
        Charge an allocation that has just been made.
        """
        for run in allocation.runs:
            self._charge_run(run, 1)
        if allocation.shared:
            self.pools.charge(allocation.shared, 1)
        if allocation.is_exclusive:
            self._set_exclusive(allocation, 1)
        self.changed += 1

    def give_back(self, job: JobRecord) -> None:
        """
        Release everything that a live job holds, with what it was charged for overage.
        """
        if job.allocation is None:
            rule = "a job that releases its hosts has an allocation"
            raise InvariantBroken(rule, job.stream)
        if job.is_aside:
            self.come_back(job)
            job.is_aside = False
        for number in sorted(job.actual):
            self.reconcile(job, number, {})
        for run in job.allocation.runs:
            self._charge_run(run, -1)
        if job.allocation.shared:
            self.pools.charge(job.allocation.shared, -1)
        if job.allocation.is_exclusive:
            self._set_exclusive(job.allocation, -1)
        self.freed += 1
        self.changed += 1

    def stand_aside(self, job: JobRecord) -> None:
        """
        Give back what a stopped job gives back to everybody; its slots stay its own, towards all
        but those who may preempt it.
        """
        self.aside += 1
        self._charge_released(job, -1)

    def come_back(self, job: JobRecord) -> None:
        """
        Charge a stopped job in full again: it goes on, or leaves its hosts.
        """
        self.aside -= 1
        self._charge_released(job, 1)

    def can_come_back(self, job: JobRecord) -> bool:
        """
        Say whether what a stopped job gave back is free again; its slots are another question.
        """
        for number, name, charged, _ in self.released_by(job):
            column = self.resources[name]
            if column.total[number] - column.charged[number] < charged:
                return False
        if not self.units_are_free(job):
            return False
        pools = self.pools.by_name
        return all(
            pools[each.resource][each.pool].left >= each.milli
            for each in (job.allocation.shared if job.allocation else ())
            if each.resource in self.released and each.pool < len(pools.get(each.resource, ()))
        )

    def units_are_free(self, job: JobRecord) -> bool:
        """
        Say whether the very units that a stopped job gave back are free again.
        """
        return all(
            self.units.are_free(number, instances, self.hosts)
            for number, instances in self._released_units(job)
        )

    def _released_units(self, job: JobRecord) -> list[tuple[int, Instances]]:
        """
        Return (host, units) of what a job gives back of named units when it is stopped.
        """
        return [
            (run.first, instances)
            for run in (job.allocation.runs if job.allocation else ())
            for instances in run.instances
            if instances.resource in self.released
        ]

    def _charge_released(self, job: JobRecord, sign: int) -> None:
        for number, instances in self._released_units(job):
            self.units.charge(number, instances, sign)
        for number, name, charged, unused in self.released_by(job):
            column = self.resources[name]
            column.charged[number] += sign * charged
            column.unused[number] += sign * unused
            self.touches.note(number, number + 1)
            column.settle(number, number + 1)
        shared = [] if job.allocation is None else job.allocation.shared
        self.pools.charge([each for each in shared if each.resource in self.released], sign)
        self.settle_all()
        self.freed += 1
        self.changed += 1

    def released_by(
        self, job: JobRecord, *, everything: bool = False
    ) -> list[tuple[int, str, int, int]]:
        """
        Return (host, resource, charged, unused) of what a job gives back when it is stopped for
        another, or of everything.
        """
        found = []
        for number, _, _ in job.allocation.shares() if job.allocation else ():
            seen = job.actual.get(number, {})
            for name, reserved in reserved_on(job, number).items():
                if everything or name in self.released:
                    actual = seen.get(name, 0)
                    found.append((number, name, max(reserved, actual), max(0, reserved - actual)))
        return found

    # hot: every dispatch and every end comes through here, once for each run.
    def _charge_run(self, run: HostRun, sign: int) -> None:
        first, hosts, tasks = run.first, run.hosts, sign * run.tasks
        stop = first + hosts
        if self.touches.is_kept:
            self.touches.note(first, stop)
        if self.is_plain:
            self._is_used_behind = True
            self.usable_total -= tasks * hosts
            # Few are changed one by one. Adding to a view, and not to a slice by name, spares
            # writing the view back onto itself; adding an array without dimensions takes half the
            # time of adding a plain number.
            if hosts <= FEW_HOSTS:
                cells = self._usable_cells
                for number in range(first, stop):
                    cells[number] -= tasks
            else:
                usable = self.usable[first:stop]
                usable -= _whole(tasks)
        else:
            used = self.used[first:stop]
            used += tasks
            self._settle_slots(first, stop)
        for amount in run.amounts:
            column = self.resources[amount.resource]
            charged, unused = column.charged[first:stop], column.unused[first:stop]
            charged += sign * amount.milli
            unused += sign * amount.milli
            column.settle(first, stop)
        for instances in run.instances:
            self.units.charge(run.first, instances, sign)

    def _set_exclusive(self, allocation: Allocation, sign: int) -> None:
        """
        Close the hosts of an exclusive job to others, or open them again as far as they were open.
        """
        for run in allocation.runs:
            span = slice(run.first, run.first + run.hosts)
            self.exclusive[span] += sign
            for number in range(run.first, run.first + run.hosts):
                self.takes_jobs[number] = self._is_open(number)
        self.settle_all()
        # The reasons of every waiting request change, though nothing may be freed.
        self.status += 1
        if sign > 0:
            self.claimed += 1
        else:
            self.freed += 1

    def reconcile(self, job: JobRecord, number: int, actual: dict[str, int]) -> None:
        """
        Bring a job's charges on one host in line with what it was seen to use.

        Only the difference is applied, and only to resources that the job reserved.
        """
        self.touches.note(number, number + 1)
        before = job.actual.get(number, {})
        for name, reserved in reserved_on(job, number).items():
            if job.is_aside and name in self.released:
                continue  # It comes back as it is then.
            old, new = before.get(name, 0), actual.get(name, 0)
            column = self.resources[name]
            column.charged[number] += max(0, new - reserved) - max(0, old - reserved)
            column.unused[number] += max(0, reserved - new) - max(0, reserved - old)
            column.settle(number, number + 1)
        if actual:
            job.actual[number] = actual
        else:
            job.actual.pop(number, None)


@lru_cache(maxsize=1_024)
def _whole(number: int) -> Column:
    """
    Return a number as an array without dimensions.
    """
    return np.array(number, np.int64)


def reserved_on(job: JobRecord, number: int) -> dict[str, int]:
    """
    Return what a job reserved on one host: resource -> thousandths.
    """
    reserved: dict[str, int] = {}
    for run in job.allocation.runs if job.allocation else ():
        if run.first <= number < run.first + run.hosts:
            for amount in run.amounts:
                reserved[amount.resource] = reserved.get(amount.resource, 0) + amount.milli
    return reserved


def derive(workers: Iterable[WorkerRecord], live: Iterable[JobRecord]) -> Capacity:
    """
    Work out all columns from the workers and the live jobs: the specification of what ``apply``
    keeps.
    """
    capacity = Capacity()
    for worker in workers:
        capacity.set_host(worker)
    for job in live:
        seen, job.actual = job.actual, {}
        if job.allocation is not None:
            capacity.know(job.allocation)
            capacity.take(job.allocation)
        for number, actual in seen.items():
            capacity.reconcile(job, number, actual)
    # A host that joined again with fewer slots than are in use is known only now.
    capacity.settle_all()
    return capacity
