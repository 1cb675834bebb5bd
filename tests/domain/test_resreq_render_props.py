"""
Properties of the requirement language: render and parse are inverses, nodes survive storage,
nothing crashes.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.errors import Refused
from domain.resreq import Requirement, parse, render, shared
from domain.resreq.syntax import (
    Affinity,
    Binary,
    Compound,
    Defined,
    KindCount,
    Minus,
    Name,
    Not,
    Number,
    OrderKey,
    Per,
    Phase,
    Primary,
    RusageTerm,
    Span,
    SpanForm,
    Text,
    all_of,
    any_of,
)
from domain.units import MINUTE_US
from tests.examples import examples

SITE_NAMES = ("lic", "gpu", "scratch", "_x1")
NUMBER_NAMES = ("mem", "swp", "ut", "slots", *SITE_NAMES)

counts = st.integers(1, 1_000_000)
millis = st.integers(0, 10**12)


def name_of(name):
    return Name(kind="name", name=name, unit="MB" if name in ("mem", "swp") else "")


numbers = st.builds(lambda milli: Number(kind="number", milli=milli), millis) | st.builds(
    lambda milli, unit: Number(kind="number", milli=milli, unit=unit, base="MB"),
    st.integers(0, 10**9),
    st.sampled_from(["KB", "MB", "GB", "ZB"]),
)
text_values = st.text(st.characters(codec="ascii", exclude_characters="'"), max_size=8) | st.just(
    "it's"
)
texts = st.builds(
    lambda name, op, value: Text(kind="text", name=name, op=op, value=value),
    st.sampled_from(["type", "hname", "os"]),
    st.sampled_from(["==", "!=", "<", "<=", ">", ">="]),
    text_values,
)
leaves = (
    numbers
    | st.sampled_from(NUMBER_NAMES).map(name_of)
    | texts
    | st.sampled_from(SITE_NAMES).map(lambda name: Defined(kind="defined", name=name))
)


def is_bare_name_comparison(node):
    return (
        isinstance(node, Binary)
        and node.op in ("==", "!=", "<", "<=", ">", ">=")
        and isinstance(node.left, Name)
        and isinstance(node.right, Text)
    )


def extended(inner):
    pairs = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return (
        st.builds(lambda of: Not(kind="not", of=of), inner)
        | st.builds(lambda of: Minus(kind="minus", of=of), inner)
        | st.builds(
            lambda op, left, right: Binary(kind="binary", op=op, left=left, right=right),
            st.sampled_from(["*", "/", "+", "-", "==", "!=", "<", "<=", ">", ">="]),
            inner,
            inner,
        )
        | pairs.map(all_of)
        | pairs.map(any_of)
    )


exprs = st.recursive(leaves, extended, max_leaves=8)


@st.composite
def rusage_terms(draw, resource):
    if resource == "mem" and draw(st.booleans()):
        amounts = sorted(draw(st.lists(millis, min_size=2, max_size=3)), reverse=True)
        last = draw(st.booleans())
        durations = [draw(st.integers(1, 10**9)) for _ in amounts]
        durations[-1] = durations[-1] if last else None
        first, *later = zip(amounts, durations, strict=True)
        return RusageTerm(
            resource="mem",
            milli=first[0],
            duration_us=first[1],
            is_decaying=draw(st.booleans()),
            phases=tuple(
                Phase(milli=m, duration_us=d, is_decaying=draw(st.booleans())) for m, d in later
            ),
        )
    return RusageTerm(
        resource=resource,
        milli=draw(millis),
        per=draw(st.sampled_from(Per)),
        duration_us=draw(st.none() | st.integers(1, 10**12)),
        is_decaying=draw(st.none() | st.booleans()),
        threshold_milli=draw(st.none() | millis),
    )


@st.composite
def usages(draw):
    names = draw(st.lists(st.sampled_from(NUMBER_NAMES), min_size=1, max_size=3, unique=True))
    return tuple(draw(rusage_terms(name)) for name in names)


spans = (
    st.sampled_from(
        [Span(form=SpanForm.ONE_HOST), Span(form=SpanForm.CANCELLED), Span(form=SpanForm.STRIPE)]
    )
    | st.builds(
        lambda form, count: Span(form=form, count=count),
        st.sampled_from([SpanForm.PTILE, SpanForm.BLOCK, SpanForm.STRIPE]),
        counts,
    )
    | st.lists(
        st.builds(lambda k, c: KindCount(kind=k, count=c), st.sampled_from(["HP", "X"]), counts)
    ).map(lambda kinds: Span(form=SpanForm.PTILE_SLOTS, kinds=tuple(kinds)))
)
names_once = st.lists(st.sampled_from(["type", "model", "os"]), max_size=2, unique=True).map(tuple)


no_tasks = st.none()


@st.composite
def primaries(draw, tasks=no_tasks, alternatives=2):
    order = tuple(
        OrderKey(name=name, is_reversed=draw(st.booleans()))
        for name in draw(st.lists(st.sampled_from(NUMBER_NAMES), max_size=2))
    )
    return Primary(
        tasks=draw(tasks),
        select=draw(st.none() | exprs),
        rusage=draw(st.lists(usages(), max_size=alternatives).map(tuple)),
        span=draw(st.none() | spans),
        order=order,
        order_again=bool(order) and draw(st.booleans()),
        same=draw(names_once),
        affinity=draw(
            st.none()
            | st.just(Affinity(unit="core", count=4, distribute="pack"))
            | st.just(Affinity(unit="thread"))
        ),
    )


@st.composite
def compounds(draw):
    counted = draw(st.lists(primaries(tasks=counts, alternatives=1), min_size=1, max_size=2))
    rest = draw(st.lists(primaries(alternatives=1), max_size=1))
    return Compound(primaries=tuple(counted + rest), same=draw(names_once))


lone = st.builds(lambda primary: Compound(primaries=(primary,)), primaries(alternatives=1))


@st.composite
def alternatives(draw):
    found = draw(st.lists(lone | compounds(), min_size=2, max_size=3))
    delays = sorted(draw(st.integers(0, 100)) for _ in found[1:])
    delayed = [
        compound.model_copy(update={"delay_us": delay * MINUTE_US})
        for compound, delay in zip(found[1:], delays, strict=True)
    ]
    return Requirement(compounds=(found[0], *delayed))


requirements = (
    primaries().map(lambda primary: Requirement(compounds=(Compound(primaries=(primary,)),)))
    | compounds().map(lambda compound: Requirement(compounds=(compound,)))
    | alternatives()
)


@pytest.mark.slow
@settings(max_examples=examples(150))
@given(requirements)
def test_parse_is_the_inverse_of_render(requirement):
    """
    What is shown back is what is kept: no shape, unit or bracket is lost on the way.
    """
    assert requirement == parse(render(requirement))


@pytest.mark.slow
@settings(max_examples=examples(60))
@given(requirements)
def test_a_requirement_survives_storage_exactly(requirement):
    """
    It lives in events, which leave out whatever equals its default.
    """
    stored = requirement.__pydantic_serializer__.to_json(requirement, exclude_defaults=True)

    assert requirement == Requirement.model_validate_json(stored)


@given(requirements)
def test_equal_requirements_are_shared_as_one_object(requirement):
    """
    However they came about: parsed, or read back from an event.
    """
    again = Requirement.model_validate_json(requirement.model_dump_json(exclude_defaults=True))

    assert shared(requirement) is shared(again)
    assert requirement == shared(requirement)


_pieces = st.sampled_from(
    [
        *("mem", "select[", "rusage[", "order[", "span[", "same[", "]", "{", "}", "2*{", "(", ")"),
        *("||", "&&", "==", "=", ">", "!", "-", "+", "*", "/", ":", ",", "@", "4", "4G", "'x'"),
        *("hosts", "ptile", "duration", "decay", "threshold", "defined(", "cu[]", "affinity[core]"),
        *(" ", "$", "\n"),
    ]
)


@pytest.mark.slow
@settings(max_examples=examples(300))
@given(st.lists(_pieces, max_size=12).map("".join) | st.text(max_size=20))
def test_any_text_is_understood_or_refused_never_a_crash(text):
    """
    Every error a user can provoke is one that says field, rule and column; its text can be shown.
    """
    requirement = understood(text)

    assert requirement is None or requirement == parse(render(requirement))


def understood(text):
    """
    Return the requirement of a text, None when it is refused in an orderly way.
    """
    try:
        return parse(text)
    except Refused as error:
        fine = error.field == "resreq" and str(error)
    assert fine
    return None
