"""
What is foreseen of a pending job's start: a moment and hosts, or free slots by time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from domain.allocations import HostRun, SharedAmount
from domain.amounts import Amount
from domain.reservations import KeptRun
from projections.scheduling.capacity import Capacity, Column
from projections.scheduling.records import JobRecord

Release = tuple[int, int, int, int, str]
"""When a running job will have ended, its number and index, the slots it gives back, its stream."""


Wanted = Sequence[tuple[int, tuple[KeptRun, ...]]]
"""Hosts that are wanted, with the moments from which on."""


@dataclass(slots=True, frozen=True)
class Forecast:
    """
    Say when and where a job could start.

    Args:
        start_us: When; None when nobody knows, since a job in its way has no run limit.
        runs: Where.
        shared: What of resources that hosts share.
        kept: What of it running jobs won't have given back by then: it must stay free until then.
    """

    start_us: int | None
    runs: tuple[HostRun, ...]
    shared: tuple[SharedAmount, ...]
    kept: tuple[KeptRun, ...]

    def wanted(self) -> tuple[KeptRun, ...]:
        """
        Return all that the job gets then.
        """
        return tuple(
            KeptRun(first=run.first, hosts=run.hosts, slots=run.tasks, amounts=run.amounts)
            for run in self.runs
        )


class SlotsAhead:
    """
    Hold the free slots by time, for a job that needs nothing but slots, anywhere.

    Args:
        capacity: What is free now; read, never changed.
        live: Running jobs by stream.
        releases: When each of them gives back its slots, in order.
    """

    __slots__ = ("_capacity", "_live", "_releases")

    def __init__(
        self, capacity: Capacity, live: Mapping[str, JobRecord], releases: Sequence[Release]
    ) -> None:
        self._capacity = capacity
        self._live = live
        self._releases = releases

    @property
    def free(self) -> int:
        """
        Return the slots that are free now.
        """
        return self._capacity.usable_total

    def by_time(self) -> list[tuple[int, int]]:
        """
        Return (moment, slots) of what running jobs give back, in order.
        """
        return [(release[0], release[3]) for release in self._releases]

    def first(self, slots: int) -> tuple[int, int] | None:
        """
        Return the first moment at which running jobs have given back so many slots that these are
        free, and how many more are free then; None when that never comes.
        """
        free, found = self._capacity.usable_total, None
        for release in self._releases:
            if found is not None and release[0] > found:
                break
            free += release[3]
            if found is None and free >= slots:
                found = release[0]
        return None if found is None else (found, free - slots)

    def wanted(self, slots: int, start_us: int) -> tuple[KeptRun, ...]:
        """
        Return where so many slots will be free at a moment: on hosts that are in use until then
        first, on free ones last.
        """
        soon, kept = self._split(slots, start_us)
        return kept_of(soon + kept, {})

    def kept(self, slots: int, start_us: int) -> tuple[KeptRun, ...]:
        """
        Return which of those must be kept free from now on.
        """
        return kept_of(self._split(slots, start_us)[1], {})

    def _split(self, slots: int, start_us: int) -> tuple[Column, Column]:
        given = self._given_back(start_us)
        soon = np.clip(slots - (np.cumsum(given) - given), 0, given)
        free = self._capacity.usable[::-1]
        missing = slots - int(soon.sum())
        kept = np.clip(missing - (np.cumsum(free) - free), 0, free)[::-1]
        return soon, kept

    def still_hold(self, runs: Sequence[KeptRun], start_us: int) -> bool:
        """
        Say whether these slots will all be free at a moment.
        """
        free = self._given_back(start_us) + self._capacity.usable
        return all((free[run.first : run.first + run.hosts] >= run.slots).all() for run in runs)

    def _given_back(self, start_us: int) -> Column:
        given = np.zeros(self._capacity.hosts, np.int64)
        for release in self._releases:
            if release[0] > start_us:
                break
            allocation = self._live[release[4]].allocation
            for run in allocation.runs if allocation is not None else ():
                given[run.first : run.first + run.hosts] += run.tasks
        return given


def kept_of(slots: Column, amounts: Mapping[str, Column]) -> tuple[KeptRun, ...]:
    """
    Return slots and amounts by host as runs of neighbours that keep the same; hosts that keep
    nothing are left out.
    """
    rows = np.maximum(np.stack([slots, *amounts.values()]), 0)
    changes = np.flatnonzero((rows[:, 1:] != rows[:, :-1]).any(axis=0)) + 1
    edges = [0, *changes.tolist(), rows.shape[1]]
    found = []
    for first, stop in pairwise(edges):
        count, *rest = rows[:, first].tolist() if stop > first else [0]
        own = tuple(
            Amount(resource=name, milli=milli)
            for name, milli in zip(amounts, rest, strict=True)
            if milli
        )
        if count or own:
            found.append(KeptRun.sure(first=first, hosts=stop - first, slots=count, amounts=own))
    return tuple(found)
