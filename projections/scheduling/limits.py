"""
What of every budget is in use, and what of it a request may still take.

All of it is derived from definitions and from the allocations of live jobs, kept by ``apply`` and
rebuilt after a restore or another definition; the rebuilt must equal the kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from domain.allocations import Allocation, HostRun, SharedAmount
from domain.groups import Membership
from domain.jobs import JobSpec
from domain.limits import JOBS, Basis, LimitCharge
from domain.reasons import PendReason
from domain.windows import Windows, is_open, next_change_us
from projections.scheduling.budgets import (
    PLENTY,
    Budget,
    Consumer,
    Rule,
    Rules,
    rules_of_groups,
    rules_of_hosts,
    rules_of_limits,
    rules_of_projects,
    rules_of_queues,
    rules_of_users,
)
from projections.scheduling.records import JobRecord, StoredState
from projections.scheduling.request import MILLI, Request
from projections.scheduling.takings import least_need, on_hosts, reason_of, taken

if TYPE_CHECKING:
    from projections.scheduling.capacity import Capacity

Column = npt.NDArray[np.int64]

PERCENT_MILLI: Final = 100 * MILLI


class Limits:
    """
    Hold what of every budget is in use.

    Args:
        stored: The definitions.
        capacity: Which hosts there are, and what they have.

    ``are_any`` says whether there is anything to look at.
    """

    def __init__(self, stored: StoredState, capacity: Capacity) -> None:
        self._stored = stored
        self._capacity = capacity
        self._used: dict[tuple[str, str, str], int] = {}
        self._used_on: dict[tuple[str, str, str], Column] = {}
        self._charged: dict[str, tuple[Budget, ...]] = {}
        self._reserved: dict[str, tuple[tuple[Budget, ...], Allocation]] = {}
        self._most: dict[Rule, tuple[int, Column, Column]] = {}
        self._shut: frozenset[str] = frozenset()
        self._timed: list[tuple[Rule, Windows]] = []
        self.rules = Rules([], Membership({}))
        self.are_any = False
        self.define(())

    def define(self, live: Iterable[JobRecord]) -> None:
        """
        Work out all rules from the definitions, and what live jobs are charged by them.
        """
        stored = self._stored
        queues = {name: queue.spec for name, queue in stored.queues.items()}
        uncounted = stored.cluster.preemption.uncounted if stored.cluster else ()
        self.rules = Rules(
            [
                *rules_of_limits(stored.limits),
                *rules_of_queues(queues),
                *rules_of_users(stored.users, uncounted),
                *rules_of_groups(stored.groups, uncounted),
                *rules_of_projects(stored.projects),
                *rules_of_hosts(
                    {name: worker.settings for name, worker in stored.workers.items()}, uncounted
                ),
            ],
            Membership(stored.groups),
        )
        self.are_any = bool(self.rules.every)
        self._timed = [
            (rule, rule.windows) for rule in self.rules.every if rule.windows is not None
        ]
        for memory in (
            self._used,
            self._used_on,
            self._charged,
            self._reserved,
            self._most,
        ):
            memory.clear()
        for job in live:
            self.charge(job)

    # -- whom jobs are charged to

    def project_of(self, spec: JobSpec) -> str:
        """
        Return a job's project: its own, else its queue's, its group's, the cluster's; "" for none.
        """
        if spec.project:
            return spec.project
        queue = self._stored.queues.get(spec.queue)
        if queue is not None and queue.spec.project:
            return queue.spec.project
        groups = (spec.group,) if spec.group else self.rules.membership.groups_of(spec.user)
        for name in groups:
            group = self._stored.groups.get(name)
            if group is not None and group.default_project:
                return group.default_project
        return self._stored.cluster.default_project if self._stored.cluster else ""

    def consumer_of(self, spec: JobSpec) -> Consumer:
        """
        Return what of a job decides which rules hold for it.
        """
        project = self.project_of(spec)
        return Consumer(spec.user, spec.group, spec.queue, project, spec.profile)

    def budgets_of(self, spec: JobSpec) -> tuple[Budget, ...]:
        """
        Return the budgets that a job is charged to.
        """
        return self.rules.budgets_of(self.consumer_of(spec)) if self.rules.every else ()

    # -- charging

    def charge(self, job: JobRecord) -> None:
        """
        Charge a live job for what it holds.
        """
        if not self.are_any or job.allocation is None:
            return
        budgets = self.budgets_of(job.spec)
        if job.is_aside and job.preemptor:
            budgets = tuple(each for each in budgets if each.rule.counts_preempted)
        self._charged[job.stream] = budgets
        self._add(budgets, job.allocation, 1)

    def give_back(self, job: JobRecord) -> None:
        """
        Release everything that a job was charged.
        """
        budgets = self._charged.pop(job.stream, ())
        if budgets and job.allocation is not None:
            self._add(budgets, job.allocation, -1)

    def reserve(self, job: JobRecord) -> None:
        """
        Charge a pending job for the slots and amounts that it has gathered, nothing when it has
        none: jobs are counted when they run.
        """
        self.unreserve(job)
        promise = job.promise
        if promise is None or not promise.is_held or not self.rules.every:
            return
        runs = tuple(
            HostRun(first=run.first, hosts=run.hosts, tasks=run.slots, amounts=run.amounts)
            for run in promise.runs
            if run.slots
        )
        allocation = Allocation(runs=runs, shared=promise.shared, allocator=promise.policy)
        budgets = tuple(
            each for each in self.budgets_of(job.spec) if each.rule.resource != JOBS
        )
        self._reserved[job.stream] = (budgets, allocation)
        self._add(budgets, allocation, 1)

    def unreserve(self, job: JobRecord) -> None:
        """
        Charge a job nothing for what it has gathered, until ``reserve``: it is about to be tried.
        """
        budgets, allocation = self._reserved.pop(job.stream, ((), None))
        if allocation is not None:
            self._add(budgets, allocation, -1)

    def charged_to(self, job: JobRecord) -> tuple[Budget, ...]:
        """
        Return the budgets to which a live job is charged now.
        """
        return self._charged.get(job.stream, ())

    def charge_anew(self, job: JobRecord) -> None:
        """
        Charge a live job as what it has become.
        """
        self.give_back(job)
        self.charge(job)

    def _add(self, budgets: tuple[Budget, ...], allocation: Allocation, sign: int) -> None:
        for budget in budgets:
            rule, key = budget.rule, budget.key
            if rule.hosts is not None and rule.hosts.is_each:
                column, mask = self._column(key), self._bounds(rule)[2]
                for first, stop, milli in on_hosts(rule.resource, allocation.runs):
                    column[first:stop] += sign * milli * mask[first:stop]
                continue
            milli = taken(rule.resource, allocation.runs, allocation.shared, self._mask(rule))
            self._used[key] = self._used.get(key, 0) + sign * milli
            if not self._used[key]:
                del self._used[key]

    def _column(self, key: tuple[str, str, str]) -> Column:
        column = self._used_on.get(key)
        hosts = self._capacity.hosts
        if column is None or len(column) < hosts:
            grown = np.zeros(hosts, np.int64)
            if column is not None:
                grown[: len(column)] = column
            column = self._used_on[key] = grown
        return column

    def _mask(self, rule: Rule) -> Column | None:
        return None if rule.hosts is None else self._bounds(rule)[2]

    def taken_of(
        self, rule: Rule, runs: Sequence[HostRun], shared: Sequence[SharedAmount]
    ) -> int | Column:
        """
        Return what hosts and shared amounts take of what a rule bounds; by host where each host has
        its own.
        """
        if rule.hosts is None or not rule.hosts.is_each:
            return taken(rule.resource, runs, shared, self._mask(rule))
        column = np.zeros(self._capacity.hosts, np.int64)
        for first, stop, milli in on_hosts(rule.resource, runs):
            column[first:stop] += milli
        return column

    def charges_of(self, spec: JobSpec, allocation: Allocation) -> tuple[LimitCharge, ...]:
        """
        Return what a job is charged to each budget, those left out of which it takes nothing.
        """
        found = []
        for budget in self.budgets_of(spec):
            rule = budget.rule
            milli = taken(rule.resource, allocation.runs, allocation.shared, self._mask(rule))
            if milli:
                name, resource, owner = budget.key
                found.append(
                    LimitCharge(limit=name, budget=owner, resource=resource, milli=milli)
                )
        return tuple(found)

    def in_use(self) -> dict[tuple[str, str, str], list[int]]:
        """
        Return what of each budget is in use, whole or by host, those left out that nobody uses.
        """
        found = {key: [milli] for key, milli in self._used.items() if milli}
        for key, column in self._used_on.items():
            if column.any():
                found[key] = [int(milli) for milli in column] + [0] * (
                    self._capacity.hosts - len(column)
                )
        return dict(sorted(found.items()))

    # -- what is left

    def _bounds(self, rule: Rule) -> tuple[int, Column, Column]:
        """
        Return what of a rule is bound in all, on each host, and which hosts it is about (1 or 0).
        """
        capacity = self._capacity
        known = self._most.get(rule)
        if known is not None and known[0] == capacity.described:
            return known
        mask = np.ones(capacity.hosts, np.int64)
        most = np.full(capacity.hosts, rule.most_milli, np.int64)
        for number, facts in enumerate(capacity.facts):
            if rule.hosts is not None:
                mask[number] = rule.hosts.names.holds([facts.name])
            if rule.basis is Basis.PER_PROCESSOR:
                processors = facts.amount_milli("ncpus") or facts.slots * MILLI
                # Rounded up to whole units, as LSF does.
                whole = -(-rule.most_milli * processors // (MILLI * MILLI))
                most[number] = whole * MILLI
            elif rule.basis is Basis.PERCENT:
                total = facts.totals.get(rule.resource, 0)
                most[number] = total * rule.most_milli // PERCENT_MILLI
        found = self._most[rule] = (capacity.described, most, mask)
        return found

    def headroom(self, budget: Budget, *, is_empty: bool = False) -> int | Column:
        """
        Return what is left of a budget in thousandths: a number, or a column over hosts where each
        host has its own.

        Args:
            budget: Whose.
            is_empty: As if nothing were in use, and nothing bound that is bound at times only. A
                bound of nothing is a brake then, like a switch, and no ceiling.
        """
        if not is_empty:
            balance = self.balance(budget)
            return max(0, balance) if isinstance(balance, int) else np.maximum(balance, 0)
        rule = budget.rule
        if rule.hosts is not None and rule.hosts.is_each:
            _, most, mask = self._bounds(rule)
            is_bound = (mask == 1) & (most > 0) & (rule.windows is None)
            return np.where(is_bound, most, PLENTY)
        return PLENTY if rule.windows is not None else self._most_in_all(rule) or PLENTY

    def balance(self, budget: Budget) -> int | Column:
        """
        Return what is left of a budget, below zero where more is in use than it has, as after it
        was cut; by host where each host has its own.
        """
        rule, key = budget.rule, budget.key
        is_shut = rule.name in self._shut
        if rule.hosts is not None and rule.hosts.is_each:
            _, most, mask = self._bounds(rule)
            return np.where((mask == 1) & (not is_shut), most - self._column(key), PLENTY)
        return PLENTY if is_shut else self._most_in_all(rule) - self._used.get(key, 0)

    def left_beside(self, spared: Sequence[JobRecord]) -> Callable[[Budget], int | Column]:
        """
        Return how much is left of each budget to a job that may preempt some which were stopped:
        they don't count where a rule spares it.
        """

        def left(budget: Budget) -> int | Column:
            rule = budget.rule
            if not rule.spares_preemptors:
                return self.headroom(budget)
            more: int | Column = 0
            for job in spared:
                if job.allocation is not None and budget in self.charged_to(job):
                    more = more + self.taken_of(rule, job.allocation.runs, job.allocation.shared)
            balance = self.balance(budget) + more
            return max(0, balance) if isinstance(balance, int) else np.maximum(balance, 0)

        return left

    def stand(self, budget: Budget) -> tuple[int | Column, int | Column]:
        """
        Return how much of a budget may be in use, and how much is, in thousandths; by host where
        each host has its own.
        """
        rule, key = budget.rule, budget.key
        if rule.hosts is not None and rule.hosts.is_each:
            return self._bounds(rule)[1], self._column(key)
        return self._most_in_all(rule), self._used.get(key, 0)

    def can_charge_again(self, job: JobRecord) -> bool:
        """
        Say whether what a stopped job gave back of its budgets is free again, and those are no
        longer overdrawn that spared whoever preempted it.
        """
        still = self._charged.get(job.stream, ())
        if job.allocation is None:
            return True
        for budget in self.budgets_of(job.spec):
            is_charged = budget in still
            if is_charged and not budget.rule.spares_preemptors:
                continue
            taken = self.taken_of(budget.rule, job.allocation.runs, job.allocation.shared)
            # What it is charged already, it needn't have again.
            left = self.balance(budget) + taken if is_charged else self.headroom(budget)
            if np.any((taken > left) & (taken > 0)):
                return False
        return True

    def _most_in_all(self, rule: Rule) -> int:
        if rule.basis is Basis.ABSOLUTE:
            return rule.most_milli
        _, most, mask = self._bounds(rule)
        return int((most * mask).sum())

    def members(self, rule: Rule) -> npt.NDArray[np.bool_]:
        """
        Return which hosts a rule is about.
        """
        found: npt.NDArray[np.bool_] = self._bounds(rule)[2] == 1
        return found

    def short_of(
        self,
        request: Request,
        ranks: range,
        *,
        is_empty: bool = False,
        headroom: Callable[[Budget], int | Column] | None = None,
    ) -> PendReason | None:
        """
        Return which budget of the whole job can't hold its least need, None when all do; of several
        of one rank the one that has least left, of equal ones the one that allows least in all.

        Args:
            request: What is asked for.
            ranks: Of which ranks.
            is_empty: As if nothing were in use.
            headroom: What is left of a budget on some ground; as it is when None.
        """
        found: tuple[int, int, int, int] | None = None
        needs = self.needs_of(request, ranks, is_empty=is_empty)
        for place, budget, here, least in needs:
            left = here if headroom is None else headroom(budget)
            if isinstance(left, int) and least > left:
                most = self._most_in_all(budget.rule)
                found = min(found or (9, 0, 0, 0), (budget.rule.rank, left, most, place))
        if found is None:
            return None
        budget = request.budgets[found[-1]]
        least = least_need(request, budget.rule.resource, is_empty=is_empty)
        return reason_of(budget.rule, request, least)

    def needs_of(
        self, request: Request, ranks: range, *, is_empty: bool = False
    ) -> Iterator[tuple[int, Budget, int | Column, int]]:
        """
        Yield each budget of the whole job, of some ranks: its place in the request, itself, what is
        left of it and the least that the job needs.
        """
        for place, budget in enumerate(request.budgets):
            if budget.rule.hosts is None and budget.rule.rank in ranks:
                least = least_need(request, budget.rule.resource, is_empty=is_empty)
                yield place, budget, self.headroom(budget, is_empty=is_empty), least

    # -- time

    def note_time(self, now_us: int) -> bool:
        """
        Note which rules hold now.

        Returns:
            Whether that has changed, so that jobs may start that couldn't before.
        """
        if not self._timed and not self._shut:
            return False
        shut = frozenset(rule.name for rule, windows in self._timed if not is_open(windows, now_us))
        changed, self._shut = shut != self._shut, shut
        return changed

    def changes_us(self, now_us: int) -> Iterator[int]:
        """
        Yield the moments at which some rule begins or stops to hold next.
        """
        for rule in self.rules.every:
            change = None if rule.windows is None else next_change_us(rule.windows, now_us)
            if change is not None:
                yield change
