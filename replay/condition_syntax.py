"""
The language of conditions, from text to a tree. Nothing in it can do anything but look.

    job(12).state = RUN and time >= time('2026-11-29T18:00:00')
    jobs.PEND > 100 or slots.free = 0
    count(jobs, state = PEND and queue = night) >= 3
    alpha in job(12).hosts
    job(12).wait > 2h and not host(alpha).closed

    condition  = all { "or" all }          all = one { "and" one }        one = ["not"] comparison
    comparison = sum [ ("=" | "!=" | "<" | "<=" | ">" | ">=" | "in") sum ]
    sum        = product { ("+" | "-") product }     product = value { "*" value }
    value      = number [unit] | 'text' | name { "." name } | call { "." name } | "(" condition ")"
    call       = name "(" [ argument ] ")"           unit = us | ms | s | m | h | d

A name that means nothing where it stands is a text: RUN, alpha.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NamedTuple, final

from domain.errors import Refused
from domain.units import whole_number

UNITS_US: Final = {
    "us": 1, "ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000,
    "d": 86_400_000_000,
}  # fmt: skip
COMPARISONS: Final = ("=", "==", "!=", "<", "<=", ">", ">=", "in")
ENTITY_CALLS: Final = ("job", "host", "worker", "queue")
FOLDS: Final = ("count", "any", "all")
COLLECTIONS: Final = ("jobs", "hosts", "queues")
DEPTH_MAX: Final = 50
LENGTH_MAX: Final = 10_000

_token = re.compile(
    r"\s*(?:(?P<number>\d+)(?P<unit>[a-z]+)?(?![\w.\-])"
    r"|(?P<name>(?=[\w@+\-]*[A-Za-z_])[A-Za-z0-9_][\w@+\-]*)"
    r"|'(?P<text>[^']*)'|(?P<sign>==|!=|<=|>=|[=<>()+\-*.,\[\]]))"
)


@final
@dataclass(frozen=True, slots=True)
class Literal:
    """
    Be a number or a text.
    """

    value: int | str


@final
@dataclass(frozen=True, slots=True)
class Name:
    """
    Be a dotted name: a value of the whole state, or of the entity that a fold looks at.
    """

    parts: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True)
class Entity:
    """
    Be a value of one entity, by dotted name; the entity itself when there are no parts.
    """

    kind: str
    name: str
    parts: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True)
class Fold:
    """
    Count the entities of a collection for which a condition holds, or say whether any or all do.
    """

    how: str
    collection: str
    inner: Node


@final
@dataclass(frozen=True, slots=True)
class Unary:
    """
    Be "not".
    """

    inner: Node


@final
@dataclass(frozen=True, slots=True)
class Binary:
    """
    Be two conditions or values with a sign between.
    """

    sign: str
    left: Node
    right: Node


@final
@dataclass(frozen=True, slots=True)
class Moment:
    """
    Be a time, as it was written.
    """

    text: str


Node = Moment | Literal | Name | Entity | Fold | Unary | Binary


class Token(NamedTuple):
    """
    Be one word of the text; ``column`` counts from 1.
    """

    kind: str
    text: str
    column: int
    unit: str = ""


def parse_condition(text: str, *, field: str = "condition") -> Node:
    """
    Return the tree of a condition.

    Raises:
        Refused: It isn't one; the column and what was expected are told.
    """
    if len(text) > LENGTH_MAX:
        raise Refused(field, f"must not be longer than {LENGTH_MAX} characters")
    return _Parser(_tokens(text, field), field, text).whole()


def _tokens(text: str, field: str) -> list[Token]:
    found, place = [], 0
    end = len(text.rstrip())
    while place < end:
        match = _token.match(text, place)
        if match is None:
            raise Refused(field, f"column {place + 1}: this can't stand in a condition", text)
        kind = match.lastgroup or ""
        kind = "number" if kind == "unit" else kind
        column = match.start(kind) + 1
        found.append(Token(kind, match[kind], column, match["unit"] or ""))
        place = match.end()
    found.append(Token("end", "", end + 1))
    return found


@final
class _Parser:
    def __init__(self, tokens: list[Token], field: str, text: str) -> None:
        self._tokens = tokens
        self._field = field
        self._text = text
        self._at = 0
        self._depth = 0

    def whole(self) -> Node:
        node = self._any()
        if self._now.kind != "end":
            raise self._expected("and, or, a comparison, or the end")
        return node

    @property
    def _now(self) -> Token:
        return self._tokens[self._at]

    def _expected(self, what: str) -> Refused:
        shown = self._now.text or "the end"
        rule = f"column {self._now.column}: {what} is expected, not {shown}"
        return Refused(self._field, rule, self._text)

    def _takes(self, *texts: str) -> str | None:
        """
        Take the next word if it is one of these.
        """
        token = self._now
        if token.kind in ("sign", "name") and token.text in texts:
            self._at += 1
            return token.text
        return None

    def _must(self, text: str) -> None:
        if self._takes(text) is None:
            raise self._expected(text)

    def _any(self) -> Node:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise Refused(self._field, f"must not be nested deeper than {DEPTH_MAX}", self._text)
        node = self._all()
        while self._takes("or"):
            node = Binary("or", node, self._all())
        self._depth -= 1
        return node

    def _all(self) -> Node:
        node = self._one()
        while self._takes("and"):
            node = Binary("and", node, self._one())
        return node

    def _one(self) -> Node:
        negations = 0
        while self._takes("not"):
            negations += 1
        node = self._comparison()
        return Unary(node) if negations % 2 else node

    def _comparison(self) -> Node:
        left = self._sum()
        sign = self._takes(*COMPARISONS)
        if sign is None:
            return left
        return Binary("=" if sign == "==" else sign, left, self._sum())

    def _sum(self) -> Node:
        node = self._product()
        while sign := self._takes("+", "-"):
            node = Binary(sign, node, self._product())
        return node

    def _product(self) -> Node:
        node = self._value()
        while self._takes("*"):
            node = Binary("*", node, self._value())
        return node

    def _value(self) -> Node:
        token = self._now
        if self._takes("("):
            node = self._any()
            self._must(")")
            return node
        if token.kind == "number":
            self._at += 1
            return self._number(token)
        if token.kind == "text":
            self._at += 1
            return Literal(token.text)
        if token.kind != "name":
            raise self._expected("a value")
        self._at += 1
        return self._call(token) if self._takes("(") else Name((token.text, *self._parts()))

    def _number(self, token: Token) -> Literal:
        if token.unit and token.unit not in UNITS_US:
            rule = f"column {token.column}: the unit must be one of {', '.join(UNITS_US)}"
            raise Refused(self._field, rule, token.unit)
        number = whole_number(token.text)
        if number is None:
            rule = f"column {token.column}: must be a number that something can have"
            raise Refused(self._field, rule, token.text)
        return Literal(number * UNITS_US.get(token.unit, 1))

    def _parts(self) -> tuple[str, ...]:
        parts: list[str] = []
        while self._takes("."):
            if self._now.kind not in ("name", "number"):
                raise self._expected("a name")
            parts.append(self._now.text)
            self._at += 1
        return tuple(parts)

    def _call(self, token: Token) -> Node:
        name = token.text
        if name in FOLDS:
            return self._fold(name)
        if name == "time":
            return Moment(self._argument())
        if name not in ENTITY_CALLS:
            known = ", ".join((*ENTITY_CALLS, *FOLDS, "time"))
            rule = f"column {token.column}: only {known} can be called"
            raise Refused(self._field, rule, name)
        argument = self._argument()
        kind = "host" if name == "worker" else name
        return Entity(kind, argument, self._parts())

    def _argument(self) -> str:
        """
        Take everything up to the closing parenthesis: a text, or the name of an entity as it is.
        """
        begin = self._now
        parts: list[str] = []
        while self._now.kind != "end" and self._now.text != ")":
            parts.append(self._now.text + self._now.unit)
            self._at += 1
        self._must(")")
        if not parts:
            raise Refused(self._field, f"column {begin.column}: a name is expected", self._text)
        return "".join(parts)

    def _fold(self, how: str) -> Node:
        collection = self._takes(*COLLECTIONS)
        if collection is None:
            raise self._expected(f"one of {', '.join(COLLECTIONS)}")
        inner: Node = Literal(1)
        if self._takes(","):
            inner = self._any()
        self._must(")")
        return Fold(how, collection, inner)
