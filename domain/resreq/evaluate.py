"""
Turn a checked select expression into a function of one host; pure and exact, without floats.

Truth, as LSF has it: a number other than 0 selects; comparisons and logic give 1 or 0. A boolean or
a site's number that the host lacks is 0, a comparison with a text that it lacks is 0 (and nothing
more: ``a || b`` doesn't depend on the order of its operands), and a load index that it doesn't
report leaves the host out. A division by zero makes the comparison it stands in 0.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Protocol

from domain.resources import Catalogue, ValueType
from domain.resreq.check import COMPARISONS, leaves_of
from domain.resreq.syntax import (
    AllOf,
    AnyOf,
    Binary,
    Defined,
    Expr,
    Minus,
    Name,
    Not,
    Number,
    Text,
)
from domain.units import MILLI, MemoryUnit

SPECIAL_TYPES: Final = ("type", "model")
"""The attributes whose values `any` and `local` are special."""


class HostView(Protocol):
    """
    Be what an expression can see of a host; names are those of descriptors, never aliases.
    """

    def amount_milli(self, name: str) -> int | None:
        """
        Return a number in thousandths (memory in thousandths of a KiB), None where the host has
        none.
        """

    def text(self, name: str) -> str | None:
        """
        Return the value of a text, None where the host has none.
        """

    def flag(self, name: str) -> bool:
        """
        Say whether the host has a boolean.
        """


@dataclass(frozen=True, slots=True)
class SubmissionHost:
    """
    Hold what `local` means: type and model of the host a job was submitted from, "" where unknown.
    """

    type: str = ""
    model: str = ""


ANYWHERE: Final = SubmissionHost()
"""Submitted from a host that isn't known: `local` is then true everywhere."""

Test = Callable[[HostView], bool]
Value = int | Fraction
Measure = Callable[[HostView], Value]

