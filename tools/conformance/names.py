"""
Which resources a vector's cluster has: what it declares, and what its texts use.

Vectors seldom declare the resources that they name. A name counts as one that the cluster has, when
some text of the file that isn't expected to be refused uses it; what kind of resource it is shows
in how it is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache

from domain.errors import Refused
from domain.resources import (
    BUILT_IN,
    Catalogue,
    ResourceDescriptor,
    ResourceLayer,
    ValueType,
)
from domain.resreq import Requirement, parse
from domain.resreq.check import COMPARISONS
from domain.resreq.syntax import (
    AllOf,
    AnyOf,
    Binary,
    Defined,
    Expr,
    Minus,
    Name,
    Not,
    Primary,
    Text,
)
from tools.conformance.values import Fields, Malformed, Vector, cases_of, mapping_of, texts_of

KNOWN = "resources known to the file"
"""Under this key each vector is told which names the file's accepted texts use, and as what."""

REQUIREMENTS = ("R", "queue", "app", "job", "RES_REQ")
"""Fields whose texts are requirements."""


def names_used(vectors: Sequence[Vector]) -> dict[str, object]:
    """
    Return the names that texts of the file use, except those that are expected to be refused.
    """
    found: dict[str, ResourceDescriptor] = {}
    for vector in vectors:
        for case in _cases(vector):
            expect = case.get("expect")
            if isinstance(expect, Mapping) and expect.get("reject") is True:
                continue
            for text in _texts_in(case):
                found = {**used_in([text]), **found}
    return {KNOWN: found}


def _cases(vector: Vector) -> list[Fields]:
    """
    Return a vector's cases, none of one that is malformed: that is told when it is run.
    """
    with suppress(Malformed):
        return [case for _, case in cases_of(vector.fields)]
    return []


def _texts_in(case: Fields) -> Iterator[str]:
    for name in REQUIREMENTS:
        value = case.get(name)
        if isinstance(value, str | list):
            yield from texts_of(value)


def catalogue_of(case: Fields, texts: Iterable[str], *, is_lenient: bool) -> Catalogue:
    """
    Return the catalogue of a case.

    Args:
        case: With ``given``, what it declares.
        texts: Its requirements.
        is_lenient: Whether its cluster has every name that its texts use, whatever the rest of the
            file uses.
    """
    found = dict(_declared(mapping_of(case.get("given"))))
    if not found:
        known = case.get(KNOWN)
        if isinstance(known, Mapping):
            found.update(known)
    if is_lenient:
        found = {**used_in(texts), **found}
    return Catalogue(found.values())


def _declared(given: Fields) -> Iterator[tuple[str, ResourceDescriptor]]:
    for field, names in given.items():
        for name in texts_of(names):
            if "bool" in field:
                yield name, attribute(name, ValueType.BOOLEAN)
            elif "str" in field:
                yield name, attribute(name, ValueType.STRING)
            else:
                yield name, number(name)


def attribute(name: str, value_type: ValueType) -> ResourceDescriptor:
    """
    Return the descriptor of a site's attribute.
    """
    return ResourceDescriptor(
        name=name, layer=ResourceLayer.ATTRIBUTE, value_type=value_type, is_static=True
    )


def number(name: str) -> ResourceDescriptor:
    """
    Return the descriptor of a site's number, which can be reserved.
    """
    return ResourceDescriptor(name=name, is_consumable=True)


def used_in(texts: Iterable[str]) -> dict[str, ResourceDescriptor]:
    """
    Return the site resources that texts use, each as what its use shows; a reserved one is a
    number.
    """
    found: dict[str, ResourceDescriptor] = {}
    for text in texts:
        found = {**found, **_used_in(text)}
    return found


@lru_cache(maxsize=4096)
def _used_in(text: str) -> dict[str, ResourceDescriptor]:
    uses: dict[str, ValueType] = {}
    with suppress(Refused):
        _collect(parse(text), uses)
    return {
        name: number(name) if kind is ValueType.NUMBER else attribute(name, kind)
        for name, kind in uses.items()
        if name not in BUILT_IN
    }


def _collect(requirement: Requirement, uses: dict[str, ValueType]) -> None:
    for compound in requirement.compounds:
        for name in compound.same:
            uses.setdefault(name, ValueType.STRING)
        for primary in compound.primaries:
            _collect_primary(primary, uses)


def _collect_primary(primary: Primary, uses: dict[str, ValueType]) -> None:
    for usage in primary.rusage:
        uses.update((term.resource, ValueType.NUMBER) for term in usage)
    uses.update((key.name, ValueType.NUMBER) for key in primary.order)
    for name in primary.same:
        uses.setdefault(name, ValueType.STRING)
    if primary.select is not None:
        _collect_expr(primary.select, uses, ValueType.BOOLEAN)


def _collect_expr(expr: Expr, uses: dict[str, ValueType], wanted: ValueType) -> None:
    """
    Note the names of an expression; *wanted* is what a bare name is where it stands.
    """
    if isinstance(expr, AllOf | AnyOf):
        for part in expr.parts:
            _collect_expr(part, uses, ValueType.BOOLEAN)
    elif isinstance(expr, Not):
        _collect_expr(expr.of, uses, ValueType.BOOLEAN)
    elif isinstance(expr, Minus):
        _collect_expr(expr.of, uses, ValueType.NUMBER)
    elif isinstance(expr, Binary):
        _collect_binary(expr, uses)
    elif isinstance(expr, Text):
        uses.setdefault(expr.name, ValueType.STRING)
    elif isinstance(expr, Name | Defined):
        uses.setdefault(expr.name, wanted)


def _collect_binary(expr: Binary, uses: dict[str, ValueType]) -> None:
    left, right = expr.left, expr.right
    is_text = expr.op in COMPARISONS and isinstance(left, Name) and isinstance(right, Name)
    if is_text and right.name not in BUILT_IN and left.name not in BUILT_IN:  # type: ignore[union-attr]
        uses.setdefault(left.name, ValueType.STRING)  # type: ignore[union-attr]
        return
    _collect_expr(left, uses, ValueType.NUMBER)
    _collect_expr(right, uses, ValueType.NUMBER)
