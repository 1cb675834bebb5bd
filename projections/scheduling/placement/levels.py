"""
Alternatives, compounds, primaries: any-of, all-of, one.

The first alternative that can be allocated wins. The members of a compound are placed in the order
written, each on what the earlier ones left; one that fails gives up the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from domain.allocations import Allocation
from domain.reasons import PendReason, ReasonCode
from domain.units import show_lsf_duration
from projections.scheduling.capacity import Mask
from projections.scheduling.placement.assembly import Found, allocation_of
from projections.scheduling.placement.ground import Ground
from projections.scheduling.placement.parts import PartPlacer
from projections.scheduling.placement.plugins import Allocator
from projections.scheduling.request import Branch, Part, Request

PlacerOf = Callable[[Part, Request, Ground, Sequence[Allocator], Mask | None], PartPlacer]
MembersOf = Callable[[Part], Sequence[Allocator]]


class Levels:
    """
    Place one request.

    Args:
        placer_of: Makes the try of one primary: the fast or the literal one.
        members_of: Says which allocators accept a primary.
    """

    def __init__(
        self, request: Request, ground: Ground, placer_of: PlacerOf, members_of: MembersOf
    ) -> None:
        self._request = request
        self._ground = ground
        self._placer_of = placer_of
        self._members_of = members_of
        self._notes: list[tuple[PartPlacer | PendReason, int, int]] = []

    def place(self) -> Allocation | None:
        """
        Return the allocation that the first possible alternative gives.
        """
        found = self.find()
        if found is None:
            self._note_hidden()
            return None
        alternative, members = found
        tracer = self._ground.tracer
        try:
            allocation = allocation_of(
                members,
                alternative=alternative,
                is_exclusive=self._request.is_exclusive,
            )
        except Exception as error:
            if tracer is not None:
                tracer.merged(len(members), failure=str(error)[:200])
            raise
        if tracer is not None:
            tracer.merged(len(members))
        return allocation

    def find(self) -> tuple[int, list[Found]] | None:
        """
        Return which alternative can be placed, 0 when there is only one, and what its members get.
        """
        branches, tracer = self._request.branches, self._ground.tracer
        for number, branch in enumerate(branches[: self._request.open_branches]):
            alternative = number + 1 if len(branches) > 1 else 0
            if tracer is not None:
                tracer.alternative(number + 1, self._request)
            found = self._place_branch(branch, alternative)
            if tracer is not None:
                is_placed = found is not None
                tracer.end_alternative(number + 1, self._request, is_placed=is_placed)
            if found is not None:
                return alternative, found
        return None

    def _note_hidden(self) -> None:
        """
        Note the alternatives that aren't open yet.
        """
        for number, branch in enumerate(self._request.branches):
            if number >= self._request.open_branches:
                self._notes.append((waits_to_open(branch), number + 1, 0))

    def signature(self) -> tuple[object, ...]:
        """
        Return what differs whenever the reasons of two failures differ in more than amounts.
        """
        return tuple(
            (
                alternative,
                member,
                (source.code.value, source.detail)
                if isinstance(source, PendReason)
                else source.signature(),
            )
            for source, alternative, member in self._notes
        )

    def reasons(self) -> tuple[PendReason, ...]:
        """
        Return every reason, those of each alternative and member apart.
        """
        found: dict[PendReason, None] = {}
        for source, alternative, member in self._notes:
            own = {"member": member} if member else {}
            if alternative:
                own["alternative"] = alternative
            for reason in [source] if isinstance(source, PendReason) else source.reasons():
                found.setdefault(reason.model_copy(update=own) if own else reason)
        return tuple(found)

    # -- one alternative

    def _place_branch(self, branch: Branch, alternative: int) -> list[Found] | None:
        """
        Place all members of one alternative, or none.
        """
        tracer = self._ground.tracer
        for group in self._groups(branch):
            if tracer is not None:
                tracer.compound(branch, group)
            found = self._place_members(branch, group, alternative)
            if tracer is not None:
                tracer.end_compound(branch, group, is_placed=found is not None)
            if found is not None:
                return found
        return None

    def _groups(self, branch: Branch) -> Iterator[Mask | None]:
        """
        Yield the hosts that are alike in what the whole compound wants the same, the group of the
        first host first.
        """
        if not branch.same:
            yield None
            return
        codes = self._ground.capacity.selector.alike(branch.same)
        taking = codes[self._ground.takes]
        kinds, firsts = np.unique(taking, return_index=True)
        for place in np.argsort(firsts).tolist():
            yield codes == kinds[place]

    def _place_members(
        self, branch: Branch, group: Mask | None, alternative: int
    ) -> list[Found] | None:
        is_compound = len(branch.parts) > 1
        ground = self._ground.copy() if is_compound else self._ground
        leaves_any = ground.is_empty and _comes_in_any_order(branch, ground)
        found: list[Found] = []
        for number, part in enumerate(branch.parts):
            member = number + 1 if is_compound else 0
            if ground.tracer is not None:
                ground.tracer.primary(member, part)
            members = self._members_of(part)
            if not members:
                reason = PendReason(code=ReasonCode.NO_ALLOCATOR)
                self._notes.append((reason, alternative, member))
                if ground.tracer is not None:
                    ground.tracer.end_primary("failed", "no allocator accepts it")
                    ground.tracer.untried_members(branch, number + 1)
                return None
            placer = self._placer_of(part, self._request, ground, members, group)
            got = placer.place()
            if ground.tracer is not None:
                ground.tracer.end_primary("failed" if got is None else "allocated")
                if got is None:
                    ground.tracer.untried_members(branch, number + 1)
            if got is None:
                self._notes.append((placer, alternative, member))
                self._note_untried(branch, number + 1, alternative)
                return None
            found.append(got)
            if number + 1 < len(branch.parts) and not leaves_any:
                ground.claim(got.runs, got.shared, part.budgets)
        return found

    def _note_untried(self, branch: Branch, first: int, alternative: int) -> None:
        """
        Note the members that weren't tried because an earlier one failed.
        """
        for number in range(first, len(branch.parts)):
            reason = PendReason(code=ReasonCode.MEMBER_NOT_TRIED)
            self._notes.append((reason, alternative, number + 1))


def _comes_in_any_order(branch: Branch, ground: Ground) -> bool:
    """
    Say whether the members of a compound may leave any hosts to each other on an empty cluster: by
    what hosts report they may come in any order, and which they reported last proves nothing.
    """
    selector = ground.capacity.selector
    keys = [key for part in branch.parts for key in part.order]
    return any(selector.may_report(key.name, ground).any() for key in keys)


def waits_to_open(branch: Branch, alternative: int = 0) -> PendReason:
    """
    Return that an alternative isn't open yet.
    """
    detail = f"opens {show_lsf_duration(branch.delay_us)} after submission"
    return PendReason(
        code=ReasonCode.ALTERNATIVE_WAITS, detail=detail, alternative=alternative
    )
