"""
Selects that hosts may meet just because something of them is taken: ``slots < 2``, ``mem != 500``.
"""

from __future__ import annotations

from collections.abc import Callable

from domain.resreq.check import leaves_of
from domain.resreq.syntax import AllOf, AnyOf, Binary, Expr, Name, Not, Number
from projections.scheduling.request import Part

IsTaken = Callable[[str], bool]
"""Says whether jobs take of what has a name."""

_RISING = {">": True, ">=": True, "<": False, "<=": False}


def opens_by_taking(part: Part, is_taken: IsTaken) -> bool:
    """
    Say whether a host that doesn't suit a primary may suit it when it has less left.
    """
    thresholds = (each for usage in part.usages for each in usage.thresholds)
    return any(not _only_closes(each.expr, is_taken) for each in part.conditions) or any(
        each.is_ceiling and is_taken(each.resource) for each in thresholds
    )


def _only_closes(expr: Expr, is_taken: IsTaken, *, rising: bool = True) -> bool:
    """
    Say whether less of what is taken can only make an expression false; true where it is negated.
    What isn't a comparison of one name with a number isn't looked into.
    """
    if not any(isinstance(leaf, Name) and is_taken(leaf.name) for leaf in leaves_of(expr)):
        return True
    if isinstance(expr, AllOf | AnyOf):
        return all(_only_closes(each, is_taken, rising=rising) for each in expr.parts)
    if isinstance(expr, Not):
        return _only_closes(expr.of, is_taken, rising=not rising)
    if isinstance(expr, Name):
        return rising
    if not isinstance(expr, Binary) or str(expr.op) not in _RISING:
        return False
    left, right, is_rising = expr.left, expr.right, _RISING[str(expr.op)]
    if isinstance(left, Number) and isinstance(right, Name):
        return is_rising is not rising
    return isinstance(left, Name) and isinstance(right, Number) and is_rising is rising
