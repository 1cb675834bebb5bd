"""
What is promised to pending jobs, and what of it others see.

A picker's promise binds the picker alone. What a queue lets its jobs gather (``is_held``) is kept
from everybody else, but for jobs that may borrow it: they end before it is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from domain.amounts import Amount
from domain.reservations import BackfillReservation, KeptRun
from projections.scheduling.holds import asks_anew
from projections.scheduling.placement.relief import Relief
from projections.scheduling.records import JobRecord
from projections.scheduling.state import State
from projections.scheduling.watches import order_of


def promise(
    state: State, job: JobRecord, reservation: BackfillReservation | None, now_us: int
) -> None:
    """
    Promise a pending job its start, or nothing any more; one that gathers asks as one of its own.
    """
    before, job.promise = job.promise, reservation
    if reservation is None:
        state.promised.pop(job.stream, None)
    else:
        state.promised[job.stream] = job
    was_held = before is not None and before.is_held
    is_held = reservation is not None and reservation.is_held
    if not (was_held or is_held):
        return
    job.gave_up_us = None if is_held else now_us
    if not is_held:
        state.gave_up[job.stream] = job
    _hold(state, job, is_held=is_held)
    if was_held != is_held:
        asks_anew(state, job)


def drop_promise(state: State, job: JobRecord) -> None:
    """
    Promise nothing any more to a job that stops to wait.
    """
    was_held = job.promise is not None and job.promise.is_held
    job.promise = None
    state.promised.pop(job.stream, None)
    if was_held:
        _hold(state, job, is_held=False)


def _hold(state: State, job: JobRecord, *, is_held: bool) -> None:
    if is_held:
        state.gatherers[job.stream] = job
    else:
        state.gatherers.pop(job.stream, None)
    state.limits.reserve(job)
    state.capacity.freed += 1
    state.capacity.changed += 1


def promised_anew(
    state: State, found: Mapping[str, BackfillReservation]
) -> list[tuple[str, BackfillReservation | None]]:
    """
    Return what pickers promise otherwise than is recorded, by stream; None to those who are
    promised nothing any more. Who gathers has a promise of its own.
    """
    if _are_recorded(state, found):
        return []
    over = [
        job
        for stream, job in state.promised.items()
        if stream not in found and stream not in state.gatherers
    ]
    changed: list[tuple[str, BackfillReservation | None]] = []
    changed += [(job.stream, None) for job in sorted(over, key=order_of)]
    for stream, reservation in found.items():
        before = state.stored.jobs[stream].promise
        is_same = before is reservation or stream in state.gatherers
        if not is_same and before != reservation:
            changed.append((stream, reservation))
    return changed


# hot: mostly a picker promises what it has promised before, or nothing as before.
def _are_recorded(state: State, found: Mapping[str, BackfillReservation]) -> bool:
    """
    Say whether these very promises are recorded and no others.
    """
    promised = state.promised
    if len(found) != len(promised):
        return False
    for stream, reservation in found.items():
        job = promised.get(stream)
        if job is None or job.promise is not reservation:
            return False
    return True


# -- lending


def may_borrow(state: State, job: JobRecord, lender: JobRecord, now_us: int) -> bool:
    """
    Say whether a job may use what another one has gathered: its queue backfills, and its run limit
    ends it before the other can start.
    """
    if not state.queue_of(job).spec.is_backfill or lender.promise is None:
        return False
    limit_us, start_us = state.run_limit_us(job), lender.promise.start_us
    return limit_us is not None and start_us is not None and now_us + limit_us <= start_us


def borrowed(state: State, job: JobRecord) -> tuple[KeptRun, ...]:
    """
    Return what a job that is about to start has of the hosts that another one has gathered: what it
    takes beyond what nobody keeps.
    """
    assert job.allocation is not None, job.stream
    kept = Relief(state.capacity)
    for lender in state.gatherers.values():
        keep_from_others(state, kept, lender)
    found = []
    for number, tasks, amounts in job.allocation.shares():
        free = int(state.capacity.usable[number]) + int(kept.slots[number])
        slots = min(max(0, tasks - max(0, free)), -int(kept.slots[number]))
        taken = []
        for amount in amounts:
            column = kept.charged.get(amount.resource)
            held = 0 if column is None else -int(column[number])
            available = state.capacity.resources[amount.resource].available
            free = int(available[number]) - held
            milli = min(max(0, amount.milli - max(0, free)), held)
            if milli:
                taken.append(Amount(resource=amount.resource, milli=milli))
        if slots or taken:
            found.append(KeptRun(first=number, slots=slots, amounts=tuple(taken)))
    return tuple(found)


def lent_by(state: State, lender: JobRecord) -> list[tuple[KeptRun, ...]]:
    """
    Return what running jobs have borrowed of a job.
    """
    return [
        job.borrows
        for job in state.live.values()
        if job.borrows and job.ahead_of == lender.job_id
    ]


def keep_from_others(state: State, relief: Relief, lender: JobRecord) -> None:
    """
    Take what a job has gathered and not lent.
    """
    assert lender.promise is not None, lender.stream
    own = Relief(state.capacity)
    add_kept(own, lender.promise.runs, -1)
    for each in lender.promise.shared:
        relief.take_shared(each.resource, each.pool, each.milli)
    for lent in lent_by(state, lender):
        add_kept(own, lent, 1)
    relief.slots += np.minimum(own.slots, 0)
    for name, column in own.charged.items():
        for number in np.flatnonzero(column < 0).tolist():
            relief.take_amount(name, number, -int(column[number]))


def add_kept(relief: Relief, runs: Iterable[KeptRun], sign: int) -> None:
    """
    Give back what runs name, or take it where the sign is -1.
    """
    for run in runs:
        relief.slots[run.first : run.first + run.hosts] += sign * run.slots
        for amount in run.amounts:
            for number in range(run.first, run.first + run.hosts):
                relief.take_amount(amount.resource, number, -sign * amount.milli)
