"""
What resources there are: descriptors, LSF's built-in ones among them, and the catalogue that finds
them by name.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Final

from pydantic import StringConstraints

from domain.amounts import InstanceUnit, Milli
from domain.errors import Refused
from domain.event import Value
from domain.ids import MaybeName, Name
from domain.resreq.settings import ALIASES, ParseSettings
from domain.units import MemoryUnit

ResourceName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,38}$")]

KIB: Final = "KiB"
"""The unit of memory."""

TIMING_WORDS: Final = frozenset({"duration", "decay", "threshold"})
SPECIAL_WORDS: Final = frozenset(
    {"any", "local", "defined", "select", "order", "rusage", "span", "same"}
)


class ResourceLayer(StrEnum):
    """
    Name what a resource is to a host: a property of it, an amount it has, or units with names.
    """

    ATTRIBUTE = "attribute"
    COUNTER = "counter"
    INSTANCE = "instance"


class ValueType(StrEnum):
    """
    Name what the values of a resource are.
    """

    NUMBER = "number"
    STRING = "string"
    BOOLEAN = "boolean"


class ResourceScope(StrEnum):
    """
    Name who has a resource: each host its own, or several hosts one total together.
    """

    HOST = "host"
    SHARED = "shared"


class SharedTotal(Value):
    """
    Hold one total of a shared resource and the hosts that share it.

    Args:
        hosts: Names of the hosts; empty when all hosts of the cluster share it.
    """

    total_milli: Milli
    hosts: tuple[Name, ...] = ()


class ResourceDescriptor(Value):
    """
    Describe a resource by its name.

    Args:
        layer: A fact about hosts, something counted, or something with named units.
        value_type: What its values are.
        scope: Whether each host has its own, or several hosts share a total.
        totals: For a shared resource, each total with the hosts that share it.
        units: For instances that every host has alike; a host's own ones are told by its worker.
        is_consumable: Whether a requirement may reserve it.
        is_real: Whether the operating system measures its use; otherwise it is only counted.
        is_load: Whether it is a load index: a host that doesn't report it isn't selected by it.
        is_static: Whether its value on a host changes only when the host's description does.
        lower_is_better: Which way hosts are ordered by it, and which way a threshold points.
        release_on_suspend: Whether a suspended job gives it back.
        unit: "KiB" for memory, else "".
        description: A line for people.
    """

    name: ResourceName
    layer: ResourceLayer = ResourceLayer.COUNTER
    value_type: ValueType = ValueType.NUMBER
    scope: ResourceScope = ResourceScope.HOST
    totals: tuple[SharedTotal, ...] = ()
    units: tuple[InstanceUnit, ...] = ()
    is_consumable: bool = False
    is_real: bool = False
    is_load: bool = False
    is_static: bool = False
    lower_is_better: bool = False
    release_on_suspend: bool = False
    unit: MaybeName = ""
    description: Annotated[str, StringConstraints(max_length=512)] = ""

    @property
    def is_memory(self) -> bool:
        """
        Say whether its amounts are in units of memory.
        """
        return self.unit == KIB


def check_descriptor(descriptor: ResourceDescriptor) -> ResourceDescriptor:
    """
    Return a site's descriptor when it makes sense.

    Raises:
        Refused: Its name is taken, or its fields contradict each other.
    """
    name = descriptor.name
    if name in BUILT_IN or name in ALIASES or name in TIMING_WORDS | SPECIAL_WORDS:
        raise Refused("name", "must not be a name that LSF's language uses already", name)
    is_number = descriptor.value_type is ValueType.NUMBER
    if descriptor.is_consumable and not is_number:
        raise Refused("is_consumable", "only numbers can be reserved", name)
    if descriptor.layer is ResourceLayer.INSTANCE and not is_number:
        raise Refused("value_type", "named units are counted, so their resource is a number", name)
    is_shared = descriptor.scope is ResourceScope.SHARED
    if is_shared and not descriptor.totals:
        hint = f"For example: xce define resource {name} totals='[{{\"total_milli\": 5000}}]' ..."
        raise Refused("totals", "must be given of a shared resource", hint=hint)
    if descriptor.totals and not is_shared:
        rule = "must only be given of a resource that hosts share"
        raise Refused("totals", rule, name, "Say scope=shared, too.")
    if descriptor.scope is ResourceScope.SHARED and not is_number:
        raise Refused("scope", "only numbers can be shared", name)
    if descriptor.unit not in {"", KIB}:
        raise Refused("unit", "must be KiB or empty", descriptor.unit)
    _check_totals(descriptor)
    return descriptor


def _check_totals(descriptor: ResourceDescriptor) -> None:
    everywhere = [total for total in descriptor.totals if not total.hosts]
    if everywhere and len(descriptor.totals) > 1:
        raise Refused("totals", "a total for all hosts must be the only one", descriptor.name)
    hosts = [host for total in descriptor.totals for host in total.hosts]
    twice = next((host for host in hosts if hosts.count(host) > 1), None)
    if twice is not None:
        raise Refused("totals", "a host must share in one total only", twice)


def _load(
    name: str, description: str, *, is_consumable: bool = True, lower_is_better: bool = True
) -> ResourceDescriptor:
    return ResourceDescriptor(
        name=name,
        is_load=True,
        is_real=True,
        is_consumable=is_consumable,
        lower_is_better=lower_is_better,
        description=description,
    )


def _memory(name: str, description: str) -> ResourceDescriptor:
    return ResourceDescriptor(
        name=name, is_load=True, is_real=True, is_consumable=True, unit=KIB, description=description
    )


def _attribute(
    name: str, description: str, value_type: ValueType = ValueType.NUMBER, unit: str = ""
) -> ResourceDescriptor:
    return ResourceDescriptor(
        name=name,
        layer=ResourceLayer.ATTRIBUTE,
        value_type=value_type,
        is_static=True,
        unit=unit,
        description=description,
    )


_BUILT_IN: Final = (
    _load("r15s", "run queue length, mean of 15 seconds"),
    _load("r1m", "run queue length, mean of a minute"),
    _load("r15m", "run queue length, mean of 15 minutes"),
    _load("ut", "share of the processors in use, 0 to 1"),
    _load("pg", "pages swapped in and out a second"),
    _load("io", "disk traffic, KB a second"),
    _load("ls", "users logged in", is_consumable=False),
    _load("it", "minutes since the last input", is_consumable=False, lower_is_better=False),
    _memory("tmp", "free space for temporary files"),
    _memory("swp", "free swap space"),
    _memory("mem", "free memory"),
    ResourceDescriptor(name="slots", description="free slots", release_on_suspend=True),
    _attribute("maxslots", "configured slots"),
    _attribute("ncpus", "processors that count for scheduling"),
    _attribute("nprocs", "physical processors"),
    _attribute("ncores", "cores"),
    _attribute("nthreads", "hardware threads"),
    _attribute("cores", "cores, as the worker says"),
    _attribute("ndisks", "local disks"),
    _attribute("maxmem", "memory", unit=KIB),
    _attribute("maxswp", "swap space", unit=KIB),
    _attribute("maxtmp", "space for temporary files", unit=KIB),
    _attribute("cpuf", "relative speed of a processor"),
    _attribute("rexpri", "nice value of remote jobs"),
    _attribute("server", "whether it runs jobs", ValueType.BOOLEAN),
    _attribute("type", "kind of system", ValueType.STRING),
    _attribute("model", "kind of machine", ValueType.STRING),
    _attribute("arch", "instruction set", ValueType.STRING),
    _attribute("hname", "the host's name", ValueType.STRING),
    ResourceDescriptor(
        name="status",
        layer=ResourceLayer.ATTRIBUTE,
        value_type=ValueType.STRING,
        description="the host's state",
    ),
)

BUILT_IN: Final = MappingProxyType({descriptor.name: descriptor for descriptor in _BUILT_IN})
"""LSF's own resources by name."""


class Catalogue:
    """
    Find descriptors by name: the built-in ones and a site's own.
    """

    def __init__(self, descriptors: Iterable[ResourceDescriptor] = ()) -> None:
        self._by_name: dict[str, ResourceDescriptor] = dict(BUILT_IN)
        self._by_name.update((descriptor.name, descriptor) for descriptor in descriptors)

    def get(self, name: str) -> ResourceDescriptor | None:
        """
        Return the descriptor of a name or one of LSF's aliases, None when there is none.
        """
        return self._by_name.get(ALIASES.get(name, name))

    def names(self) -> tuple[str, ...]:
        """
        Return every name, sorted.
        """
        return tuple(sorted(self._by_name))

    def parse_settings(self, memory_unit: MemoryUnit = MemoryUnit.MB) -> ParseSettings:
        """
        Return the settings to parse requirements with, so that a site's memory and texts are known
        as such.
        """
        found = self._by_name.values()
        return ParseSettings(
            memory_unit=memory_unit,
            memory_names=frozenset(each.name for each in found if each.is_memory),
            text_names=frozenset(
                each.name for each in found if each.value_type is ValueType.STRING
            ),
        )


BUILT_IN_ONLY: Final = Catalogue()
"""The catalogue of a cluster that has defined nothing."""
