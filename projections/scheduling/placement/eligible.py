"""
Which hosts match a primary, in host order, and why the others don't.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from domain.reasons import PendReason, ReasonCode
from projections.scheduling.capacity import Column, Mask
from projections.scheduling.placement.ground import Ground
from projections.scheduling.placement.loads import unknown_load
from projections.scheduling.placement.selecting import Selector
from projections.scheduling.placement.shortages import spans_of
from projections.scheduling.request import Condition, Part, Request

SELECTS: Final = (ReasonCode.HOST_RES_REQ, ReasonCode.HOST_QUE_RESREQ)
"""Codes that name the condition which a host doesn't meet."""

RISING: Final = (">", ">=")


@dataclass(slots=True)
class Eligible:
    """
    Hold the hosts that a primary may use.

    Args:
        hosts: Numbers in host order.
        firsts: Which of ``hosts`` may be the job's first host, None when any may.
        is_static: Whether the others don't match for what changes with their descriptions alone.
        sieve: Works out (code, detail, hosts that don't match for that), each host once, by its
            first cause in LSF's order.
    """

    hosts: Column
    firsts: Mask | None
    is_static: bool
    sieve: Callable[[], list[tuple[ReasonCode, str, Column]]]

    def signature(self) -> tuple[object, ...]:
        """
        Return what differs whenever other hosts don't match, or for other causes; what only the
        descriptions of hosts can change isn't in it.
        """
        if self.is_static:
            return ()
        return tuple((code.value, detail, hosts.tobytes()) for code, detail, hosts in self.sieve())

    def reasons(self) -> list[PendReason]:
        """
        Return why the other hosts don't match.
        """
        return [
            PendReason(
                code=code, detail=detail, hosts=spans_of(hosts, np.zeros(_top(hosts), np.int64))
            )
            for code, detail, hosts in self.sieve()
        ]


def _top(hosts: Column) -> int:
    return int(hosts[-1]) + 1 if len(hosts) else 0


def eligible_of(part: Part, request: Request, ground: Ground, group: Mask | None) -> Eligible:
    """
    Return the hosts that a primary may use.

    Args:
        part: The primary.
        request: Whose it is.
        ground: What hosts have.
        group: Hosts outside of it are no candidates, and have no reason here.
    """
    begin = ground.takes if group is None else ground.takes & group
    is_static = not (
        request.asked
        or request.queue_hosts is not None
        or request.excluded_hosts
        or request.is_exclusive
        or part.loads
        or part.bounds
        or part.stops is not None
    ) and all(condition.is_static for condition in part.conditions)
    if not is_static:
        matching = begin
        for _, _, mask in _causes(part, request, ground):
            matching = matching & mask
    elif part.conditions:
        matching = begin & ground.capacity.selector.static(part.conditions)
    else:
        matching = begin
    hosts = _ordered(part, request, ground, np.flatnonzero(matching))
    sieve = partial(_unmatched, part, request, ground, begin)
    return Eligible(hosts, _firsts(part, request, ground, hosts), is_static, sieve)


def _causes(part: Part, request: Request, ground: Ground) -> Iterator[tuple[ReasonCode, str, Mask]]:
    """
    Yield each cause for which hosts may not match, in LSF's order, with the hosts it lets through.
    """
    capacity = ground.capacity
    if not ground.is_empty:
        for name in part.loads:
            yield ReasonCode.LOAD_UNAVAIL, name, ~capacity.selector.unreported(name, ground)
        for bound in part.bounds:
            yield ReasonCode.LOAD_UNAVAIL, bound.index, ~unknown_load(bound, ground)
    if request.queue_hosts is not None:
        yield ReasonCode.HOST_QUE_MEMB, "", capacity.selector.listed(request.queue_hosts)
    if request.asked:
        yield ReasonCode.HOST_USR_SPEC, "", _asked(request, ground)
    if request.excluded_hosts:
        kept = np.ones(capacity.hosts, np.bool_)
        kept[list(request.excluded_hosts)] = False
        yield ReasonCode.SBD_JOB_REQUEUE, "", kept
    for condition in part.conditions:
        detail = condition.text if condition.code in SELECTS else ""
        if not ground.is_empty or condition.is_static:
            yield condition.code, detail, capacity.selector.mask(condition, ground)
        elif _bounds(condition, capacity.selector):
            yield condition.code, detail, _ever(condition, ground)
    if request.is_exclusive:
        yield ReasonCode.HOST_NONEXCLUSIVE, "", ground.idle
    if part.stops is not None and not ground.is_empty:
        yield ReasonCode.HOST_STOP_COND, "", ~capacity.stopping.where(part.stops)


def _unmatched(
    part: Part, request: Request, ground: Ground, begin: Mask
) -> list[tuple[ReasonCode, str, Column]]:
    """
    Return the hosts that don't match, each with its first cause.
    """
    found = []
    rest = begin
    for code, detail, mask in _causes(part, request, ground):
        held = rest & ~mask
        if held.any():
            found.append((code, detail, np.flatnonzero(held)))
            rest = rest & mask
    return found


def _bounds(condition: Condition, selector: Selector) -> bool:
    """
    Say whether a condition over free amounts can be judged on an empty cluster: more of what is
    free can only help it.
    """
    found = selector.comparison(condition.expr)
    return found is not None and found[1] in RISING and selector.is_total(found[0])


def _ever(condition: Condition, ground: Ground) -> Mask:
    """
    Return which hosts of an empty cluster can meet a condition over free amounts.
    """
    selector = ground.capacity.selector
    found = selector.comparison(condition.expr)
    met = selector.mask(condition, ground)
    return met if found is None else met | selector.may_report(found[0], ground)


def _asked(request: Request, ground: Ground) -> Mask:
    names = {choice.host for choice in request.asked}
    return np.array([facts.name in names for facts in ground.capacity.facts], np.bool_)


def _wishes(request: Request, ground: Ground, hosts: Column) -> Column:
    if not request.asked and request.queue_hosts is not None:
        return -ground.capacity.selector.preferences(request.queue_hosts)[hosts]
    wishes = {choice.host: choice.preference for choice in request.asked}
    facts = ground.capacity.facts
    return np.array([-wishes.get(facts[number].name, 0) for number in hosts.tolist()], np.int64)


def _ordered(part: Part, request: Request, ground: Ground, hosts: Column) -> Column:
    """
    Order hosts by the job's preference, then by its order, then by their joining.
    """
    keys: list[Column] = []
    if any(choice.preference for choice in request.asked) or (
        not request.asked and request.queue_hosts is not None
    ):
        keys.append(_wishes(request, ground, hosts))
    if part.order:
        keys += ground.capacity.selector.order_keys(part.order, ground, hosts)
    return sorted_hosts(hosts, keys)


def sorted_hosts(hosts: Column, keys: list[Column]) -> Column:
    """
    Return hosts sorted by keys, the most significant first, ties by their joining.
    """
    if not keys or not len(hosts):
        return hosts
    if len(keys) == 1:
        places = np.argsort(keys[0], kind="stable")
    else:
        places = np.lexsort((hosts, *reversed(keys)))
    ordered: Column = hosts[places]
    return ordered


def _firsts(part: Part, request: Request, ground: Ground, hosts: Column) -> Mask | None:
    names = set(request.firsts) if part.leads else set()
    if not names:
        return None
    facts = ground.capacity.facts
    return np.array([facts[number].name in names for number in hosts.tolist()], np.bool_)
