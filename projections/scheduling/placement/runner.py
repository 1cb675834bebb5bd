"""
The one runner of all allocators: guards, plans, buckets, rollback, assembly.

A placement changes nothing: it reads the columns and returns an outcome. What is claimed is
committed only by applying the dispatch, so a failure on the way leaves every counter as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar, cast

import numpy as np

from domain.allocations import Allocation, HostRun
from domain.amounts import SLOTS, Amount
from domain.errors import InvariantBroken, PluginFailed
from domain.reasons import PendReason, ReasonCode
from projections.scheduling.capacity import Capacity, Column
from projections.scheduling.placement.plugins import Allocator, FastAllocator, Picked, Plan, View
from projections.scheduling.placement.shortages import (
    PendRecord,
    reasons_of_columns,
    tasks_by_resource,
)
from projections.scheduling.request import MILLI, Request, need_of

T = TypeVar("T")

SERIAL: Final = "seqjob"


@dataclass(slots=True, frozen=True)
class Placed:
    """
    Say that the job can start, and with what.
    """

    allocation: Allocation


@dataclass(slots=True, frozen=True)
class Pending:
    """
    Say that the job can't start now; ``reasons`` works out every reason when somebody needs them.

    ``signature`` tells two pending outcomes of one request apart exactly when their reason sets
    differ.
    """

    signature: tuple[object, ...]
    reasons: Callable[[], tuple[PendReason, ...]]


class PlacementRunner:
    """
    Place requests on the hosts of one core.

    Args:
        capacity: The columns; read, never changed.
        allocators: Every allocator by its name.
        plain: Run every plan literally; otherwise the built-in allocators' fast twins are used.
    """

    def __init__(
        self, capacity: Capacity, allocators: dict[str, Allocator], *, plain: bool = False
    ) -> None:
        self._capacity = capacity
        self._allocators = allocators
        self._plain = plain

    def place(self, request: Request, chain: Sequence[str]) -> Placed | Pending:
        """
        Try to place one request now.

        Args:
            request: What is asked for.
            chain: Names of the allocators for more than one task, in order.

        Raises:
            PluginFailed: An allocator raised; nothing was changed.
        """
        members = self._members(request, chain)
        if not members:
            return _whole_job(ReasonCode.NO_ALLOCATOR)
        if self._plain or not all(hasattr(member, "find") for member in members):
            return self._place_plainly(request, members)
        return self._place_fast(request, [cast("FastAllocator", member) for member in members])

    def _members(self, request: Request, chain: Sequence[str]) -> list[Allocator]:
        """
        Route by the count of tasks: one goes to ``seqjob``, more to those of the chain that accept.
        """
        names = (SERIAL,) if request.tasks_max == 1 else chain
        found = [self._allocators[name] for name in names]
        return [
            member
            for member in found
            if _guarded(member, lambda member=member: member.accepts(request.tasks_max))
        ]

    def fits(self, request: Request) -> Column:
        """
        Return how many tasks each host could take now, 0 where it takes none.
        """
        if not request.needs:
            return self._capacity.usable
        columns = tasks_by_resource(request, self._capacity, request.tasks_max)
        return np.minimum.reduce(columns)

    def never(self, request: Request, chain: Sequence[str]) -> bool:
        """
        Say whether even the empty cluster, every host open, couldn't hold the request.

        An allocator that has no fast twin is taken to place whatever the hosts together can hold.
        """
        capacity = self._capacity
        columns = [capacity.slots]
        for need in request.needs:
            column = capacity.resources.get(need.resource)
            total = np.zeros(capacity.hosts, np.int64) if column is None else column.total
            if need.per_task and need.milli:
                columns.append(total // need.milli)
            else:
                columns.append(np.where(total >= need.milli, capacity.slots, 0))
        fits = np.minimum.reduce(columns)
        total_fits = int(fits.sum())
        if total_fits < request.tasks_min:
            return True
        view = View(request, capacity, fits)
        return not any(
            not hasattr(member, "find")
            or cast("FastAllocator", member).find(request.tasks_min, view, total_fits) is not None
            for member in self._members(request, chain)
        )

    # -- fast

    def _place_fast(self, request: Request, members: list[FastAllocator]) -> Placed | Pending:
        """
        Place by the columns.

        Equivalent to: ``_place_plainly``. Differs in: no plan is tried that must fail.
        """
        capacity = self._capacity
        if not request.needs and capacity.usable_total < request.tasks_min:
            return self._pending_fast(request, capacity.usable, members)
        fits = self.fits(request)
        total = int(fits.sum()) if request.needs else capacity.usable_total
        view = View(request, capacity, fits)
        for tasks in range(min(request.tasks_max, total), request.tasks_min - 1, -1):
            for member in members:
                picked = _guarded(
                    member, lambda member=member, tasks=tasks: member.find(tasks, view, total)
                )
                if picked is not None:
                    return Placed(assemble(request, picked, member.name))
        return self._pending_fast(request, fits, members)

    def _pending_fast(
        self, request: Request, fits: Column, members: list[FastAllocator]
    ) -> Pending:
        """
        Describe the failure without working out its reasons: a slots-only request that fails is
        short of slots on every host that takes jobs, so only the hosts' status can make its reasons
        differ.
        """
        capacity = self._capacity
        matching = capacity.takes_jobs
        even = any(member.name == "parjob" for member in members)
        tasks = request.tasks_min
        masks = (
            ()
            if not request.needs
            else tuple(
                (matching & (column < tasks)).tobytes()
                for column in tasks_by_resource(request, capacity, tasks)
            )
        )
        return Pending(
            (capacity.status, *masks),
            lambda: tuple(reasons_of_columns(request, capacity, fits, matching, even=even)),
        )

    # -- plain

    def _place_plainly(self, request: Request, members: Sequence[Allocator]) -> Placed | Pending:
        """
        Place literally by the specification: the greatest count that any member can place, then the
        first member that places it; each member's plans in order; the first plan that is satisfied
        whole wins.
        """
        record = PendRecord()
        view = View(request, self._capacity, self.fits(request))
        for tasks in range(request.tasks_max, request.tasks_min - 1, -1):
            for member in members:
                kept = record if tasks == request.tasks_min else PendRecord()
                picked = _guarded(
                    member,
                    lambda member=member, tasks=tasks, kept=kept: self._try_plans(
                        member, tasks, view, kept
                    ),
                )
                if picked is not None:
                    return Placed(assemble(request, picked, member.name))
        reasons = record.reasons(request, self._capacity)
        return Pending((self._capacity.status, identity_of(reasons)), lambda: reasons)

    def _try_plans(
        self, member: Allocator, tasks: int, view: View, record: PendRecord
    ) -> Picked | None:
        plans = member.plans(tasks, view)
        if plans is None:
            record.add_whole(ReasonCode.NO_PLAN, member.name)
            return None
        iterator = iter(plans)
        try:
            for plan in iterator:
                picked = None if plan.is_empty else self._try_plan(plan, view, record)
                if picked is not None:
                    return picked
            return None
        finally:
            close = getattr(iterator, "close", None)
            if close is not None:
                close()

    def _try_plan(self, plan: Plan, view: View, record: PendRecord) -> Picked | None:
        """
        Give each bucket the first host that fits and isn't claimed; a bucket without one gives up
        every claim.
        """
        claims: dict[int, int] = {}
        for bucket in plan.buckets():
            host = self._first_host(bucket, claims, view, record)
            if host is None:
                return None
            claims[host] = bucket
        return [(np.array([host]), tasks) for host, tasks in claims.items()]

    def _first_host(
        self, bucket: int, claims: dict[int, int], view: View, record: PendRecord
    ) -> int | None:
        """
        Iterate afresh over the matching hosts: one too small for a large bucket may fit a later,
        smaller one.
        """
        for host in np.flatnonzero(self._capacity.takes_jobs).tolist():
            if host in claims:
                continue
            short = list(self._shortages(view.request, host, bucket))
            if not short:
                return host
            for resource, requested in short:
                record.add(resource, host, requested)
        return None

    def _shortages(self, request: Request, host: int, bucket: int) -> Iterator[tuple[str, int]]:
        """
        Yield each resource that the host is short of for a bucket, with the amount requested in
        thousandths.
        """
        capacity = self._capacity
        if capacity.usable[host] < bucket:
            yield SLOTS, bucket * MILLI
        for need in request.needs:
            column = capacity.resources.get(need.resource)
            available = 0 if column is None else int(column.available[host])
            if available < need_of(need, bucket):
                yield need.resource, need_of(need, bucket)


def assemble(request: Request, picked: Picked, allocator: str) -> Allocation:
    """
    Build the allocation: one share per claimed host, in claim order, neighbours with equal shares
    as one run.
    """
    runs: list[HostRun] = []
    for hosts, tasks in picked:
        amounts = tuple(
            Amount(resource=need.resource, milli=need_of(need, tasks)) for need in request.needs
        )
        if len(hosts) == 1:
            runs.append(HostRun(first=int(hosts[0]), tasks=tasks, amounts=amounts))
            continue
        cuts = (np.flatnonzero(np.diff(hosts) != 1) + 1).tolist()
        edges = [0, *cuts, len(hosts)]
        for start, stop in zip(edges, edges[1:], strict=False):
            runs.append(
                HostRun(first=int(hosts[start]), hosts=stop - start, tasks=tasks, amounts=amounts)
            )
    return Allocation(runs=_joined(runs), allocator=allocator)


def _joined(runs: list[HostRun]) -> tuple[HostRun, ...]:
    """
    Join runs that follow each other with equal shares, so that the same claims give the same runs
    however picked.
    """
    if len(runs) < 2:
        return tuple(runs)
    joined = [runs[0]]
    for run in runs[1:]:
        last = joined[-1]
        follows = last.first + last.hosts == run.first
        if follows and last.tasks == run.tasks and last.amounts == run.amounts:
            joined[-1] = last.model_copy(update={"hosts": last.hosts + run.hosts})
        else:
            joined.append(run)
    return tuple(joined)


def identity_of(reasons: Sequence[PendReason]) -> tuple[object, ...]:
    """
    Return what makes two reason sets differ: codes, resources, details and hosts, not the amounts.
    """
    return tuple(
        sorted(
            {
                (reason.code.value, reason.resource, reason.detail, number)
                for reason in reasons
                for number in _numbers(reason)
            }
        )
    )


def _numbers(reason: PendReason) -> Iterator[int]:
    if not reason.hosts:
        yield -1
    for span in reason.hosts:
        yield from range(span.first, span.first + span.hosts)


def _whole_job(code: ReasonCode, detail: str = "") -> Pending:
    reasons = (PendReason(code=code, detail=detail),)
    return Pending((code, detail), lambda: reasons)


def _guarded(member: Allocator, call: Callable[[], T]) -> T:
    """
    Call into a plug-in; whatever it raises becomes that plug-in's failure.
    """
    try:
        return call()
    except (PluginFailed, InvariantBroken):
        raise
    except Exception as error:
        raise PluginFailed(member.name, "", f"{type(error).__name__}: {error}") from error
