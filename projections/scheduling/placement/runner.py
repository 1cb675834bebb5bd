"""
The one runner of all allocators: guards, then levels, primaries, plans and buckets.

A placement changes nothing: it reads the columns and returns an outcome. What is claimed is
committed only by applying the dispatch, so a failure on the way leaves every counter as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, cast

import numpy as np

from domain.allocations import Allocation
from domain.errors import InvariantBroken
from domain.reasons import PendReason, ReasonCode
from projections.scheduling.capacity import Capacity, Column
from projections.scheduling.placement.assembly import Found, allocation_of, runs_of
from projections.scheduling.placement.ground import Ground
from projections.scheduling.placement.levels import Levels
from projections.scheduling.placement.literal import LiteralPart
from projections.scheduling.placement.parts import FastPart, guarded
from projections.scheduling.placement.plugins import Allocator, FastAllocator, View
from projections.scheduling.placement.shortages import checks_of
from projections.scheduling.placement.span import SPAN, planner_of
from projections.scheduling.request import MILLI, Part, Request

SERIAL: Final = "seqjob"
FRAMEWORK: Final = (SERIAL, SPAN)
"""Allocators that the framework routes to by itself; a chain doesn't name them."""


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

    ``signature`` differs whenever the reason sets of two pending outcomes of one request do.
    ``has_failed`` says that something raised on the way: nothing is known about the request then.
    """

    signature: tuple[object, ...]
    reasons: Callable[[], tuple[PendReason, ...]]
    has_failed: bool = False


class PlacementRunner:
    """
    Place requests on the hosts of one core.

    Args:
        capacity: The columns; read, never changed.
        allocators: Every allocator by its name.
        plain: Place everything literally by the specification; otherwise by columns.
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
            PluginFailed: An allocator raised. Whatever is raised, nothing was changed.
        """
        outcome = None
        if request.is_bare and not self._plain:
            outcome = self._place_bare(request, chain)
        return outcome or self.place_on(Ground(self._capacity), request, chain)

    def place_on(self, ground: Ground, request: Request, chain: Sequence[str]) -> Placed | Pending:
        """
        Try to place one request on a ground, such as one on which jobs were released on trial.
        """
        placer = LiteralPart if self._plain else FastPart
        levels = Levels(request, ground, placer, lambda part: self._members(part, chain))
        allocation = levels.place()
        if allocation is not None:
            return Placed(allocation)
        return Pending((self._capacity.status, levels.signature()), levels.reasons)

    def never(self, request: Request, chain: Sequence[str]) -> bool:
        """
        Say whether even the empty cluster, every host open and every alternative too, couldn't hold
        the request.
        """
        least = [
            replace(
                branch,
                parts=tuple(replace(part, tasks_max=part.tasks_min) for part in branch.parts),
            )
            for branch in request.branches
        ]
        whole = replace(request, branches=tuple(least), open_branches=len(least))
        ground = Ground(self._capacity, is_empty=True)
        levels = Levels(whole, ground, FastPart, lambda part: self._members(part, chain))
        return levels.find() is None

    def _members(self, part: Part, chain: Sequence[str]) -> list[Allocator]:
        """
        Route a primary: one task goes to ``seqjob``; a span has its own planner; the rest goes to
        those of the chain that accept it.
        """
        if part.tasks_max > 1 and part.span is not None:
            return [planner_of(part.span)]
        names = (SERIAL,) if part.tasks_max == 1 else chain
        found = [self._allocators[name] for name in names]
        return [member for member in found if guarded(member, member.accepts, part.tasks_max)]

    # -- what most jobs ask for

    # hot: the simulator and the bench of dispatches need it.
    def _place_bare(self, request: Request, chain: Sequence[str]) -> Placed | Pending | None:
        """
        Place a request for tasks and amounts alone, None when some allocator has no short cut.

        Equivalent to: ``place_on``. Differs in: 1. all hosts are looked at as they are, those that
        take no jobs fit nothing; 2. reasons are worked out only when their set may have changed.
        """
        part, capacity = request.only, self._capacity
        members = self._members(part, chain)
        if not members:
            reasons = (PendReason(code=ReasonCode.NO_ALLOCATOR),)
            return Pending((ReasonCode.NO_ALLOCATOR,), lambda: reasons)
        if not all(getattr(member, "failing", "") for member in members):
            return None
        needs = part.usages[0].needs
        if not needs and capacity.usable_total < part.tasks_min:
            return self._pending_bare(request, members, [])
        limits, fits, total = self._fits(part)
        view = View(part, capacity, fits)
        for tasks in range(min(self._within(part), total), part.tasks_min - 1, -1):
            for member in members:
                find = cast("FastAllocator", member).find
                picked = guarded(member, find, tasks, view, total)
                if picked is not None:
                    found = Found(runs_of(needs, picked), (), member.name)
                    return Placed(
                        allocation_of([found], capacity, alternative=0, is_exclusive=False)
                    )
        return self._pending_bare(request, members, limits)

    def _within(self, part: Part) -> int:
        """
        Return the most tasks that budgets leave to a bare primary.
        """
        if not part.budgets:
            return part.tasks_max
        left = [self._capacity.limits.headroom(budget) for budget in part.budgets]
        return min([part.tasks_max, *(each // MILLI for each in left if isinstance(each, int))])

    def _fits(self, part: Part) -> tuple[list[Column], Column, int]:
        """
        Return how many tasks each host could take by each amount, by all, and all together.
        """
        capacity = self._capacity
        if not part.usages[0].needs:
            return [], capacity.usable, capacity.usable_total
        checks = checks_of(part, part.usages[0], Ground(capacity), part.tasks_max)
        limits = [check.limit(part.tasks_max) for check in checks]
        fits = np.minimum.reduce(limits)
        return limits, fits, int(fits.sum())

    def _pending_bare(
        self, request: Request, members: Sequence[Allocator], limits: list[Column]
    ) -> Pending:
        """
        Describe the failure without working out its reasons: a slots-only request that fails is
        short of slots on every host that takes jobs, so only the hosts' status can make its reasons
        differ; with amounts, which hosts are short of which.
        """
        capacity, part = self._capacity, request.only
        tasks = part.tasks_min
        masks = [(capacity.takes_jobs & (limit < tasks)).tobytes() for limit in limits]

        def reasons() -> tuple[PendReason, ...]:
            placer = FastPart(part, request, Ground(capacity), members, None)
            if placer.place() is not None:
                rule = "a bare placement that failed fails again"
                raise InvariantBroken(rule, request.fingerprint)
            return tuple(placer.reasons())

        return Pending((capacity.status, *masks), reasons)
