"""
What a failed placement leaves behind: which hosts were short of what.

The plain runner collects it host by host; ``smallest_failed`` gives the same from the columns for
the built-in allocators, and ``Scan`` plan by plan for all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

import numpy as np

from domain.allocations import HostSpan
from domain.amounts import MEM, SLOTS
from domain.limits import JOBS
from domain.reasons import PendReason, ReasonCode
from domain.resreq.syntax import Per, SpanForm
from projections.scheduling.budgets import PLENTY
from projections.scheduling.capacity import Capacity, Column, Mask
from projections.scheduling.placement.checks import Check
from projections.scheduling.placement.ground import Ground
from projections.scheduling.placement.loads import checks_of_hosts, checks_of_queue
from projections.scheduling.request import (
    MILLI,
    HostNeed,
    Part,
    SharedNeed,
    Threshold,
    Usage,
)

__all__ = ["MEM", "Check", "checks_of", "identity_of", "spans_of", "status_reasons"]


def checks_of(part: Part, usage: Usage, ground: Ground, tasks: int) -> list[Check]:
    """
    Return what a host must have for a primary, in LSF's order of causes: what limits and queues
    leave of it, slots, the load that the host itself bounds, what one user may have there, then
    each amount, each threshold, and the load that the queue bounds.

    Args:
        part: The primary.
        usage: Which alternative of what it reserves.
        ground: What hosts have.
        tasks: Of how many tasks the job is, for amounts per job.
    """
    budgets = list(_budgets(part, usage, ground, tasks))
    return [
        *(check for check in budgets if check.code is not ReasonCode.HOST_USR_JLIMIT),
        _slots(part, ground),
        *checks_of_hosts(part.bounds, ground),
        *(check for check in budgets if check.code is ReasonCode.HOST_USR_JLIMIT),
        *(_amount(need, ground, tasks) for need in usage.needs),
        *(_pooled(pooled, ground) for pooled in usage.pooled),
        *(_threshold(threshold, ground) for threshold in usage.thresholds),
        *checks_of_queue(part.bounds, ground),
    ]


def _budgets(part: Part, usage: Usage, ground: Ground, tasks: int) -> Iterator[Check]:
    """
    Yield what budgets of hosts leave on each host. What hosts have together is left to each of
    them; whether they keep within it together is looked at when they are picked.
    """
    for budget in part.budgets:
        rule = budget.rule
        if rule.hosts is None:
            continue
        left = ground.headroom(budget)
        if isinstance(left, int):
            left = np.where(ground.capacity.limits.members(rule), left, PLENTY)
        needs: list[HostNeed] = [] if rule.is_counted else _needs_of(usage, rule.resource, tasks)
        if rule.resource == JOBS:
            needs = [HostNeed(JOBS, MILLI)]
        elif rule.is_counted:
            needs = [HostNeed(rule.resource, MILLI, Per.TASK)]
        for need in needs:
            yield Check(
                rule.codes.of(part.tasks_min),
                rule.resource,
                left,
                need.of,
                lambda most, need=need, left=left: most_tasks(need, left, most),  # type: ignore[misc]
                rule.name,
            )


def _needs_of(usage: Usage, resource: str, tasks: int) -> list[HostNeed]:
    """
    Return what an alternative takes of a resource on its hosts.
    """
    return [
        HostNeed(resource, need.milli, need.per, tasks) if need.per is Per.JOB else need
        for need in usage.needs
        if need.resource == resource
    ]


def slot_code(part: Part) -> ReasonCode:
    """
    Return the code of a host that is short of slots: with a span of a fixed tile, the tile doesn't
    fit.
    """
    if part.span is None or (part.span.form is SpanForm.STRIPE and not part.span.count):
        return ReasonCode.HOST_SLOTS
    return ReasonCode.JOB_NO_SPAN


def _slots(part: Part, ground: Ground) -> Check:
    usable = ground.usable
    return Check(
        slot_code(part),
        SLOTS,
        usable,
        lambda tasks: tasks * MILLI,
        lambda most: usable,
        scale=MILLI,
    )


def _amount(need: HostNeed, ground: Ground, tasks: int) -> Check:
    if need.per is Per.JOB:
        need = replace(need, tasks=tasks)
    available = ground.available_to(need)
    return Check(
        ReasonCode.HOST_QUE_RUSAGE if need.is_queues else ReasonCode.HOST_JOB_RUSAGE,
        need.resource,
        available,
        need.of,
        lambda most: most_tasks(need, available, most),
    )


def most_tasks(need: HostNeed, available: Column, most: int) -> Column:
    """
    Return how many tasks, up to ``most``, hosts with so much available could take.
    """
    if need.per is Per.TASK:
        return available // need.milli
    if need.per is Per.HOST:
        return np.where(available >= need.milli, most, 0)
    # t tasks take ceil(milli * t / tasks), which fits exactly if milli * t <= available * tasks.
    if need.milli * need.tasks >= 2**62:
        exact = [min(each, need.milli) * need.tasks // need.milli for each in available.tolist()]
        return np.array(exact, np.int64)
    return np.minimum(available, need.milli) * need.tasks // need.milli


def _pooled(need: SharedNeed, ground: Ground) -> Check:
    per = Per.TASK if need.per is Per.TASK else Per.HOST
    return _amount(HostNeed(need.resource, need.milli, per, is_queues=need.is_queues), ground, 1)


def _threshold(threshold: Threshold, ground: Ground) -> Check:
    """
    Check a bound of what must be there before; what a host doesn't have or report meets none.
    """
    amounts = ground.capacity.selector.amounts(threshold.resource, ground)
    if threshold.is_ceiling:
        good = (amounts <= threshold.milli) & (amounts >= 0)
    else:
        good = amounts >= threshold.milli
    if ground.is_empty and threshold.is_ceiling:
        good = np.ones(len(amounts), np.bool_)
    return Check(
        ReasonCode.HOST_JOB_RUSAGE,
        threshold.resource,
        np.maximum(amounts, 0),
        lambda tasks: threshold.milli,
        lambda most: np.where(good, most, 0),
    )


def spans_of(hosts: Column, available: Column) -> tuple[HostSpan, ...]:
    """
    Return ascending host numbers as runs of neighbours that have the same available.
    """
    if len(hosts) == 0:
        return ()
    amounts = available[hosts]
    cuts = np.flatnonzero((np.diff(hosts) != 1) | (np.diff(amounts) != 0)) + 1
    edges = [0, *cuts.tolist(), len(hosts)]
    firsts, amounts_of = hosts[edges[:-1]].tolist(), amounts[edges[:-1]].tolist()
    lengths = [stop - start for start, stop in pairwise(edges)]
    return tuple(map(_span, firsts, lengths, amounts_of))


# hot: a week of UB-HPC on its slurm.conf; the same spans come again and again, and a model costs
# ten times as much as finding one.
@lru_cache(maxsize=1 << 16)
def _span(first: int, hosts: int, available_milli: int) -> HostSpan:
    """
    Return a span, one object for equal ones.
    """
    return HostSpan(first=first, hosts=hosts, available_milli=available_milli)


def status_reasons(capacity: Capacity, causes: list[tuple[ReasonCode, Mask]]) -> list[PendReason]:
    """
    Return the reasons of hosts that take no jobs, whatever the job.
    """
    if capacity.hosts == 0:
        return [PendReason(code=ReasonCode.NO_HOSTS)]
    nothing = np.zeros(capacity.hosts, np.int64)
    return [
        PendReason(code=code, hosts=spans_of(np.flatnonzero(mask), nothing))
        for code, mask in causes
        if mask.any()
    ]


# ------------------------------------------------------------------ buckets that failed on a host


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
       every host that can't take q + 1 is noted with it;
    2. else the bucket q scans every unclaimed host in vain, so every host that can't take q is
       noted with q, and the hosts before the r-th that can take q + 1 are noted with q + 1 where
       they can't.
    """
    limit = np.minimum(limit, tasks)
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


