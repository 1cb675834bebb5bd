"""
A second set of books: what live jobs hold on each host, kept from the events in the plainest way.

It shares no code with the core's columns, so that the two can be held against each other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import final

from domain.allocations import Allocation

Amounts = dict[str, int]


@final
@dataclass(slots=True)
class Share:
    """
    Hold what one job has on one host: tasks, reserved amounts, and what it was seen to use.
    """

    tasks: int
    reserved: Amounts
    actual: Amounts = field(default_factory=dict)


class Ledger:
    """
    Keep the shares of live jobs; ``touched`` names hosts whose shares changed since it was cleared.
    """

    def __init__(self) -> None:
        self._held: dict[str, Allocation] = {}
        self._hosts: dict[int, dict[str, Share]] = {}
        self.used: dict[int, int] = {}
        self.exclusive: dict[int, int] = {}
        self.touched: dict[int, None] = {}

    def holds(self, stream: str) -> bool:
        """
        Say whether a job holds anything.
        """
        return stream in self._held

    def streams(self) -> list[str]:
        """
        Return the jobs that hold something, in order of taking it.
        """
        return list(self._held)

    def tasks_on(self, number: int) -> dict[str, int]:
        """
        Return the jobs that hold a host, with their tasks there.
        """
        return {stream: share.tasks for stream, share in self._hosts.get(number, {}).items()}

    def settle(self, stream: str, allocation: Allocation | None) -> None:
        """
        Take over what a job holds now, None for nothing.
        """
        before = self._held.get(stream)
        if before is allocation:
            return
        if before is not None:
            self._release(stream, before)
        if allocation is not None:
            self._take(stream, allocation)

    def _take(self, stream: str, allocation: Allocation) -> None:
        self._held[stream] = allocation
        for number, tasks, amounts in allocation.shares():
            shares = self._hosts.setdefault(number, {})
            share = shares.setdefault(stream, Share(0, {}))
            share.tasks += tasks
            for amount in amounts:
                reserved = share.reserved
                reserved[amount.resource] = reserved.get(amount.resource, 0) + amount.milli
            self.used[number] = self.used.get(number, 0) + tasks
            self.exclusive[number] = self.exclusive.get(number, 0) + allocation.is_exclusive
            self.touched[number] = None

    def _release(self, stream: str, allocation: Allocation) -> None:
        del self._held[stream]
        for number, tasks, _ in allocation.shares():
            self._hosts[number].pop(stream, None)
            self.used[number] -= tasks
            self.exclusive[number] -= allocation.is_exclusive
            self.touched[number] = None

    def see(self, stream: str, number: int, actual: Amounts) -> None:
        """
        Take over what a job was seen to use on a host; a job that isn't there is left out.
        """
        share = self._hosts.get(number, {}).get(stream)
        if share is not None:
            share.actual = actual
            self.touched[number] = None

    def charged(self, number: int, resource: str, without: Collection[str] = ()) -> int:
        """
        Return what is charged: of each job, but for some, the greater of reserved and used.
        """
        return sum(
            max(share.reserved[resource], share.actual.get(resource, 0))
            for share in self._reserving(number, resource, without)
        )

    def unused(self, number: int, resource: str, without: Collection[str] = ()) -> int:
        """
        Return what is reserved and not used.
        """
        return sum(
            max(0, share.reserved[resource] - share.actual.get(resource, 0))
            for share in self._reserving(number, resource, without)
        )

    def _reserving(
        self, number: int, resource: str, without: Collection[str]
    ) -> Iterator[Share]:
        return (
            share
            for stream, share in self._hosts.get(number, {}).items()
            if resource in share.reserved and stream not in without
        )
