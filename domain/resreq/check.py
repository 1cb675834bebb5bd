"""
Check names and types of a requirement against the resource descriptors.

The check also resolves what the parser had to leave open: whether ``os == rhel8`` compares with a
text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Final

from domain.errors import Refused
from domain.resources import (
    BUILT_IN,
    Catalogue,
    ResourceDescriptor,
    ValueType,
)
from domain.resreq.syntax import (
    AllOf,
    AnyOf,
    Binary,
    Compound,
    Defined,
    Expr,
    Minus,
    Name,
    Not,
    Number,
    Primary,
    Requirement,
    RusageTerm,
    Text,
    children,
)
from domain.texts import NotUnderstood
from domain.units import show_milli

FIELD: Final = "resreq"
COMPARISONS: Final = ("==", "!=", "<", "<=", ">", ">=")


def check(
    requirement: Requirement, catalogue: Catalogue, *, texts: Sequence[str] = ()
) -> Requirement:
    """
    Return the requirement with every comparison resolved; *texts* are what was written, for the
    caret.

    Raises:
        Refused: A name is unknown, or a resource can't be used the way it is.
    """
    checker = Checker(catalogue, texts)
    compounds = tuple(checker.compound(compound) for compound in requirement.compounds)
    return Requirement(compounds=compounds)


class Checker:
    """
    Check one requirement.
    """

    def __init__(self, catalogue: Catalogue, texts: Sequence[str] = ()) -> None:
        self.catalogue = catalogue
        self.texts = texts

    def compound(self, compound: Compound) -> Compound:
        """
        Return a compound checked and resolved.
        """
        for name in compound.same:
            self._check_same(name)
        primaries = tuple(self.primary(primary, compound.same) for primary in compound.primaries)
        return compound.model_copy(update={"primaries": primaries})

    def primary(self, primary: Primary, outer_same: tuple[str, ...] = ()) -> Primary:
        """
        Return a primary checked and resolved.
        """
        for key in primary.order:
            self._check_order(key.name)
        for name in primary.same:
            self._check_same(name)
        for usage in primary.rusage:
            for term in usage:
                self._check_rusage(term)
        has_kinds = primary.span is not None and primary.span.kinds
        if has_kinds and not {"type", "model"}.intersection(primary.same + outer_same):
            raise self._refusal("ptile", "tiles by type or model need same[type] or same[model]")
        if primary.select is None:
            return primary
        return primary.model_copy(update={"select": self.expr(primary.select)})

    def _check_order(self, name: str) -> None:
        if self._known(name).value_type is not ValueType.NUMBER:
            raise self._refusal(name, f"hosts can be ordered by numbers only, and {name} is none")

    def _check_same(self, name: str) -> None:
        found = self._known(name)
        if not found.is_static or found.value_type is ValueType.BOOLEAN:
            raise self._refusal(name, f"same takes static texts and numbers, and {name} is none")

    def _check_rusage(self, term: RusageTerm) -> None:
        found = self._known(term.resource)
        if not found.is_consumable:
            raise self._refusal(term.resource, f"{term.resource} can't be reserved")

    def expr(self, expr: Expr) -> Expr:
        """
        Return an expression whose value is used, checked and resolved.
        """
        if isinstance(expr, AllOf | AnyOf):
            parts = tuple(self.expr(part) for part in expr.parts)
            return expr.model_copy(update={"parts": parts})
        if isinstance(expr, Not | Minus):
            return expr.model_copy(update={"of": self.expr(expr.of)})
        if isinstance(expr, Binary):
            return self._binary(expr)
        if isinstance(expr, Text):
            return self._text(expr)
        if isinstance(expr, Defined):
            self._check_defined(expr.name)
        if isinstance(expr, Name) and self._known(expr.name).value_type is ValueType.STRING:
            raise self._refusal(expr.name, _text_rule(expr.name))
        return expr

    def _binary(self, expr: Binary) -> Expr:
        text = self._as_text(expr)
        if text is not None:
            return self._text(text)
        left, right = self.expr(expr.left), self.expr(expr.right)
        if expr.op in COMPARISONS:
            self._check_units(left, right)
        return expr.model_copy(update={"left": left, "right": right})

    def _as_text(self, expr: Binary) -> Text | None:
        """
        Return the comparison with a text that ``name OP word`` is when the name is that of a text.
        """
        if expr.op not in COMPARISONS or not isinstance(expr.left, Name):
            return None
        if self._known(expr.left.name).value_type is not ValueType.STRING:
            return None
        if isinstance(expr.right, Name):
            value = expr.right.name
        elif isinstance(expr.right, Number):
            value = f"{show_milli(expr.right.milli)}{expr.right.unit}"
        else:
            raise self._refusal(expr.left.name, _text_rule(expr.left.name))
        return Text.model_validate(
            {"kind": "text", "name": expr.left.name, "op": expr.op, "value": value}
        )

    def _text(self, expr: Text) -> Text:
        if self._known(expr.name).value_type is not ValueType.STRING:
            raise self._refusal(expr.name, f"{expr.name} is no text: compare it with a number")
        return expr

    def _check_defined(self, name: str) -> None:
        self._known(name)
        if name in BUILT_IN:
            raise self._refusal(name, f"every host has {name}: defined() is for a site's resources")

    def _check_units(self, left: Expr, right: Expr) -> None:
        nodes = [*_leaves(left), *_leaves(right)]
        sized = next((node for node in nodes if isinstance(node, Number) and node.unit), None)
        if sized is not None and not any(isinstance(node, Name) and node.unit for node in nodes):
            shown = f"{show_milli(sized.milli)}{sized.unit}"
            raise Refused(FIELD, "an amount of memory must be compared with memory", shown)

    def _known(self, name: str) -> ResourceDescriptor:
        found = self.catalogue.get(name)
        if found is not None:
            return found
        near = get_close_matches(name, self.catalogue.names(), n=1)
        raise self._refusal(
            name, f"there is no resource {name}", f"Did you mean {near[0]}?" if near else None
        )

    def _refusal(self, name: str, rule: str, hint: str | None = None) -> Refused:
        """
        Return a refusal with the caret at the name, where it can be found in what was written.
        """
        for text in self.texts:
            place = re.search(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])", text)
            if place is not None:
                return NotUnderstood(FIELD, rule, text, place.start() + 1, hint)
        return Refused(FIELD, rule, name, hint)


def _text_rule(name: str) -> str:
    return f"{name} is a text: compare it with a value, quoted unless it is one plain word"


def _leaves(expr: Expr) -> Iterator[Expr]:
    found = children(expr)
    if not found:
        yield expr
    for child in found:
        yield from _leaves(child)


def names_in(expr: Expr | None) -> tuple[str, ...]:
    """
    Return every name of an expression once, in order of appearance.
    """
    if expr is None:
        return ()
    leaves = [leaf for leaf in _leaves(expr) if isinstance(leaf, Name | Text | Defined)]
    return tuple(dict.fromkeys(leaf.name for leaf in leaves))


def leaves_of(expr: Expr | None) -> tuple[Expr, ...]:
    """
    Return the leaves of an expression from left to right.
    """
    return () if expr is None else tuple(_leaves(expr))
