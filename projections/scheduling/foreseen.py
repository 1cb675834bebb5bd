"""
What is foreseen of a pending job's start: a moment and hosts, or free slots by time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

import numpy as np

from domain.allocations import HostRun, SharedAmount
from domain.amounts import Amount
from domain.event import sure
from domain.reservations import KeptRun
from projections.scheduling.capacity import Capacity, Column
from projections.scheduling.records import JobRecord

Release = tuple[int, int, int, int, str]
"""When a running job will have ended, its number and index, the slots it gives back, its stream."""


Wanted = Sequence[tuple[int, tuple[KeptRun, ...]]]
"""Hosts that are wanted, with the moments from which on."""

Stretch = tuple[int, int, int]
"""Neighbours with equal slots: the first host, the one after the last, the slots of each."""

Changes = dict[int, int]
"""By host, how many slots more it has than the one before it, where they differ."""

FREE_AT_ONCE: Final = 256
"""So many hosts are looked at together for free slots."""


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

    Where they are is worked out by stretches of hosts. Equivalent to: add up what each host has
    left and gets back. Hosts may be many, what is promised on them is little.

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

    @property
    def known(self) -> int:
        """
        Return how many running jobs there are whose end is known.
        """
        return len(self._releases)

    def by_time(self) -> list[tuple[int, int]]:
        """
        Return (moment, slots) of what running jobs give back, in order.
        """
        return [(release[0], release[3]) for release in self._releases]

    @property
    def due_us(self) -> int | None:
        """
        Return when the first running job will have ended, None when none runs.
        """
        return self._releases[0][0] if self._releases else None

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
        soon, missing = _first_of(_disjoint(self._given_back(start_us)), slots)
        if not missing:
            return tuple([_kept_run(first, stop - first, each) for first, stop, each in soon])
        return _runs_of([*soon, *self._last_free(missing)])

    def kept(self, slots: int, start_us: int) -> tuple[KeptRun, ...]:
        """
        Return which of those must be kept free from now on.
        """
        return _runs_of(self._last_free(_first_of(_disjoint(self._given_back(start_us)), slots)[1]))

    def still_hold(self, runs: Sequence[KeptRun], start_us: int) -> bool:
        """
        Say whether these slots will all be free at a moment.
        """
        changes = self._given_back(start_us)
        for place in changes:
            changes[place] = -changes[place]
        _add_up(changes, [(run.first, run.first + run.hosts, run.slots) for run in runs])
        usable = self._capacity.usable
        return all(
            min(usable[first:stop].tolist()) >= short
            for first, stop, short in _disjoint(changes)
            if short > 0
        )

    def _given_back(self, start_us: int) -> Changes:
        """
        Return what all running jobs have given back by a moment.
        """
        changes: Changes = {}
        get, live = changes.get, self._live
        for release in self._releases:
            if release[0] > start_us:
                break
            allocation = live[release[4]].allocation
            for run in allocation.runs if allocation is not None else ():
                first, tasks = run.first, run.tasks
                stop = first + run.hosts
                changes[first] = get(first, 0) + tasks
                changes[stop] = get(stop, 0) - tasks
        return changes

    def _last_free(self, slots: int) -> list[Stretch]:
        """
        Return so many of the slots that are free now, on the last hosts that have any.
        """
        found: list[Stretch] = []
        stop = self._capacity.hosts
        while slots > 0 and stop > 0:
            begin = max(0, stop - FREE_AT_ONCE)
            for place, free in enumerate(reversed(self._capacity.usable[begin:stop].tolist()), 1):
                if free > 0 and slots > 0:
                    found.append((stop - place, stop - place + 1, min(free, slots)))
                    slots -= free
            stop = begin
        return found


def _first_of(stretches: Sequence[Stretch], slots: int) -> tuple[list[Stretch], int]:
    """
    Return so many slots of the first hosts, by stretches of which neighbours differ, and how many
    of them there weren't.
    """
    found: list[Stretch] = []
    for first, stop, each in stretches:
        whole, rest = divmod(slots, each)
        whole = min(whole, stop - first)
        if whole:
            found.append((first, first + whole, each))
        if rest and first + whole < stop:
            begin = first + whole
            if found and found[-1][1:] == (begin, rest):
                begin = found.pop()[0]
            found.append((begin, first + whole + 1, rest))
            return found, 0
        slots -= whole * each
        if not slots:
            break
    return found, slots


def _add_up(changes: Changes, stretches: Iterable[Stretch]) -> None:
    """
    Add what stretches of hosts have there.
    """
    for first, stop, slots in stretches:
        changes[first] = changes.get(first, 0) + slots
        changes[stop] = changes.get(stop, 0) - slots


def _disjoint(changes: Changes) -> list[Stretch]:
    """
    Return disjoint stretches of hosts in order, each with what all together have there; neighbours
    differ, and none is empty.
    """
    found: list[Stretch] = []
    begin = total = 0
    for place in sorted(changes):
        change = changes[place]
        if change:
            if total:
                found.append((begin, place, total))
            begin, total = place, total + change
    return found


def _runs_of(stretches: Iterable[Stretch]) -> tuple[KeptRun, ...]:
    """
    Return the same as it is recorded.
    """
    changes: Changes = {}
    _add_up(changes, stretches)
    return tuple([_kept_run(first, stop - first, each) for first, stop, each in _disjoint(changes)])


@lru_cache(maxsize=1 << 12)
def _kept_run(first: int, hosts: int, slots: int) -> KeptRun:
    """
    Return a promised share of slots alone; equal ones are one object, which never changes.
    """
    return sure(KeptRun, first=first, hosts=hosts, slots=slots)


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
            found.append(sure(KeptRun, first=first, hosts=stop - first, slots=count, amounts=own))
    return tuple(found)
