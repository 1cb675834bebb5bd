"""
Merge the requirements of several -R options of one submission, section by section.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Final

from domain.errors import Refused
from domain.resreq.syntax import (
    Affinity,
    Primary,
    Requirement,
    RusageTerm,
    Span,
    all_of,
    simple_requirement,
)

FIELD: Final = "resreq"
ALTERNATIVES_MAX: Final = 64
"""So many alternatives of rusage may come out of several options with alternatives each."""

Usage = tuple[RusageTerm, ...]


def join(requirements: Sequence[Requirement], texts: Sequence[str]) -> Requirement:
    """
    Return the one requirement that several options say together; *texts* are shown in errors.

    Raises:
        Refused: One of them isn't simple, or two of them say what may be said only once.
    """
    for requirement, text in zip(requirements, texts, strict=True):
        if not requirement.is_simple:
            raise Refused(FIELD, "a compound or alternative must be the only -R option", text)
    primaries = [requirement.only for requirement in requirements]
    selects = tuple(primary.select for primary in primaries if primary.select is not None)
    return simple_requirement(
        Primary(
            select=all_of(selects) if selects else None,
            rusage=_join_rusage(primaries, texts),
            span=_only_span(primaries, texts),
            order=tuple(key for primary in primaries for key in primary.order),
            order_again=any(primary.order_again for primary in primaries),
            same=tuple(dict.fromkeys(name for primary in primaries for name in primary.same)),
            affinity=_only_affinity(primaries, texts),
        )
    )


def _join_rusage(primaries: Sequence[Primary], texts: Sequence[str]) -> tuple[Usage, ...]:
    """
    Return the terms of all options together; with alternatives in several options, each with each.
    """
    given = [
        (primary.rusage, text)
        for primary, text in zip(primaries, texts, strict=True)
        if primary.rusage
    ]
    if len(given) > 1:
        for usages, text in given:
            if any(term.phases for usage in usages for term in usage):
                raise Refused(
                    FIELD, "rusage with several phases can't be merged with another option's", text
                )
    joined: tuple[Usage, ...] = ()
    for usages, text in given:
        joined = _with_usages(joined, usages, text)
    return joined


def _with_usages(
    before: tuple[Usage, ...], usages: tuple[Usage, ...], text: str
) -> tuple[Usage, ...]:
    if not before:
        return usages
    if len(before) * len(usages) > ALTERNATIVES_MAX:
        raise Refused(
            FIELD, f"rusage must have at most {ALTERNATIVES_MAX} alternatives together", text
        )
    for earlier, later in product(before, usages):
        taken = {term.resource for term in earlier}
        for term in later:
            if term.resource in taken:
                raise Refused(FIELD, f"{term.resource} is reserved twice", text)
    return tuple(earlier + later for earlier, later in product(before, usages))


def _only_span(primaries: Sequence[Primary], texts: Sequence[str]) -> Span | None:
    found = [
        (primary.span, text) for primary, text in zip(primaries, texts, strict=True) if primary.span
    ]
    if len(found) > 1:
        raise Refused(FIELD, "span[...] may appear in one -R option only", found[1][1])
    return found[0][0] if found else None


def _only_affinity(primaries: Sequence[Primary], texts: Sequence[str]) -> Affinity | None:
    found = [
        (primary.affinity, text)
        for primary, text in zip(primaries, texts, strict=True)
        if primary.affinity
    ]
    if len(found) > 1:
        raise Refused(FIELD, "affinity[...] may appear in one -R option only", found[1][1])
    return found[0][0] if found else None
