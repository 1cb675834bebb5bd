"""
Merge the requirements of job, profile and queue into the one that holds.

LSF's rules, section by section: selects are ANDed, rusage is overridden per resource, the higher
level's order, span and affinity win, same is united. Where a level is a compound or an alternative
its shape wins over the levels below, which then only contribute their select.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from domain.errors import Refused
from domain.event import Value
from domain.ids import MaybeName
from domain.resources import BUILT_IN, BUILT_IN_ONLY, Catalogue
from domain.resreq.render import render
from domain.resreq.sameness import in_one_order
from domain.resreq.syntax import (
    EMPTY,
    Expr,
    Milli,
    Primary,
    Requirement,
    RusageTerm,
    Span,
    SpanForm,
    all_of,
    simple_requirement,
)
from domain.units import show_memory, show_milli

FIELD: Final = "resreq"

Usage = tuple[RusageTerm, ...]


class Mark(StrEnum):
    """
    Name what a profile's value means for the jobs that use it.
    """

    DEFAULT = "default"
    FIXED = "fixed"
    SELECT = "select"


class QueueResreq(StrEnum):
    """
    Name what a queue's requirement means: nothing (profiles say what jobs need), or what LSF has it
    mean.
    """

    IGNORE = "ignore"
    MERGE = "merge"


class ReservationRange(Value):
    """
    Bind what the merged requirement may reserve of a resource (LSF's RESRSV_LIMIT).
    """

    resource: MaybeName
    least_milli: Milli
    most_milli: Milli


def effective_requirement(
    job: Requirement | None,
    profile: Requirement | None = None,
    queue: Requirement | None = None,
    *,
    mark: Mark = Mark.DEFAULT,
    queue_resreq: QueueResreq = QueueResreq.IGNORE,
    ranges: Sequence[ReservationRange] = (),
    catalogue: Catalogue = BUILT_IN_ONLY,
) -> Requirement:
    """
    Return the requirement that holds for a job.

    Args:
        job: What the job asks for; None and the empty requirement are the same, on every level.
        profile: What its profile says.
        queue: What its queue says.
        mark: What the profile's requirement means.
        queue_resreq: What the queue's requirement means.
        ranges: Bounds of what the merged requirement reserves; they take the place of the queue's
            ceilings.
        catalogue: Shows amounts of memory as such in refusals.

    Raises:
        Refused: The job says something else than a fixed profile, or reserves more than it may.
    """
    if queue_resreq is QueueResreq.IGNORE:
        queue, ranges = None, ()
    if mark is Mark.FIXED and profile not in {None, EMPTY}:
        if job not in {None, EMPTY} and not _are_alike(job, profile):
            raise Refused(FIELD, "is fixed by the job's profile", render(job or EMPTY))
        job = None
    if mark is Mark.SELECT and profile is not None:
        profile = _only_select(profile)
    merged = merge(job, profile, queue)
    _check_ceilings(merge(job, profile, None), queue or EMPTY, ranges, catalogue)
    _check_ranges(merged, ranges, catalogue)
    return merged


def _are_alike(one: Requirement | None, other: Requirement | None) -> bool:
    """
    Say whether two requirements say the same, in whatever order.
    """
    if one is None or other is None:
        return one is other
    return one == other or in_one_order(one) == in_one_order(other)


def check_profile(requirement: Requirement, mark: Mark) -> Requirement:
    """
    Return a profile's requirement when its mark suits it.

    Raises:
        Refused: It is to be ANDed, but has more than a select.
    """
    if mark is Mark.SELECT and requirement != _only_select(requirement):
        rule = "may hold nothing but select[...] when it is ANDed to the job's"
        raise Refused(FIELD, rule, render(requirement))
    return requirement


def _only_select(requirement: Requirement) -> Requirement:
    if not requirement.is_simple:
        return EMPTY
    return simple_requirement(Primary(select=requirement.only.select))


def merge(
    job: Requirement | None, profile: Requirement | None, queue: Requirement | None
) -> Requirement:
    """
    Return the three levels merged, without asking whether the job may have it.
    """
    levels = [level for level in (job, profile, queue) if level not in {None, EMPTY}]
    present = [level for level in levels if level is not None]
    if not present:
        return EMPTY
    top, *below = present
    lower = [level.only for level in below if level.is_simple]
    if not top.is_simple:
        return _and_selects(
            top, [primary.select for primary in lower if primary.select is not None]
        )
    if top is job and queue is not None and queue.is_simple and queue.only in lower:
        # Any requirement of the job makes the queue's order void, even one without an order.
        lower[-1] = queue.only.model_copy(update={"order": (), "order_again": False})
    return simple_requirement(_merge_primaries([top.only, *lower]))


def _merge_primaries(levels: Sequence[Primary]) -> Primary:
    """
    Return simple levels merged, the highest first; each section says by which rule.
    """
    selects = tuple(level.select for level in levels if level.select is not None)
    ordered = next((level for level in levels if level.order), Primary())
    rusage: tuple[Usage, ...] = ()
    for level in reversed(levels):
        rusage = _override_rusage(level.rusage, rusage)
    return Primary(
        select=all_of(selects) if selects else None,
        rusage=rusage,
        span=_first_span(levels),
        order=ordered.order,
        order_again=ordered.order_again,
        same=tuple(dict.fromkeys(name for level in levels for name in level.same)),
        affinity=next((level.affinity for level in levels if level.affinity is not None), None),
    )


def _first_span(levels: Sequence[Primary]) -> Span | None:
    """
    Return the highest level's span; hosts=-1 cancels those below it and is none itself.
    """
    span = next((level.span for level in levels if level.span is not None), None)
    return None if span is not None and span.form is SpanForm.CANCELLED else span


def _override_rusage(higher: tuple[Usage, ...], lower: tuple[Usage, ...]) -> tuple[Usage, ...]:
    """
    Return a level's rusage over that of the levels below; alternatives override them completely.
    """
    if not higher or not lower:
        return higher or lower
    if len(higher) > 1:
        return higher
    return tuple(_override_usage(higher[0], usage) for usage in lower)


def _override_usage(higher: Usage, lower: Usage) -> Usage:
    below = {term.resource: term for term in lower}
    named = {term.resource for term in higher}
    kept = tuple(term for term in lower if term.resource not in named)
    return tuple(_inherit_timing(term, below.get(term.resource)) for term in higher) + kept


def _inherit_timing(term: RusageTerm, below: RusageTerm | None) -> RusageTerm:
    """
    Return a term with the duration and decay that it doesn't say itself; phases are never mixed.
    """
    if below is None or term.phases or below.phases:
        return term
    duration_us = below.duration_us if term.duration_us is None else term.duration_us
    is_decaying = below.is_decaying if term.is_decaying is None else term.is_decaying
    return term.model_copy(update={"duration_us": duration_us, "is_decaying": is_decaying})


def _and_selects(requirement: Requirement, selects: Sequence[Expr]) -> Requirement:
    if not selects:
        return requirement
    return Requirement(
        compounds=tuple(
            compound.model_copy(
                update={
                    "primaries": tuple(
                        _and_select(primary, selects) for primary in compound.primaries
                    )
                }
            )
            for compound in requirement.compounds
        )
    )


def _and_select(primary: Primary, selects: Sequence[Expr]) -> Primary:
    own = () if primary.select is None else (primary.select,)
    return primary.model_copy(update={"select": all_of((*own, *selects))})


# ------------------------------------------------------------------------------ ceilings, ranges


def _check_ceilings(
    asked: Requirement,
    queue: Requirement,
    ranges: Sequence[ReservationRange],
    catalogue: Catalogue,
) -> None:
    """
    Refuse what exceeds the queue's value of a built-in resource, unless a range takes its place.
    """
    ranged = {each.resource for each in ranges}
    ceilings: dict[str, int] = {}
    for term in terms_of(queue):
        if term.resource in BUILT_IN and term.resource not in ranged:
            ceilings[term.resource] = max(ceilings.get(term.resource, 0), term.milli)
    for term in terms_of(asked):
        most = ceilings.get(term.resource, term.milli)
        if term.milli > most:
            shown = _shown(term.resource, most, catalogue)
            rule = f"must not reserve more {term.resource} than the queue's {shown}"
            raise Refused(FIELD, rule, _shown(term.resource, term.milli, catalogue))


def _check_ranges(
    merged: Requirement, ranges: Sequence[ReservationRange], catalogue: Catalogue
) -> None:
    bounds = {each.resource: each for each in ranges}
    for term in terms_of(merged):
        bound = bounds.get(term.resource)
        if bound is not None and not bound.least_milli <= term.milli <= bound.most_milli:
            least = _shown(term.resource, bound.least_milli, catalogue)
            most = _shown(term.resource, bound.most_milli, catalogue)
            rule = f"must reserve between {least} and {most} of {term.resource} in this queue"
            raise Refused(FIELD, rule, _shown(term.resource, term.milli, catalogue))


def terms_of(requirement: Requirement) -> tuple[RusageTerm, ...]:
    """
    Return every term of every alternative of a requirement.
    """
    return tuple(
        term
        for compound in requirement.compounds
        for primary in compound.primaries
        for usage in primary.rusage
        for term in usage
    )


def _shown(resource: str, milli: int, catalogue: Catalogue) -> str:
    found = catalogue.get(resource)
    return show_memory(milli) if found is not None and found.is_memory else show_milli(milli)
