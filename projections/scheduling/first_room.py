"""
How many running jobs must have ended before a request can fit: a bound, worked out from columns.

No ending before that needs a trial. Of requests that fit wherever more is free the first ending
with which they fit can be looked for in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from domain.resreq.syntax import SpanForm
from projections.scheduling.capacity import Capacity, Column, Mask
from projections.scheduling.endings import NEVER, Endings
from projections.scheduling.placement.allocators import Fill, ParJob, SeqJob
from projections.scheduling.placement.plugins import Allocator
from projections.scheduling.placement.relief import Relief
from projections.scheduling.placement.repeats import is_plain
from projections.scheduling.placement.span import OneHost, Tile
from projections.scheduling.request import HostNeed, Part, Request

GREEDY: Final = (SeqJob, ParJob, Fill, OneHost, Tile)
"""
With each of these a count of tasks that can be placed still can be when hosts take more: one host
that takes it (SeqJob, OneHost); so many that take a tile, and one more that takes the rest (Tile);
for some number of hosts so many that take the larger share, and all of them the smaller (ParJob);
enough together (Fill). Blocks and tiles by slots go by host order: more room may move the last
one to where the rest doesn't fit.
"""


def is_counted(request: Request, capacity: Capacity) -> bool:
    """
    Say whether nothing but slots, amounts and named units of hosts, and which of them match, take
    jobs and are idle, decides whether a request fits.

    Args:
        request: What is asked for.
        capacity: Which resources there are.

    Alternatives, compounds, hosts that must be alike, budgets, loads, thresholds, orders and hosts
    that must be first are left out, though some of them would do.
    """
    if len(request.branches) > 1 or len(request.branches[0].parts) > 1:
        return False
    if request.firsts or request.budgets or request.hosts_max is not None:
        return False
    part, pools = request.only, capacity.pools.by_name
    if request.branches[0].same or not is_plain(part):
        return False
    return not any(need.resource in pools for need in part.usages[0].needs)


def is_helped_by_more(request: Request, base: Relief) -> bool:
    """
    Say whether a counted request that fits now still does when jobs have ended; one that fits when
    some have does so when more have.

    A host that must be idle, and of which something is kept for others, counts as idle while nobody
    has ended and no longer afterwards.
    """
    return not (request.is_exclusive and (base.slots < 0).any())


def are_greedy(members: Sequence[Allocator]) -> bool:
    """
    Say whether with each of these more room never makes a count of tasks impossible.
    """
    return all(type(member) in GREEDY for member in members)


def endings_needed(
    request: Request, capacity: Capacity, base: Relief, endings: Endings
) -> int | None:
    """
    Return with how many endings a request may fit at the earliest, None when it won't with all.

    Args:
        request: A counted one.
        capacity: What hosts are.
        base: How they differ already.
        endings: Of running jobs; in sync.

    Equivalent to: 0, from where ends are tried one after the other. Differs in: where all tasks go
    to buckets of known sizes, so many hosts must have got back what one of these needs; elsewhere
    hosts must have got back enough slots together. Both are counted in full, whatever is clamped
    when it is placed. A host that must be idle must have got back all that is in use.
    """
    part = request.only
    hosts = _matching(request, capacity)
    free = capacity.slots - capacity.used + base.slots
    buckets = _buckets(part)
    if buckets is None:
        short = part.tasks_min - int(np.maximum(free, 0)[hosts].sum())
        found = endings.slots_first(hosts, short) if short > 0 else 0
        return None if found == NEVER else found
    needed = 0
    for size, count in buckets:
        ready = endings.slots_ready(size - free)
        if request.is_exclusive:
            ready = np.maximum(ready, endings.slots_ready(capacity.used))
        for need in part.usages[0].needs:
            ready = np.maximum(ready, _amount_ready(need, size, capacity, base, endings))
        ready = ready[hosts]
        if count > len(ready):
            return None
        needed = max(needed, int(np.partition(ready, count - 1)[count - 1]))
    return None if needed == NEVER else needed


def _matching(request: Request, capacity: Capacity) -> Mask:
    """
    Return the hosts that match, those too that one job has alone.
    """
    hosts: Mask = capacity.takes_jobs | (capacity.exclusive > 0)
    if request.only.conditions:
        hosts = hosts & capacity.selector.static(request.only.conditions)
    if request.queue_hosts is not None:
        hosts = hosts & capacity.selector.listed(request.queue_hosts)
    return hosts


def _amount_ready(
    need: HostNeed, size: int, capacity: Capacity, base: Relief, endings: Endings
) -> Column:
    """
    Return by host with how many endings it has what a bucket needs, as far as it is charged: what
    is measured may leave less.
    """
    column = capacity.resources.get(need.resource)
    if column is None:
        return np.full(capacity.hosts, NEVER)
    left = column.total - column.charged
    if need.resource in base.charged:
        left = left + base.charged[need.resource]
    return endings.amounts_ready(need.resource, need.of(size) - left)


def _buckets(part: Part) -> list[tuple[int, int]] | None:
    """
    Return (tasks, count of hosts that must take so many) for the fewest tasks, None when they may
    be divided in several ways.
    """
    tasks = part.tasks_min
    if part.tasks_max == 1:
        return [(1, 1)]
    if part.span is None:
        return None
    if part.span.form is SpanForm.ONE_HOST:
        return [(tasks, 1)]
    whole, rest = divmod(tasks, part.span.count)
    found = [(part.span.count, whole)] if whole else []
    return [*found, (rest, whole + 1)] if rest else found


def rising(first: int, step: int, last: int) -> list[int]:
    """
    Return numbers from the first to the last, ever further apart.
    """
    found = [first]
    while found[-1] < last:
        found.append(min(last, found[-1] + step))
        step *= 4
    return found
