"""
What an allocator plug-in supplies: a guard and a plan generator. The runner does everything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from projections.scheduling.capacity import Capacity, Column, Mask
from projections.scheduling.request import Part

Picked = list[tuple[Column, int]]
"""Hosts that were picked, in claim order: arrays of places in host order, each with the tasks per
host."""


@dataclass(slots=True, frozen=True)
class Plan:
    """
    Partition tasks into buckets, one bucket a host; ``groups`` holds (count of buckets, tasks in
    each), in order.

    Args:
        pins: The place of each bucket's host, where the plan was cut for certain hosts; otherwise
            each bucket takes the first host that fits.
    """

    groups: tuple[tuple[int, int], ...]
    pins: tuple[int, ...] = ()

    def buckets(self) -> Iterator[int]:
        """
        Yield the tasks of each bucket.
        """
        for count, tasks in self.groups:
            for _ in range(count):
                yield tasks

    @property
    def bucket_count(self) -> int:
        """
        Return how many hosts it needs.
        """
        return sum(count for count, _ in self.groups)

    @property
    def is_empty(self) -> bool:
        """
        Say whether it has no bucket, or a bucket without a task: such a plan is skipped.
        """
        counted = [tasks for count, tasks in self.groups if count > 0]
        return not counted or min(counted) < 1


class View(NamedTuple):
    """
    Hold what plan generators may look at: the primary that is placed, and the hosts that match it,
    in host order.

    Args:
        fits: How many tasks each could take now; 0 where none.
        hosts: Their numbers, None when they are all hosts of the cluster in order of joining.
        firsts: Which of them may take the first bucket, None where any may.
    """

    part: Part
    capacity: Capacity
    fits: Column
    hosts: Column | None = None
    firsts: Mask | None = None


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

    ``failing`` says which plans it tried in vain when it finds nothing: "even" partitions, or the
    "whole" on one host; "" when its plans must be run to know. ``is_monotone`` says that a count
    can be placed whenever a greater one can.
    """

    failing: str
    is_monotone: bool

    def find(self, tasks: int, view: View, total: int) -> Picked | None:
        """
        Return what the runner would pick by trying every plan, or None when every plan would fail.

        Args:
            tasks: How many tasks.
            view: The hosts.
            total: Sum of ``view.fits``.
        """
        ...
