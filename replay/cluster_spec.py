"""
Hold a modelled cluster: hosts with slots, memory, attributes and other resources; partitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from domain.errors import Refused
from domain.ids import check_name

HOSTS_MAX = 1_000_000
SLOTS_MAX = 1_000_000
OPTION = "--cluster"
HOW = f"Give {OPTION} HOSTSxSLOTS (for example 1024x8) or {OPTION} FILE."


@final
@dataclass(frozen=True, slots=True)
class ResourceSpec:
    """
    Hold how much of one resource a host has.

    Args:
        name: Name of the resource.
        total_milli: Thousandths of its base unit.
        model: What its units are, "" for a plain amount; whole units then have names, from 0.
        has_units: Whether the total counts units with names, such as GPUs.
    """

    name: str
    total_milli: int
    model: str = ""
    has_units: bool = False


@final
@dataclass(frozen=True, slots=True)
class HostSpec:
    """
    Hold one host of a modelled cluster; its memory is None where the cluster doesn't give it.
    """

    name: str
    slots: int
    mem_kib: int | None = None
    attributes: tuple[tuple[str, str], ...] = ()
    resources: tuple[ResourceSpec, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """
    Hold a part of the cluster that jobs can name.

    Args:
        name: As jobs name it.
        attribute: The attribute that its hosts have.
        is_default: Whether jobs that name none belong to it.
        task_kib: The memory of each task of a job that asks for none, None for nothing.
    """

    name: str
    attribute: str
    is_default: bool = False
    task_kib: int | None = None


@final
@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """
    Hold a modelled cluster: its hosts in host order, each name once.

    Args:
        hosts: The hosts.
        partitions: Its parts.
        is_recorded: Whether they are the hosts of the log that the workload comes from: then
            requests hold as they were written.
    """

    hosts: tuple[HostSpec, ...]
    partitions: tuple[PartitionSpec, ...] = ()
    is_recorded: bool = False

    @property
    def slots(self) -> int:
        """
        Return the slots of all hosts together.
        """
        return sum(host.slots for host in self.hosts)

    @property
    def has_memory(self) -> bool:
        """
        Tell whether the hosts' memory is given, so that the memory of jobs counts.
        """
        return all(host.mem_kib is not None for host in self.hosts)

    @property
    def has_attributes(self) -> bool:
        """
        Tell whether hosts have attributes, so that what jobs select counts.
        """
        return any(host.attributes for host in self.hosts)


def check_count(field: str, value: int, most: int) -> None:
    """
    Refuse a count that is 0 or too large.
    """
    if not 1 <= value <= most:
        raise Refused(field, f"must be from 1 to {most}", value, HOW)


def check_hosts(hosts: tuple[HostSpec, ...]) -> None:
    """
    Refuse names that can't be identifiers or come twice, and memory given for some hosts only.
    """
    seen: set[str] = set()
    for host in hosts:
        check_name(f"{OPTION} name", host.name)
        if host.name in seen:
            raise Refused(f"{OPTION} name", "must be of one host only", host.name)
        seen.add(host.name)
    if len({host.mem_kib is None for host in hosts}) > 1:
        raise Refused(f"{OPTION} mem_kib", "must be given for all hosts or for none")
