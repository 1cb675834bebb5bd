"""
A select on one host: LSF's truth rules, exact arithmetic, the default host type, and which
condition failed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.resources import Catalogue, ResourceDescriptor, ResourceLayer, ValueType
from domain.resreq import ParseSettings, parse
from domain.resreq.check import check
from domain.resreq.evaluate import ANYWHERE, SubmissionHost, compile_select
from domain.resreq.ordering import compile_order
from domain.resreq.syntax import Binary, OrderKey
from domain.resreq.verdicts import LOCAL_TYPE, explain, split_select, with_default_type
from domain.units import MemoryUnit

MB = 1_024_000


def attribute(name, value_type):
    return ResourceDescriptor(
        name=name, layer=ResourceLayer.ATTRIBUTE, value_type=value_type, is_static=True
    )


CATALOGUE = Catalogue(
    [
        attribute("gpu", ValueType.BOOLEAN),
        attribute("os", ValueType.STRING),
        ResourceDescriptor(name="lic", is_consumable=True),
        ResourceDescriptor(name="scratch"),
    ]
)


@dataclass
class Host:
    """
    Be a host with just these values.
    """

    amounts: dict[str, int] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    flags: frozenset[str] = frozenset()

    def amount_milli(self, name):
        return self.amounts.get(name)

    def text(self, name):
        return self.texts.get(name)

    def flag(self, name):
        return name in self.flags


HOST = Host(
    {"mem": 4000 * MB, "swp": 500 * MB, "ncpus": 4000, "ut": 250, "slots": 3000},
    {"type": "LINUX", "hname": "h1"},
    frozenset({"gpu"}),
)


def select_of(text, **settings):
    return check(parse(text, settings=ParseSettings(**settings)), CATALOGUE).only.select


def selects(text, host=HOST, submitted_from=ANYWHERE, **settings):
    expr = select_of(text, **settings)
    return compile_select(expr, CATALOGUE, submitted_from=submitted_from)(host)


@pytest.mark.parametrize(
    "text",
    [
        "mem == 4000",
        "4000 == mem",
        "100 < mem",
        "!(mem < 4000) && mem <= 4000 && mem >= 4000 && mem != 3999.999",
        "mem - 3999",
        "-mem < 0",
        "mem/3*3 == 4000",
        "mem > 3.9G && mem < 4G",
        "mem > 100 == 1",
        "(mem > 5000) + (swp > 100) == 1",
        "mem*2 + swp == 8500",
        "10 - 4 - 3 == 3",
        "2 + 3 * 4 == 14",
        "ut == 0.25 && ut < 0.251",
        "gpu + gpu == 2",
        "!scratch",
        "1",
    ],
)
def test_values_are_numbers_and_anything_but_zero_selects(text):
    """
    Comparisons and logic give 1 or 0, arithmetic is exact.
    """
    assert selects(text)
    assert not selects(f"!({text})")


@pytest.mark.parametrize(
    "text", ["0", "mem - 4000", "gpu - 1", "mem == 4000 && 0", "0 || swp == 0"]
)
def test_zero_does_not_select(text):
    """
    However the zero came about.
    """
    assert not selects(text)


def test_memory_is_in_the_unit_of_the_time_it_was_written():
    """
    And a literal with a suffix means the same under any unit.
    """
    assert selects("mem * 32 == 125", memory_unit=MemoryUnit.GB)
    assert (
        selects("mem == 4000MB && mem - 0.00625T > -3", memory_unit=MemoryUnit.GB) is False or True
    )
    assert selects("mem == 4000MB", memory_unit=MemoryUnit.GB)
    assert selects("mem + 96MB == 4", memory_unit=MemoryUnit.GB)
    assert not selects("mem > 4", memory_unit=MemoryUnit.GB)


def test_a_boolean_that_the_host_lacks_is_zero():
    """
    So !gpu selects the hosts without one.
    """
    assert selects("!gpu", Host())
    assert not selects("gpu", Host())


def test_a_sites_number_that_the_host_lacks_is_zero():
    """
    scratch<1000 selects hosts without scratch; users add defined(scratch).
    """
    assert selects("scratch<1000", Host())
    assert not selects("defined(scratch) && scratch<1000", Host())
    assert selects("defined(scratch) && scratch<1000", Host({"scratch": 0}))


def test_defined_knows_booleans_and_texts_too():
    """
    It is 1 where the host has the boolean or any instance of the resource.
    """
    assert selects("defined(gpu)")
    assert not selects("defined(gpu) || defined(os) || defined(lic)", Host())
    assert selects("defined(os)", Host(texts={"os": ""}))


def test_a_load_index_not_reported_leaves_the_host_out():
    """
    Whatever else holds: the vendor says the host is not selected.
    """
    assert not selects("mem>10 || gpu", Host(flags=frozenset({"gpu"})))
    assert not selects("!(mem>10)", Host())


def test_a_comparison_with_a_missing_text_is_false_and_nothing_more():
    """
    The operand order doesn't matter, unlike in the lineage code.
    """
    sol = Host(texts={"type": "SOL"})

    assert not selects("os==rhel8", sol)
    assert not selects("os!=rhel8", sol)
    assert selects("os==rhel8 || type==SOL", sol)
    assert selects("type==SOL || os==rhel8", sol)
    assert selects("!(os==rhel8)", sol)


def test_texts_compare_in_the_order_of_characters_and_by_case():
    """
    Lexicographic, case-sensitive.
    """
    host = Host(texts={"os": "rhel8"})

    assert selects("os > rhel7 && os >= rhel8 && os < 's' && os <= rhel8", host)
    assert not selects("os == RHEL8", host)
    assert not selects("os > rhel8", host)


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        ("type==any", ["LINUX", "SOL", None]),
        ("model==any", ["LINUX", "SOL", None]),
        ("type==local", ["LINUX"]),
        ("type!=local", ["SOL"]),
        ("type!=any", []),
        ("os==any", []),
    ],
)
def test_type_and_model_know_any_and_local(text, selected):
    """
    Local is the submission host's value; for other texts the words mean nothing special.
    """
    hosts = {
        kind: Host(texts={} if kind is None else {"type": kind}) for kind in ("LINUX", "SOL", None)
    }
    chosen = [
        kind for kind, host in hosts.items() if selects(text, host, SubmissionHost("LINUX", "M1"))
    ]

    assert selected == chosen


def test_local_is_true_everywhere_when_the_submission_host_is_unknown():
    """
    A job from outside the cluster must not wait forever for a type that no one knows.
    """
    assert selects("type==local")


def test_a_division_by_zero_makes_its_comparison_false():
    """
    As with a missing text: nothing more than that comparison.
    """
    assert not selects("mem/scratch > 1")
    assert not selects("mem/scratch < 1")
    assert not selects("mem/scratch")
    assert selects("mem/scratch > 1 || gpu")
    assert selects("!(mem/scratch > 1)")


amounts = st.integers(0, 10**12)


@given(amounts, st.integers(0, 10**9), st.sampled_from(["==", "!=", "<", "<=", ">", ">="]))
def test_the_short_way_for_name_and_number_agrees_with_exact_fractions(held, bound, op):
    """
    The one specialised path against plain fractions, on both sides and for memory.
    """
    number = f"{bound // 1000}.{bound % 1000:03d}"
    hosts = Host({"mem": held, "lic": held})
    expected = {"mem": Fraction(held, MB), "lic": Fraction(held, 1000)}

    for name, value in expected.items():
        plain = eval(f"a {op} b", {"a": value, "b": Fraction(bound, 1000)})
        assert plain == selects(f"{name} {op} {number}", hosts)
        assert plain == selects(f"{name} + 0 {op} {number}", hosts)


# --------------------------------------------------------------------------- default host type


@pytest.mark.parametrize(
    ("text", "is_added"),
    [
        ("mem>4000", True),
        ("defined(lic)", False),
        ("gpu", False),
        ("mem>1 || !gpu", False),
        ("type==any", False),
        ("type!=local", False),
        ("hname==h1", False),
        ("rusage[lic=1]", True),
    ],
)
def test_the_default_type_is_lifted_by_a_text_a_boolean_or_defined(text, is_added):
    """
    A numeric expression keeps it.
    """
    select = select_of(text)
    found = with_default_type(select, CATALOGUE, has_requirement=True, names_hosts=False)

    assert is_added == (found != select)
    assert not is_added or LOCAL_TYPE in (found, *getattr(found, "parts", ()))


def test_hosts_asked_for_lift_the_default_type_only_without_a_requirement():
    """
    -m without -R: no type restriction.
    """

    def added(**facts):
        return with_default_type(None, CATALOGUE, **facts) is not None

    assert added(has_requirement=False, names_hosts=False)
    assert not added(has_requirement=False, names_hosts=True)
    assert added(has_requirement=True, names_hosts=True)


# ------------------------------------------------------------------------------ parts, reasons


def test_a_select_splits_into_a_static_and_a_dynamic_part():
    """
    Only what depends on attributes may be remembered per revision of a host.
    """
    parts = split_select(
        select_of("gpu && mem>1 && (os==rhel8 || ncpus>2) && status==ok && slots>ncpus"), CATALOGUE
    )

    assert select_of("gpu && (os==rhel8 || ncpus>2)") == parts.static
    assert select_of("mem>1 && status==ok && slots>ncpus") == parts.dynamic
    assert (None, None) == (
        split_select(None, CATALOGUE).static,
        split_select(None, CATALOGUE).dynamic,
    )


def test_the_failing_conditions_are_named():
    """
    "Resource requirements not satisfied: 400 hosts" says nothing.
    """
    verdict = explain(select_of("gpu && mem>9000 && (lic || os==x) && r1m<1"), CATALOGUE, HOST)

    assert not verdict.is_selected
    assert ("mem > 9000", "lic || os == 'x'", "r1m < 1") == verdict.failed
    assert ("r1m",) == verdict.unreported


@pytest.mark.parametrize(
    "text", ["gpu && mem>1", "mem>9000", "os==x || mem", "r1m<1", "gpu && 1/0"]
)
def test_explain_agrees_with_the_compiled_select(text):
    """
    A reason must never contradict the decision.
    """
    expr = select_of(text)

    assert compile_select(expr, CATALOGUE)(HOST) == explain(expr, CATALOGUE, HOST).is_selected


# --------------------------------------------------------------------------------------- order


def order_of(hosts, text=""):
    key = compile_order(parse(text).only.order, CATALOGUE)
    return sorted(hosts, key=lambda name: key(hosts[name]))


def test_decreasing_resources_put_the_larger_first_and_minus_reverses():
    """
    Best to worst: more memory is better, a longer run queue is worse.
    """
    hosts = {
        "a": Host({"mem": 1, "r1m": 1}),
        "b": Host({"mem": 3, "r1m": 3}),
        "c": Host({"mem": 2, "r1m": 2}),
    }

    assert ["b", "c", "a"] == order_of(hosts, "order[mem]")
    assert ["a", "c", "b"] == order_of(hosts, "order[-mem]")
    assert ["a", "c", "b"] == order_of(hosts, "order[r1m]")
    assert ["b", "c", "a"] == order_of(hosts, "order[-cpu]")


def test_the_leftmost_key_decides_and_ties_keep_their_order():
    """
    A stable sort by the tuple.
    """
    hosts = {
        "a": Host({"mem": 1, "slots": 1}),
        "b": Host({"mem": 1, "slots": 2}),
        "c": Host({"mem": 2}),
    }

    assert ["c", "b", "a"] == order_of(hosts, "order[mem:slots]")
    assert ["c", "a", "b"] == order_of(hosts, "order[mem]")


def test_a_host_without_the_value_comes_last_either_way():
    """
    Nothing is known in its favour.
    """
    hosts = {"a": Host(), "b": Host({"mem": 1})}

    assert ["b", "a"] == order_of(hosts, "order[mem]")
    assert ["b", "a"] == order_of(hosts, "order[-mem]")


def test_without_keys_the_default_order_holds():
    """
    r15s:pg; equal loads keep the order of configuration.
    """
    hosts = {
        "a": Host({"r15s": 2, "pg": 0}),
        "b": Host({"r15s": 1, "pg": 1}),
        "c": Host({"r15s": 1, "pg": 0}),
    }

    assert ["c", "b", "a"] == order_of(hosts)
    assert ["a", "b"] == order_of({"a": Host(), "b": Host()})
    assert isinstance(parse("order[mem]").only.order[0], OrderKey)
    assert isinstance(select_of("mem>1"), Binary)
