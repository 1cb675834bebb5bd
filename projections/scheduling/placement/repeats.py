"""
Requests that fail again for the same reasons: those whose buckets are given by what they ask for.

One task, all tasks on one host, so many on each: there is one plan, and whether a host can hold its
buckets is all that counts. As long as every host is what it was to such a request, it fails as it
did.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from domain.amounts import SLOTS
from domain.resreq.syntax import Per, SpanForm
from projections.scheduling.capacity import Capacity, Column, Mask
from projections.scheduling.request import HostNeed, Part, Request
from projections.scheduling.unit_shares import usable_milli

REPEATS_MAX: Final = 4_096

Signature = tuple[object, ...]


class _Bar(NamedTuple):
    """
    Say how much of something a host must have for a bucket, slots in whole ones.
    """

    need: HostNeed
    least: int


@dataclass(slots=True)
class _Failure:
    """
    Hold one failure.

    Args:
        bars: What hosts must have; None when the request isn't one that repeats.
        status: Count of changes of which hosts take jobs, and of what hosts are.
        mark: Place in the journal of touched hosts.
        matching: Which hosts match the request but for being idle.
        reached: By host, which of the bars it reaches.
        never: Whether it could never be placed, with the count of changes as of when that was
            found; None while nobody asked.
    """

    request: Request
    bars: tuple[_Bar, ...] | None
    signature: Signature = ()
    status: int = -1
    mark: int = 0
    matching: Mask | None = None
    reached: Mask | None = None
    never: tuple[int, bool] | None = None


class Repeats:
    """
    Keep failures by fingerprint.
    """

    def __init__(self, capacity: Capacity) -> None:
        self._capacity = capacity
        self._kept: dict[str, _Failure] = {}

    def note(self, request: Request, signature: Signature) -> None:
        """
        Keep how a request has just failed, if it is one that repeats.
        """
        kept = self._kept.get(request.fingerprint)
        if kept is None or kept.request is not request:
            if len(self._kept) >= REPEATS_MAX:
                self._kept.clear()
            kept = self._kept[request.fingerprint] = _Failure(request, bars_of(request))
        if kept.bars is None:
            return
        capacity, part = self._capacity, request.only
        kept.signature, kept.status = signature, capacity.status
        kept.mark = capacity.touches.mark()
        kept.matching = capacity.takes_jobs.copy()
        if part.conditions:
            kept.matching &= capacity.selector.static(part.conditions)
        kept.reached = self._reached(kept, slice(None))

    def still_fails(self, request: Request) -> Signature | None:
        """
        Return how a request failed that fails again for the same reasons, None when it must be
        placed to know.

        Equivalent to: placing it again. Differs in: only the hosts touched since are looked at;
        where they are many, or one reaches other bars than it did, the answer is None.
        """
        kept = self._kept.get(request.fingerprint)
        capacity = self._capacity
        if kept is None or kept.request is not request or kept.status != capacity.status:
            return None
        hosts = capacity.touches.since(kept.mark)
        if hosts is None or kept.matching is None or kept.reached is None:
            return None
        hosts = hosts[kept.matching[hosts]]
        if len(hosts) and (self._reached(kept, hosts) != kept.reached[:, hosts]).any():
            return None
        kept.mark = capacity.touches.mark()
        return kept.signature

    def could_never(self, request: Request, find: Callable[[], bool]) -> bool:
        """
        Return whether even the empty cluster couldn't hold a request.

        Args:
            request: What is asked for.
            find: Works it out; it is asked once for each request that repeats, until hosts are
                described anew, open or shut.
        """
        kept = self._kept.get(request.fingerprint)
        if kept is None or kept.request is not request or kept.bars is None:
            return find()
        status = self._capacity.status
        if kept.never is None or kept.never[0] != status:
            kept.never = (status, find())
        return kept.never[1]

    def _reached(self, kept: _Failure, hosts: Column | slice) -> Mask:
        """
        Return for each bar which of some hosts reach it, and at last which are idle where that
        counts.
        """
        capacity, rows = self._capacity, []
        need, available = None, capacity.usable
        for bar in kept.bars or ():
            if bar.need is not need:
                need, available = bar.need, self._available(bar.need, hosts)
            rows.append(available >= bar.least)
        if kept.request.is_exclusive:
            rows.append(capacity.used[hosts] == 0)
        return np.stack(rows)

    def _available(self, need: HostNeed, hosts: Column | slice) -> Column:
        """
        Return what some hosts have left for a need; see ``Ground.available_to``.
        """
        capacity, name = self._capacity, need.resource
        if name == SLOTS:
            return capacity.usable[hosts]
        column = capacity.resources.get(name)
        if column is None:
            return np.zeros(len(capacity.usable[hosts]), np.int64)
        found = column.available[hosts]
        if name not in capacity.units:
            return found
        free = capacity.units.free(name, capacity.hosts)[hosts]
        with_units = capacity.units.hosts_with(name, capacity.hosts)[hosts]
        return np.where(with_units, np.minimum(usable_milli(free, need), found), found)


def bars_of(request: Request) -> tuple[_Bar, ...] | None:
    """
    Return what hosts must have for the buckets of a request, None when more than that decides
    whether it fails, and why.
    """
    if len(request.branches) > 1 or len(request.branches[0].parts) > 1 or request.is_timed:
        return None
    is_elsewhere = request.asked or request.excluded_hosts or request.queue_hosts is not None
    if is_elsewhere or request.hosts_max is not None or request.budgets or request.branches[0].same:
        return None
    part = request.only
    sizes, needs = _bucket_sizes(part), part.usages[0].needs
    if not sizes or not is_plain(part):
        return None
    slots = HostNeed(SLOTS, 1, Per.TASK)
    return tuple(_Bar(need, need.of(size)) for need in (slots, *needs) for size in sizes)


def is_plain(part: Part) -> bool:
    """
    Say whether a primary asks for nothing but amounts on hosts that their descriptions let match.
    """
    has_more = part.loads or part.order or part.same or part.budgets or part.bounds
    if has_more or part.stops is not None or len(part.usages) > 1:
        return False
    usage = part.usages[0]
    if usage.shared or usage.pooled or usage.thresholds:
        return False
    is_static = all(condition.is_static for condition in part.conditions)
    return is_static and all(need.per is not Per.JOB for need in usage.needs)


def _bucket_sizes(part: Part) -> tuple[int, ...]:
    """
    Return the different buckets of the one plan that there is, none when there are more plans.
    """
    if part.tasks_min != part.tasks_max:
        return ()
    if part.tasks_max == 1:
        return (1,)
    if part.span is None:
        return ()
    if part.span.form is SpanForm.ONE_HOST:
        return (part.tasks_max,)
    if part.span.form is not SpanForm.PTILE or not part.span.count:
        return ()
    whole, rest = divmod(part.tasks_max, part.span.count)
    return ((part.span.count,) if whole else ()) + ((rest,) if rest else ())
