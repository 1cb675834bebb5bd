"""
The one runner of all allocators: guards, then levels, primaries, plans and buckets.

A placement changes nothing: it reads the columns and returns an outcome. What is claimed is
committed only by applying the dispatch, so a failure on the way leaves every counter as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import numpy as np

from domain.allocations import Allocation, HostRun, SharedAmount
from domain.errors import InvariantBroken, PluginFailed
from domain.event import sure_of_all
from domain.reasons import PendReason, ReasonCode
from projections.scheduling.budgets import LIMIT_RANK, QUEUE_RANK
from projections.scheduling.capacity import Capacity, Column, Mask
from projections.scheduling.placement.assembly import runs_of, shares_of, with_units
from projections.scheduling.placement.eligible import sorted_hosts
from projections.scheduling.placement.ground import Ground
from projections.scheduling.placement.levels import Levels
from projections.scheduling.placement.literal import LiteralPart
from projections.scheduling.placement.parts import FastPart, failure_in, guarded
from projections.scheduling.placement.plugins import Allocator, FastAllocator, Picked, View
from projections.scheduling.placement.proofs import Proofs
from projections.scheduling.placement.repeats import Repeats
from projections.scheduling.placement.shortages import checks_of
from projections.scheduling.placement.span import SPAN, planner_of
from projections.scheduling.request import MILLI, Part, Request

if TYPE_CHECKING:
    from projections.scheduling.trace_writing import Tracer

SERIAL: Final = "seqjob"
FRAMEWORK: Final = (SERIAL, SPAN)
"""Allocators that the framework routes to by itself; a chain doesn't name them."""

SIGNATURES_MAX: Final = 8_192
"""Of so many requests it is remembered how they failed last."""


class Placed(NamedTuple):
    """
    Say that the job can start, and with what.
    """

    allocation: Allocation


class Pending(NamedTuple):
    """
    Say that the job can't start now; ``reasons`` works out every reason when somebody needs them.

    ``signature`` differs whenever the reason sets of two pending outcomes of one request do.
    ``has_failed`` says that something raised on the way: nothing is known about the request then.
    """

    signature: tuple[object, ...]
    reasons: Callable[[], tuple[PendReason, ...]]
    has_failed: bool = False


