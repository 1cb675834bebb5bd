"""
What one placement sees of the hosts: what they have left, less what it has claimed itself.

The columns of the core are read, never changed: a placement that fails or is given up leaves no
trace, because nothing but its own ground ever held its claims.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from domain.allocations import HostRun, SharedAmount
from domain.limits import JOBS
from projections.scheduling.budgets import Budget
from projections.scheduling.capacity import Capacity, Column, Mask
from projections.scheduling.facts import HostFacts, SeenHost
from projections.scheduling.placement.relief import Relief
from projections.scheduling.request import HostNeed
from projections.scheduling.unit_shares import Shares, shares_in, usable_milli

if TYPE_CHECKING:
    from projections.scheduling.trace_writing import Tracer


class GroundHost(SeenHost):
    """
    Be one host as an expression sees it: what it is, and what it has left.
    """

    __slots__ = ("_ground", "_number")

    def __init__(self, ground: Ground, number: int, facts: HostFacts) -> None:
        self._facts = facts
        self._ground = ground
        self._number = number

    def amount_milli(self, name: str) -> int | None:
        """
        Return a number in thousandths, None where the host has none.
        """
        ground, number = self._ground, self._number
        if name == "slots":
            return int(ground.usable[number]) * 1000
        if ground.has(name, number):
            return int(ground.available(name)[number])
        if name in ground.capacity.pools.by_name:
            return None
        loads = ground.capacity.loads.get(name)
        if loads is not None and loads[number] >= 0:
            return int(loads[number])
        return self._facts.amount_milli(name)


class Ground:
    """
    Hold what is left of one capacity.

    Args:
        is_empty: See every host open and without a job: what could ever be placed.

    ``tracer`` writes down what is tried on it, None for nothing; plans are then tried one by one.
    """

    def __init__(self, capacity: Capacity, *, is_empty: bool = False) -> None:
        self.capacity = capacity
        self.is_empty = is_empty
        self.takes: Mask = np.ones(capacity.hosts, np.bool_) if is_empty else capacity.takes_jobs
        self.usable: Column = capacity.slots if is_empty else capacity.usable
        self.tracer: Tracer | None = None
        self.differs_in_budgets = False
        self._idle: Mask | None = None
        self._available: dict[str, Column] = {}
        self._left: dict[str, list[int]] = {}
        self._unit_shares: dict[str, Shares] = {}
        self._headroom: dict[tuple[str, str, str], int | Column] = {}

    def copy(self) -> Ground:
        """
        Return a ground that begins as this one and is claimed from by itself.
        """
        other = Ground(self.capacity, is_empty=self.is_empty)
        other.tracer = self.tracer
        other.takes = self.takes
        other.differs_in_budgets = self.differs_in_budgets
        other.usable = self.usable
        other._idle = self._idle
        other._available = dict(self._available)
        other._unit_shares = dict(self._unit_shares)
        other._left = {name: list(left) for name, left in self._left.items()}
        other._headroom = dict(self._headroom)
        return other

    def host(self, number: int) -> GroundHost:
        """
        Return one host as an expression sees it.
        """
        return GroundHost(self, number, self.capacity.facts[number])

    @property
    def idle(self) -> Mask:
        """
        Return which hosts run no job at all; this placement's own claims don't count.
        """
        if self._idle is None:
            used = self.capacity.used == 0
            self._idle = np.ones(self.capacity.hosts, np.bool_) if self.is_empty else used
        return self._idle

    # -- amounts

    def has(self, name: str, number: int) -> bool:
        """
        Say whether a host has a resource, or a share in one.
        """
        column = self.capacity.resources.get(name)
        if name in self.capacity.pools.by_name:
            return bool(self.present(name)[number])
        return column is not None and bool(column.present[number])

    def present(self, name: str) -> Mask:
        """
        Return which hosts have a resource, or a share in one.
        """
        pools = self.capacity.pools.by_name.get(name)
        if pools is not None:
            shares = [pool.members for pool in pools]
            found: Mask = np.logical_or.reduce(shares)
            return found
        column = self.capacity.resources.get(name)
        return np.zeros(self.capacity.hosts, np.bool_) if column is None else column.present

    def available(self, name: str) -> Column:
        """
        Return what each host has left of a resource, in thousandths; of a shared one, what is left
        of the total it shares in.
        """
        found = self._available.get(name)
        if found is None:
            found = self._available[name] = self._amounts(name)
        return found

    def available_to(self, need: HostNeed) -> Column:
        """
        Return what each host has left for a need: of named units no more than they can give it,
        each by itself.
        """
        found = self.available(need.resource)
        units = self.capacity.units
        if need.resource not in units:
            return found
        usable = np.minimum(usable_milli(self.unit_shares(need.resource), need), found)
        with_units = units.hosts_with(need.resource, self.capacity.hosts)
        return np.where(with_units, usable, found)

    def unit_shares(self, name: str) -> Shares:
        """
        Return what each named unit of a resource has left, a row for each host.
        """
        found = self._unit_shares.get(name)
        if found is None:
            capacity = self.capacity
            found = capacity.units.free(name, capacity.hosts, is_empty=self.is_empty)
            self._unit_shares[name] = found
        return found

    def _take_units(self, run: HostRun, sign: int) -> None:
        for instances in run.instances:
            name, units = instances.resource, self.capacity.units
            shares = self._unit_shares[name] = self.unit_shares(name).copy()
            for unit, milli in shares_in(instances):
                place = units.place_of(run.first, name, unit)
                if place is not None:
                    shares[run.first, place] -= sign * milli

    def _amounts(self, name: str) -> Column:
        if name in self.capacity.pools.by_name:
            values = np.zeros(self.capacity.hosts, np.int64)
            for pool, left in zip(self.capacity.pools.by_name[name], self.left(name), strict=True):
                values[pool.members] = left
            return values
        column = self.capacity.resources.get(name)
        if column is None:
            return np.zeros(self.capacity.hosts, np.int64)
        return column.total if self.is_empty else column.available

    def left(self, name: str) -> list[int]:
        """
        Return what is left of each total of a shared resource; none when there is no such resource.
        """
        found = self._left.get(name)
        if found is None:
            pools = self.capacity.pools.by_name.get(name, [])
            found = [pool.total if self.is_empty else pool.left for pool in pools]
            self._left[name] = found
        return found

    def headroom(self, budget: Budget) -> int | Column:
        """
        Return what is left of a budget in thousandths; by host where each host has its own.
        """
        found = self._headroom.get(budget.key)
        if found is None:
            found = self.capacity.limits.headroom(budget, is_empty=self.is_empty)
            self._headroom[budget.key] = found
        return found

    # -- what if

    def differ(self, relief: Relief) -> None:
        """
        See the hosts as if jobs had given back, or taken, what a relief says; before any claim.
        """
        capacity = self.capacity
        if relief.ended is not None:
            self.takes = self.takes.copy()
            for number in np.flatnonzero(relief.ended & ~self.takes).tolist():
                self.takes[number] = capacity.is_fit(number)
            self._idle = capacity.used == relief.slots
        free = np.maximum(capacity.slots - capacity.used + relief.slots, 0)
        self.usable = np.where(self.takes, free, 0)
        for job in relief.barring:
            for run in job.allocation.runs if job.allocation else ():
                self.usable[run.first : run.first + run.hosts] = 0
        for name, charged in relief.charged.items():
            column = capacity.resources[name]
            self._available[name] = column.relieved(charged, relief.unused[name])
        for run in relief.units:
            self._take_units(run, -1)
        for (name, place), milli in relief.shared.items():
            pool = capacity.pools.by_name[name][place]
            self.left(name)[place] = max(0, pool.total - pool.charged + milli)
        self.differs_in_budgets = bool(relief.headroom)
        balances: dict[tuple[str, str, str], int | Column] = {}
        for budget, more in relief.headroom:
            if budget.key not in balances:
                # What is overdrawn must be given back before anything of it is free.
                balances[budget.key] = capacity.limits.balance(budget)
            balances[budget.key] = balances[budget.key] + more
        for key, balance in balances.items():
            left = np.maximum(balance, 0)
            self._headroom[key] = left if left.ndim else int(left)

    def only(self, number: int) -> None:
        """
        See one host alone.
        """
        kept = np.zeros(self.capacity.hosts, np.bool_)
        kept[number] = True
        self.takes = self.takes & kept
        self.usable = np.where(kept, self.usable, 0)

    # -- claims

    def claim(
        self,
        runs: Sequence[HostRun],
        shared: Sequence[SharedAmount],
        budgets: Iterable[Budget] = (),
    ) -> None:
        """
        Take what a member of a compound was given, from the budgets of its job too.
        """
        for budget in budgets:
            if budget.rule.resource == JOBS:
                continue  # It is the same job, however many members it has.
            taken = self.capacity.limits.taken_of(budget.rule, runs, shared)
            self._headroom[budget.key] = self.headroom(budget) - taken
        self.usable = self.usable.copy()
        changed: dict[str, Column] = {}
        for run in runs:
            span = slice(run.first, run.first + run.hosts)
            self.usable[span] -= run.tasks
            self._take_units(run, 1)
            for amount in run.amounts:
                if amount.resource not in changed:
                    changed[amount.resource] = self.available(amount.resource).copy()
                changed[amount.resource][span] -= amount.milli
        self._available.update(changed)
        for each in shared:
            self.left(each.resource)[each.pool] -= each.milli
            self._available.pop(each.resource, None)
