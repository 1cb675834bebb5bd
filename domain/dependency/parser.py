"""
Read dependencies (-w): ``done(12) && (exit("build*", >2) || !started(A[1-3]))``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, cast

from domain.arrays import parse_ranges
from domain.dependency.syntax import (
    COUNTED,
    FIELD,
    AllOf,
    AnyOf,
    Condition,
    Dependency,
    JobRef,
    Not,
    Op,
    Predicate,
)
from domain.errors import Refused
from domain.texts import NotUnderstood

TEXT_MAX: Final = 16_384
"""So many characters are read at most."""

DEPTH_MAX: Final = 50
"""Parentheses and exclamation marks may be nested so deeply."""

NUMBER_MAX: Final = 2**31 - 1

_TOKENS: Final = re.compile(
    r"""\s*(?:
      (?P<sign>&&|\|\||>=|<=|==|!=|[!()<>,*])
    | (?P<ref>(?:"[^"]*"|'[^']*'|[A-Za-z_./%][\w./%:@+~-]*\*?|[0-9]+)(?:\[[^\[\]]*\])?)
    )""",
    re.VERBOSE | re.ASCII,
)
_INDICES: Final = re.compile(r"(.*?)\[([^\[\]]*)\]", re.DOTALL)
_OPS: Final = (">=", "<=", "==", "!=", ">", "<")


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    position: int


@lru_cache(maxsize=4096)
def parse_dependency(text: str) -> Dependency:
    """
    Return the dependency of a text, its parents not bound yet.

    Raises:
        Refused: It isn't one; the caret is where it goes wrong.
    """
    if len(text) > TEXT_MAX:
        raise Refused(FIELD, f"must have at most {TEXT_MAX} characters", f"{text[:40]}...")
    reader = _Reader(text)
    dependency = reader.any_of(0)
    reader.expect_end()
    return dependency


class _Reader:
    """
    Read one text from left to right.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = self._split()
        self.at = 0

    def _split(self) -> list[_Token]:
        tokens = []
        position = 0
        end = len(self.text.rstrip())
        while position < end:
            match = _TOKENS.match(self.text, position)
            if match is None:
                blanks = len(self.text[position:]) - len(self.text[position:].lstrip())
                raise self.wrong(position + blanks, "expected a condition or an operator")
            kind = match.lastgroup or ""
            tokens.append(_Token(kind, match[kind], match.start(kind)))
            position = match.end()
        return [*tokens, _Token("end", "", len(self.text))]

    def wrong(self, position: int, rule: str, hint: str | None = None) -> NotUnderstood:
        return NotUnderstood(FIELD, rule, self.text, position + 1, hint)

    @property
    def token(self) -> _Token:
        return self.tokens[self.at]

    def take(self, *signs: str) -> str | None:
        """
        Take one of some signs if it comes next.
        """
        if self.token.kind != "sign" or self.token.text not in signs:
            return None
        self.at += 1
        return self.tokens[self.at - 1].text

    def expect(self, sign: str) -> None:
        if self.take(sign) is None:
            raise self.wrong(self.token.position, f"expected '{sign}', found {self._found()}")

    def expect_end(self) -> None:
        if self.token.kind != "end":
            rule = f"expected &&, || or the end, found {self._found()}"
            raise self.wrong(self.token.position, rule)

    def _found(self) -> str:
        return "the end" if self.token.kind == "end" else repr(self.token.text)

    # ------------------------------------------------------------------ operators, loosest first

    def any_of(self, depth: int) -> Dependency:
        if depth > DEPTH_MAX:
            raise self.wrong(self.token.position, f"is nested more than {DEPTH_MAX} deep")
        parts = [self.all_of(depth)]
        while self.take("||"):
            parts.append(self.all_of(depth))
        flat = [
            each for part in parts for each in (part.parts if isinstance(part, AnyOf) else (part,))
        ]
        return flat[0] if len(flat) == 1 else AnyOf(kind="or", parts=tuple(flat))

    def all_of(self, depth: int) -> Dependency:
        parts = [self.unary(depth)]
        while self.take("&&"):
            parts.append(self.unary(depth))
        flat = [
            each for part in parts for each in (part.parts if isinstance(part, AllOf) else (part,))
        ]
        return flat[0] if len(flat) == 1 else AllOf(kind="and", parts=tuple(flat))

    def unary(self, depth: int) -> Dependency:
        if depth > DEPTH_MAX:
            raise self.wrong(self.token.position, f"is nested more than {DEPTH_MAX} deep")
        if self.take("!"):
            return Not(kind="not", of=self.unary(depth + 1))
        if self.take("("):
            inner = self.any_of(depth + 1)
            self.expect(")")
            return inner
        return self.condition()

    # ---------------------------------------------------------------------------------- conditions

    def condition(self) -> Condition:
        token = self.token
        if token.kind != "ref":
            raise self.wrong(token.position, f"expected a condition, found {self._found()}")
        self.at += 1
        if self.take("("):
            return self._called(token)
        return Condition(kind="job", predicate=Predicate.DONE, ref=self._ref(token))

    def _called(self, name: _Token) -> Condition:
        if name.text not in set(Predicate):
            known = ", ".join(predicate.value for predicate in Predicate)
            raise self.wrong(
                name.position, f"there is no condition {name.text}(...)", f"Known are {known}."
            )
        predicate = Predicate(name.text)
        token = self.token
        if token.kind != "ref":
            raise self.wrong(token.position, f"expected a job, found {self._found()}")
        self.at += 1
        condition = Condition(kind="job", predicate=predicate, ref=self._ref(token))
        condition = condition.model_copy(update=self._argument(predicate))
        self.expect(")")
        return condition

    def _argument(self, predicate: Predicate) -> dict[str, object]:
        """
        Return the fields that the second argument sets, where the predicate has one.
        """
        if predicate is Predicate.EXIT and self.token.text != ",":
            return {}
        if predicate not in {Predicate.EXIT, Predicate.EXTERNAL, *COUNTED}:
            return {}
        self.expect(",")
        if predicate is Predicate.EXTERNAL:
            return {"message": self._message()}
        if predicate in COUNTED and self.take("*"):
            return {"is_all": True, "op": "=="}
        op = cast(Op, self.take(*_OPS) or "==")
        return {"op": op, "number": self._number()}

    def _message(self) -> str:
        token = self.token
        if token.kind != "ref" or token.text[0] not in "\"'" or token.text[-1] != token.text[0]:
            raise self.wrong(token.position, f"expected a quoted text, found {self._found()}")
        self.at += 1
        words = token.text[1:-1].split()
        if len(words) != 1:
            raise self.wrong(token.position, "must be the first word of the message, one word")
        return words[0]

    def _number(self) -> int:
        token = self.token
        if not token.text.isdecimal() or len(token.text) > 10 or int(token.text) > NUMBER_MAX:
            raise self.wrong(token.position, f"expected a number, found {self._found()}")
        self.at += 1
        return int(token.text)

    def _ref(self, token: _Token) -> JobRef:
        """
        Return the reference of a token: a number, or a name, quoted or not, each with elements or
        without.
        """
        text, position = token.text, token.position
        if text[0] in "\"'":
            closing = text.index(text[0], 1)
            text, position = text[1:closing] + text[closing + 1 :], position + 1
            is_number = False
        else:
            is_number = text[0].isdecimal()
        match = _INDICES.fullmatch(text)
        name, listed = (text, None) if match is None else (match[1], match[2])
        if is_number:
            if len(name) > 10 or int(name) == 0:
                raise self.wrong(
                    position,
                    "must be a job number",
                    "A name that begins with a digit needs quotes.",
                )
            return self._with_elements({"number": int(name)}, listed, position + len(name) + 1)
        if not name or "*" in name[:-1]:
            raise self.wrong(position, "must be a job's name, with * at most at its end")
        return self._with_elements({"name": name}, listed, position + len(name) + 1)

    def _with_elements(self, fields: dict[str, object], listed: str | None, offset: int) -> JobRef:
        if listed is None:
            return JobRef.model_validate(fields)
        if listed.strip() == "*":
            return JobRef.model_validate({**fields, "is_each": True})
        ranges = parse_ranges(listed, whole=self.text, offset=offset, field=FIELD)
        return JobRef.model_validate({**fields, "ranges": ranges})
