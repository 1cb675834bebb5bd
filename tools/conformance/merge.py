"""
Run vectors of the kind ``merge``: job, profile and queue give one effective requirement.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from domain.errors import Refused
from domain.resources import Catalogue
from domain.resreq import Requirement
from domain.resreq.merge import QueueResreq, ReservationRange, effective_requirement
from domain.resreq.syntax import DEFAULT_ORDER, Compound, Primary
from domain.units import parse_memory_milli, parse_milli
from tools.conformance.names import catalogue_of
from tools.conformance.parse import normal_differences, section_difference, understood, unit_of
from tools.conformance.trees import alike, tree_of
from tools.conformance.values import (
    Fields,
    Vector,
    cases_of,
    differing,
    mapping_of,
    text_of,
    texts_of,
)
from tools.conformance.written import ranges_of

LEVELS = ("job", "app", "queue")


DEFAULT: Final = [key.name for key in DEFAULT_ORDER]
"""What hosts are ordered by where nobody says."""


def differences(vector: Vector) -> list[str]:
    """
    Return what differs from what a vector expects.
    """
    found = []
    for label, case in cases_of(vector.fields):
        found += [f"{label} {line}".strip() for line in _of_case(case)]
    return found


def _of_case(case: Fields) -> list[str]:
    expect = mapping_of(case.get("expect"))
    texts = [text for level in LEVELS for text in texts_of(case.get(level))]
    texts += texts_of(expect.get("effective"))
    catalogue = catalogue_of(case, texts, is_lenient=True)
    try:
        merged = _merged(case, catalogue)
    except Refused as refused:
        return [] if expect.get("reject") is True else [f"refused: {refused}"]
    if expect.get("reject") is True:
        return ["expected a refusal"]
    found = []
    for name, expected in expect.items():
        found += _difference(name, expected, merged, case, catalogue)
    return found


def _merged(case: Fields, catalogue: Catalogue) -> Requirement:
    """
    Return the three levels merged by LSF's rules, which XCE has when its setting says so.
    """
    job, profile, queue = (
        understood({**case, "n": None}, texts_of(case.get(level)), catalogue).requirement
        for level in LEVELS
    )
    return effective_requirement(
        job,
        profile,
        queue,
        queue_resreq=QueueResreq.MERGE,
        ranges=_ranges(case, catalogue),
        catalogue=catalogue,
    )


def _ranges(case: Fields, catalogue: Catalogue) -> Sequence[ReservationRange]:
    found = []
    for name, bounds in ranges_of(case.get("resrsv_limit", case.get("RESRSV_LIMIT"))).items():
        descriptor = catalogue.get(name)
        is_memory = descriptor is not None and descriptor.is_memory
        least, most = (
            parse_memory_milli(text_of(bound), unit=unit_of(case))
            if is_memory
            else parse_milli(text_of(bound))
            for bound in bounds
        )
        found.append(ReservationRange(resource=name, least_milli=least, most_milli=most))
    return found


def _difference(
    name: str, expected: object, merged: Requirement, case: Fields, catalogue: Catalogue
) -> list[str]:
    if name in {"operand_order_free", "reject"}:
        return []
    if name == "effective":
        wanted = understood({**case, "n": None}, texts_of(expected), catalogue).requirement
        return differing(name, _meaning(wanted), _meaning(merged))
    if name == "order" and (expected == "default" or list(texts_of(expected)) == DEFAULT):
        return differing(name, (), merged.only.order)
    if name == "same" and merged.is_simple:
        return differing(name, sorted(texts_of(expected)), sorted(merged.only.same))
    if name == "normal":
        return normal_differences(mapping_of(expected), merged, case)
    return section_difference(name, expected, merged, case)


def _meaning(requirement: Requirement) -> object:
    """
    Return a requirement without the orders that mean nothing: of conditions, of terms, of names in
    same.
    """
    return tuple(_meaning_of_compound(compound) for compound in requirement.compounds)


def _meaning_of_compound(compound: Compound) -> object:
    primaries = tuple(_meaning_of_primary(primary) for primary in compound.primaries)
    return primaries, tuple(sorted(compound.same)), compound.delay_us


def _meaning_of_primary(primary: Primary) -> object:
    return (
        primary.tasks,
        alike(tree_of(primary.select), is_order_free=True),
        tuple(tuple(sorted(usage, key=lambda term: term.resource)) for usage in primary.rusage),
        primary.span,
        primary.order,
        tuple(sorted(primary.same)),
        primary.affinity,
    )