def reasons_of_sizes(check: Check, sizes: Column, hosts: Column) -> list[PendReason]:
    """
    Return the reasons of one check, smallest amount first.

    Args:
        check: What failed.
        sizes: Per place in host order, the smallest bucket that failed by this check, 0 for none.
        hosts: The number of each place.
    """
    by_amount: dict[int, list[Column]] = {}
    for size in np.unique(sizes[sizes > 0]).tolist():
        by_amount.setdefault(check.requested(size), []).append(hosts[sizes == size])
    amounts = check.amounts() if by_amount else check.available
    return [
        PendReason(
            code=check.code,
            resource=check.resource,
            detail=check.detail,
            requested_milli=requested,
            hosts=spans_of(np.sort(np.concatenate(found)), amounts),
        )
        for requested, found in sorted(by_amount.items())
    ]


def identity_of(reasons: Sequence[PendReason]) -> tuple[object, ...]:
    """
    Return what makes two reason sets differ: codes, resources, details, levels and hosts, not the
    amounts.
    """
    hosts_of: dict[tuple[object, ...], list[tuple[int, int]]] = {}
    for reason in reasons:
        key = (
            str(reason.code), reason.resource, reason.detail, reason.alternative, reason.member,
        )  # fmt: skip
        spans = [(span.first, span.first + span.hosts) for span in reason.hosts]
        hosts_of.setdefault(key, []).extend(spans)
    return tuple(sorted((key, _united(hosts_of[key])) for key in hosts_of))


def _united(spans: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """
    Return runs of hosts as few as can be, in order.
    """
    found: list[tuple[int, int]] = []
    for first, stop in sorted(spans):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(stop, found[-1][1]))
        else:
            found.append((first, stop))
    return tuple(found)
