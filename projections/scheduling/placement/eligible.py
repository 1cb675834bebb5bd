"""
Which hosts match a primary, in host order, and why the others don't.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from domain.reasons import PendReason, ReasonCode
from projections.scheduling.capacity import Column, Mask
from projections.scheduling.placement.ground import Ground
from projections.scheduling.placement.selecting import Selector
from projections.scheduling.placement.shortages import spans_of
from projections.scheduling.request import Condition, Part, Request

RISING: Final = (">", ">=")


@dataclass(slots=True)
class Eligible:
    """
    Hold the hosts that a primary may use.

    Args:
        hosts: Numbers in host order.
        unmatched: (code, detail, hosts that don't match for that), each host once, by its first
            cause in LSF's order.
        firsts: Which of ``hosts`` may be the job's first host, None when any may.
    """

    hosts: Column
    unmatched: list[tuple[ReasonCode, str, Column]] = field(default_factory=list)
    firsts: Mask | None = None

    def reasons(self) -> list[PendReason]:
        """
        Return why the other hosts don't match.
        """
        return [
            PendReason(
                code=code, detail=detail, hosts=spans_of(hosts, np.zeros(_top(hosts), np.int64))
            )
            for code, detail, hosts in self.unmatched
        ]


def _top(hosts: Column) -> int:
    return int(hosts[-1]) + 1 if len(hosts) else 0


def eligible_of(part: Part, request: Request, ground: Ground, group: Mask | None) -> Eligible:
    """
    Return the hosts that a primary may use.

    Args:
        group: Hosts outside of it are no candidates, and have no reason here.
    """
    capacity = ground.capacity
    sieve = _Sieve(ground, ground.takes if group is None else ground.takes & group)
    if request.asked:
        sieve.keep(ReasonCode.HOST_USR_SPEC, "", _asked(request, ground))
    if request.excluded_hosts:
        kept = np.ones(capacity.hosts, np.bool_)
        kept[list(request.excluded_hosts)] = False
        sieve.keep(ReasonCode.SBD_JOB_REQUEUE, "", kept)
    if not ground.is_empty:
        for name in part.loads:
            missing = capacity.selector.unreported(name, ground)
            sieve.keep(ReasonCode.LOAD_UNAVAIL, name, ~missing)
    for condition in part.conditions:
        if not ground.is_empty or condition.is_static or _bounds(condition, capacity.selector):
            mask = capacity.selector.mask(condition, ground)
            detail = condition.text if condition.code is ReasonCode.HOST_RES_REQ else ""
            sieve.keep(condition.code, detail, mask)
    if request.is_exclusive:
        sieve.keep(ReasonCode.HOST_NONEXCLUSIVE, "", ground.idle)
    hosts = np.flatnonzero(sieve.open)
    hosts = _ordered(part, request, ground, hosts)
    return Eligible(hosts, sieve.unmatched, _firsts(request, ground, hosts))


class _Sieve:
    """
    Let hosts through, and keep those that are held back with the first reason.
    """

    def __init__(self, ground: Ground, first: Mask) -> None:
        self.open = first
        self.unmatched: list[tuple[ReasonCode, str, Column]] = []

    def keep(self, code: ReasonCode, detail: str, mask: Mask) -> None:
        held = self.open & ~mask
        if held.any():
            self.unmatched.append((code, detail, np.flatnonzero(held)))
            self.open = self.open & mask


def _bounds(condition: Condition, selector: Selector) -> bool:
    """
    Say whether a condition over free amounts can be judged on an empty cluster: more of what is
    free can only help it.
    """
    found = selector.comparison(condition.expr)
    return found is not None and found[1] in RISING and selector.is_total(found[0])


def _asked(request: Request, ground: Ground) -> Mask:
    names = {choice.host for choice in request.asked}
    return np.array([facts.name in names for facts in ground.capacity.facts], np.bool_)


def _wishes(request: Request, ground: Ground, hosts: Column) -> Column:
    wishes = {choice.host: choice.preference for choice in request.asked}
    facts = ground.capacity.facts
    return np.array([-wishes.get(facts[number].name, 0) for number in hosts.tolist()], np.int64)


def _ordered(part: Part, request: Request, ground: Ground, hosts: Column) -> Column:
    """
    Order hosts by the job's preference, then by its order, then by their joining.
    """
    keys: list[Column] = []
    if any(choice.preference for choice in request.asked):
        keys.append(_wishes(request, ground, hosts))
    if part.order:
        keys += ground.capacity.selector.order_keys(part.order, ground, hosts)
    if not keys:
        return hosts
    ordered: Column = hosts[np.lexsort((hosts, *reversed(keys)))]
    return ordered


def _firsts(request: Request, ground: Ground, hosts: Column) -> Mask | None:
    names = {choice.host for choice in request.asked if choice.is_first}
    if not names:
        return None
    facts = ground.capacity.facts
    return np.array([facts[number].name in names for number in hosts.tolist()], np.bool_)
