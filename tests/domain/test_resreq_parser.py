"""
The grammar of -R: what each text means, and what is refused with a caret under the offending place.
"""

from __future__ import annotations

import pytest

from domain.errors import Refused
from domain.resreq import EMPTY, ParseSettings, parse, parse_and_warn, render
from domain.resreq.syntax import (
    AllOf,
    AnyOf,
    Binary,
    Name,
    Not,
    Text,
)
from domain.texts import NotUnderstood
from domain.units import MINUTE_US, MemoryUnit

MB = 1_024_000


def select_of(text, **settings):
    return parse(text, settings=ParseSettings(**settings)).only.select


def refusal_of(texts):
    with pytest.raises(Refused) as refused:
        parse(texts)
    return refused.value


# -------------------------------------------------------------------------------------- shape


def test_text_before_the_first_section_is_the_select_section():
    """
    A bare expression is what most users write.
    """
    assert parse("mem>500 order[ut]") == parse("select[mem>500] order[ut]")


def test_sections_may_stand_in_any_order_with_a_warning():
    """
    The vendor wants select first; real scripts write it anywhere, so it is accepted and said.
    """
    parsed = parse_and_warn("rusage[mem=1] select[mem>1]")

    assert parse("select[mem>1] rusage[mem=1]") == parsed.requirement
    assert ("select should be first",) == parsed.warnings
    assert () == parse_and_warn("select[mem>1] rusage[mem=1]").warnings


def test_unnamed_text_that_is_not_first_is_refused():
    """
    It would be guessing which section is meant.
    """
    refusal = refusal_of("rusage[mem=1] mem>1")

    assert "text without a section name must come first" == refusal.rule
    assert 15 == refusal.column


def test_blanks_may_stand_between_a_section_and_its_bracket():
    """
    Seen in real scripts.
    """
    assert parse("select[mem>1]") == parse("  select  [ mem > 1 ]  ")


def test_a_section_appears_at_most_once():
    """
    Which of the two is meant can't be known.
    """
    for section in (
        "select[a]",
        "order[a]",
        "rusage[a=1]",
        "span[ptile=1]",
        "same[a]",
        "affinity[core]",
    ):
        assert "only once" in refusal_of(f"{section} {section}").rule
    assert "only once" in refusal_of("a select[b]").rule


def test_an_unknown_section_is_refused_by_name():
    """
    A mistyped section must not be taken for something else.
    """
    refusal = refusal_of("select[a] rusgae[mem=1]")

    assert "there is no section rusgae[...]" == refusal.rule
    assert 11 == refusal.column


def test_no_text_asks_for_nothing():
    """
    Queues and profiles without a requirement have an empty one.
    """
    assert EMPTY == parse("") == parse("  ") == parse(()) == parse("select[]")


def test_the_error_shows_the_text_and_a_caret_and_what_was_expected():
    """
    A user finds the place without counting columns.
    """
    text = str(refusal_of("select[mem>1"))

    assert (
        "resreq: expected ']', found the end at column 13.\n  select[mem>1\n              ^" == text
    )


def test_a_single_equals_sign_gets_a_hint():
    """
    The commonest slip.
    """
    assert "A comparison is written ==." == refusal_of("type=any").hint


@pytest.mark.parametrize("text", ["(" * 5000, "!" * 5000 + "a", "a+" * 5000 + "a", "a" * 20_000])
def test_monstrous_texts_are_refused(text):
    """
    A submission can't make the scheduler run out of stack or time.
    """
    refusal_of(text)


# -------------------------------------------------------------------------------- expressions


def test_operators_bind_as_in_lsf():
    """
    From tightest: unary, * /, + -, < >, == !=, &&, ||.
    """
    assert select_of("a || ((b) && (((c) == ((d) > ((e) + ((f) * (-(g))))))))") == select_of(
        "a || b && c == d > e + f * -g"
    )


