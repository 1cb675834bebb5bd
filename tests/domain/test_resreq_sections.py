"""
The sections of -R: rusage, order, span, same, affinity and cu.
"""

from __future__ import annotations

import pytest

from domain.errors import Refused
from domain.resreq import parse
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
from domain.units import HOUR_US, MINUTE_US

MB = 1_024_000


def terms_of(text):
    (terms,) = parse(text).only.rusage
    return {term.resource: term for term in terms}


def refusal_of(texts):
    with pytest.raises(Refused) as refused:
        parse(texts)
    return refused.value


# ------------------------------------------------------------------------------------- rusage


def test_a_colon_shares_the_duration_and_a_comma_does_not():
    """
    The most misread point of the syntax.
    """
    shared = terms_of("rusage[mem=20:swp=50:duration=1h, lic=1:duration=2]")
    apart = terms_of("rusage[mem=20,swp=50:duration=1h]")

    assert [HOUR_US, HOUR_US, 2 * MINUTE_US] == [term.duration_us for term in shared.values()]
    assert [None, HOUR_US] == [term.duration_us for term in apart.values()]


def test_a_comma_binds_tighter_than_alternatives():
    """
    a,b || c is (a and b) or c.
    """
    assert [["a", "b"], ["c"]] == [
        [term.resource for term in usage] for usage in parse("rusage[a=1,b=1||c=1]").only.rusage
    ]


def test_amounts_take_units_and_methods():
    """
    The method suffix wins over every default.
    """
    terms = terms_of("rusage[mem=2G/task:duration=10m, lic=1.5/job, scr=5/host]")

    assert (
        RusageTerm(resource="mem", milli=2048 * MB, per=Per.TASK, duration_us=10 * MINUTE_US)
        == terms["mem"]
    )
    assert RusageTerm(resource="lic", milli=1500, per=Per.JOB) == terms["lic"]
    assert RusageTerm(resource="scr", milli=5000, per=Per.HOST) == terms["scr"]


def test_phases_become_smaller():
    """
    Only constant or decreasing phases exist, with one duration fewer than amounts, or as many.
    """
    term = terms_of("rusage[mem=(50 10):duration=(10):decay=(1)]")["mem"]

    assert (50 * MB, 10 * MINUTE_US, True) == (term.milli, term.duration_us, term.is_decaying)
    assert (Phase(milli=10 * MB),) == term.phases
    assert "later phase" in refusal_of("rusage[mem=(10 50):duration=(1)]").rule
    assert "durations" in refusal_of("rusage[mem=(50 10 5):duration=(1)]").rule
    assert "decay" in refusal_of("rusage[mem=(50 10):duration=(1):decay=(0 0 0)]").rule
    assert "only memory" in refusal_of("rusage[lic=(2 1):duration=(1)]").rule


def test_a_threshold_belongs_to_the_resource_before_it():
    """
    With several resources in one term the unit would be unclear otherwise.
    """
    terms = terms_of("rusage[mem=1:threshold=2:bw=1:threshold=5]")

    assert (2 * MB, 5000) == (terms["mem"].threshold_milli, terms["bw"].threshold_milli)
    assert "threshold" in refusal_of("rusage[threshold=2:bw=1]").rule


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("rusage[mem=1:mem=2]", "reserved twice"),
        ("rusage[swap=1,swp=2]", "reserved twice"),
        ("rusage[lic=1G]", "plain number"),
        ("rusage[mem=1/core]", "host, task or job"),
        ("rusage[duration=1]", "must reserve a resource"),
        ("rusage[mem=1:duration=1:duration=2]", "twice in one term"),
        ("rusage[mem=1:decay=2]", "0 or 1"),
        ("rusage[mem=1:duration=0]", "longer than nothing"),
        ("rusage[mem=1:duration=5x]", "h, m or s"),
        ("rusage[mem]", "expected '='"),
        ("rusage[mem=-1]", "expected a number"),
        ("rusage[mem=1:duration=1/host]", "no reservation method"),
    ],
)
def test_a_wrong_rusage_is_refused(text, rule):
    """
    Each rule of the usage string has its own words.
    """
    assert rule in refusal_of(text).rule


# --------------------------------------------------------------------- order, span, same, others


def test_order_keys_may_be_reversed():
    """
    A minus turns best first into worst first; ! asks for a second sort.
    """
    primary = parse("order[!-slots:mem]").only

    assert (OrderKey(name="slots", is_reversed=True), OrderKey(name="mem")) == primary.order
    assert primary.order_again


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("hosts=1", Span(form=SpanForm.ONE_HOST)),
        ("hosts=-1", Span(form=SpanForm.CANCELLED)),
        ("ptile=4", Span(form=SpanForm.PTILE, count=4)),
        ("ptile='!'", Span(form=SpanForm.PTILE_SLOTS)),
        ("ptile=!", Span(form=SpanForm.PTILE_SLOTS)),
        (
            "ptile='!',HP:8,SGI:2",
            Span(
                form=SpanForm.PTILE_SLOTS,
                kinds=(KindCount(kind="HP", count=8), KindCount(kind="SGI", count=2)),
            ),
        ),
        ("block=4", Span(form=SpanForm.BLOCK, count=4)),
        ("stripe", Span(form=SpanForm.STRIPE)),
        ("stripe=2", Span(form=SpanForm.STRIPE, count=2)),
    ],
)
def test_the_forms_of_span(text, span):
    """
    LSF's forms, and no others.
    """
    assert span == parse(f"span[{text}]").only.span


@pytest.mark.parametrize(
    "text",
    [
        "hosts=2",
        "hosts=0",
        "hosts=-2",
        "ptile=0",
        "ptile=-1",
        "ptile=1.5",
        "ptile",
        "block='!'",
        "x=1",
    ],
)
def test_other_forms_of_span_are_refused(text):
    """
    hosts=N was never public syntax; ptile says how tasks spread.
    """
    refusal_of(f"span[{text}]")


def test_compute_units_are_refused_clearly():
    """
    Ignoring them would place the job where its user didn't want it.
    """
    assert "isn't supported" in refusal_of("cu[type=enclosure:pref=config]").rule


def test_affinity_counts_cores_and_threads_only():
    """
    Whatever binds more closely is refused, never ignored.
    """
    assert Affinity(unit="core", count=4, distribute="pack") == (
        parse("affinity[core(4):distribute=pack]").only.affinity
    )
    assert Affinity(unit="thread") == parse("affinity[thread]").only.affinity
    assert Affinity(unit="core", count=6) == parse("affinity[core(2)*3]").only.affinity
    for text in ("socket(1)", "numa(1)", "core(2,same=socket)", "core(1):cpubind=core", "core(0)"):
        refusal_of(f"affinity[{text}]")


def test_same_lists_each_resource_once():
    """
    It is a set with an order.
    """
    assert ("type", "model") == parse("same[type:model:type]").only.same
