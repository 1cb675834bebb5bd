"""
Place one primary on one ground: its alternatives of rusage, its task range, its groups of like
hosts, and the allocators of the chain.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, ParamSpec, Protocol, TypeVar

import numpy as np

from domain.errors import InvariantBroken, PluginFailed
from domain.reasons import PendReason, ReasonCode
from domain.resreq.syntax import Per
from projections.scheduling.capacity import Column, Mask
from projections.scheduling.placement.assembly import Found, found_of
from projections.scheduling.placement.bounds import (
    Room,
    Together,
    dealt,
    has_joint,
    joint_shortage,
    room_of,
)
from projections.scheduling.placement.eligible import Eligible, eligible_of
from projections.scheduling.placement.ground import Ground
from projections.scheduling.placement.plugins import Allocator, Picked, View
from projections.scheduling.placement.scan import Scan
from projections.scheduling.placement.shortages import (
    Check,
    checks_of,
    reasons_of_sizes,
    smallest_failed,
)
from projections.scheduling.placement.span import Block
from projections.scheduling.request import Part, Request, Usage

if TYPE_CHECKING:
    from projections.scheduling.trace_plans import PlanWriter

T = TypeVar("T")
P = ParamSpec("P")


class PartPlacer(Protocol):
    """
    Be one try to place one primary: ``place`` once, then ``reasons`` if it found nothing.
    """

    def place(self) -> Found | None:
        """
        Return what the primary is given, None when it can't be placed.
        """
        ...

    def reasons(self) -> list[PendReason]:
        """
        Return why it couldn't be placed.
        """
        ...

    def signature(self) -> tuple[object, ...]:
        """
        Return what differs whenever the reasons of two failures differ in more than amounts.
        """
        ...


def counts_of(members: Sequence[Allocator], least: int, most: int) -> Sequence[int]:
    """
    Return the counts of tasks to try, greatest first.
    """
    if len(members) == 1 and isinstance(members[0], Block):
        return members[0].counts(least, most)
    return range(most, least - 1, -1)


def is_bound(part: Part, usage: Usage, room: Room, eligible: Eligible) -> bool:
    """
    Say whether plans are bound by more than what each host can take.
    """
    return has_joint(part, usage) or room.hosts_max is not None or eligible.firsts is not None


@dataclass(slots=True, frozen=True)
class _Noted:
    """
    Hold which hosts of one group a check found short.

    Args:
        short: Which of ``hosts`` failed for some bucket.
        sizes: Works out the smallest bucket that failed on each, 0 for none.
    """

    check: Check
    hosts: Column
    short: Mask
    sizes: Callable[[], Column]


@dataclass(slots=True)
class _Tries:
    """
    Hold what one alternative of rusage left behind.
    """

    checks: list[Check] = field(default_factory=list)
    whole: list[PendReason] = field(default_factory=list)
    noted: list[_Noted] = field(default_factory=list)


class FastPart:
    """
    Place one primary by columns.

    Equivalent to: ``LiteralPart``. Differs in: no plan of a built-in allocator is tried that must
    fail, and a greatest count is found by halving where counts are monotone.

    Args:
        members: The allocators that accept it, in order.
        group: Hosts outside of it are no candidates.
    """

    def __init__(
        self,
        part: Part,
        request: Request,
        ground: Ground,
        members: Sequence[Allocator],
        group: Mask | None,
    ) -> None:
        self.part = part
        self._request = request
        self.ground = ground
        self.members = members
        self.eligible = eligible_of(part, request, ground, group)
        self._tries: list[_Tries] = []

    def place(self) -> Found | None:
        """
        Return what the first alternative of rusage that can be satisfied gives.
        """
        tracer = self.ground.tracer
        if tracer is not None:
            tracer.candidates(self.eligible, self.part)
        for number, usage in enumerate(self.part.usages, 1):
            if tracer is not None:
                tracer.usage(number, self.part)
            found = self._place_usage(usage)
            if tracer is not None:
                tracer.end_usage(number, self.part, is_placed=found is not None)
            if found is not None:
                return found
        return None

    def _place_usage(self, usage: Usage) -> Found | None:
        part = self.part
        room = room_of(part, usage, self._request, self.ground)
        tries = _Tries(whole=room.short)
        self._tries.append(tries)
        if room.short:
            return None
        per_job = any(need.per is Per.JOB for need in usage.needs)
        if per_job:
            # The fit of a host depends on the count of tasks: each count is tried by itself.
            counts = counts_of(self.members, part.tasks_min, room.tasks_max)
            tried = (self._place_counts(usage, room, [count], tries) for count in counts)
            return next((found for found in tried if found is not None), None)
        counts = counts_of(self.members, part.tasks_min, room.tasks_max)
        return self._place_counts(usage, room, counts, tries)

    def _place_counts(
        self, usage: Usage, room: Room, counts: Sequence[int], tries: _Tries
    ) -> Found | None:
        """
        Place the greatest of some counts that can be placed.
        """
        most = counts[0]
        hosts = self.eligible.hosts
        tries.checks = checks_of(self.part, usage, self.ground, most)
        limits = [check.limit(most)[hosts] for check in tries.checks]
        fits = limits[0] if len(limits) == 1 else np.minimum.reduce(limits)
        best: tuple[int, Found] | None = None
        tries.noted = []
        for places in self._groups():
            bound = _Bound(self, usage, room, places)
            found = bound.place(counts, fits[places], [limit[places] for limit in limits], tries)
            if found is not None and (best is None or found[0] > best[0]):
                best = found
            if best is not None and best[0] == most:
                break
        return None if best is None else best[1]

    def _groups(self) -> Iterator[Column | slice]:
        """
        Yield the places of hosts that are alike in what the primary wants the same, the group of
        the first host first.
        """
        if not self.part.same:
            yield slice(None)
            return
        codes = self.ground.capacity.selector.alike(self.part.same)[self.eligible.hosts]
        kinds, firsts = np.unique(codes, return_index=True)
        for place in np.argsort(firsts).tolist():
            yield np.flatnonzero(codes == kinds[place])

    def signature(self) -> tuple[object, ...]:
        """
        Return what tells two failures of one primary apart: which hosts have which reason.
        """
        tries = []
        for each in self._tries:
            whole = [(one.code.value, one.resource, one.detail) for one in each.whole]
            short = []
            for check in each.checks:
                mask = np.zeros(self.ground.capacity.hosts, np.bool_)
                for noted in each.noted:
                    if noted.check is check:
                        mask[noted.hosts] = noted.short
                short.append(mask.tobytes())
            tries.append((*whole, *short))
        return (*self.eligible.signature(), *tries, bool(len(self.eligible.hosts)))

    def reasons(self) -> list[PendReason]:
        """
        Return why hosts don't match, then what each alternative of rusage was short of.
        """
        found = self.eligible.reasons()
        for number, tries in enumerate(self._tries):
            own = list(tries.whole)
            for check in tries.checks:
                sizes = np.zeros(self.ground.capacity.hosts, np.int64)
                for noted in tries.noted:
                    if noted.check is check:
                        sizes[noted.hosts] = noted.sizes()
                own += reasons_of_sizes(check, sizes, np.arange(len(sizes)))
            if not own and len(self.eligible.hosts):
                own.append(PendReason(code=ReasonCode.JOB_SPREAD_TASK))
            several = len(self.part.usages) > 1
            found += [
                each.model_copy(update={"alternative": number + 1}) if several else each
                for each in own
            ]
        return found


class _Bound:
    """
    Try counts on one group of hosts.
    """

    def __init__(self, placer: FastPart, usage: Usage, room: Room, places: Column | slice) -> None:
        eligible = placer.eligible
        self._ground = placer.ground
        self._part = placer.part
        self._members = placer.members
        self._usage = usage
        self._room = room
        self._hosts = eligible.hosts[places]
        self._firsts = None if eligible.firsts is None else eligible.firsts[places]
        # What is traced is tried plan by plan: the short cuts give the same, and tell nothing.
        self._tracer = placer.ground.tracer
        self._is_bound = is_bound(placer.part, usage, room, eligible)
        self._is_short_cut = not self._is_bound and self._tracer is None
        self._checks: list[Check] = []

    def place(
        self, counts: Sequence[int], fits: Column, limits: list[Column], tries: _Tries
    ) -> tuple[int, Found] | None:
        """
        Return the greatest count that can be placed here, and what it gets.
        """
        view = View(self._part, self._ground.capacity, fits, self._hosts, self._firsts)
        self._checks = tries.checks
        total = int(fits.sum())
        within = counts if len(counts) == 1 else _up_to(counts, total)
        if self._tracer is not None:
            # The least count is tried even when it must fail, so that each host has its verdict.
            within = within or counts[-1:]
            self._tracer.untried_counts(counts[: len(counts) - len(within)], total)
        found = self._greatest(within, view, total, limits) if within else None
        if found is None:
            self._note(counts[-1], view, total, limits, tries)
        return found

    def _greatest(
        self, counts: Sequence[int], view: View, total: int, limits: list[Column]
    ) -> tuple[int, Found] | None:
        first = self._try(counts[0], view, total, limits)
        if first is not None or len(counts) == 1:
            return None if first is None else (counts[0], first)
        monotone = not self._is_bound and all(
            getattr(member, "is_monotone", False) for member in self._members
        )
        if not monotone:
            tried = ((count, self._try(count, view, total, limits)) for count in counts[1:])
            return next(((count, found) for count, found in tried if found is not None), None)
        low, high, best = 1, len(counts) - 1, None
        while low <= high:
            middle = (low + high) // 2
            found = self._try(counts[middle], view, total, limits)
            if found is None:
                low = middle + 1
            else:
                best, high = (counts[middle], found), middle - 1
        return best

    def _try(self, tasks: int, view: View, total: int, limits: list[Column]) -> Found | None:
        tracer = self._tracer
        for member in self._members:
            if tracer is not None:
                tracer.allocator(member.name, tasks, len(self._hosts))
            picked = guarded(member, self._pick, member, tasks, view, total, limits)
            if picked is None and has_joint(self._part, self._usage):
                if tracer is not None:
                    tracer.dealt()
                picked = guarded(member, self._pick_dealt, member, tasks, view, limits)
            if tracer is not None:
                is_placed = picked is not None
                tracer.end_allocator(self._members, member, tasks, is_placed=is_placed)
            if picked is not None:
                numbered = [(self._hosts[places], each) for places, each in picked]
                return found_of(self._usage, numbered, member.name, self._ground)
        return None

    def _pick_dealt(
        self, member: Allocator, tasks: int, view: View, limits: list[Column]
    ) -> Picked | None:
        """
        Try again: plans are cut to what hosts have together, dealt to them in host order, and each
        claim leaves less of it to the next host.
        """
        own = np.minimum(view.fits, tasks)
        fits = dealt(self._part, self._usage, own, self._hosts, self._ground)
        if fits is None:
            return None
        together = Together(self._part, self._usage, self._hosts, tasks, self._ground)
        plans_view = view._replace(fits=fits)
        return self._run(member, tasks, view, limits, plans_view, together)

    def _pick(
        self, member: Allocator, tasks: int, view: View, total: int, limits: list[Column]
    ) -> Picked | None:
        find: Callable[[int, View, int], Picked | None] | None = getattr(member, "find", None)
        if find is not None and self._is_short_cut:
            return find(tasks, view, total)
        return self._run(member, tasks, view, limits)

    def _run(
        self,
        member: Allocator,
        tasks: int,
        view: View,
        limits: list[Column],
        plans_view: View | None = None,
        together: Together | None = None,
    ) -> Picked | None:
        """
        Try an allocator's plans one by one.
        """
        writer = None
        if self._tracer is not None:
            writer = self._tracer.plans(member, self._part, self._hosts, self._checks, limits)
        plans = member.plans(tasks, plans_view or view)
        if plans is None and self._tracer is not None:
            self._tracer.no_plan()
        return self._scan(view, limits, None, writer, together).run(plans or ())

    def _scan(
        self,
        view: View,
        limits: list[Column],
        tries: _Tries | None,
        writer: PlanWriter | None = None,
        together: Together | None = None,
    ) -> Scan:
        def holds(picked: Picked) -> bool:
            numbered = [(self._hosts[places], each) for places, each in picked]
            reason = joint_shortage(self._part, self._usage, numbered, self._ground)
            if reason is not None and tries is not None:
                add_once(tries.whole, reason)
            return reason is None

        return Scan(
            view.fits,
            limits,
            hosts_max=self._room.hosts_max,
            firsts=self._firsts,
            holds=holds if has_joint(self._part, self._usage) else None,
            together=together,
            writer=writer,
        )

    # -- failure

    def _note(
        self, tasks: int, view: View, total: int, limits: list[Column], tries: _Tries
    ) -> None:
        """
        Note which hosts were short for which bucket of the least count.
        """
        closed = [getattr(member, "failing", "") for member in self._members]
        if not self._is_bound and all(closed):
            # All tasks on one host were tried: whoever can't take them all is short.
            even = "even" in closed
            for check, limit in zip(tries.checks, limits, strict=True):
                sizes_of = partial(smallest_failed, tasks, view.fits, limit, even=even)
                tries.noted.append(_Noted(check, self._hosts, limit < tasks, sizes_of))
            return
        scan = self._scan(view, limits, tries)
        for member in self._members:
            plans = guarded(member, member.plans, tasks, view)
            if plans is None:
                reason = PendReason(code=ReasonCode.NO_PLAN, detail=member.name)
                add_once(tries.whole, reason)
            else:
                guarded(member, scan.run, plans)
        sizes = scan.sizes()
        for check, each in zip(tries.checks, sizes, strict=True):
            tries.noted.append(_Noted(check, self._hosts, each > 0, partial(np.copy, each)))


def _up_to(counts: Sequence[int], total: int) -> Sequence[int]:
    """
    Return the counts, which fall, that are no more than a total.
    """
    return counts[bisect_left(counts, -total, key=lambda count: -count) :]


def add_once(reasons: list[PendReason], reason: PendReason) -> None:
    """
    Add a reason of the whole job, once.
    """
    if reason not in reasons:
        reasons.append(reason)


def guarded(member: Allocator, call: Callable[P, T], *args: P.args, **more: P.kwargs) -> T:
    """
    Call into a plug-in; whatever it raises becomes that plug-in's failure.
    """
    try:
        return call(*args, **more)
    except (PluginFailed, InvariantBroken):
        raise
    except Exception as error:
        raise failure_in(member, error) from error


def failure_in(member: Allocator, error: Exception) -> PluginFailed:
    """
    Return the failure of a plug-in that raised.
    """
    return PluginFailed(member.name, "", f"{type(error).__name__}: {error}")
