"""
Names and types of a requirement are checked against the descriptors, with a caret where the text is
at hand.
"""

from __future__ import annotations

import pytest

from domain.errors import Refused
from domain.resources import Catalogue, ResourceDescriptor, ResourceLayer, ValueType
from domain.resreq import parse
from domain.resreq.check import check
from domain.resreq.syntax import Text
from domain.texts import NotUnderstood


def attribute(name, value_type):
    return ResourceDescriptor(
        name=name, layer=ResourceLayer.ATTRIBUTE, value_type=value_type, is_static=True
    )


CATALOGUE = Catalogue(
    [
        attribute("gpu", ValueType.BOOLEAN),
        attribute("os", ValueType.STRING),
        attribute("rack", ValueType.NUMBER),
        ResourceDescriptor(name="lic", is_consumable=True),
        ResourceDescriptor(name="temp"),
    ]
)


def checked(text):
    return check(parse(text), CATALOGUE, texts=(text,))


@pytest.mark.parametrize(
    "text",
    [
        "mem>=4096 && swp>1 rusage[mem=4096,lic=1]",
        "gpu && !gpu || defined(lic) && defined(gpu) && defined(os)",
        "gpu + 1 > 1 order[lic:-temp:slots] same[type:os:rack]",
        "type==any && os!='rhel8' && hname<h9 && status==ok",
        "mem > 4G && mem*2 > 1T",
        "span[ptile='!',HP:8] same[type]",
        "{1*{span[ptile='!',HP:8]} + 1*{gpu}} same[model]",
    ],
)
def test_what_fits_the_descriptors_passes(text):
    """
    The refusals below differ from these in one point.
    """
    checked(text)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("nosuch>1", "no resource nosuch"),
        ("rusage[nosuch=1]", "no resource nosuch"),
        ("order[nosuch]", "no resource nosuch"),
        ("same[nosuch]", "no resource nosuch"),
        ("defined(nosuch)", "no resource nosuch"),
        ("{1*{gpu}+1*{nosuch}} same[type]", "no resource nosuch"),
        ("{1*{gpu}+1*{gpu}} same[nosuch]", "no resource nosuch"),
        ("defined(mem)", "for a site's resources"),
        ("rusage[type=1]", "can't be reserved"),
        ("rusage[maxmem=100]", "can't be reserved"),
        ("rusage[ncpus=2]", "can't be reserved"),
        ("rusage[slots=2]", "can't be reserved"),
        ("rusage[gpu=1]", "can't be reserved"),
        ("rusage[temp=1]", "can't be reserved"),
        ("order[type]", "ordered by numbers"),
        ("order[gpu]", "ordered by numbers"),
        ("same[mem]", "static"),
        ("same[gpu]", "static"),
        ("os", "compare it with a value"),
        ("os + 1 > 2", "compare it with a value"),
        ("os == (1 + 1)", "compare it with a value"),
        ("hname != host06-x12", "quoted unless"),
        ("mem == 'x'", "is no text"),
        ("gpu == 'x'", "is no text"),
        ("mem == swp && 1 == os", "compare it with a value"),
        ("lic > 4G", "compared with memory"),
        ("span[ptile='!',HP:8]", "need same"),
    ],
)
def test_what_does_not_fit_the_descriptors_is_refused(text, rule):
    """
    Such a job could never run, or would mean something else: it is refused at submission, not left
    pending.
    """
    with pytest.raises(Refused) as refused:
        checked(text)

    assert rule in refused.value.rule


def test_the_caret_stands_under_the_unknown_name():
    """
    And a near name is suggested.
    """
    with pytest.raises(NotUnderstood) as refused:
        checked("mem>1 && hnme==h1")

    assert 10 == refused.value.column
    assert "Did you mean hname?" == refused.value.hint


def test_a_comparison_with_a_text_is_resolved():
    """
    Without descriptors os==rhel8 looks like two numbers.
    """
    assert Text(kind="text", name="os", op="==", value="rhel8") == checked("os==rhel8").only.select
    assert Text(kind="text", name="os", op="!=", value="7") == checked("os!=7").only.select
    assert Text(kind="text", name="os", op="==", value="gpu") == checked("os==gpu").only.select


def test_a_checked_requirement_is_checked_again_without_change():
    """
    Merging checks once more what was checked before.
    """
    once = checked("os==rhel8 && (mem>1 || !gpu) rusage[lic=1]")

    assert once == check(once, CATALOGUE)
