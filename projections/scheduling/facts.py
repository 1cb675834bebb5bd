"""
What hosts are, apart from what they have left: attributes, totals, named units; and which names a
requirement may therefore use.
"""

from __future__ import annotations

from typing import Final

from domain.amounts import MEM
from domain.errors import Refused
from domain.resources import (
    BUILT_IN,
    ResourceDescriptor,
    ResourceLayer,
    ValueType,
)
from domain.units import MILLI, MemoryUnit, parse_memory_milli, parse_milli
from projections.scheduling.records import WorkerRecord

TRUE: Final = "true"
TOTALS: Final = {"maxmem": MEM, "maxswp": "swp", "maxtmp": "tmp"}
"""Attributes that are the total of a resource where the worker doesn't say them."""


class HostFacts:
    """
    Hold what one host is; it changes only when its worker joins again.

    Args:
        totals: Resource -> thousandths.
        units: Resource -> names of its units, in the host's order.
    """

    __slots__ = ("attributes", "name", "slots", "totals", "units")

    def __init__(self, worker: WorkerRecord) -> None:
        self.name = worker.name
        self.slots = worker.slots
        self.attributes = {each.name: each.value for each in worker.attributes}
        self.totals = {each.name: each.total_milli for each in worker.resources}
        self.units = {
            each.name: tuple(unit.name for unit in each.units)
            for each in worker.resources
            if each.units
        }

    def text(self, name: str) -> str | None:
        """
        Return the value of a text, None where the host has none.
        """
        if name == "hname":
            return self.name
        return "ok" if name == "status" else self.attributes.get(name)

    def flag(self, name: str) -> bool:
        """
        Say whether the host has a boolean.
        """
        return name == "server" or self.attributes.get(name) == TRUE

    def amount_milli(self, name: str) -> int | None:
        """
        Return a number that doesn't change with what is free, None where the host has none.
        """
        if name == "maxslots":
            return self.slots * MILLI
        told = self.attributes.get(name)
        if told is not None:
            return number_of(name, told)
        if name == "ncpus":
            return self.slots * MILLI
        return self.totals.get(TOTALS.get(name, name))


class SeenHost:
    """
    Be a host as an expression sees it, apart from its amounts: subclasses say which these are.
    """

    __slots__ = ("_facts",)

    _facts: HostFacts

    def text(self, name: str) -> str | None:
        """
        Return the value of a text, None where the host has none.
        """
        return self._facts.text(name)

    def flag(self, name: str) -> bool:
        """
        Say whether the host has a boolean.
        """
        return self._facts.flag(name)


def number_of(name: str, text: str) -> int | None:
    """
    Return what an attribute's text is in thousandths, None when it is no number.
    """
    try:
        if name in BUILT_IN and BUILT_IN[name].is_memory:
            return parse_memory_milli(text, unit=MemoryUnit.MB)
        return parse_milli(text)
    except Refused:
        return None


class Vocabulary:
    """
    Count which names hosts use, and as what; the site's descriptors go before these.

    ``changes`` rises whenever a name becomes known, is forgotten, or becomes of another type.
    """

    def __init__(self) -> None:
        self.changes = 0
        self._uses: dict[str, dict[str, int]] = {}

    def add(self, facts: HostFacts, sign: int) -> None:
        """
        Count a host's names, or count them no longer.
        """
        for name, value in facts.attributes.items():
            self._count(name, _kind(name, value), sign)
        for name in facts.totals:
            self._count(name, "units" if name in facts.units else "amount", sign)

    def _count(self, name: str, kind: str, sign: int) -> None:
        if name in BUILT_IN:
            return
        uses = self._uses.setdefault(name, {})
        before = uses.get(kind, 0)
        uses[kind] = before + sign
        if not uses[kind]:
            del uses[kind]
        if not before or kind not in uses:
            self.changes += 1

    def descriptors(self) -> list[ResourceDescriptor]:
        """
        Return what the names are: a resource where some host gives an amount, else a text where
        some host's value is one, else a number, else a boolean.
        """
        return [_descriptor(name, uses) for name, uses in sorted(self._uses.items()) if uses]


def _kind(name: str, value: str) -> str:
    if value == TRUE:
        return "flag"
    return "text" if number_of(name, value) is None else "number"


def _descriptor(name: str, uses: dict[str, int]) -> ResourceDescriptor:
    if "amount" in uses or "units" in uses:
        layer = ResourceLayer.INSTANCE if "units" in uses else ResourceLayer.COUNTER
        return ResourceDescriptor.model_construct(name=name, layer=layer, is_consumable=True)
    if "text" in uses:
        value_type = ValueType.STRING
    else:
        value_type = ValueType.NUMBER if "number" in uses else ValueType.BOOLEAN
    return ResourceDescriptor.model_construct(
        name=name, layer=ResourceLayer.ATTRIBUTE, value_type=value_type, is_static=True
    )
