"""
When a waiting job could start, if the running ones run as long as planned: what pickers promise by.

Dispatch windows and preemption aren't foreseen. Nor is the load of hosts: one that is beyond a
threshold counts as closed, since nobody knows until when. Nor is a job that outruns its run limit
or estimate: it counts as due since then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from domain.allocations import HostRun, SharedAmount
from domain.errors import InvariantBroken, PluginFailed
from domain.reservations import KeptRun
from projections.scheduling.capacity import Column, Mask
from projections.scheduling.endings import Endings
from projections.scheduling.first_room import (
    are_greedy,
    endings_needed,
    is_counted,
    is_helped_by_more,
    rising,
)
from projections.scheduling.foreseen import Forecast, SlotsAhead, Wanted, kept_of
from projections.scheduling.kept_by_host import kept_by_host
from projections.scheduling.own_view import ground_of, is_as_all_see_it, relief_for
from projections.scheduling.placement.relief import Relief
from projections.scheduling.placement.runner import PlacementRunner
from projections.scheduling.promises import add_kept
from projections.scheduling.readiness import kept_from_starting
from projections.scheduling.records import JobRecord
from projections.scheduling.request import Request
from projections.scheduling.state import State

FILLS: Final = "fill"
"""The allocator that finds room whenever there are enough slots."""

FIRST_TRIED: Final = 4
"""The end of so many running jobs is looked at first."""

Room = tuple[tuple[HostRun, ...], tuple[SharedAmount, ...]]
"""Where a job starts."""


class Forecasts:
    """
    Foresee starts on the state as it is.

    Args:
        state: The core's state.
        runner: Places requests on trial.
    """

    def __init__(self, state: State, runner: PlacementRunner) -> None:
        self._state = state
        self._runner = runner
        self._ahead: SlotsAhead | None = None
        self._endings = Endings(state)

    def of(
        self, job: JobRecord, beside: tuple[KeptRun, ...] = (), hosts: Mask | None = None
    ) -> Forecast | None:
        """
        Return when a job could start; None when something else than hosts keeps it from starting,
        or even the hosts without any job couldn't hold it.

        Args:
            job: A pending job.
            beside: What must stay free, at any time.
            hosts: Only jobs on these hosts are waited for; None for all.

        A job that can be placed can be placed too when more is free, so the first moment is found
        by bisection over the ends of running jobs.
        """
        state = self._state
        if kept_from_starting(state, job, state.session_us) is not None:
            return None
        base = relief_for(state, job, kept=beside)
        if hosts is None and self._can_count(state.request_of(job)):
            return self._counted(job, base)
        known, unknown = self._ending(hosts)
        found = self._first_room(job, base, known)
        released = Relief(state.capacity)
        if found is None:
            placed = self._room(job, _ended(base, [*known, *unknown])) if unknown else None
            return None if placed is None else self._forecast(None, placed, released)
        high, placed = found
        # What ends at the same moment is free then too.
        moment = state.release_of[known[high - 1].stream][0] if high else state.session_us
        while high < len(known) and state.release_of[known[high].stream][0] <= moment:
            high += 1
        for each in known[:high]:
            released.end(each)
        return self._forecast(moment, placed, released)

    # -- counting endings

    def _can_count(self, request: Request) -> bool:
        """
        Say whether what a request needs can be counted.
        """
        state = self._state
        if state.is_plain or state.capacity.aside or not is_counted(request, state.capacity):
            return False
        try:
            members = self._runner.allocators_of(request, state.settings().allocators)
        except PluginFailed:
            return False
        return are_greedy(members)

    def _counted(self, job: JobRecord, base: Relief) -> Forecast | None:
        """
        Return when a job could start whose needs can be counted.

        Equivalent to: the other branch of ``of``, which ends one job after the other. Differs in:
        1. no trial is made of fewer endings than it needs by its slots and amounts alone; 2. what
        jobs give back is added up in columns, which change with the jobs alone.
        """
        state, endings = self._state, self._endings
        endings.sync()
        releases = state.releases
        needed = endings_needed(state.request_of(job), state.capacity, base, endings)
        found = None if needed is None else self._first_counted(job, base, needed)
        if found is None:
            unknown = [] if len(state.live) == len(releases) else self._ending(None)[1]
            relief = _ended(endings.relief(base, len(releases)), unknown)
            placed = self._room(job, relief) if unknown else None
            return None if placed is None else self._forecast(None, placed, Relief(state.capacity))
        high, placed = found
        moment = releases[high - 1][0] if high else state.session_us
        while high < len(releases) and releases[high][0] <= moment:
            high += 1
        return self._forecast(moment, placed, endings.relief(Relief(state.capacity), high))

    def _first_counted(self, job: JobRecord, base: Relief, needed: int) -> tuple[int, Room] | None:
        """
        Return how many running jobs must have ended first, so many at least, and where a job starts
        then; None when the end of all isn't enough.
        """
        most, placed = len(self._state.releases), None
        is_helped = is_helped_by_more(self._state.request_of(job), base)
        first = needed if is_helped else min(most, max(1, needed))

        def room(ended: int) -> Room | None:
            return self._room(job, self._endings.relief(base, ended))

        for high in rising(first, FIRST_TRIED, most):
            placed = room(high)
            if placed is not None:
                break
            first = high + 1
        if placed is None:
            return None
        while first < high:
            middle = (first + high) // 2
            found = room(middle)
            if found is None:
                first = middle + 1
            else:
                high, placed = middle, found
        if high == 1 and not (is_helped or needed):
            # Bisection asks for none at last, and only then.
            found = room(0)
            high, placed = (1, placed) if found is None else (0, found)
        return high, placed

    def slots_ahead(self, job: JobRecord) -> SlotsAhead | None:
        """
        Return the free slots by time, None when more than their count decides when the job starts.

        It is just their count where the job asks for nothing but slots, every host takes jobs, no
        host is held for anybody, every end is known, and some allocator fills hosts as they are.
        """
        state = self._state
        if not (state.capacity.is_plain and is_as_all_see_it(state, job)) or state.victims:
            return None
        if self._ahead is None:
            # It sees the state as it is whenever it is asked.
            self._ahead = SlotsAhead(state.capacity, state.live, state.releases)
        if len(state.live) != self._ahead.known:
            return None
        request = state.request_of(job)
        if not request.is_slots:
            return None
        if request.only.tasks_max > 1 and FILLS not in state.settings().allocators:
            return None
        if kept_from_starting(state, job, state.session_us) is not None:
            return None
        return self._ahead

    def kept_for(self, wanted: Wanted) -> tuple[KeptRun, ...] | None:
        """
        Return what of hosts that are wanted at some moments, all of them from then on, must stay
        free until then, because running jobs won't have given it back; None when they can't all be
        had.
        """
        if self._is_by_host(wanted):
            self._endings.sync()
            return kept_by_host(self._endings, wanted)
        state, capacity = self._state, self._state.capacity
        released, total = Relief(capacity), Relief(capacity)
        slots = np.zeros(capacity.hosts, np.int64)
        amounts: dict[str, Column] = {}
        place = 0
        for start_us, runs in sorted(wanted, key=lambda each: each[0]):
            while place < len(state.releases) and state.releases[place][0] <= start_us:
                released.end(state.live[state.releases[place][4]])
                place += 1
            add_kept(total, runs, 1)
            ground = ground_of(state, released)
            if (total.slots > ground.usable).any():
                return None
            slots = np.maximum(slots, total.slots - released.slots)
            for name, column in total.charged.items():
                if (column > ground.available(name)).any():
                    return None
                given = released.charged.get(name)
                more = column if given is None else column - given
                amounts[name] = np.maximum(amounts.get(name, 0), more)
        return kept_of(slots, amounts)

    def _is_by_host(self, wanted: Wanted) -> bool:
        """
        Say whether each host can be looked at by itself.
        """
        state = self._state
        if state.is_plain or state.capacity.aside:
            return False
        pools = state.capacity.pools.by_name
        return not pools or not any(
            amount.resource in pools for _, runs in wanted for run in runs for amount in run.amounts
        )

    def _ending(self, hosts: Mask | None) -> tuple[list[JobRecord], list[JobRecord]]:
        """
        Return the live jobs whose end is known, in order of it, and the others.
        """
        state = self._state
        known = [state.live[release[4]] for release in state.releases]
        unknown = [job for job in state.live.values() if job.stream not in state.release_of]
        if hosts is None:
            return known, unknown
        return _on(known, hosts), _on(unknown, hosts)

    def _first_room(
        self, job: JobRecord, base: Relief, known: Sequence[JobRecord]
    ) -> tuple[int, Room] | None:
        """
        Return how many running jobs must have ended first for a job to start, and where it starts
        then; None when the end of all isn't enough.

        Mostly it takes few: the first ones are tried, then four times as many, until enough; only
        then halves. Each trial goes on from the last that was too few.
        """
        low, relief, first = 0, base, 0
        high = min(FIRST_TRIED, len(known))
        while (placed := self._room(job, probe := _ended(relief, known[low:high]))) is None:
            if high == len(known):
                return None
            low, relief, first = high, probe, high + 1
            high = min(4 * high, len(known))
        while first < high:
            middle = (first + high) // 2
            probe = _ended(relief, known[low:middle])
            found = self._room(job, probe)
            if found is None:
                low, relief, first = middle, probe, middle + 1
            else:
                high, placed = middle, found
        return high, placed

    def _room(self, job: JobRecord, relief: Relief) -> Room | None:
        state = self._state
        try:
            return self._runner.room_for(
                ground_of(state, relief), state.request_of(job), state.settings().allocators
            )
        except InvariantBroken:
            raise
        except Exception:  # noqa: BLE001 - to a plug-in that fails on trial nothing is promised
            return None

    def _forecast(
        self,
        start_us: int | None,
        room: Room,
        released: Relief,
    ) -> Forecast:
        slots, amounts = needs_of(self._state.capacity.hosts, room[0])
        slots -= released.slots
        for name in [name for name in amounts if name in released.charged]:
            amounts[name] -= released.charged[name]
        return Forecast(start_us, *room, kept_of(slots, amounts))


def _ended(relief: Relief, jobs: Sequence[JobRecord]) -> Relief:
    """
    Return the same hosts when these jobs will have ended too.
    """
    found = relief.copy()
    for job in jobs:
        found.end(job)
    return found


def _on(jobs: Sequence[JobRecord], hosts: Mask) -> list[JobRecord]:
    return [
        job
        for job in jobs
        if job.allocation is not None
        and any(hosts[run.first : run.first + run.hosts].any() for run in job.allocation.runs)
    ]


def needs_of(hosts: int, runs: Sequence[HostRun]) -> tuple[Column, dict[str, Column]]:
    """
    Return what runs take of each host: slots, and amounts by resource.
    """
    slots = np.zeros(hosts, np.int64)
    amounts: dict[str, Column] = {}
    for run in runs:
        span = slice(run.first, run.first + run.hosts)
        slots[span] += run.tasks
        for amount in run.amounts:
            if amount.resource not in amounts:
                amounts[amount.resource] = np.zeros(hosts, np.int64)
            amounts[amount.resource][span] += amount.milli
    return slots, amounts
