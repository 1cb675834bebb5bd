"""
Which requirements say the same, in whatever order they say it.
"""

from __future__ import annotations

from typing import Final

from domain.resreq.syntax import (
    AllOf,
    AnyOf,
    Binary,
    Compound,
    Expr,
    Minus,
    Not,
    Primary,
    Requirement,
    RusageTerm,
    Span,
)

SYMMETRIC: Final = frozenset(["+", "*", "==", "!="])


def in_one_order(requirement: Requirement) -> Requirement:
    """
    Return a requirement with what has no order sorted: two that say the same are equal then.

    Alternatives, members of compounds and keys of an order are tried or compared in the order
    written, so they stay where they are.
    """
    compounds = tuple(_compound(each) for each in requirement.compounds)
    return Requirement(compounds=compounds)


def _compound(compound: Compound) -> Compound:
    return compound.model_copy(
        update={
            "primaries": tuple(_primary(each) for each in compound.primaries),
            "same": _names(compound.same),
        }
    )


def _primary(primary: Primary) -> Primary:
    return primary.model_copy(
        update={
            "select": None if primary.select is None else _expr(primary.select),
            "rusage": tuple(tuple(sorted(usage, key=_by_name)) for usage in primary.rusage),
            "span": None if primary.span is None else _span(primary.span),
            "same": _names(primary.same),
        }
    )


def _by_name(term: RusageTerm) -> str:
    """
    Order amounts by what is reserved: none is named twice.
    """
    return term.resource


def _names(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(names))


def _span(span: Span) -> Span:
    return span.model_copy(
        update={"kinds": tuple(sorted(span.kinds, key=lambda each: each.kind))}
    )


def _expr(expr: Expr) -> Expr:
    """
    Return an expression with the operands sorted wherever their order says nothing.
    """
    if isinstance(expr, AllOf | AnyOf):
        return expr.model_copy(update={"parts": tuple(sorted(map(_expr, expr.parts), key=repr))})
    if isinstance(expr, Not | Minus):
        return expr.model_copy(update={"of": _expr(expr.of)})
    if isinstance(expr, Binary):
        left, right = _expr(expr.left), _expr(expr.right)
        if expr.op in SYMMETRIC and repr(right) < repr(left):
            left, right = right, left
        return expr.model_copy(update={"left": left, "right": right})
    return expr
