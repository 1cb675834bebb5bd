"""
Expressions as the vectors write them, ``(and (> mem 100) gpu)``, compared without regard to what
means the same.
"""

from __future__ import annotations

import re
from typing import Final

from domain.errors import Refused
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
from domain.units import MemoryUnit, parse_memory_milli, show_milli
from tools.conformance.values import Malformed

Tree = str | tuple["Tree", ...]

_TOKEN: Final = re.compile(r"\s*(\(|\)|'[^']*'|\"[^\"]*\"|[^\s()]+)")
_AMOUNT: Final = re.compile(r"\d+(?:\.\d+)?[A-Za-z]+")
_SAME: Final = {"&&": "and", "||": "or", "!": "not", "neg": "-"}


def tree_of(expr: Expr | None) -> Tree:
    """
    Return an expression as a tree of texts.
    """
    if expr is None:
        return ""
    if isinstance(expr, AllOf | AnyOf):
        return (expr.kind, *(tree_of(part) for part in expr.parts))
    if isinstance(expr, Binary):
        return (expr.op, tree_of(expr.left), tree_of(expr.right))
    if isinstance(expr, Not):
        return ("not", tree_of(expr.of))
    if isinstance(expr, Minus):
        return ("-", tree_of(expr.of))
    return _leaf(expr)


def _leaf(expr: Number | Name | Text | Defined) -> Tree:
    if isinstance(expr, Text):
        return (expr.op, expr.name, expr.value)
    if isinstance(expr, Defined):
        return ("defined", expr.name)
    if isinstance(expr, Name):
        return expr.name
    return f"{show_milli(expr.milli)}{expr.unit}"


def read_tree(text: str) -> Tree:
    """
    Return the tree that a text writes.
    """
    tokens = [token.strip("'\"") for token in _TOKEN.findall(text)]
    tree, rest = _read(tokens)
    if rest:
        raise Malformed(f"more than one tree in {text!r}")
    return tree


def _read(tokens: list[str]) -> tuple[Tree, list[str]]:
    if not tokens:
        raise Malformed("a tree ends too early")
    first, *rest = tokens
    if first != "(":
        return first, rest
    parts: list[Tree] = []
    while rest and rest[0] != ")":
        part, rest = _read(rest)
        parts.append(part)
    if not rest:
        raise Malformed("a tree lacks its ')'")
    return tuple(parts), rest[1:]


def alike(tree: Tree, *, is_order_free: bool = False, unit: MemoryUnit = MemoryUnit.MB) -> Tree:
    """
    Return a tree in the form that all trees of the same meaning share: chains of and/or are flat,
    amounts are in the cluster's unit.

    Args:
        tree: Any tree.
        is_order_free: Whether the order of the operands of and/or doesn't matter.
        unit: The cluster's unit of memory.
    """
    if isinstance(tree, str):
        return _in_unit(tree, unit)
    head, *operands = tree
    name = _SAME.get(head, head) if isinstance(head, str) else head
    parts = [alike(operand, is_order_free=is_order_free, unit=unit) for operand in operands]
    if name not in {"and", "or"}:
        return (name, *parts)
    flat: list[Tree] = []
    for part in parts:
        flat.extend(part[1:] if isinstance(part, tuple) and part[0] == name else (part,))
    return (name, *(sorted(flat, key=repr) if is_order_free else flat))


def _in_unit(leaf: str, unit: MemoryUnit) -> str:
    """
    Return an amount such as ``4GB`` as the cluster would show it; any other leaf as it is.
    """
    if not _AMOUNT.fullmatch(leaf):
        return leaf
    try:
        kib_milli = parse_memory_milli(leaf, unit=unit)
    except Refused:
        return leaf
    return show_milli(kib_milli // unit.kib) if kib_milli % unit.kib == 0 else leaf
