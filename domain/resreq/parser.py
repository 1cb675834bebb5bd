"""
Turn the text of a resource requirement into nodes, or say where and why it can't be.

Each distinct text is parsed once; the nodes are frozen, so everybody may share them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from itertools import pairwise
from typing import Final

from lark import Lark, Token, Tree

from domain.errors import Refused
from domain.resreq import sections
from domain.resreq.diagnosis import not_understood
from domain.resreq.expressions import ExpressionBuilder
from domain.resreq.joining import join
from domain.resreq.settings import DEFAULT_SETTINGS, ParseSettings
from domain.resreq.syntax import EMPTY, Compound, Primary, Requirement
from domain.resreq.wrong import Wrong, position_of
from domain.texts import NotUnderstood
from domain.units import MINUTE_US, split_quantity

FIELD: Final = "resreq"

TEXT_MAX: Final = 16_384
"""So many characters of one option are read at most."""

TREE_DEPTH_MAX: Final = 300
"""A deeper parse tree is refused before anything walks it (a hundred parentheses in each other)."""

SELECT_FIRST: Final = "select should be first"


@dataclass(frozen=True, slots=True)
class Parsed:
    """
    Hold a requirement, and what its author should be told about it.
    """

    requirement: Requirement
    warnings: tuple[str, ...] = ()


def parse(texts: Sequence[str] | str, *, settings: ParseSettings = DEFAULT_SETTINGS) -> Requirement:
    """
    Return the requirement that one text, or the texts of several options together, say.

    Raises:
        Refused: A text is none, or they can't be merged; a text's own errors are NotUnderstood.
    """
    return parse_and_warn(texts, settings=settings).requirement


def parse_and_warn(
    texts: Sequence[str] | str, *, settings: ParseSettings = DEFAULT_SETTINGS
) -> Parsed:
    """
    Return the requirement as `parse` does, with warnings for its author.

    Raises:
        Refused: As `parse`.
    """
    options = (texts,) if isinstance(texts, str) else tuple(texts)
    if not options:
        return Parsed(EMPTY)
    parsed = [_parse_one(text, settings) for text in options]
    if len(parsed) == 1:
        return parsed[0]
    warnings = dict.fromkeys(warning for one in parsed for warning in one.warnings)
    return Parsed(join([one.requirement for one in parsed], options), tuple(warnings))


@cache
def _grammar() -> Lark:
    text = resources.files("domain.resreq").joinpath("grammar.lark").read_text("utf-8")
    return Lark(text, parser="lalr", maybe_placeholders=True)


@lru_cache(maxsize=8192)
def _parse_one(text: str, settings: ParseSettings) -> Parsed:
    if len(text) > TEXT_MAX:
        raise Refused(FIELD, f"must have at most {TEXT_MAX} characters", f"{text[:40]}...")
    try:
        tree = _grammar().parse(text)
    except Exception as error:  # noqa: BLE001 - diagnosis raises again what isn't lark's
        raise not_understood(text, error) from None
    try:
        return _Builder(settings).parsed(tree)
    except Wrong as wrong:
        raise NotUnderstood(FIELD, wrong.rule, text, wrong.position + 1, wrong.hint) from None


class _Builder:
    """
    Build the nodes of one text from its parse tree.
    """

    def __init__(self, settings: ParseSettings) -> None:
        self.settings = settings
        self.expressions = ExpressionBuilder(settings)
        self.warnings: list[str] = []

    def parsed(self, tree: Tree[Token]) -> Parsed:
        _check_depth(tree)
        requirement = self.requirement(tree)
        return Parsed(requirement, tuple(dict.fromkeys(self.warnings)))

    def requirement(self, tree: Tree[Token]) -> Requirement:
        first = tree.children[0]
        assert isinstance(first, Tree)
        if tree.data == "only_simple":
            return Requirement(compounds=(Compound(primaries=(self.primary(first),)),))
        if tree.data == "only_sum":
            return Requirement(compounds=(Compound(primaries=self.sum(first)),))
        branches = [branch for branch in tree.children if isinstance(branch, Tree)]
        compounds = tuple(self.branch(branch) for branch in branches)
        self._check_delays(branches, compounds)
        if len(branches) > 1 or not Requirement(compounds=compounds).is_simple:
            _refuse_rusage_alternatives(branches, compounds)
        return Requirement(compounds=compounds)

    @staticmethod
    def _check_delays(branches: Sequence[Tree[Token]], compounds: Sequence[Compound]) -> None:
        if compounds[0].delay_us:
            raise Wrong(_delay(branches[0]), "the first alternative can't have a delay")
        for branch, (earlier, later) in zip(branches[1:], pairwise(compounds), strict=True):
            if later.delay_us < earlier.delay_us:
                raise Wrong(
                    _delay(branch),
                    "a delay can't be shorter than that of the alternative before it",
                )

    def branch(self, tree: Tree[Token]) -> Compound:
        group = tree.children[0]
        assert isinstance(group, Tree)
        compound = self.group(group)
        if tree.data == "at_once":
            return compound
        delay = tree.children[1]
        assert isinstance(delay, Token)
        return compound.model_copy(update={"delay_us": _minutes(delay) * MINUTE_US})

    def group(self, tree: Tree[Token]) -> Compound:
        body = tree.children[0]
        assert isinstance(body, Tree)
        if tree.data == "simple_group":
            return Compound(primaries=(self.primary(body),))
        same = tree.children[1] if len(tree.children) > 1 else None
        names = sections.same(same, self.settings) if isinstance(same, Tree) else ()
        return Compound(primaries=self.sum(body), same=names)

    def sum(self, tree: Tree[Token]) -> tuple[Primary, ...]:
        terms = [term for term in tree.children if isinstance(term, Tree)]
        for term in terms[:-1]:
            if term.data == "uncounted":
                raise Wrong(
                    position_of(term), "only the last term of a compound may leave out its count"
                )
        primaries = tuple(self.term(term) for term in terms)
        for term, primary in zip(terms, primaries, strict=True):
            if len(primary.rusage) > 1:
                raise Wrong(
                    position_of(term), "rusage can't have alternatives (||) inside a compound"
                )
        return primaries

    def term(self, tree: Tree[Token]) -> Primary:
        if tree.data == "uncounted":
            body = tree.children[0]
            assert isinstance(body, Tree)
            return self.primary(body)
        opening, body = tree.children
        assert isinstance(opening, Token)
        assert isinstance(body, Tree)
        count = sections.task_count(opening, opening.rstrip("{ \t\r\n*"))
        return self.primary(body).model_copy(update={"tasks": count})

    def primary(self, tree: Tree[Token]) -> Primary:
        unnamed, *named = tree.children
        fields: dict[str, object] = {}
        seen: set[str] = set()
        if isinstance(unnamed, Tree):
            fields["select"] = self.expressions.build(unnamed)
            seen.add("select")
        for section in named:
            assert isinstance(section, Tree)
            name, values = self._section(section)
            if name in seen:
                raise Wrong(position_of(section), f"{name}[...] may appear only once")
            if name == "select" and seen:
                self.warnings.append(SELECT_FIRST)
            seen.add(name)
            fields.update(values)
        return Primary.model_validate(fields)

    def _section(self, tree: Tree[Token]) -> tuple[str, dict[str, object]]:
        if tree.data == "select":
            body = tree.children[1]
            if not isinstance(body, Tree):
                return "select", {}
            return "select", {"select": self.expressions.build(body)}
        return sections.build(tree, self.settings)


def _check_depth(tree: Tree[Token]) -> None:
    level = [tree]
    for _ in range(TREE_DEPTH_MAX):
        level = [child for node in level for child in node.children if isinstance(child, Tree)]
        if not level:
            return
    raise Wrong(position_of(level[0]), "is nested too deeply")


def _refuse_rusage_alternatives(
    branches: Sequence[Tree[Token]], compounds: Sequence[Compound]
) -> None:
    for branch, compound in zip(branches, compounds, strict=True):
        if any(len(primary.rusage) > 1 for primary in compound.primaries):
            raise Wrong(
                position_of(branch), "rusage can't have alternatives (||) inside an alternative"
            )


def _delay(branch: Tree[Token]) -> int:
    return position_of(branch.children[-1])


def _minutes(token: Token) -> int:
    try:
        number, suffix = split_quantity(token, field=FIELD)
    except Refused as error:
        raise Wrong(position_of(token), error.rule) from None
    if suffix or number.denominator != 1 or number > 5_256_000:
        raise Wrong(position_of(token), "a delay is a whole number of minutes, at most ten years")
    return number.numerator