def test_operators_of_equal_rank_bind_to_the_left():
    """
    1 - 2 - 3 is -4.
    """
    assert select_of("(a - b) - c") == select_of("a - b - c")
    assert select_of("a - (b - c)") != select_of("a - b - c")


def test_a_chain_of_conditions_is_one_node():
    """
    So that the failing condition can be named.
    """
    chain = select_of("a && (b && c)")

    assert isinstance(chain, AllOf)
    assert 3 == len(chain.parts)


def test_not_binds_to_its_operand_alone():
    """
    !gpu && big is (!gpu) && big.
    """
    chain = select_of("!gpu && big")

    assert isinstance(chain, AllOf)
    assert isinstance(chain.parts[0], Not)


@pytest.mark.parametrize(
    "text", ["type==SOL", "type=='SOL'", 'type=="SOL"', "type == SOL", "select [type==SOL]"]
)
def test_quotes_are_needed_only_for_unusual_characters(text):
    """
    Letters, digits and underscore may stand bare.
    """
    assert Text(kind="text", name="type", op="==", value="SOL") == select_of(text)


def test_a_word_that_begins_with_a_digit_can_only_be_a_text():
    """
    Models are often called so.
    """
    assert Text(kind="text", name="model", op="==", value="3b2") == select_of("model==3b2")
    assert Text(kind="text", name="type", op="==", value="386") == select_of("type==386")


def test_a_text_has_a_name_to_its_left():
    """
    LSF knows no other form.
    """
    assert "only be compared" in refusal_of("'SOL'==type").rule


def test_a_name_not_known_to_be_a_text_is_left_to_the_check():
    """
    Without descriptors the parser can't tell os==rhel8 from mem==swp.
    """
    assert isinstance(select_of("os==rhel8"), Binary)
    assert isinstance(select_of("os==rhel8", text_names=frozenset({"os"})), Text)


def test_aliases_are_the_same_resource():
    """
    swap, idle, login and cpu are LSF's other names.
    """
    assert parse("swp>1 && it>1 && ls>1 && r1m>1") == parse("swap>1 && idle>1 && login>1 && cpu>1")
    assert parse("rusage[swp=1] order[r1m]") == parse("rusage[swap=1] order[cpu]")


def test_memory_in_an_expression_keeps_the_unit_of_its_time():
    """
    A job's requirement must not change its meaning when the cluster's unit is changed later.
    """
    select = select_of("mem>4", memory_unit=MemoryUnit.GB)

    assert isinstance(select, Binary)
    assert Name(kind="name", name="mem", unit="GB") == select.left


def test_defined_takes_a_name():
    """
    It is the only function.
    """
    assert "defined" == select_of("defined ( lic )").kind
    refusal_of("defined(1)")
    refusal_of("max(a,b)")


# ------------------------------------------------------------------- compound and alternative


def test_a_compound_counts_its_tasks_and_the_last_takes_the_rest():
    """
    Only the last count may be left out.
    """
    (compound,) = parse("1*{mem>10} + 2 * {mem>5}+{a}").compounds

    assert [1, 2, None] == [primary.tasks for primary in compound.primaries]
    assert "last term" in refusal_of("1*{a} + {b} + 1*{c}").rule
    for count in ("0", "9" * 5000):
        assert "whole number" in refusal_of(f"{count}*{{a}}").rule


def test_a_same_around_a_compound_binds_all_terms():
    """
    A same inside a term binds that term only.
    """
    around = parse("{1*{a} + 1*{b same[model]}} same[type]").compounds[0]

    assert ("type",) == around.same
    assert [(), ("model",)] == [primary.same for primary in around.primaries]


def test_alternatives_have_rising_delays():
    """
    The first has none; a later one isn't shorter than the one before it.
    """
    assert [0, 4 * MINUTE_US, 4 * MINUTE_US] == [
        compound.delay_us for compound in parse("{a} || {b}@4 || {2*{c}}@4").compounds
    ]
    assert "first alternative" in refusal_of("{a}@2 || {b}").rule
    assert "shorter" in refusal_of("{a} || {b}@6 || {c}@3").rule
    assert "whole number of minutes" in refusal_of("{a} || {b}@1.5").rule


