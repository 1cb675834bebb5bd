"""
What a failed placement leaves behind: which hosts were short of what.

``PendRecord`` collects it as the plain runner goes. ``reasons_of_columns`` gives the same from the
columns.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from domain.allocations import HostSpan
from domain.amounts import MEM, SLOTS
from domain.reasons import PendReason, ReasonCode
from projections.scheduling.capacity import Capacity, Column, Mask
from projections.scheduling.request import MILLI, Request, need_of

__all__ = ["MEM", "PendRecord", "available_column", "status_reasons", "tasks_by_resource"]


@dataclass(slots=True)
class PendRecord:
    """
    Collect shortages: (resource, host) -> the smallest amount that was tried and didn't fit.
    """

    shortages: dict[tuple[str, int], int] = field(default_factory=dict)
    whole: list[PendReason] = field(default_factory=list)

    def add(self, resource: str, host: int, requested_milli: int) -> None:
        """
        Record that a host was short, once per resource, with the smallest amount.
        """
        known = self.shortages.get((resource, host))
        if known is None or requested_milli < known:
            self.shortages[resource, host] = requested_milli

    def add_whole(self, code: ReasonCode, detail: str = "") -> None:
        """
        Record a reason of the whole job.
        """
        reason = PendReason(code=code, detail=detail)
        if reason not in self.whole:
            self.whole.append(reason)

    def reasons(self, request: Request, capacity: Capacity) -> tuple[PendReason, ...]:
        """
        Return every reason: of the whole job, of hosts that take no jobs, and of hosts that are
        short.
        """
        found = list(self.whole)
        for resource in (SLOTS, *(need.resource for need in request.needs)):
            found += _reasons_of_resource(self.shortages, resource, capacity)
        return tuple(found)


def _reasons_of_resource(
    shortages: dict[tuple[str, int], int], resource: str, capacity: Capacity
) -> list[PendReason]:
    """
    Group one resource's shortages by the amount requested, smallest first.
    """
    by_amount: dict[int, list[int]] = {}
    for (name, host), requested in shortages.items():
        if name == resource:
            by_amount.setdefault(requested, []).append(host)
    code = ReasonCode.HOST_SLOTS if resource == SLOTS else ReasonCode.HOST_JOB_RUSAGE
    available = available_column(capacity, resource)
    return [
        PendReason(
            code=code,
            resource=resource,
            requested_milli=requested,
            hosts=spans_of(np.array(sorted(by_amount[requested])), available),
        )
        for requested in sorted(by_amount)
    ]


def available_column(capacity: Capacity, resource: str) -> Column:
    """
    Return what each host has available, in thousandths; nothing where no host has such a resource.
    """
    if resource == SLOTS:
        return capacity.usable * MILLI
    column = capacity.resources.get(resource)
    return np.zeros(capacity.hosts, np.int64) if column is None else column.available


def spans_of(hosts: Column, available: Column) -> tuple[HostSpan, ...]:
    """
    Return ascending host numbers as runs of neighbours that have the same available.
    """
    if len(hosts) == 0:
        return ()
    amounts = available[hosts]
    cuts = np.flatnonzero((np.diff(hosts) != 1) | (np.diff(amounts) != 0)) + 1
    edges = [0, *cuts.tolist(), len(hosts)]
    return tuple(
        HostSpan(first=int(hosts[start]), hosts=stop - start, available_milli=int(amounts[start]))
        for start, stop in zip(edges, edges[1:], strict=False)
    )


def tasks_by_resource(request: Request, capacity: Capacity, tasks_limit: int) -> list[Column]:
    """
    Return, for slots and then for each need, how many tasks each host could take by that resource
    alone.

    An amount per host that fits doesn't bound the tasks: it then counts as ``tasks_limit``.
    """
    columns = [capacity.usable]
    for need in request.needs:
        available = available_column(capacity, need.resource)
        if need.per_task and need.milli:
            columns.append(available // need.milli)
        else:
            columns.append(np.where(available >= need.milli, tasks_limit, 0))
    return columns


def status_reasons(
    capacity: Capacity, closed: Mask, unreachable: Mask, left: Mask
) -> list[PendReason]:
    """
    Return the reasons of hosts that take no jobs, whatever the job.
    """
    if capacity.hosts == 0:
        return [PendReason(code=ReasonCode.NO_HOSTS)]
    nothing = np.zeros(capacity.hosts, np.int64)
    masks = (
        (ReasonCode.HOST_DISABLED, closed),
        (ReasonCode.SBD_UNREACH, unreachable),
        (ReasonCode.LOAD_UNAVAIL, left),
    )
    return [
        PendReason(code=code, hosts=spans_of(np.flatnonzero(mask), nothing))
        for code, mask in masks
        if mask.any()
    ]


def smallest_failed(tasks: int, fits: Column, limit: Column, *, even: bool) -> Column:
    """
    Return, per host, the smallest bucket above ``limit`` that the host was tried with and failed, 0
    when none was.

    Equivalent to: run every plan of ``parjob`` (with even) or the plan [tasks] alone on hosts that
    can take ``fits`` tasks, all of which fail, and note for each host each bucket it was scanned
    for and too small. Differs in: plans are taken together by the quotient q of their even
    partition.

    Of the plans with quotient q, k from k_low to k_high buckets, r = tasks - k * q of them of size
    q + 1:

    1. where r > hosts that can take q + 1: the bucket q + 1 scans every unclaimed host in vain, so
    every host that
       can't take q + 1 is noted with it;
    2. else the bucket q scans every unclaimed host in vain, so every host that can't take q is
    noted with q, and the
       hosts before the r-th that can take q + 1 are noted with q + 1 where they can't.
    """
    best = np.where((fits < tasks) & (limit < tasks), tasks, 0)
    if not even:
        return best
    top = int(min(limit.max(initial=0), tasks))
    sizes = sorted({*range(1, top + 1), *_quotients_above(tasks, top)}, reverse=True)
    for each in sizes:
        _note_quotient(tasks, each, fits, limit, best)
    return best


def _quotients_above(tasks: int, top: int) -> set[int]:
    """
    Return the smallest quotients of even partitions above ``top``: larger ones can't give a smaller
    bucket.
    """
    found = set()
    for hosts in (tasks // (top + 1), tasks // (top + 1) + 1):
        if 1 <= hosts <= tasks:
            found.add(tasks // hosts)
    return found


def _note_quotient(tasks: int, each: int, fits: Column, limit: Column, best: Column) -> None:
    """
    Note what the plans of one quotient note; called with falling quotients, so a later note is
    never larger.
    """
    hosts_low, hosts_high = tasks // (each + 1) + 1, tasks // each
    if hosts_low > hosts_high:
        return
    can_larger = fits > each
    larger_hosts = int(can_larger.sum())
    most_larger = tasks - hosts_low * each
    fewest_larger = tasks - hosts_high * each
    noted_larger = np.zeros(len(fits), np.bool_)
    if most_larger > larger_hosts:
        noted_larger |= ~can_larger
    if fewest_larger <= larger_hosts:
        steps = (min(larger_hosts, most_larger) - fewest_larger) // each
        scanned_for = fewest_larger + steps * each
        if scanned_for > 0:
            last = int(np.flatnonzero(can_larger)[scanned_for - 1])
            noted_larger[:last] |= ~can_larger[:last]
    np.copyto(best, each + 1, where=noted_larger & (limit < each + 1))
    if fewest_larger <= larger_hosts:
        np.copyto(best, each, where=(fits < each) & (limit < each))


def reasons_of_columns(
    request: Request, capacity: Capacity, fits: Column, matching: Mask, *, even: bool
) -> list[PendReason]:
    """
    Return the shortages of a placement whose every plan failed, from the columns.

    Equivalent to: the ``PendRecord`` of the plain runner. ``matching`` masks the hosts that were
    candidates.
    """
    tasks = request.tasks_min
    found: list[PendReason] = []
    names = (SLOTS, *(need.resource for need in request.needs))
    numbers = np.flatnonzero(matching)
    limits = tasks_by_resource(request, capacity, tasks)
    for place, (name, limit) in enumerate(zip(names, limits, strict=True)):
        sizes = smallest_failed(tasks, fits[numbers], np.minimum(limit[numbers], tasks), even=even)
        code = ReasonCode.HOST_SLOTS if name == SLOTS else ReasonCode.HOST_JOB_RUSAGE
        available = available_column(capacity, name)
        for requested, hosts in _by_requested(request, place, sizes, numbers):
            found.append(
                PendReason(
                    code=code,
                    resource=name,
                    requested_milli=requested,
                    hosts=spans_of(hosts, available),
                )
            )
    return found


def _by_requested(
    request: Request, place: int, sizes: Column, numbers: Column
) -> list[tuple[int, Column]]:
    """
    Return (amount requested in thousandths, hosts), smallest amount first; an amount per host is
    one amount.
    """
    if place and not request.needs[place - 1].per_task:
        hosts = numbers[sizes > 0]
        return [(request.needs[place - 1].milli, hosts)] if len(hosts) else []
    amounts = []
    for size in np.unique(sizes[sizes > 0]).tolist():
        need = request.needs[place - 1] if place else None
        requested = size * MILLI if need is None else need_of(need, size)
        amounts.append((requested, numbers[sizes == size]))
    return amounts
