"""
What an allocator plug-in supplies: a guard and a plan generator. The runner does everything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from projections.scheduling.capacity import Capacity, Column
from projections.scheduling.request import Request

Picked = list[tuple[Column, int]]
"""Hosts that were picked, in claim order: arrays of host numbers, each with the tasks per host."""


@dataclass(slots=True, frozen=True)
class Plan:
    """
    Partition tasks into buckets, one bucket a host; ``groups`` holds (count of buckets, tasks in
    each), in order.
    """

    groups: tuple[tuple[int, int], ...]

    def buckets(self) -> Iterator[int]:
        """
        Yield the tasks of each bucket.
        """
        for count, tasks in self.groups:
            for _ in range(count):
                yield tasks

    @property
    def is_empty(self) -> bool:
        """
        Say whether it has no bucket, or a bucket without a task: such a plan is skipped.
        """
        counted = [tasks for count, tasks in self.groups if count > 0]
        return not counted or min(counted) < 1


@dataclass(slots=True, frozen=True)
class View:
    """
    Hold what the runner and the plan generators may look at: the request, the hosts in host order
    that match it, and how many tasks each could take now.

    ``fits`` is 0 on a host that doesn't match.
    """

    request: Request
    capacity: Capacity
    fits: Column


class Allocator(Protocol):
    """
    Be a way to divide a job over hosts.

    ``plans`` returns None when it can't start; the iterator is closed when the placement ends.
    """

    name: str
    version: int

    def accepts(self, tasks: int) -> bool:
        """
        Say whether this allocator is the right one for so many tasks.
        """
        ...

    def plans(self, tasks: int, view: View) -> Iterable[Plan] | None:
        """
        Yield plans, lazily, best first.
        """
        ...


class FastAllocator(Allocator, Protocol):
    """
    Be an allocator that can also say at once which hosts the runner would come to pick.
    """

    def find(self, tasks: int, view: View, total: int) -> Picked | None:
        """
        Return what the runner would pick by trying every plan, or None when every plan would fail.

        Args:
            tasks: How many tasks.
            view: The hosts.
            total: Sum of ``view.fits``.
        """
        ...
