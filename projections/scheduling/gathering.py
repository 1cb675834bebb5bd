"""
Gather slots and amounts for jobs that can't start yet (LSF's slot and resource reservation).

A parallel job of a queue that lets its jobs gather keeps the slots that are free, until it can
start or its time is over; then it gives everything back, and is passed over in that session. Serial
jobs never gather slots. What is gathered counts as used for all others, but for backfill jobs that
end before it is needed. When that is, is told by the run limits of the jobs on the gathered hosts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from domain.allocations import HostRun, SharedAmount
from domain.errors import InvariantBroken
from domain.event import Event
from domain.events.jobs import JobStartPromised
from domain.reservations import BackfillReservation, KeptRun
from projections.scheduling.forecast import Forecasts, needs_of
from projections.scheduling.foreseen import kept_of
from projections.scheduling.holds import asks_anew, waits_to_be_ready
from projections.scheduling.own_view import ground_of, relief_for
from projections.scheduling.placement.failures import failed_outcome
from projections.scheduling.placement.ground import Ground
from projections.scheduling.placement.runner import Pending, PlacementRunner
from projections.scheduling.promises import add_kept, lent_by
from projections.scheduling.readiness import kept_from_starting
from projections.scheduling.records import JobRecord
from projections.scheduling.request import Request
from projections.scheduling.state import State
from projections.scheduling.watches import order_of

if TYPE_CHECKING:
    from projections.scheduling.trace_writing import Tracer

SLOT_RESERVE: Final = "slot_reserve"
Room = tuple[tuple[KeptRun, ...], tuple[SharedAmount, ...]]


class Gathering:
    """
    Let jobs gather in one session. Made afresh for each.

    Args:
        state: The core's state.
        runner: Places requests on trial.
        decide: Takes a decision and applies it at once.
        now_us: The session's time.

    ``tracer`` writes down what is gathered, None for nothing.
    """

    def __init__(
        self,
        state: State,
        runner: PlacementRunner,
        decide: Callable[[str, Event], None],
        now_us: int,
    ) -> None:
        self._state = state
        self._runner = runner
        self._decide = decide
        self._now_us = now_us
        self._forecasts = Forecasts(state, runner)
        self.tracer: Tracer | None = None

    def give_up(self) -> None:
        """
        Have those give everything back whose time is over, or who can't be tried now.
        """
        state = self._state
        passed = [job for job in state.gave_up.values() if job.gave_up_us != self._now_us]
        for job in sorted(passed, key=order_of):
            # Its turn has passed: it may gather again, and asks as others do.
            del state.gave_up[job.stream]
            state.capacity.freed += 1
            if job.stream not in state.gatherers:
                asks_anew(state, job)
        for job in sorted(state.gatherers.values(), key=order_of):
            assert job.promise is not None, job.stream
            until_us = job.promise.until_us
            is_over = until_us is not None and until_us <= self._now_us
            if is_over or not state.is_ready(job) or waits_to_be_ready(state, job):
                self._decide(job.stream, JobStartPromised(reservation=None))

    def attempt(self, job: JobRecord, outcome: Pending) -> Pending:
        """
        Let a job whose placement has just failed keep what it can use until it can start.

        Returns:
            Why it waits: as before, or what was raised on the way.
        """
        before = job.promise if job.stream in self._state.gatherers else None
        try:
            found = self._find(job)
            if found != before:
                # What it keeps from now on counts for its limits, and is no reason why it waits.
                reasons = outcome.reasons()
                outcome = outcome._replace(reasons=lambda: reasons)
        except InvariantBroken:
            raise
        except Exception as failure:  # noqa: BLE001 - it is told to the job, and the others go on
            return failed_outcome(failure)
        if found != before:
            self._decide(job.stream, JobStartPromised(reservation=found))
        if self.tracer is not None:
            self.tracer.gathered(job)
        return outcome

    def _find(self, job: JobRecord) -> BackfillReservation | None:
        """
        Return what a job can use and may keep, None when its queue doesn't say so, or there is
        nothing. Nothing is changed by it, whatever is raised.
        """
        state, queue = self._state, self._state.queue_of(job).spec
        if queue.slot_reserve_us is None and queue.resource_reserve_us is None:
            return None
        if job.gave_up_us == self._now_us:
            return None
        if kept_from_starting(state, job, self._now_us) is not None:
            return None
        with_amounts = queue.resource_reserve_us is not None
        runs, shared = self._gathered(job, with_amounts=with_amounts)
        if not runs and not shared:
            return None
        lasts_us = queue.resource_reserve_us if with_amounts else queue.slot_reserve_us
        before = job.promise
        is_going_on = before is not None and before.is_held
        return BackfillReservation(
            policy=SLOT_RESERVE,
            start_us=self._start_us(job, runs),
            runs=runs,
            shared=shared,
            is_held=True,
            until_us=before.until_us if before and is_going_on else self._now_us + (lasts_us or 0),
        )

    # -- what it gets

    def _gathered(self, job: JobRecord, *, with_amounts: bool) -> Room:
        """
        Return what a job can keep: the hosts of as many of its tasks as fit now, or what it will
        need of where it fits first.
        """
        request = self._state.request_of(job)
        ground = self._own_ground(job)
        is_parallel = self._state.least_slots(job) > 1
        room = self._most(request, ground) if is_parallel else None
        if room is not None:
            runs = room[0]
            slots, amounts = needs_of(self._state.capacity.hosts, runs)
            return kept_of(slots, amounts if with_amounts else {}), ()
        return self._amounts_ahead(job, ground) if with_amounts else ((), ())

    def _own_ground(self, job: JobRecord) -> Ground:
        """
        Return the hosts as the job sees them, with what it has lent.
        """
        relief = relief_for(self._state, job)
        for lent in lent_by(self._state, job):
            add_kept(relief, lent, 1)
        return ground_of(self._state, relief)

    def _most(
        self, request: Request, ground: Ground
    ) -> tuple[tuple[HostRun, ...], tuple[SharedAmount, ...]] | None:
        """
        Return room for as many tasks of a simple request as fit now, up to the fewest with which it
        starts.
        """
        if any(len(branch.parts) > 1 for branch in request.branches):
            return None
        branches = []
        for branch in request.branches[: request.open_branches]:
            part = branch.parts[0]
            fewer = replace(part, tasks_min=1, tasks_max=part.tasks_min)
            branches.append(replace(branch, parts=(fewer,)))
        some = replace(request, branches=tuple(branches), open_branches=len(branches))
        return self._runner.room_for(ground, some, self._state.settings().allocators)

    def _amounts_ahead(self, job: JobRecord, ground: Ground) -> Room:
        """
        Return what is there of the amounts that the job needs where it fits first.
        """
        forecast = self._forecasts.of(job)
        if forecast is None:
            return (), ()
        hosts = self._state.capacity.hosts
        slots, amounts = needs_of(hosts, forecast.runs)
        for name, column in amounts.items():
            np.minimum(column, ground.available(name), out=column)
        shared = []
        for each in forecast.shared:
            milli = min(each.milli, ground.left(each.resource)[each.pool])
            if milli:
                shared.append(each.model_copy(update={"milli": milli}))
        return kept_of(np.zeros_like(slots), amounts), tuple(shared)

    # -- when it starts

    def _start_us(self, job: JobRecord, runs: tuple[KeptRun, ...]) -> int | None:
        """
        Return when the job starts: when enough jobs on its gathered hosts have ended, else when
        enough have ended anywhere.
        """
        hosts = np.zeros(self._state.capacity.hosts, np.bool_)
        for run in runs:
            hosts[run.first : run.first + run.hosts] = True
        forecast = self._forecasts.of(job, hosts=hosts) if runs else None
        if forecast is None:
            forecast = self._forecasts.of(job)
        return None if forecast is None else forecast.start_us
