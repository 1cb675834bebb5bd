"""
Let the victims of preemption go on when what they gave back is free again.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from domain.event import Event
from domain.events.jobs import JobResumeOrdered
from domain.job_states import JobState
from projections.scheduling.capacity import Mask
from projections.scheduling.holds import hold, holders_of, slots_of, victims_of
from projections.scheduling.loads import Loads
from projections.scheduling.own_view import ground_of
from projections.scheduling.placement.relief import Relief, shared_of
from projections.scheduling.records import JobRecord
from projections.scheduling.state import State


class Resumption:
    """
    Resume in one session. Made afresh for each.

    Args:
        state: The core's state.
        decide: Takes a decision and applies it at once.
    """

    def __init__(self, state: State, decide: Callable[[str, Event], None]) -> None:
        self._state = state
        self._decide = decide

    def let_go_on(self) -> None:
        """
        Resume the victims whose resources are free again: higher queues first, then those that were
        started earlier. Work that may preempt them has had its turn; all other work couldn't take
        their slots.
        """
        state = self._state
        holders = holders_of(self._state)
        waiting = [
            victim
            for victim in state.victims.values()
            if victim.is_aside and victim.preemptor not in holders and self._may_go_on(victim)
        ]
        blocked = np.zeros(state.capacity.hosts, np.bool_)
        for victim in sorted(waiting, key=self._resume_order):
            own = self._hosts_of(victim)
            if not (blocked & own).any() and self._fits_again(victim):
                self._resume(victim)
            else:
                blocked |= own

    def _may_go_on(self, victim: JobRecord) -> bool:
        is_wanted = victim.stop_actor is None and victim.kill_actor is None
        is_open = self._state.run_windows_open.get(victim.spec.queue, True)
        is_ordered = victim.kill_order or victim.suspend_order or victim.resume_order
        if victim.state is not JobState.SSUSP or not is_wanted or not is_open or is_ordered:
            return False
        return Loads(self._state).may_go_on(victim)

    def _resume_order(self, victim: JobRecord) -> tuple[int, ...]:
        priority = self._state.queue_of(victim).spec.priority
        start_us = victim.dispatch_us if victim.start_us is None else victim.start_us
        return (-priority, start_us or 0, victim.number, victim.index)

    def _hosts_of(self, job: JobRecord) -> Mask:
        assert job.allocation is not None, job.stream
        return slots_of(self._state, job.allocation) > 0

    def _fits_again(self, victim: JobRecord) -> bool:
        """
        Say whether what a victim gave back is free again, and held for nobody.
        """
        state, capacity = self._state, self._state.capacity
        assert victim.allocation is not None, victim.stream
        relief = Relief(capacity)
        for other in state.victims.values():
            if other.is_aside:
                relief.give_slots(other)
        own = self._hosts_of(victim)
        if victim.allocation.is_exclusive and (capacity.used - relief.slots)[own].any():
            return False
        for holder in state.keepers.values():
            self._hold_in_full(relief, holder)
        free = capacity.slots - capacity.used + relief.slots
        if not state.limits.can_charge_again(victim):
            return False
        if (free < slots_of(self._state, victim.allocation))[own].any():
            return False
        ground = ground_of(state, relief)
        for number, name, charged, _ in capacity.released_by(victim):
            column = capacity.resources[name]
            held = relief.charged[name][number] if name in relief.charged else 0
            if column.total[number] - column.charged[number] + held < charged:
                return False
        if not capacity.units_are_free(victim):
            return False
        needs = shared_of(
            each for each in victim.allocation.shared if each.resource in capacity.released
        )
        return all(
            place >= len(ground.left(name)) or ground.left(name)[place] >= milli
            for (name, place), milli in needs.items()
        )

    def _hold_in_full(self, relief: Relief, holder: JobRecord) -> None:
        """
        Take for a preemptor what it needs beyond what those of its victims have that still run.
        """
        hold(self._state, relief, holder)
        for victim in victims_of(self._state, holder):
            if victim.is_aside:
                # Their slots were given back above, and cover what the preemptor needs.
                covered = slots_of(self._state, victim.allocation) if victim.allocation else 0
                relief.slots -= covered

    def _resume(self, victim: JobRecord) -> None:
        assert victim.allocation is not None, victim.stream
        worker = self._state.hosts[victim.allocation.runs[0].first]
        event = JobResumeOrdered(
            attempt=victim.attempt, worker=worker.name, order_number=worker.last_order + 1
        )
        self._decide(victim.stream, event)