def test_rusage_alternatives_are_not_allowed_inside_other_forms():
    """
    The alternatives are said once, outside.
    """
    assert "||" in refusal_of("1*{rusage[x=1||y=1]}").rule
    assert "||" in refusal_of("{rusage[x=1||y=1]} || {a}").rule


def test_a_compound_among_alternatives_needs_braces():
    """
    The error says so.
    """
    assert "braces" in str(refusal_of("1*{a} + 1*{b} || {c}"))


# ---------------------------------------------------------------------------- several options


def test_several_options_merge_section_by_section():
    """
    Selects are ANDed as wholes, rusage, order and same are joined in the order of the options.
    """
    joined = parse(
        [
            "a || b",
            "c order[r15m] same[type]",
            "rusage[mem=1] order[ut]",
            "rusage[lic=1] same[model]",
        ]
    )

    assert parse("(a || b) && c order[r15m:ut] same[type:model] rusage[mem=1,lic=1]") == joined
    assert isinstance(joined.only.select, AllOf)
    assert isinstance(joined.only.select.parts[0], AnyOf)


@pytest.mark.parametrize(
    ("texts", "rule"),
    [
        (["rusage[mem=1]", "rusage[mem=2]"], "reserved twice"),
        (["span[hosts=1]", "span[ptile=2]"], "span"),
        (["affinity[core]", "affinity[core]"], "affinity"),
        (["1*{a}", "b"], "only -R option"),
        (["a", "{b} || {c}"], "only -R option"),
        (["rusage[mem=(2 1):duration=(1)]", "rusage[lic=1]"], "several phases"),
    ],
)
def test_what_several_options_cannot_say_together(texts, rule):
    """
    Where a rule would have to guess, it refuses.
    """
    assert rule in refusal_of(texts).rule


def test_alternatives_of_several_options_multiply():
    """
    Each alternative of one option with each of the other: nothing asked for is lost.
    """
    assert "rusage[a=1,c=1||b=1,c=1]" == render(parse(["rusage[a=1||b=1]", "rusage[c=1]"]))


def test_equal_texts_are_parsed_once():
    """
    A hundred thousand jobs have a few hundred distinct requirements.
    """
    assert parse("mem>12345") is parse(["mem>12345"])


def test_a_refusal_is_a_refusal_of_the_field_resreq():
    """
    The command line and the API show field, rule and column.
    """
    refusal = refusal_of("mem>")

    assert isinstance(refusal, NotUnderstood)
    assert ("resreq", 5, "mem>") == (refusal.field, refusal.column, refusal.value)


@pytest.mark.parametrize(
    "text",
    [
        (
            "select[ ((( rhel7) && type == any))] order[maintvers:maintexcl:mainttime]"
            " rusage[mem=4096.00] span[hosts=1] affinity[core(1)*1:distribute=pack] "
        ),
        "select[((poe>0&&nrt_windows>0&&tmp>1)) && (type == local)] order[nidx] span[ptile=16] ",
        "rusage[mem=6291456,xcelium_sc=1:duration=1m]",
        (
            "select[type == local] order[r15s:pg]"
            " rusage[Virtuoso_Multi_mode_Simulation=9.00:duration=1m:decay=0] span[hosts=1] "
        ),
        "span[hosts=1] affinity[core(1):distribute=pack]",
        "select[model == XeonE5_2650v4]",
        "select[mem>100000] rusage[mem=100000] span[hosts=1]",
        "rusage[mem=32GB]",
        "rusage[mem=512MB] ",
    ],
)
def test_requirements_of_real_scripts_and_accounting_files_are_understood(text):
    """
    As submitted, and as LSF writes them back.
    """
    assert parse(text) == parse(render(parse(text)))
