"""
What is held for jobs that preempt others, and what they may no longer ask for.
"""

from __future__ import annotations

import numpy as np

from domain.allocations import Allocation
from domain.ids import job_stream
from domain.job_states import JobState
from projections.scheduling.capacity import Column
from projections.scheduling.placement.relief import Relief, shared_of
from projections.scheduling.records import JobRecord, WorkerRecord
from projections.scheduling.state import State


def keep(state: State, job: JobRecord, allocation: Allocation | None) -> None:
    """
    Hold hosts for a pending job that preempts others, or nothing any more; it asks as one of its
    own meanwhile.
    """
    if job.keeps == allocation:
        return
    job.keeps = allocation
    if allocation is None:
        _let_go(state, job)
    else:
        state.keepers[job.stream] = job
    state.capacity.changed += 1
    asks_anew(state, job)


def drop_kept(state: State, job: JobRecord) -> None:
    """
    Hold nothing any more for a job that stops to wait.
    """
    job.keeps = None
    _let_go(state, job)


def _let_go(state: State, job: JobRecord) -> None:
    state.keepers.pop(job.stream, None)
    state.capacity.freed += 1
    state.capacity.let_go += 1


def lose_kept(state: State, worker: WorkerRecord) -> None:
    """
    Hold nothing any more for jobs one of whose hosts is lost.
    """
    for job in list(state.keepers.values()):
        shares = job.keeps.shares() if job.keeps is not None else ()
        if any(number == worker.number for number, _, _ in shares):
            keep(state, job, None)


def forget_failures(state: State) -> None:
    """
    Let jobs be tried again on hosts where they failed.
    """
    for job in state.stored.jobs.values():
        if job.excluded_hosts:
            job.excluded_hosts = ()
            asks_anew(state, job)


def note_spared(state: State, job_id: str) -> None:
    """
    Note that a job was stopped for this one and has gone on: it isn't stopped for it again, so this
    one no longer asks as others do.
    """
    job = state.stored.jobs.get(job_stream(job_id))
    if job is not None and not job.has_spared:
        job.has_spared = True
        asks_anew(state, job)


def note_left(state: State, job_id: str) -> None:
    """
    Note that a job's victim has ended or is told to go on, so that it may ask as others do again.
    """
    job = state.stored.jobs.get(job_stream(job_id)) if job_id else None
    if job is not None and job.state is JobState.PEND:
        asks_anew(state, job)


def waits_to_be_ready(state: State, job: JobRecord) -> bool:
    """
    Say whether the picker doesn't know a job, because it isn't ready, nobody has looked yet, or an
    operator wants it on certain hosts.
    """
    stream = job.stream
    if stream in state.unready or stream in state.unchecked or stream in state.put_back:
        return True
    return bool(job.forced_on)


def asks_anew(state: State, job: JobRecord) -> None:
    """
    Have a job's request worked out anew, and its picker learn of it.
    """
    state.wanted.pop(job.stream, None)
    if job.state is JobState.PEND and not waits_to_be_ready(state, job):
        state.picker.on_job_push(job)


# -- what of it others see


def holders_of(state: State) -> dict[str, JobRecord]:
    """
    Return the jobs for which hosts are held, by their ids.
    """
    return {job.job_id: job for job in state.keepers.values()}


def victims_of(state: State, job: JobRecord) -> list[JobRecord]:
    """
    Return the jobs that have stopped for a job, or are about to.
    """
    return [
        victim
        for victim in state.victims.values()
        if victim.preemptor == job.job_id and not victim.resume_order
    ]


def slots_of(state: State, allocation: Allocation) -> Column:
    """
    Return the slots that an allocation has, by host.
    """
    slots = np.zeros(state.capacity.hosts, np.int64)
    for run in allocation.runs:
        slots[run.first : run.first + run.hosts] += run.tasks
    return slots


def hold(state: State, relief: Relief, holder: JobRecord) -> None:
    """
    Take for a preemptor what it needs beyond what its victims still seem to have.
    """
    assert holder.keeps is not None, holder.stream
    covered = Relief(state.capacity)
    for victim in victims_of(state, holder):
        if victim.is_aside:
            covered.give_slots(victim)
        else:
            covered.give_all(victim, is_ended=bool(victim.kill_order))
    relief.take_slots(np.maximum(slots_of(state, holder.keeps) - covered.slots, 0))
    for number, _, amounts in holder.keeps.shares():
        for amount in amounts:
            known = covered.charged.get(amount.resource)
            less = 0 if known is None else int(known[number])
            relief.take_amount(amount.resource, number, max(0, amount.milli - less))
    for (name, place), milli in shared_of(holder.keeps.shared).items():
        less = covered.shared.get((name, place), 0)
        relief.take_shared(name, place, max(0, milli - less))
    _hold_budgets(state, relief, holder, covered)


def _hold_budgets(state: State, relief: Relief, holder: JobRecord, covered: Relief) -> None:
    """
    Take of each budget what a preemptor will be charged, beyond what its victims still are.
    """
    assert holder.keeps is not None, holder.stream
    limits, keeps = state.limits, holder.keeps
    for budget in limits.budgets_of(holder.spec):
        need = limits.taken_of(budget.rule, keeps.runs, keeps.shared)
        for given, milli in covered.headroom:
            if given.key == budget.key:
                need = need - milli
        relief.headroom.append((budget, -np.maximum(need, 0)))
