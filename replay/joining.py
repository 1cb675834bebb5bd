"""
Let hosts of a modelled cluster join: with all that they have, in simulations and in branches.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from domain.amounts import MEM, Attribute, HostResource, InstanceUnit
from domain.commands import JoinWorker
from domain.units import MILLI
from replay.cluster_spec import HostSpec

KIB_MILLI: Final = 1_000


def joining(host: HostSpec, name: str) -> JoinWorker:
    """
    Return the command with which a host joins under a name.
    """
    return JoinWorker(
        worker=name,
        slots=host.slots,
        resources=tuple(_resources(host)),
        attributes=tuple(Attribute(name=key, value=value) for key, value in host.attributes),
    )


def _resources(host: HostSpec) -> Iterator[HostResource]:
    """
    Yield what a host has besides slots.
    """
    if host.mem_kib is not None:
        yield HostResource(name=MEM, total_milli=host.mem_kib * KIB_MILLI, is_real=True)
    for resource in host.resources:
        units: tuple[InstanceUnit, ...] = ()
        if resource.has_units:
            count = resource.total_milli // MILLI
            units = tuple(
                InstanceUnit(name=str(number), model=resource.model) for number in range(count)
            )
        yield HostResource(name=resource.name, total_milli=resource.total_milli, units=units)
