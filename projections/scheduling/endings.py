"""
What running jobs give back when they will have ended, in columns: for each host of each job a row.

Who looks ahead asks what hosts have got back once the first so many jobs have ended, over and over;
rows change only with the jobs that begin or cease to run, or are seen to use something else.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import Final, NamedTuple

import numpy as np

from projections.scheduling.capacity import Column, Mask
from projections.scheduling.placement.relief import Relief
from projections.scheduling.records import JobRecord
from projections.scheduling.resource_column import NOTHING_REPORTED
from projections.scheduling.state import State

NEVER: Final = 2**62
"""A place in the order of endings that none has."""
NOBODY: Final = 0
"""The owner of rows that are free."""

Row = tuple[int, int, int]
"""A host, what it gets back, and how much less of that is reserved and not used."""


class Given(NamedTuple):
    """
    Hold what one host gets back: by then so much, and so much unused, added up.
    """

    moments: list[int]
    milli: list[int]
    unused: list[int]

    def by(self, moment_us: int) -> tuple[int, int]:
        """
        Return what the host has got back by a moment.
        """
        place = bisect_right(self.moments, moment_us)
        return (self.milli[place - 1], self.unused[place - 1]) if place else (0, 0)


class _Owners:
    """
    Number the jobs whose endings are known, and say in which order they end.
    """

    def __init__(self) -> None:
        self.number_of: dict[str, int] = {}
        self._free: list[int] = []
        self._keys = np.full((3, 16), NEVER, np.int64)

    def add(self, stream: str, key: tuple[int, int, int]) -> int:
        """
        Give a number to a job that ends at a moment, by its own number and index among those that
        do so too.
        """
        if not self._free:
            size = self._keys.shape[1]
            self._free = list(range(2 * size - 1, max(size, NOBODY + 1) - 1, -1))
            self._keys = np.concatenate([self._keys, np.full_like(self._keys, NEVER)], axis=1)
        number = self.number_of[stream] = self._free.pop()
        self._keys[:, number] = key
        return number

    def drop(self, stream: str) -> None:
        """
        Forget a job.
        """
        number = self.number_of.pop(stream)
        self._keys[:, number] = NEVER
        self._free.append(number)

    def moments(self) -> Column:
        """
        Return by number when jobs end.
        """
        moments: Column = self._keys[0]
        return moments

    def places(self) -> Column:
        """
        Return by number the place of each job in the order of endings, from 0; of those that aren't
        any, behind all.
        """
        order = np.lexsort(self._keys[::-1])
        places: Column = np.empty_like(order)
        places[order] = np.arange(len(order))
        return places


class Table:
    """
    Hold what jobs give back of one thing.
    """

    __slots__ = (
        "_by_host", "_free", "_given", "_hosts", "_known", "_owners", "_rows", "_sorted", "_unused",
        "places",
    )  # fmt: skip

    def __init__(self) -> None:
        self._hosts = np.zeros(0, np.int64)
        self._owners = np.zeros(0, np.int64)
        self._given = np.zeros(0, np.int64)
        self._unused = np.zeros(0, np.int64)
        self._rows: dict[str, list[int]] = {}
        self._free: list[int] = []
        self._known: dict[int, Given] = {}
        self.places = np.zeros(0, np.int64)
        self._sorted: tuple[Column, Column, Column] | None = None
        self._by_host: tuple[Column, Column] | None = None

    def add(self, stream: str, owner: int, rows: list[Row]) -> None:
        """
        Add the rows of a job.
        """
        if len(self._free) < len(rows):
            self._grow(len(rows))
        places = self._rows[stream] = self._free[-len(rows) :]
        del self._free[-len(rows) :]
        hosts, self._given[places], self._unused[places] = zip(*rows, strict=True)
        self._hosts[places], self._owners[places] = hosts, owner
        for host in hosts:
            self._known.pop(host, None)

    def drop(self, stream: str) -> None:
        """
        Take out the rows of a job.
        """
        places = self._rows.pop(stream, None)
        if places is None:
            return
        for host in self._hosts[places].tolist():
            self._known.pop(host, None)
        self._owners[places] = NOBODY
        self._given[places] = self._unused[places] = 0
        self._free += places

    def _grow(self, more: int) -> None:
        size = len(self._hosts)
        added = max(size, more, 16)
        nothing = np.zeros(added, np.int64)
        self._hosts = np.append(self._hosts, nothing)
        self._owners = np.append(self._owners, nothing)
        self._given = np.append(self._given, nothing)
        self._unused = np.append(self._unused, nothing)
        self._free += range(size + added - 1, size - 1, -1)

    def order(self, places: Column) -> None:
        """
        Take over the order of endings, by number of job.
        """
        self.places = places[self._owners]
        self._sorted = self._by_host = None

    # -- what all hosts get back

    def upto(self, ended: int, hosts: int) -> tuple[Column, Column]:
        """
        Return by host what it has got back, and how much less is unused, once so many jobs have
        ended.
        """
        rows = np.flatnonzero(self.places < ended)
        on = self._hosts[rows]
        given, unused = np.zeros(hosts, np.int64), np.zeros(hosts, np.int64)
        np.add.at(given, on, self._given[rows])
        np.add.at(unused, on, self._unused[rows])
        return given, unused

    def ready(self, short: Column) -> Column:
        """
        Return by host how many jobs must have ended until it has got back what it is short of; 0
        where it is short of nothing, NEVER where all give too little.
        """
        if self._sorted is None:
            order = np.lexsort((self.places, self._hosts))
            on, given = self._hosts[order], self._given[order]
            sums = given.cumsum()
            firsts = np.searchsorted(on, on)
            self._sorted = (on, sums - sums[firsts] + given[firsts], self.places[order])
        on, sums, places = self._sorted
        ready = np.where(short > 0, NEVER, 0)
        enough = np.flatnonzero((sums >= short[on]) & (short[on] > 0))[::-1]
        # Written from the last one on, so that the first one of each host stands.
        ready[on[enough]] = places[enough] + 1
        return ready

    def first(self, hosts: Mask, short: int) -> int:
        """
        Return how many jobs must have ended until some hosts have got back so much together.

        Args:
            hosts: Which of all hosts, as a mask.
            short: More than 0.
        """
        if self._by_host is None:
            order = np.argsort(self.places, kind="stable")
            self._by_host = (order, self.places[order])
        order, places = self._by_host
        sums = np.where(hosts[self._hosts[order]], self._given[order], 0).cumsum()
        place = int(np.searchsorted(sums, short))
        return int(places[place]) + 1 if place < len(places) else NEVER

    # -- what one host gets back

    def on(self, host: int, moments: Column) -> Given:
        """
        Return what one host gets back when.

        Args:
            host: Its number.
            moments: When jobs end, by their numbers.
        """
        found = self._known.get(host)
        if found is None:
            rows = np.flatnonzero((self._hosts == host) & (self._owners != NOBODY))
            when = moments[self._owners[rows]]
            order = np.argsort(when, kind="stable")
            rows = rows[order]
            found = self._known[host] = Given(
                when[order].tolist(),
                list(accumulate(self._given[rows].tolist())),
                list(accumulate(self._unused[rows].tolist())),
            )
        return found


class Endings:
    """
    Hold what the running jobs whose end is known give back.

    Equivalent to: ``Relief.end`` of one after the other, as far as slots, amounts of hosts, named
    units and hosts had alone go; what all hosts share, and budgets, are left out. Nobody stands
    aside meanwhile.

    Args:
        state: The core's state.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._moved: int | None = None
        self._begin()

    def _begin(self) -> None:
        """
        Know nothing yet.
        """
        self._owners = _Owners()
        self._slots, self._alone = Table(), Table()
        self._amounts: dict[str, Table] = {}
        self._with_units: dict[str, JobRecord] = {}
        self._seen: dict[str, dict[int, dict[str, int]]] = {}
        self._places = np.zeros(0, np.int64)

    def sync(self) -> None:
        """
        Take over what has changed.
        """
        state = self._state
        moved = state.moved_since(self._moved)
        self._moved = state.runs_moved
        if moved is None:
            self._begin()
            moved = list(state.release_of)
        changed = dict.fromkeys(moved)
        for job in state.live.values():
            is_known = job.actual and job.stream in state.release_of
            if is_known and self._seen.get(job.stream) != job.actual:
                changed[job.stream] = None
        for stream in self._seen:
            if stream not in state.live or not state.live[stream].actual:
                changed[stream] = None
        if not changed:
            return
        for stream in changed:
            self._drop(stream)
            if stream in state.release_of:
                self._add(state.live[stream])
        self._places = self._owners.places()
        for table in (self._slots, self._alone, *self._amounts.values()):
            table.order(self._places)

    def _add(self, job: JobRecord) -> None:
        allocation, stream = job.allocation, job.stream
        assert allocation is not None, stream
        moment, number, index, _, _ = self._state.release_of[stream]
        owner = self._owners.add(stream, (moment, number, index))
        shares = [(host, tasks, 0) for host, tasks, _ in allocation.shares()]
        self._slots.add(stream, owner, shares)
        if allocation.is_exclusive:
            self._alone.add(stream, owner, [(host, 1, 0) for host, _, _ in shares])
        if job.actual:
            self._seen[stream] = dict(job.actual)
        if any(run.instances for run in allocation.runs):
            self._with_units[stream] = job
        amounts: dict[str, list[Row]] = {}
        if any(run.amounts for run in allocation.runs):
            for host, name, charged, unused in self._state.capacity.released_by(
                job, everything=True
            ):
                amounts.setdefault(name, []).append((host, charged, unused))
        for name, rows in amounts.items():
            if name not in self._amounts:
                self._amounts[name] = Table()
            self._amounts[name].add(stream, owner, rows)

    def _drop(self, stream: str) -> None:
        self._seen.pop(stream, None)
        if stream not in self._owners.number_of:
            return
        self._owners.drop(stream)
        self._with_units.pop(stream, None)
        for table in (self._slots, self._alone, *self._amounts.values()):
            table.drop(stream)

    def _has_ended(self, stream: str, ended: int) -> bool:
        owner = self._owners.number_of.get(stream)
        return owner is not None and self._places.item(owner) < ended

    # -- all hosts

    def relief(self, base: Relief, ended: int) -> Relief:
        """
        Return the hosts of a relief when so many jobs will have ended too.
        """
        hosts = self._state.capacity.hosts
        found = base.copy()
        if not ended:
            return found
        found.slots += self._slots.upto(ended, hosts)[0]
        found.left_alone(self._alone.upto(ended, hosts)[0] > 0)
        for name, table in self._amounts.items():
            found.give_amounts(name, *table.upto(ended, hosts))
        for stream, job in self._with_units.items():
            if self._has_ended(stream, ended):
                found.give_units(job)
        return found

    def slots_ready(self, short: Column) -> Column:
        """
        Return by host how many jobs must have ended until it is no longer short of slots.
        """
        return self._slots.ready(short)

    def amounts_ready(self, name: str, short: Column) -> Column:
        """
        Return the same of a resource.
        """
        table = self._amounts.get(name)
        return np.where(short > 0, NEVER, 0) if table is None else table.ready(short)

    def slots_first(self, hosts: Mask, short: int) -> int:
        """
        Return how many jobs must have ended until some hosts are no longer short of so many slots
        together.
        """
        return self._slots.first(hosts, short)

    # -- one host

    def usable(self, host: int, moment_us: int) -> tuple[int, int]:
        """
        Return the slots that a host has got back by a moment, and those that are usable then.
        """
        capacity, moments = self._state.capacity, self._owners.moments()
        given = self._slots.on(host, moments).by(moment_us)[0]
        takes = bool(capacity.takes_jobs[host])
        if not takes and capacity.exclusive[host]:
            is_alone = self._alone.on(host, moments).by(moment_us)[0] > 0
            takes = is_alone and capacity.is_fit(host)
        free = capacity.slots.item(host) - capacity.used.item(host) + given
        return given, max(0, free) if takes else 0

    def available(self, name: str, host: int, moment_us: int) -> tuple[int, int]:
        """
        Return what of a resource a host has got back by a moment, and what is available then.
        """
        column, table = self._state.capacity.resources.get(name), self._amounts.get(name)
        given, unused = 0, 0
        if table is not None:
            given, unused = table.on(host, self._owners.moments()).by(moment_us)
        if column is None:
            return given, 0
        left = column.total.item(host) - column.charged.item(host) + given
        reported = column.reported.item(host)
        if column.is_real[host] and reported != NOTHING_REPORTED:
            left = min(reported - column.unused.item(host) + unused, left)
        return given, max(0, left)
