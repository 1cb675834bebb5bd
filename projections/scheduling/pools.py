"""
Shared resources: one total for all hosts, or one each for groups of hosts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from domain.allocations import Allocation, SharedAmount
from domain.resources import ResourceDescriptor, ResourceScope

Mask = npt.NDArray[np.bool_]


@dataclass(slots=True)
class Pool:
    """
    Hold one total of a shared resource, what of it is charged, and which hosts share it.

    Args:
        hosts: Names of the hosts, None when all share it.
        members: The same as a mask over host numbers, for those that have joined.
    """

    total: int
    hosts: frozenset[str] | None
    charged: int = 0
    members: Mask = field(default_factory=lambda: np.zeros(0, np.bool_))

    @property
    def left(self) -> int:
        """
        Return what a new job may take.
        """
        return max(0, self.total - self.charged)


class Pools:
    """
    Hold the pools of every shared resource, by its name in order of definition.
    """

    def __init__(self) -> None:
        self.by_name: dict[str, list[Pool]] = {}
        self._names: list[str] = []

    def define(self, descriptor: ResourceDescriptor, live: Iterable[Allocation]) -> None:
        """
        Take over the totals of a resource, and charge what live jobs have of it.
        """
        self.by_name.pop(descriptor.name, None)
        if descriptor.scope is not ResourceScope.SHARED:
            return
        pools = self.by_name[descriptor.name] = [
            Pool(total.total_milli, frozenset(total.hosts) if total.hosts else None)
            for total in descriptor.totals
        ]
        for pool in pools:
            self._find_members(pool)
        for allocation in live:
            self.charge([each for each in allocation.shared if each.resource == descriptor.name], 1)

    def add_host(self, number: int, name: str) -> None:
        """
        Learn of a host.
        """
        if number < len(self._names):
            return
        self._names.append(name)
        for pools in self.by_name.values():
            for pool in pools:
                self._find_members(pool)

    def _find_members(self, pool: Pool) -> None:
        known = len(pool.members)
        hosts = pool.hosts
        more = [hosts is None or name in hosts for name in self._names[known:]]
        pool.members = np.append(pool.members, np.array(more, np.bool_))

    def charge(self, amounts: Iterable[SharedAmount], sign: int) -> None:
        """
        Charge amounts, or give them back; a pool that is defined no more takes none.
        """
        for amount in amounts:
            pools = self.by_name.get(amount.resource, [])
            if amount.pool < len(pools):
                pools[amount.pool].charged += sign * amount.milli
