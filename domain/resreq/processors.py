"""
What processors mean in a requirement: slots, as LSF has it where jobs are scheduled by slot.
"""

from __future__ import annotations

from typing import Final

from domain.resreq.check import names_in
from domain.resreq.syntax import AllOf, AnyOf, Binary, Expr, Minus, Name, Not, OrderKey

PROCESSORS: Final = "ncpus"
MAX_SLOTS: Final = "maxslots"


def with_slots(expr: Expr, *, is_by_slot: bool = True) -> Expr:
    """
    Return an expression in which processors mean slots, itself where jobs aren't scheduled so.
    """
    if not is_by_slot or PROCESSORS not in names_in(expr):
        return expr
    if isinstance(expr, Name):
        return expr.model_copy(update={"name": MAX_SLOTS})
    if isinstance(expr, AllOf | AnyOf):
        return expr.model_copy(update={"parts": tuple(map(with_slots, expr.parts))})
    if isinstance(expr, Binary):
        both = {"left": with_slots(expr.left), "right": with_slots(expr.right)}
        return expr.model_copy(update=both)
    if isinstance(expr, Not | Minus):
        return expr.model_copy(update={"of": with_slots(expr.of)})
    return expr


def order_with_slots(keys: tuple[OrderKey, ...], *, is_by_slot: bool) -> tuple[OrderKey, ...]:
    """
    Return the keys of an order in which processors mean slots, themselves where jobs aren't
    scheduled so.
    """
    if not is_by_slot or all(key.name != PROCESSORS for key in keys):
        return keys
    return tuple(
        key.model_copy(update={"name": MAX_SLOTS}) if key.name == PROCESSORS else key
        for key in keys
    )
