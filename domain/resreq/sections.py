"""
Build the nodes of the sections order, rusage, span, same and affinity from their parse trees.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal, cast

from lark import Token, Tree

from domain.errors import Refused
from domain.resreq.settings import ALIASES, ParseSettings
from domain.resreq.syntax import (
    Affinity,
    KindCount,
    OrderKey,
    Per,
    Phase,
    RusageTerm,
    Span,
    SpanForm,
)
from domain.resreq.wrong import Wrong, position_of
from domain.units import parse_lsf_duration_us, parse_memory_milli, parse_milli

TASKS_MAX: Final = 1_000_000

_DIGITS_MAX: Final = 9
_TIMING: Final = ("duration", "decay", "threshold")
_PREDEFINED: Final = ("!", "'!'", '"!"')
_AFFINITY: Final = re.compile(
    r"affinity\s*\[\s*(core|thread)\s*(?:\(\s*([0-9]+)\s*\))?\s*(?:\*\s*([0-9]+)\s*)?"
    r"(?::\s*distribute\s*=\s*(pack|balance)\s*)?\]"
)


def build(tree: Tree[Token], settings: ParseSettings) -> tuple[str, dict[str, object]]:
    """
    Return the name of a section and the fields of a Primary that it sets.

    Raises:
        Wrong: A part of it can't be honoured.
    """
    first = tree.children[0]
    if tree.data == "cu":
        raise Wrong(position_of(first), "cu[...] (compute units) isn't supported", "Leave it out.")
    if tree.data == "affinity":
        assert isinstance(first, Token)
        return "affinity", {"affinity": affinity(first)}
    if tree.data == "same":
        return "same", {"same": same(tree, settings)}
    body = tree.children[1]
    if not isinstance(body, Tree):
        return str(tree.data).removesuffix("_section"), {}
    if tree.data == "order_section":
        return "order", _order(body)
    if tree.data == "span_section":
        return "span", {"span": span(body)}
    return "rusage", {"rusage": _usages(body, settings)}


def same(tree: Tree[Token], settings: ParseSettings) -> tuple[str, ...]:
    """
    Return the names of a same section, each once.
    """
    del settings
    names = [_canonical(name) for name in tree.children[1:] if isinstance(name, Token)]
    return tuple(dict.fromkeys(names))


def affinity(token: Token) -> Affinity:
    """
    Return the affinity of a section, as far as it counts cores or threads.

    Raises:
        Wrong: It asks for more.
    """
    match = _AFFINITY.fullmatch(token)
    if match is None:
        raise Wrong(
            position_of(token),
            "affinity[...] only counts: core(n) or thread(n), with distribute=pack or balance",
            "Binding to sockets, NUMA nodes or single CPUs can't be asked for.",
        )
    # core(2)*3 asks for three units of two cores each: counted, that is six.
    count = task_count(token, match[2] or "1") * task_count(token, match[3] or "1")
    return Affinity(
        unit=cast(Literal["core", "thread"], match[1]),
        count=task_count(token, str(count)),
        distribute=cast(Literal["", "pack", "balance"], match[4] or ""),
    )


def _order(tree: Tree[Token]) -> dict[str, object]:
    again, *keys = tree.children
    found = [_order_key(key) for key in keys if isinstance(key, Tree)]
    fields: dict[str, object] = {"order": tuple(found)}
    return fields if again is None else {**fields, "order_again": True}


def _order_key(tree: Tree[Token]) -> OrderKey:
    sign, name = tree.children
    assert isinstance(name, Token)
    return OrderKey(name=_canonical(name), is_reversed=sign is not None)


# ---------------------------------------------------------------------------------------- span


def span(tree: Tree[Token]) -> Span:
    """
    Return the span of a section.

    Raises:
        Wrong: The form isn't LSF's, or its count makes no sense.
    """
    word, *rest = tree.children
    assert isinstance(word, Token)
    if tree.data == "span_predefined":
        return _predefined(word, rest)
    if tree.data == "span_word":
        if word == "stripe":
            return Span(form=SpanForm.STRIPE)
        raise _unknown_span(word)
    value = rest[-1]
    assert isinstance(value, Token)
    if tree.data == "span_cancel":
        if (word, str(value)) != ("hosts", "1"):
            raise Wrong(position_of(word), "only hosts may be negative, as hosts=-1")
        return Span(form=SpanForm.CANCELLED)
    return _counted_span(word, value)


def _counted_span(word: Token, value: Token) -> Span:
    forms = {"ptile": SpanForm.PTILE, "block": SpanForm.BLOCK, "stripe": SpanForm.STRIPE}
    if word == "hosts":
        if value != "1":
            raise Wrong(
                position_of(value),
                "hosts must be 1 or -1",
                "Use ptile to spread tasks over more hosts.",
            )
        return Span(form=SpanForm.ONE_HOST)
    if word not in forms:
        raise _unknown_span(word)
    return Span(form=forms[str(word)], count=task_count(value))


def _predefined(word: Token, rest: Sequence[Token | Tree[Token]]) -> Span:
    value, *kinds = rest
    assert isinstance(value, Token)
    if word != "ptile" or value not in _PREDEFINED:
        raise Wrong(position_of(value), "only ptile takes a quoted value, and only '!'")
    counts = []
    for kind in kinds:
        assert isinstance(kind, Tree)
        name, count = kind.children
        assert isinstance(name, Token)
        assert isinstance(count, Token)
        counts.append(KindCount(kind=str(name), count=task_count(count)))
    return Span(form=SpanForm.PTILE_SLOTS, kinds=tuple(counts))


def _unknown_span(word: Token) -> Wrong:
    return Wrong(
        position_of(word),
        "span is hosts=1, hosts=-1, ptile=n, ptile='!', block=n, stripe or stripe=n",
    )


def task_count(token: Token, digits: str | None = None) -> int:
    """
    Return the count of tasks that a token, or the digits in it, say.

    Raises:
        Wrong: It is none, or out of range.
    """
    text = str(token) if digits is None else digits
    if not text.isdecimal() or len(text) > _DIGITS_MAX or not 1 <= int(text) <= TASKS_MAX:
        rule = f"must be a whole number between 1 and {TASKS_MAX}"
        raise Wrong(position_of(token), rule)
    return int(text)


# -------------------------------------------------------------------------------------- rusage


@dataclass(slots=True)
class _Use:
    """
    Hold one resource of a term, before its timing is known.
    """

    name: Token
    amounts: list[Token]
    per: Per
    threshold: Token | None = None


def _usages(tree: Tree[Token], settings: ParseSettings) -> tuple[tuple[RusageTerm, ...], ...]:
    return tuple(_usage(usage, settings) for usage in tree.children if isinstance(usage, Tree))


def _usage(tree: Tree[Token], settings: ParseSettings) -> tuple[RusageTerm, ...]:
    """
    Return the terms of one alternative: a comma begins a term with timing of its own.
    """
    terms: dict[str, RusageTerm] = {}
    for term in tree.children:
        assert isinstance(term, Tree)
        for name, made in _term(term, settings):
            if made.resource in terms:
                raise Wrong(position_of(name), f"{made.resource} is reserved twice")
            terms[made.resource] = made
    return tuple(terms.values())


def _term(tree: Tree[Token], settings: ParseSettings) -> list[tuple[Token, RusageTerm]]:
    """
    Return the resources that share one duration and decay, each with the token of its name.
    """
    uses: list[_Use] = []
    timing: dict[str, list[Token]] = {}
    for item in tree.children:
        assert isinstance(item, Tree)
        name, *values = [token for token in item.children if isinstance(token, Token)]
        if name not in _TIMING:
            uses.append(_use(name, values, item))
        elif "method" in item.data:
            raise Wrong(position_of(values[-1]), f"{name} takes no reservation method")
        elif name == "threshold":
            _take_threshold(name, values, uses)
        elif name in timing:
            raise Wrong(position_of(name), f"{name} is given twice in one term")
        else:
            timing[str(name)] = values
    if not uses:
        raise Wrong(
            position_of(tree), "a term must reserve a resource", "Join it to one with a colon."
        )
    durations, decays = timing.get("duration", []), timing.get("decay", [])
    return [(use.name, _rusage_term(use, durations, decays, settings)) for use in uses]


def _use(name: Token, values: list[Token], item: Tree[Token]) -> _Use:
    if "method" not in item.data:
        return _Use(name, values, Per.DEFAULT)
    *amounts, slash, method = values
    del slash
    if method not in (Per.HOST, Per.TASK, Per.JOB):
        raise Wrong(position_of(method), "a reservation method is host, task or job")
    return _Use(name, amounts, Per(str(method)))


def _take_threshold(name: Token, values: list[Token], uses: list[_Use]) -> None:
    if not uses or uses[-1].threshold is not None or len(values) != 1:
        raise Wrong(
            position_of(name), "a threshold stands once, after the resource that it belongs to"
        )
    uses[-1].threshold = values[0]


def _rusage_term(
    use: _Use, durations: list[Token], decays: list[Token], settings: ParseSettings
) -> RusageTerm:
    milli = [_milli(use.name, amount, settings) for amount in use.amounts]
    _check_phases(use, milli, durations, decays, settings)
    lasting: list[int | None] = [_duration_us(token) for token in durations]
    lasting += [None] * (len(milli) - len(lasting))
    falling = [_decay(token) for token in decays] + [False] * (len(milli) - len(decays))
    later = [
        Phase(milli=amount, duration_us=duration, is_decaying=decay)
        for amount, duration, decay in zip(milli[1:], lasting[1:], falling[1:], strict=True)
    ]
    threshold = None if use.threshold is None else _milli(use.name, use.threshold, settings)
    return RusageTerm(
        resource=_canonical(use.name),
        milli=milli[0],
        per=use.per,
        duration_us=lasting[0],
        is_decaying=falling[0] if decays else None,
        threshold_milli=threshold,
        phases=tuple(later),
    )


def _check_phases(
    use: _Use,
    milli: list[int],
    durations: list[Token],
    decays: list[Token],
    settings: ParseSettings,
) -> None:
    count = len(milli)
    if count > 1 and _canonical(use.name) not in settings.memory_names:
        raise Wrong(position_of(use.name), "only memory can be reserved in phases")
    if len(durations) not in (count - 1, count):
        rule = f"{count} amounts need {count - 1} or {count} durations"
        raise Wrong(position_of(durations[0] if durations else use.name), rule)
    if len(decays) > count:
        raise Wrong(position_of(decays[0]), f"{count} amounts take at most {count} values of decay")
    for token, (earlier, later) in zip(use.amounts[1:], pairwise(milli), strict=True):
        if later > earlier:
            raise Wrong(
                position_of(token), "a later phase can't reserve more than the one before it"
            )


def _milli(name: Token, amount: Token, settings: ParseSettings) -> int:
    try:
        if _canonical(name) in settings.memory_names:
            return parse_memory_milli(amount, unit=settings.memory_unit)
        return parse_milli(amount)
    except Refused as error:
        raise Wrong(position_of(amount), error.rule) from None


def _duration_us(token: Token) -> int:
    try:
        duration_us = parse_lsf_duration_us(token)
    except Refused as error:
        raise Wrong(position_of(token), f"a duration {error.rule}") from None
    if duration_us == 0:
        raise Wrong(position_of(token), "a duration must be longer than nothing")
    return duration_us


def _decay(token: Token) -> bool:
    falling = {"0": False, "1": True}.get(token)
    if falling is None:
        raise Wrong(position_of(token), "decay is 0 or 1")
    return falling


def _canonical(token: Token) -> str:
    return ALIASES.get(token, str(token))
