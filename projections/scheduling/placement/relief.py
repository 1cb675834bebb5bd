"""
What jobs would give back, or what is held for others: how hosts would differ from what they are.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from domain.allocations import Allocation, HostRun, SharedAmount
from projections.scheduling.budgets import Budget
from projections.scheduling.capacity import Capacity, Column, Mask
from projections.scheduling.records import JobRecord


class Relief:
    """
    Add up changes: positive is given back, negative is taken.

    Args:
        capacity: Of which hosts; read, never changed.

    ``barring`` are the jobs whose hosts are shut meanwhile, because these jobs go on there first;
    ``spared`` the streams of those that no longer count where preemptors are spared.
    """

    def __init__(self, capacity: Capacity) -> None:
        self._capacity = capacity
        self.slots: Column = np.zeros(capacity.hosts, np.int64)
        self.charged: dict[str, Column] = {}
        self.unused: dict[str, Column] = {}
        self.shared: dict[tuple[str, int], int] = {}
        self.headroom: list[tuple[Budget, int | Column]] = []
        self.units: list[HostRun] = []
        self.ended: Mask | None = None
        self.barring: tuple[JobRecord, ...] = ()
        self.spared: frozenset[str] = frozenset()

    def copy(self) -> Relief:
        """
        Return one that begins as this one.
        """
        other = Relief(self._capacity)
        other.slots = self.slots.copy()
        other.charged = {name: column.copy() for name, column in self.charged.items()}
        other.unused = {name: column.copy() for name, column in self.unused.items()}
        other.shared = dict(self.shared)
        other.headroom = list(self.headroom)
        other.units = list(self.units)
        other.ended = None if self.ended is None else self.ended.copy()
        other.barring = self.barring
        other.spared = self.spared
        return other

    def give_slots(self, job: JobRecord) -> None:
        """
        Give back a job's slots, and its hosts to others where it had them alone.
        """
        if job.allocation is None:
            return
        for run in job.allocation.runs:
            self.slots[run.first : run.first + run.hosts] += run.tasks
        if job.allocation.is_exclusive:
            ended = self._ended()
            for run in job.allocation.runs:
                ended[run.first : run.first + run.hosts] = True

    def give_all(self, job: JobRecord, *, is_ended: bool) -> None:
        """
        Give back what a job gives back when it is stopped for another, or all that it has when it
        ends for it.
        """
        self.give_slots(job)
        self._give_rest(job, is_ended=is_ended)

    def spare(self, job: JobRecord) -> None:
        """
        Let a job that is stopped for others no longer count against one that may preempt it.
        """
        if job.allocation is None or job.stream in self.spared:
            return
        self.spared |= {job.stream}
        for budget in self._capacity.limits.charged_to(job):
            if budget.rule.spares_preemptors:
                self._give_budget(budget, job.allocation)

    def end(self, job: JobRecord) -> None:
        """
        Give back everything of a job that will have ended, named units too, and its hosts alone
        where it had them alone.
        """
        if self.barring:
            self.barring = tuple(each for each in self.barring if each is not job)
        self.give_slots(job)
        if job.allocation is None:
            return
        self._ended()
        given = self._capacity.released if job.is_aside else frozenset()
        self._give_rest(job, is_ended=True, given=given)

    def left_alone(self, hosts: Mask) -> None:
        """
        Note that jobs which had some hosts alone have left them, and that others have ended too.
        """
        ended = self._ended()
        ended |= hosts

    def give_amounts(self, name: str, charged: Column, unused: Column) -> None:
        """
        Give back so much of a resource of each host.
        """
        if name in self.charged:
            self.charged[name] += charged
            self.unused[name] += unused
        else:
            self.charged[name], self.unused[name] = charged, unused

    def give_units(self, job: JobRecord) -> None:
        """
        Give back the named units of a job that will have ended.
        """
        if job.allocation is not None:
            self._give_units(job.allocation, is_ended=True, given=frozenset())

    def _ended(self) -> Mask:
        """
        Return the hosts that jobs which had them alone have left; from now on hosts count as idle
        by what is given back.
        """
        if self.ended is None:
            self.ended = np.zeros(self._capacity.hosts, np.bool_)
        return self.ended

    def _give_rest(
        self, job: JobRecord, *, is_ended: bool, given: frozenset[str] = frozenset()
    ) -> None:
        """
        Give back what a job has beside slots, but for what it gave back already.
        """
        capacity, allocation = self._capacity, job.allocation
        if allocation is None:
            return
        self._give_units(allocation, is_ended=is_ended, given=given)
        released = capacity.released_by(job, everything=is_ended)
        for number, name, charged, unused in released:
            if name not in given:
                self._add(name, number, charged, unused)
        for each in allocation.shared:
            if each.resource not in given and (is_ended or each.resource in capacity.released):
                self._add_shared(each)
        for budget in capacity.limits.charged_to(job):
            is_given = budget.rule.spares_preemptors and job.stream in self.spared
            if not is_given and (is_ended or not budget.rule.counts_preempted):
                self._give_budget(budget, allocation)

    def _give_budget(self, budget: Budget, allocation: Allocation) -> None:
        taken = self._capacity.limits.taken_of(budget.rule, allocation.runs, allocation.shared)
        self.headroom.append((budget, taken))

    def _give_units(
        self, allocation: Allocation, *, is_ended: bool, given: frozenset[str]
    ) -> None:
        """
        Give back the named units of a job, but for those that it gave back already.
        """
        for run in allocation.runs:
            instances = tuple(
                each
                for each in run.instances
                if each.resource not in given
                and (is_ended or each.resource in self._capacity.released)
            )
            if instances:
                self.units.append(run.model_copy(update={"instances": instances}))

    def take_slots(self, slots: Column) -> None:
        """
        Take slots of each host.
        """
        self.slots -= slots

    def take_amount(self, name: str, number: int, milli: int) -> None:
        """
        Take an amount of a host.
        """
        self._add(name, number, -milli, -milli)

    def take_shared(self, resource: str, place: int, milli: int) -> None:
        """
        Take of a shared total.
        """
        key = (resource, place)
        self.shared[key] = self.shared.get(key, 0) - milli

    def _add(self, name: str, number: int, charged: int, unused: int) -> None:
        if name not in self.charged:
            self.charged[name] = np.zeros(self._capacity.hosts, np.int64)
            self.unused[name] = np.zeros(self._capacity.hosts, np.int64)
        self.charged[name][number] += charged
        self.unused[name][number] += unused

    def _add_shared(self, each: SharedAmount) -> None:
        key = (each.resource, each.pool)
        if each.pool < len(self._capacity.pools.by_name.get(each.resource, [])):
            self.shared[key] = self.shared.get(key, 0) + each.milli


def shared_of(amounts: Iterable[SharedAmount]) -> dict[tuple[str, int], int]:
    """
    Return shared amounts by resource and total.
    """
    found: dict[tuple[str, int], int] = {}
    for each in amounts:
        key = (each.resource, each.pool)
        found[key] = found.get(key, 0) + each.milli
    return found