_COMPARE: Final[dict[str, Callable[[Value, Value], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_COMPARE_TEXT: Final[dict[str, Callable[[str, str], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_MIRRORED: Final = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def compile_select(
    expr: Expr | None, catalogue: Catalogue, *, submitted_from: SubmissionHost = ANYWHERE
) -> Test:
    """
    Return the function that says whether a host is selected; without an expression every host is.
    """
    if expr is None:
        return lambda _: True
    loads = load_names(expr, catalogue)
    test = Compiler(catalogue, submitted_from).test(expr)
    if not loads:
        return test
    return lambda host: all(host.amount_milli(name) is not None for name in loads) and test(host)


def load_names(expr: Expr | None, catalogue: Catalogue) -> tuple[str, ...]:
    """
    Return the load indices that an expression looks at: a host must report them all.
    """
    names = [leaf.name for leaf in leaves_of(expr) if isinstance(leaf, Name)]
    known = ((name, catalogue.get(name)) for name in dict.fromkeys(names))
    return tuple(name for name, found in known if found is not None and found.is_load)


class Compiler:
    """
    Compile expressions against one catalogue for one submission host.
    """

    def __init__(self, catalogue: Catalogue, submitted_from: SubmissionHost) -> None:
        self.catalogue = catalogue
        self.submitted_from = submitted_from

    def test(self, expr: Expr) -> Test:
        """
        Return the function that says whether an expression differs from 0.
        """
        if isinstance(expr, AllOf):
            every = tuple(self.test(part) for part in expr.parts)
            return lambda host: all(part(host) for part in every)
        if isinstance(expr, AnyOf):
            some = tuple(self.test(part) for part in expr.parts)
            return lambda host: any(part(host) for part in some)
        if isinstance(expr, Not):
            inner = self.test(expr.of)
            return lambda host: not inner(host)
        if isinstance(expr, Binary) and expr.op in COMPARISONS:
            return self._comparison(expr)
        if isinstance(expr, Text):
            return self._text(expr)
        if isinstance(expr, Defined):
            return self._defined(expr.name)
        if isinstance(expr, Name) and self._type(expr.name) is ValueType.BOOLEAN:
            name = expr.name
            return lambda host: host.flag(name)
        measure = self.measure(expr)
        return _defined_or_false(lambda host: measure(host) != 0)

    def measure(self, expr: Expr) -> Measure:
        """
        Return the function that gives an expression's value; a division by zero is raised.
        """
        if isinstance(expr, Number):
            value = number_value(expr)
            return lambda _: value
        if isinstance(expr, Name) and self._type(expr.name) is not ValueType.BOOLEAN:
            return _amount(expr)
        if isinstance(expr, Minus):
            inner = self.measure(expr.of)
            return lambda host: -inner(host)
        if isinstance(expr, Binary) and expr.op not in COMPARISONS:
            return self._arithmetic(expr)
        test = self.test(expr)
        return lambda host: int(test(host))

    def _arithmetic(self, expr: Binary) -> Measure:
        left, right = self.measure(expr.left), self.measure(expr.right)
        if expr.op == "*":
            return lambda host: left(host) * right(host)
        if expr.op == "+":
            return lambda host: left(host) + right(host)
        if expr.op == "-":
            return lambda host: left(host) - right(host)
        return lambda host: Fraction(left(host)) / right(host)

    def _comparison(self, expr: Binary) -> Test:
        simple = self._amount_with_number(expr)
        if simple is not None:
            return simple
        compare = _COMPARE[expr.op]
        left, right = self.measure(expr.left), self.measure(expr.right)
        return _defined_or_false(lambda host: compare(left(host), right(host)))

    def _amount_with_number(self, expr: Binary) -> Test | None:
        """
        Return the test of ``name OP number`` or its mirror image on whole thousandths; it is what
        most users write.

        Equivalent to: comparing the measures of both sides. Differs in: both sides are multiplied
        by the unit.
        """
        left, right, op = expr.left, expr.right, str(expr.op)
        if isinstance(left, Number) and isinstance(right, Name):
            left, right, op = right, left, _MIRRORED[op]
        if not isinstance(left, Name) or not isinstance(right, Number):
            return None
        if self._type(left.name) is not ValueType.NUMBER:
            return None
        name, compare = left.name, _COMPARE[op]
        bound = _whole(number_value(right) * _scale(left))
        return lambda host: compare(host.amount_milli(name) or 0, bound)

    def _text(self, expr: Text) -> Test:
        name, op, value = expr.name, expr.op, expr.value
        compare = _COMPARE_TEXT[op]
        if name in SPECIAL_TYPES and value in {"any", "local"}:
            local = "" if value == "any" else self._local(name)
            if not local:
                is_true = op != "!="
                return lambda _: is_true
            value = local

        def test(host: HostView) -> bool:
            found = host.text(name)
            return found is not None and compare(found, value)

        return test

    def _local(self, name: str) -> str:
        return self.submitted_from.type if name == "type" else self.submitted_from.model

    def _defined(self, name: str) -> Test:
        kind = self._type(name)
        if kind is ValueType.BOOLEAN:
            return lambda host: host.flag(name)
        if kind is ValueType.STRING:
            return lambda host: host.text(name) is not None
        return lambda host: host.amount_milli(name) is not None

    def _type(self, name: str) -> ValueType:
        found = self.catalogue.get(name)
        return ValueType.NUMBER if found is None else found.value_type


def _amount(expr: Name) -> Measure:
    name, scale = expr.name, _scale(expr)
    return lambda host: Fraction(host.amount_milli(name) or 0, scale)


def _scale(expr: Name) -> int:
    """
    Return what a stored amount is divided by to be in the unit of the expression.
    """
    return MILLI * (MemoryUnit(expr.unit).kib if expr.unit else 1)


def number_value(number: Number) -> Value:
    """
    Return the exact value of a literal, in the cluster's unit where it has a unit of memory.
    """
    value = Fraction(number.milli, MILLI)
    if number.unit:
        value = value * MemoryUnit(number.unit).kib / MemoryUnit(number.base).kib
    return _whole(value)


def _whole(value: Value) -> Value:
    return int(value) if value == int(value) else value


def _defined_or_false(test: Test) -> Test:
    def guarded(host: HostView) -> bool:
        try:
            return test(host)
        except ZeroDivisionError:
            return False

    return guarded
