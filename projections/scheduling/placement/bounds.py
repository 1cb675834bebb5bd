"""
How far a primary may reach at all, and what its hosts may not exceed together: shared resources,
and the budgets of limits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from domain.limits import JOBS
from domain.reasons import PendReason, ReasonCode
from domain.resreq.syntax import Per
from projections.scheduling.budgets import Budget
from projections.scheduling.capacity import Column, Mask
from projections.scheduling.placement.assembly import pools_hold, runs_of
from projections.scheduling.placement.ground import Ground
from projections.scheduling.placement.plugins import Picked
from projections.scheduling.request import MILLI, HostNeed, Part, Request, SharedNeed, Usage

if TYPE_CHECKING:
    from projections.scheduling.trace_writing import Tracer


@dataclass(slots=True)
class Room:
    """
    Hold how far shared resources and budgets reach, checked once before any plan.

    Args:
        short: One reason for each entry that isn't met; then no plan is tried.
        tasks_max: Most tasks that they allow.
        hosts_max: Most hosts, None for any.
        tracer: Writes every check down, None for not at all.
    """

    short: list[PendReason]
    tasks_max: int
    hosts_max: int | None
    tracer: Tracer | None = None

    def keep_within(
        self,
        need: SharedNeed | HostNeed,
        left: int,
        tasks_min: int,
        reason: PendReason,
        budget: Budget | None = None,
    ) -> None:
        """
        Keep an amount within what is left, or note that its least doesn't fit.
        """
        least = need.milli * (tasks_min if need.per is Per.TASK else 1)
        if self.tracer is not None:
            self.tracer.check(need, left, least, budget)
        if left < least:
            self.short.append(reason.model_copy(update={"requested_milli": least}))
        elif need.per is Per.TASK:
            self.tasks_max = min(self.tasks_max, left // need.milli)
        elif need.per is Per.HOST:
            most = left // need.milli
            self.hosts_max = most if self.hosts_max is None else min(self.hosts_max, most)


def room_of(part: Part, usage: Usage, request: Request, ground: Ground) -> Room:
    """
    Return how far shared resources and budgets reach.
    """
    room = Room([], part.tasks_max, request.hosts_max, ground.tracer)
    for need in usage.shared:
        left = ground.left(need.resource)[0]
        reason = PendReason(code=ReasonCode.RES_SHORT, resource=need.resource)
        room.keep_within(need, left, part.tasks_min, reason)
    if usage.thresholds and usage.shared:
        _keep_thresholds(room, usage, ground)
    for budget in part.budgets:
        if budget.rule.hosts is None:
            _keep_budget(room, budget, part, usage, ground)
    return room


def _keep_thresholds(room: Room, usage: Usage, ground: Ground) -> None:
    """
    Note the thresholds of what all hosts share that aren't met; those of hosts are theirs to meet.
    """
    shared = {need.resource for need in usage.shared}
    for threshold in usage.thresholds:
        name = threshold.resource
        if name not in shared or (ground.is_empty and threshold.is_ceiling):
            continue
        left, milli = ground.left(name)[0], threshold.milli
        if room.tracer is not None:
            room.tracer.check(SharedNeed(name, milli), left, milli, None)
        is_met = left <= milli if threshold.is_ceiling else left >= milli
        if not is_met and all(reason.resource != name for reason in room.short):
            code = ReasonCode.RES_SHORT
            room.short.append(PendReason(code=code, resource=name, requested_milli=milli))


def _keep_budget(room: Room, budget: Budget, part: Part, usage: Usage, ground: Ground) -> None:
    rule, left = budget.rule, ground.headroom(budget)
    assert isinstance(left, int), "only budgets of hosts are kept by host"
    reason = PendReason(
        code=rule.codes.of(part.tasks_min), resource=rule.resource, detail=rule.name
    )
    if rule.is_counted:
        need = HostNeed(rule.resource, MILLI, Per.TASK)
        room.keep_within(need, left, part.tasks_min, reason, budget)
        return
    for each in usage.amounts():
        if each.resource == rule.resource:
            room.keep_within(each, left, part.tasks_min, reason, budget)


def is_joint(budget: Budget) -> bool:
    """
    Say whether several hosts have a budget together.
    """
    rule = budget.rule
    return rule.hosts is not None and not rule.hosts.is_each and rule.resource != JOBS


def has_joint(part: Part, usage: Usage) -> bool:
    """
    Say whether a primary is bound by what several hosts have together: budgets, or totals that some
    hosts share. What is taken once, however many hosts take part in it, is each host's question.
    """
    return any(is_joint(budget) for budget in part.budgets) or any(
        need.per is not Per.JOB for need in usage.pooled
    )


def joint_shortage(
    part: Part, usage: Usage, picked: Picked, ground: Ground, *, of_tasks: int | None = None
) -> PendReason | None:
    """
    Return what the hosts together would take more of than is left, None when all holds.

    Args:
        part: What is placed.
        usage: Its alternative of rusage.
        picked: The hosts with their tasks.
        ground: What is left.
        of_tasks: How many tasks there are when these aren't all.
    """
    name = pools_hold(usage, picked, ground)
    if name:
        return PendReason(code=ReasonCode.RES_SHORT, resource=name)
    joint = [budget for budget in part.budgets if is_joint(budget)]
    if not joint:
        return None
    tasks = of_tasks or sum(len(hosts) * each for hosts, each in picked)
    needs = [
        HostNeed(need.resource, need.milli, need.per, tasks) if need.per is Per.JOB else need
        for need in usage.needs
    ]
    runs = runs_of(needs, picked)
    for budget in joint:
        rule, left = budget.rule, ground.headroom(budget)
        assert isinstance(left, int), "hosts have it together"
        if ground.capacity.limits.taken_of(rule, runs, ()) > left:
            return PendReason(
                code=rule.codes.of(part.tasks_min), resource=rule.resource, detail=rule.name
            )
    return None


class Together:
    """
    Keep what several hosts have together, as the claims of a plan take from it.

    Args:
        part: What is placed.
        usage: Its alternative of rusage.
        hosts: The numbers of its hosts, in host order.
        tasks: How many tasks there are.
        ground: What is left.
    """

    def __init__(
        self, part: Part, usage: Usage, hosts: Column, tasks: int, ground: Ground
    ) -> None:
        self._hosts = len(hosts)
        self._shared: list[tuple[Mask, int, HostNeed]] = []
        for budget in part.budgets:
            if is_joint(budget):
                inside = ground.capacity.limits.members(budget.rule)[hosts]
                left = ground.headroom(budget)
                assert isinstance(left, int), "hosts have it together"
                for need in _needs_of(budget, usage, tasks):
                    self._shared.append((inside, left, need))
        for each in usage.pooled:
            need = HostNeed(each.resource, each.milli, each.per)
            lefts = ground.left(each.resource)
            pools = ground.capacity.pools.by_name[each.resource]
            for pool, left in zip(pools, lefts, strict=True):
                if each.per is not Per.JOB:
                    self._shared.append((pool.members[hosts], left, need))
        self.forget()

    def forget(self) -> None:
        """
        Begin with another plan.
        """
        self._left = [left for _, left, _ in self._shared]

    def room(self, tasks: int) -> Mask:
        """
        Return which hosts may take a bucket beside those that are claimed.
        """
        found = np.ones(self._hosts, np.bool_)
        for (inside, _, need), left in zip(self._shared, self._left, strict=True):
            if need.of(tasks) > left:
                found &= ~inside
        return found

    def claim(self, places: Column, tasks: int) -> None:
        """
        Take what a bucket on each of some hosts takes.
        """
        for number, (inside, _, need) in enumerate(self._shared):
            self._left[number] -= need.of(tasks) * int(inside[places].sum())


def _needs_of(budget: Budget, usage: Usage, tasks: int) -> list[HostNeed]:
    """
    Return what a job takes of a budget on its hosts.
    """
    rule = budget.rule
    if rule.is_counted:
        return [HostNeed(rule.resource, MILLI, Per.TASK)]
    return [
        HostNeed(need.resource, need.milli, need.per, tasks) if need.per is Per.JOB else need
        for need in usage.needs
        if need.resource == rule.resource
    ]


def dealt(
    part: Part, usage: Usage, fits: Column, hosts: Column, ground: Ground
) -> Column | None:
    """
    Return what each host can take when what several hosts have together is dealt to them in host
    order, so that no choice among them exceeds it; None when they have nothing together.

    Args:
        part: What is placed.
        usage: Its alternative of rusage.
        fits: How many tasks each host could take by itself, in host order.
        hosts: Their numbers.
        ground: What is left of the budgets.
    """
    if not has_joint(part, usage):
        return None
    for budget in part.budgets:
        if not is_joint(budget):
            continue
        rule, left = budget.rule, ground.headroom(budget)
        assert isinstance(left, int), "hosts have it together"
        inside = ground.capacity.limits.members(rule)[hosts]
        if rule.is_counted:
            fits = _deal(fits, inside, left // MILLI)
        for need in () if rule.is_counted else usage.needs:
            if need.resource == rule.resource:
                fits = _dealt_need(need, fits, inside, left)
    for pooled in usage.pooled:
        lefts = ground.left(pooled.resource)
        for pool, left in zip(ground.capacity.pools.by_name[pooled.resource], lefts, strict=True):
            fits = _dealt_need(pooled, fits, pool.members[hosts], left)
    return fits


def _dealt_need(need: HostNeed | SharedNeed, fits: Column, inside: Mask, left: int) -> Column:
    if need.per is Per.TASK:
        return _deal(fits, inside, left // need.milli)
    if need.per is Per.HOST:
        beyond = np.cumsum(inside & (fits > 0)) > left // need.milli
        return np.where(inside & beyond, 0, fits)
    return fits


def _deal(fits: Column, inside: Mask, most: int) -> Column:
    """
    Return the fits with those inside cut so that they sum to so many at most, the first ones first.
    """
    ends = np.minimum(np.cumsum(np.where(inside, fits, 0)), most)
    found: Column = np.where(inside, np.diff(ends, prepend=0), fits)
    return found