class _Bare(NamedTuple):
    """
    Hold how many tasks hosts could take.

    Args:
        limits: By each check, over all hosts; empty for slots alone.
        matching: Which hosts match, None for all that take jobs.
    """

    limits: list[Column]
    fits: Column
    total: int
    matching: Mask | None


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
        self._proofs = Proofs(capacity)
        self._repeats = Repeats(capacity)
        self._signatures: dict[str, tuple[object, ...]] = {}
        self._chain: Sequence[str] = ()
        self._routes: dict[int, tuple[list[FastAllocator], bool]] = {}

    def place(self, request: Request, chain: Sequence[str]) -> Placed | Pending:
        """
        Try to place one request now.

        Args:
            request: What is asked for.
            chain: Names of the allocators for more than one task, in order.

        Raises:
            PluginFailed: An allocator raised. Whatever is raised, nothing was changed.
        """
        if request.is_slots and not self._plain:
            return self._place_anew(request, chain)
        signature = None if self._plain else self._repeats.still_fails(request)
        if signature is not None:
            return Pending(signature, partial(self._reasons_anew, request, chain))
        outcome = self._place_anew(request, chain)
        if isinstance(outcome, Pending) and not self._plain:
            self._repeats.note(request, outcome.signature)
        return outcome

    def _place_anew(self, request: Request, chain: Sequence[str]) -> Placed | Pending:
        """
        Try to place one request, whatever is known of it.
        """
        outcome = None
        if request.is_bare and not self._plain:
            outcome = self._place_bare(request, chain)
        return outcome or self.place_on(Ground(self._capacity), request, chain)

    def _reasons_anew(self, request: Request, chain: Sequence[str]) -> tuple[PendReason, ...]:
        outcome = self._place_anew(request, chain)
        if isinstance(outcome, Placed):
            raise InvariantBroken("a request fails as long as hosts are alike", request.fingerprint)
        return outcome.reasons()

    def place_on(self, ground: Ground, request: Request, chain: Sequence[str]) -> Placed | Pending:
        """
        Try to place one request on a ground, such as one on which jobs were released on trial.
        """
        short = self._short_of_budget(request, ground)
        if short is not None:
            # Whether it is for ever depends on what hosts there are.
            status = self._capacity.status
            return Pending((status, short.code, short.detail), lambda: (short,))
        placer = LiteralPart if self._plain else FastPart
        levels = Levels(
            request, ground, placer, lambda part: self._members(part, chain, ground.tracer)
        )
        allocation = levels.place()
        if allocation is not None:
            return Placed(allocation)
        return Pending((self._capacity.status, levels.signature()), levels.reasons)

    def room_for(
        self, ground: Ground, request: Request, chain: Sequence[str]
    ) -> tuple[tuple[HostRun, ...], tuple[SharedAmount, ...]] | None:
        """
        Return where a request fits on a ground, None when it doesn't.
        """
        found = Levels(request, ground, FastPart, lambda part: self._members(part, chain)).find()
        if found is None:
            return None
        return shares_of(found[1])

    def allocators_of(self, request: Request, chain: Sequence[str]) -> list[Allocator]:
        """
        Return the allocators that accept the one primary of a request.

        Raises:
            PluginFailed: One of them raised.
        """
        return self._members(request.only, chain)

    def _short_of_budget(self, request: Request, ground: Ground) -> PendReason | None:
        """
        Return which budget of the whole job can't hold it where the ground's differ from what
        everybody sees, which is looked at before any placement.
        """
        if not ground.differs_in_budgets:
            return None
        limits, ranks = self._capacity.limits, range(QUEUE_RANK, LIMIT_RANK + 1)
        return limits.short_of(request, ranks, headroom=ground.headroom)

    def never(self, request: Request, chain: Sequence[str]) -> bool:
        """
        Say whether even the empty cluster, every host open and every alternative too, couldn't hold
        the request.
        """
        return self._repeats.could_never(
            request,
            lambda: self.never_on(Ground(self._capacity, is_empty=True), request, chain),
        )

    def never_on(self, ground: Ground, request: Request, chain: Sequence[str]) -> bool:
        """
        Say whether a ground, such as an empty one of some hosts, can't hold a request with the
        fewest tasks that it may have.
        """
        least = [
            replace(branch, parts=tuple(map(_with_fewest_tasks, branch.parts)))
            for branch in request.branches
        ]
        whole = replace(request, branches=tuple(least), open_branches=len(least))
        levels = Levels(whole, ground, FastPart, lambda part: self._members(part, chain))
        return levels.find() is None

    def _members(
        self, part: Part, chain: Sequence[str], tracer: Tracer | None = None
    ) -> list[Allocator]:
        """
        Route a primary: one task goes to ``seqjob``; a span has its own planner; the rest goes to
        those of the chain that accept it.
        """
        if part.tasks_max > 1 and part.span is not None:
            return [planner_of(part.span)]
        names = (SERIAL,) if part.tasks_max == 1 else chain
        found = [self._allocators[name] for name in names]
        kept = [member for member in found if guarded(member, member.accepts, part.tasks_max)]
        if tracer is not None:
            tracer.guards(names, kept)
        return kept

    # -- what most jobs ask for

    def _route(self, part: Part, chain: Sequence[str]) -> tuple[list[FastAllocator], bool]:
        """
        Return the allocators of a bare primary, and whether all have a short cut; both depend on
        the count of its tasks alone.
        """
        if chain is not self._chain or len(self._routes) >= SIGNATURES_MAX:
            self._chain, self._routes = chain, {}
        found = self._routes.get(part.tasks_max)
        if found is None:
            members = cast("list[FastAllocator]", self._members(part, chain))
            are_short_cuts = all(getattr(member, "failing", "") for member in members)
            found = self._routes[part.tasks_max] = (members, are_short_cuts)
        return found

    # hot: the simulator and the bench of dispatches need it.
    def _place_bare(self, request: Request, chain: Sequence[str]) -> Placed | Pending | None:
        """
        Place a request for tasks, amounts and hosts of some kind, None when some allocator has no
        short cut.

        Equivalent to: ``place_on``. Differs in: 1. all hosts are looked at as they are, those that
        take no jobs or don't match fit nothing; 2. hosts are ordered only where they may suffice;
        3. a failure is proved by the hosts that were touched since the last; 4. reasons are worked
        out only when their set may have changed.
        """
        part, capacity = request.branches[0].parts[0], self._capacity
        members, are_short_cuts = self._route(part, chain)
        if not members:
            reasons = (PendReason(code=ReasonCode.NO_ALLOCATOR),)
            return Pending((ReasonCode.NO_ALLOCATOR,), lambda: reasons)
        if not are_short_cuts:
            return None
        needs = part.usages[0].needs
        if not needs and capacity.usable_total < part.tasks_min:
            return self._pending_bare(request, members, None)
        if needs and not part.budgets and self._proofs.still_hold(request):
            return self._pending_bare(request, members, None)
        bare, fits, total = None, capacity.usable, capacity.usable_total
        if needs or part.conditions:
            bare = self._fits(part)
            fits, total = bare.fits, bare.total
        if total >= part.tasks_min:
            placed = self._pick_bare(part, members, fits, total)
            if placed is not None:
                return placed
        return self._pending_bare(request, members, bare)

    def _pick_bare(
        self, part: Part, members: Sequence[FastAllocator], fits: Column, total: int
    ) -> Placed | None:
        """
        Pick hosts for the greatest count that can be placed.
        """
        capacity, hosts, needs = self._capacity, None, part.usages[0].needs
        if part.order:
            ground = Ground(capacity)
            hosts = np.flatnonzero(fits)
            keys = capacity.selector.order_keys(part.order, ground, hosts)
            hosts = sorted_hosts(hosts, keys)
            fits = fits[hosts]
        view = View(part, capacity, fits, hosts)
        most = min(self._within(part) if part.budgets else part.tasks_max, total)
        found = first_found(members, range(most, part.tasks_min - 1, -1), view, total)
        if found is None:
            return None
        name, picked = found
        if hosts is not None:
            picked = [(hosts[places], each) for places, each in picked]
        runs = runs_of(needs, picked)
        if needs and capacity.units:
            runs = with_units(runs, needs, Ground(capacity))
        allocation = sure_of_all(
            Allocation,
            {
                "runs": runs,
                "shared": (),
                "allocator": name,
                "alternative": 0,
                "is_exclusive": False,
                "charges": (),
            },
        )
        return Placed(allocation)

    def _within(self, part: Part) -> int:
        """
        Return the most tasks that budgets leave to a bare primary.
        """
        left = [self._capacity.limits.headroom(budget) for budget in part.budgets]
        return min([part.tasks_max, *(each // MILLI for each in left if isinstance(each, int))])

    def _fits(self, part: Part) -> _Bare:
        """
        Return how many tasks each host could take by each amount, by all, and all together.
        """
        capacity = self._capacity
        matching = None
        if part.conditions:
            matching = capacity.takes_jobs & capacity.selector.static(part.conditions)
        if part.usages[0].needs:
            checks = checks_of(part, part.usages[0], Ground(capacity), part.tasks_max)
            limits = [check.limit(part.tasks_max) for check in checks]
            fits = np.minimum.reduce(limits)
        else:
            limits, fits = [], capacity.usable
        if matching is not None:
            fits = np.where(matching, fits, 0)
        return _Bare(limits, fits, int(fits.sum()), matching)

    def _pending_bare(
        self, request: Request, members: Sequence[Allocator], bare: _Bare | None
    ) -> Pending:
        """
        Describe the failure without working out its reasons: a slots-only request that fails is
        short of slots on every host that takes jobs, so only the hosts' status can make its reasons
        differ; with amounts, which hosts are short of which.

        Args:
            request: What can't be placed.
            members: The allocators that accept it.
            bare: What was found out, None when it is what was found out before.
        """
        capacity, part = self._capacity, request.only
        known = self._signatures.get(request.fingerprint)
        if bare is not None or known is None or known[0] != capacity.status:
            short = []
            if bare is not None and bare.limits:
                matching = capacity.takes_jobs if bare.matching is None else bare.matching
                short = [matching & (limit < part.tasks_min) for limit in bare.limits]
                if not part.budgets and bare.total < part.tasks_min:
                    self._proofs.note(request, matching, short, bare.fits, bare.total)
            known = (capacity.status, *(mask.tobytes() for mask in short))
            if len(self._signatures) >= SIGNATURES_MAX:
                self._signatures.clear()
            self._signatures[request.fingerprint] = known

        def reasons() -> tuple[PendReason, ...]:
            placer = FastPart(part, request, Ground(capacity), members, None)
            if placer.place() is not None:
                rule = "a bare placement that failed fails again"
                raise InvariantBroken(rule, request.fingerprint)
            return tuple(placer.reasons())

        return Pending(known, reasons)


def _with_fewest_tasks(part: Part) -> Part:
    """
    Return a primary for the fewest tasks that it may have; a span may leave some counts out.
    """
    fewest = part.tasks_min
    if part.span is not None and part.tasks_max > 1:
        fewest = planner_of(part.span).counts(part.tasks_min, part.tasks_max)[-1]
    return replace(part, tasks_min=fewest, tasks_max=fewest)


def first_found(
    members: Sequence[FastAllocator], counts: Sequence[int], view: View, total: int
) -> tuple[str, Picked] | None:
    """
    Return the first allocator that finds hosts, by name, and these, for the first of the counts for
    which any does; None when none does for any. Whatever one raises becomes its failure.
    """
    for tasks in counts:
        for member in members:
            # hot: as ``guarded``, without the call.
            try:
                picked = member.find(tasks, view, total)
            except (PluginFailed, InvariantBroken):
                raise
            except Exception as error:
                raise failure_in(member, error) from error
            if picked is not None:
                return member.name, picked
    return None
