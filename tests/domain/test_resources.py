"""
Resource descriptors: what a site may define, and what LSF has built in.
"""

from __future__ import annotations

import pytest

from domain.errors import Refused
from domain.resources import (
    BUILT_IN_ONLY,
    KIB,
    Catalogue,
    ResourceDescriptor,
    ResourceLayer,
    ResourceScope,
    SharedTotal,
    ValueType,
    check_descriptor,
)
from domain.units import MemoryUnit


def shared(*totals, **fields):
    return ResourceDescriptor(name="lic", scope=ResourceScope.SHARED, totals=totals, **fields)


def test_a_sensible_descriptor_passes():
    """
    The refusals below differ from this one in a single field.
    """
    licence = shared(SharedTotal(total_milli=5000), is_consumable=True)

    assert licence == check_descriptor(licence)


@pytest.mark.parametrize(
    ("descriptor", "field"),
    [
        (ResourceDescriptor(name="mem"), "name"),
        (ResourceDescriptor(name="swap"), "name"),
        (ResourceDescriptor(name="duration"), "name"),
        (ResourceDescriptor(name="local"), "name"),
        (
            ResourceDescriptor(name="os", value_type=ValueType.STRING, is_consumable=True),
            "is_consumable",
        ),
        (
            ResourceDescriptor(
                name="gpu", layer=ResourceLayer.INSTANCE, value_type=ValueType.BOOLEAN
            ),
            "value_type",
        ),
        (ResourceDescriptor(name="lic", scope=ResourceScope.SHARED), "totals"),
        (ResourceDescriptor(name="lic", totals=(SharedTotal(total_milli=1),)), "totals"),
        (shared(SharedTotal(total_milli=1), value_type=ValueType.BOOLEAN), "scope"),
        (shared(SharedTotal(total_milli=1), unit="MB"), "unit"),
        (shared(SharedTotal(total_milli=1), SharedTotal(total_milli=1, hosts=("h1",))), "totals"),
        (
            shared(
                SharedTotal(total_milli=1, hosts=("h1",)), SharedTotal(total_milli=1, hosts=("h1",))
            ),
            "totals",
        ),
    ],
)
def test_a_descriptor_that_contradicts_itself_is_refused(descriptor, field):
    """
    Whatever is stored can be used by every later reader without asking again.
    """
    with pytest.raises(Refused) as refused:
        check_descriptor(descriptor)

    assert field == refused.value.field


def test_aliases_find_the_same_descriptor():
    """
    Swap is swp, cpu is r1m.
    """
    assert BUILT_IN_ONLY.get("swp") is BUILT_IN_ONLY.get("swap")
    assert BUILT_IN_ONLY.get("r1m") is BUILT_IN_ONLY.get("cpu")
    assert BUILT_IN_ONLY.get("nosuch") is None


def test_the_parse_settings_know_a_sites_memory_and_texts():
    """
    So that scratch=5G is an amount and os==rhel8 a comparison from the start.
    """
    catalogue = Catalogue(
        [
            ResourceDescriptor(name="scratch", unit=KIB),
            ResourceDescriptor(name="os", value_type=ValueType.STRING),
        ]
    )
    settings = catalogue.parse_settings(MemoryUnit.GB)

    assert MemoryUnit.GB == settings.memory_unit
    assert {"scratch", "mem", "maxmem"} <= settings.memory_names
    assert {"os", "type", "hname"} <= settings.text_names
