"""
The rows of a decision trace: amounts that were checked, with what there is of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from domain.amounts import SLOTS
from domain.resources import Catalogue, ResourceDescriptor, ResourceScope
from domain.resreq.syntax import Per
from projections.scheduling.budgets import PLENTY, Budget
from projections.scheduling.capacity import Capacity, Column
from projections.scheduling.placement.shortages import Check
from projections.scheduling.request import MILLI, HostNeed, Part, SharedNeed, Usage
from projections.scheduling.trace import Row

Overage = Callable[[str], Column]
"""Gives, of a resource, what jobs use beyond what they asked for, by host."""


@dataclass(slots=True, frozen=True)
class Amounts:
    """
    Hold, of one check, what each host has, in thousandths.
    """

    total: Column
    in_use: Column
    reserved: Column
    available: Column


class Rows:
    """
    Make rows.

    Args:
        capacity: What hosts have, read only.
        catalogue: What the names mean.
        overage: As above.
    """

    def __init__(self, capacity: Capacity, catalogue: Catalogue, overage: Overage) -> None:
        self._capacity = capacity
        self._catalogue = catalogue
        self._overage = overage
        self._known: dict[str, tuple[str, ...]] = {}

    # -- of one host

    def amounts(self, check: Check, part: Part) -> Amounts:
        """
        Return what hosts have of what a check is about.
        """
        capacity, nothing = self._capacity, np.zeros(self._capacity.hosts, np.int64)
        available = check.amounts()
        if check.detail:
            budget = next(each for each in part.budgets if _is_about(each, check))
            total, used = (_columns(each, capacity) for each in capacity.limits.stand(budget))
            return Amounts(total, used, used, np.minimum(available, PLENTY))
        if check.resource == SLOTS:
            used = capacity.used * MILLI
            return Amounts(capacity.slots * MILLI, used, used, available)
        pools = capacity.pools.by_name.get(check.resource)
        if pools is not None:
            total, used = nothing.copy(), nothing.copy()
            for pool in pools:
                total[pool.members], used[pool.members] = pool.total, pool.charged
            return Amounts(total, used, used, available)
        column = capacity.resources.get(check.resource)
        if column is None:
            return Amounts(np.maximum(available, 0), nothing, nothing, available)
        reserved = column.charged - self._overage(check.resource)
        return Amounts(column.total, column.charged, reserved, available)

    def of_host(self, check: Check, amounts: Amounts, number: int, tasks: int) -> Row:
        """
        Return the row of one host that didn't have enough for so many tasks.
        """
        flags = ["limit"] if check.detail else []
        column = self._capacity.resources.get(check.resource)
        if column is not None and not check.detail and bool(column.is_real[number]):
            flags.append("real")
        flags.extend(self._flags(check.resource))
        requested, available = check.requested(tasks), int(amounts.available[number])
        if requested <= available and not check.detail:
            flags.append("ceiling")
        return Row(
            name=check.resource,
            flags=tuple(flags),
            type=self._type(check.resource),
            total_milli=int(amounts.total[number]),
            in_use_milli=int(amounts.in_use[number]),
            reserved_milli=int(amounts.reserved[number]),
            available_milli=available,
            requested_milli=requested,
            is_met=False,
        )

    # -- of the whole cluster

    def of_shared(self, need: SharedNeed, left: int, least: int) -> Row:
        """
        Return the row of a resource that all hosts share.
        """
        pools = self._capacity.pools.by_name.get(need.resource, [])
        total, charged = (pools[0].total, pools[0].charged) if pools else (0, 0)
        return Row(
            name=need.resource,
            flags=(*self._flags(need.resource), _basis_of(need)),
            type=self._type(need.resource),
            total_milli=total,
            in_use_milli=charged,
            reserved_milli=charged,
            available_milli=left,
            requested_milli=least,
            is_met=left >= least,
        )

    def of_budget(self, budget: Budget, left: int | Column, least: int) -> Row:
        """
        Return the row of a limit; where each host has its own, of the host with the most left.
        """
        most, used = self._capacity.limits.stand(budget)
        flags = ["limit", *self._flags(budget.rule.resource)]
        if not isinstance(left, int):
            flags.append("each_host")
            inside = self._capacity.limits.members(budget.rule)
            place = int(np.argmax(np.where(inside, left, -1))) if inside.any() else -1
            left, most, used = (_at(each, place) for each in (left, most, used))
        return Row(
            name=budget.rule.resource,
            flags=tuple(flags),
            type=self._type(budget.rule.resource),
            total_milli=_at(most, 0),
            in_use_milli=_at(used, 0),
            reserved_milli=_at(used, 0),
            available_milli=left,
            requested_milli=least,
            is_met=left >= least,
        )

    # -- what a resource is

    def _flags(self, name: str) -> tuple[str, ...]:
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = tuple(self._described(name))
        return known

    def _described(self, name: str) -> list[str]:
        found: ResourceDescriptor | None = self._catalogue.get(name)
        if found is None:
            return []
        told = {
            "shared": found.scope is ResourceScope.SHARED,
            "consumable": found.is_consumable,
            "static": found.is_static,
            "units": bool(found.units),
            "release_on_suspend": found.release_on_suspend,
        }
        return [word for word, holds in told.items() if holds]

    def _type(self, name: str) -> str:
        found = self._catalogue.get(name)
        return "number" if found is None else found.value_type.value


def needs_of(usage: Usage) -> tuple[Row, ...]:
    """
    Return what an alternative of rusage asks for; what there is isn't known yet.
    """
    needs = [
        Row(need.resource, (_basis_of(need),), requested_milli=need.milli)
        for need in usage.amounts()
    ]
    bounds = [
        Row(
            each.resource,
            ("threshold", *(("ceiling",) if each.is_ceiling else ())),
            requested_milli=each.milli,
        )
        for each in usage.thresholds
    ]
    return (*needs, *bounds)


def _basis_of(need: HostNeed | SharedNeed) -> str:
    """
    Return per what an amount is asked for, in a word.
    """
    return {Per.TASK: "per_task", Per.HOST: "per_host"}.get(need.per, "per_job")


def _is_about(budget: Budget, check: Check) -> bool:
    return budget.rule.name == check.detail and budget.rule.resource == check.resource


def _columns(amount: int | Column, capacity: Capacity) -> Column:
    if isinstance(amount, int):
        return np.full(capacity.hosts, amount, np.int64)
    return amount


def _at(amount: int | Column, place: int) -> int:
    if isinstance(amount, int):
        return amount
    return int(amount[place]) if 0 <= place < len(amount) else 0
