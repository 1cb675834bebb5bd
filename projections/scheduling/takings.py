"""
What a request needs of a thing that limits count, and what an allocation takes of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from domain.allocations import HostRun, SharedAmount
from domain.limits import COUNTED, JOBS, SLOTS, TASKS
from domain.reasons import PendReason
from domain.resreq.syntax import Per
from projections.scheduling.budgets import Rule
from projections.scheduling.request import MILLI, Part, Request

Column = npt.NDArray[np.int64]


def least_need(request: Request, resource: str, *, is_empty: bool = False) -> int:
    """
    Return the least of a thing that any alternative takes, in thousandths.

    Args:
        request: Which.
        resource: Jobs, slots, tasks, or a resource that is reserved.
        is_empty: Look at the alternatives too that aren't open yet.
    """
    if resource == JOBS:
        return MILLI
    opened = len(request.branches) if is_empty else request.open_branches
    return min(
        sum(_least_of(part, resource) for part in branch.parts)
        for branch in request.branches[:opened]
    )


def _least_of(part: Part, resource: str) -> int:
    if resource in COUNTED:
        return part.tasks_min * MILLI
    return min(
        sum(
            need.milli * (part.tasks_min if need.per is Per.TASK else 1)
            for need in usage.amounts()
            if need.resource == resource
        )
        for usage in part.usages
    )


def reason_of(rule: Rule, request: Request, least_milli: int, **more: Any) -> PendReason:
    """
    Return the reason of a job that a rule keeps from starting.
    """
    tasks = min(sum(part.tasks_min for part in branch.parts) for branch in request.branches)
    return PendReason(
        code=rule.codes.of(tasks),
        resource=rule.resource,
        detail=rule.name,
        requested_milli=least_milli,
        **more,
    )


# ------------------------------------------------------------------------- what is taken of a thing


def taken(
    resource: str,
    runs: Sequence[HostRun],
    shared: Sequence[SharedAmount],
    mask: Column | None,
) -> int:
    """
    Return what hosts and shared amounts take of a thing, on the hosts of a mask only where there is
    one.
    """
    found = 0
    for first, stop, milli in on_hosts(resource, runs):
        found += milli * (stop - first if mask is None else int(mask[first:stop].sum()))
    if resource == JOBS:
        return min(found, MILLI)
    if mask is None:
        found += sum(each.milli for each in shared if each.resource == resource)
    return found


def on_hosts(resource: str, runs: Iterable[HostRun]) -> Iterator[tuple[int, int, int]]:
    """
    Yield (first, stop, amount on each) of what runs of hosts take of a thing.
    """
    for run in runs:
        if resource == JOBS:
            milli = MILLI
        elif resource in (SLOTS, TASKS):
            milli = run.tasks * MILLI
        else:
            milli = sum(each.milli for each in run.amounts if each.resource == resource)
        if milli:
            yield run.first, run.first + run.hosts, milli
