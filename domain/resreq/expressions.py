"""
Build the nodes of a select expression from its parse tree.
"""

from __future__ import annotations

import re
from typing import Final, Literal, cast

from lark import Token, Tree

from domain.errors import Refused
from domain.resreq.settings import ALIASES, ParseSettings
from domain.resreq.syntax import (
    Binary,
    Defined,
    Expr,
    Minus,
    Name,
    Not,
    Number,
    Text,
    all_of,
    any_of,
    depth,
)
from domain.resreq.wrong import Wrong, position_of
from domain.units import MILLI, MemoryUnit, checked_milli, memory_unit_of, split_quantity

DEPTH_MAX: Final = 50
"""Deeper expressions would pass the nesting that JSON readers allow; nobody writes them."""

Comparison = Literal["==", "!=", "<", "<=", ">", ">="]
Arithmetic = Literal["*", "/", "+", "-"]

_SMALLER: Final = dict(zip(list(MemoryUnit)[1:], MemoryUnit, strict=False))
_WORD: Final = re.compile(r"\w+")


class ExpressionBuilder:
    """
    Build expressions under given settings.
    """

    def __init__(self, settings: ParseSettings) -> None:
        self.settings = settings

    def build(self, tree: Tree[Token]) -> Expr:
        """
        Return the expression of a parse tree.

        Raises:
            Wrong: A part of it can't be honoured.
        """
        expr = self._expr(tree)
        if depth(expr) > DEPTH_MAX:
            raise Wrong(position_of(tree), f"the expression is nested more than {DEPTH_MAX} deep")
        return expr

    def _expr(self, tree: Token | Tree[Token]) -> Expr:
        assert isinstance(tree, Tree)
        children = tree.children
        if tree.data == "or_expr":
            return any_of(tuple(self._expr(child) for child in children))
        if tree.data == "and_expr":
            return all_of(tuple(self._expr(child) for child in children))
        if tree.data == "comparison":
            return self._comparison(*children)
        if tree.data == "arithmetic":
            left, op, right = children
            return Binary(
                kind="binary",
                op=cast(Arithmetic, str(op)),
                left=self._expr(left),
                right=self._expr(right),
            )
        if tree.data == "negation":
            return Not(kind="not", of=self._expr(children[1]))
        if tree.data == "minus":
            return Minus(kind="minus", of=self._expr(children[1]))
        if tree.data == "parenthesised":
            return self._expr(children[0])
        return self._leaf(str(tree.data), children[-1])

    def _leaf(self, rule: str, token: Token | Tree[Token]) -> Expr:
        assert isinstance(token, Token)
        if rule == "name":
            return self._name(token)
        if rule == "defined":
            return Defined(kind="defined", name=_canonical(token))
        if rule == "quantity":
            return self._number(token)
        raise Wrong(position_of(token), "a text can only be compared with an attribute to its left")

    def _name(self, token: Token) -> Name:
        name = _canonical(token)
        unit = self.settings.memory_unit.value if name in self.settings.memory_names else ""
        return Name(kind="name", name=name, unit=unit)

    def _number(self, token: Token) -> Number:
        try:
            number, suffix = split_quantity(token, field="resreq")
            unit = memory_unit_of(suffix) if suffix else None
            if suffix and unit is None:
                raise Wrong(position_of(token), "a number ends in K, M, G ... Z or KB ... ZB")
            while unit not in {None, MemoryUnit.KB} and (number * MILLI).denominator != 1:
                # 0.0625GB is 64MB: a smaller unit holds exactly what thousandths of the larger
                # can't.
                number, unit = number * 1024, _SMALLER[MemoryUnit(unit)]
            milli = number * MILLI
            if milli.denominator != 1:
                raise Wrong(position_of(token), "a number has at most three decimals")
            checked_milli(milli.numerator, field="resreq", text=token)
        except Refused as error:
            raise Wrong(position_of(token), error.rule) from None
        if unit is None:
            return Number(kind="number", milli=milli.numerator)
        base = self.settings.memory_unit.value
        return Number(kind="number", milli=milli.numerator, unit=unit.value, base=base)

    def _comparison(
        self, left: Token | Tree[Token], op: Token | Tree[Token], right: Token | Tree[Token]
    ) -> Expr:
        sign = cast(Comparison, str(op))
        literal = self._text_literal(left, right)
        if literal is not None:
            name, value = literal
            return Text(kind="text", name=_canonical(name), op=sign, value=value)
        return Binary(kind="binary", op=sign, left=self._expr(left), right=self._expr(right))

    def _text_literal(
        self, left: Token | Tree[Token], right: Token | Tree[Token]
    ) -> tuple[Token, str] | None:
        """
        Return the attribute and the text of ``name OP literal``, or None where it compares numbers.

        A bare word after a name that isn't known to be a text stays a name: `check` decides with
        the descriptors.
        """
        name = _only_token(left, "name")
        if name is None:
            return None
        quoted = _only_token(right, "quoted")
        if quoted is not None:
            return name, quoted[1:-1]
        word = _only_token(right, "name") or _only_token(right, "quantity")
        if word is None or not (name in self.settings.text_names or _is_only_a_word(word)):
            return None
        if _WORD.fullmatch(word) is None:
            raise Wrong(
                position_of(word),
                "a text with other characters than letters, digits and _ needs quotes",
            )
        return name, str(word)


def _only_token(tree: Token | Tree[Token], rule: str) -> Token | None:
    """
    Return the token of an operand that is nothing but a leaf of that rule.
    """
    if not isinstance(tree, Tree) or tree.data != rule:
        return None
    token = tree.children[-1]
    return token if isinstance(token, Token) else None


def _is_only_a_word(token: Token) -> bool:
    """
    Say whether a token that begins with a digit can't be a number, as in ``model == 3b2``.
    """
    if token.type != "QUANTITY":
        return False
    try:
        _, suffix = split_quantity(token, field="resreq")
    except Refused:
        return True
    return bool(suffix) and memory_unit_of(suffix) is None


def _canonical(token: Token) -> str:
    return ALIASES.get(token, str(token))
