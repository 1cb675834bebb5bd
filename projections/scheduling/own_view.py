"""
The hosts as one pending job sees them: with what stopped for it, without what is held for others.
"""

from __future__ import annotations

from collections.abc import Collection

from domain.reservations import KeptRun
from projections.scheduling.holds import hold, holders_of
from projections.scheduling.placement.ground import Ground
from projections.scheduling.placement.relief import Relief
from projections.scheduling.promises import add_kept, keep_from_others
from projections.scheduling.records import JobRecord
from projections.scheduling.state import State


def is_as_all_see_it(state: State, job: JobRecord) -> bool:
    """
    Say whether the hosts are for a job as they are for everybody.
    """
    if state.keepers or state.gatherers or state.barring(job.spec.queue):
        return False
    return not (state.victims and state.preys_of(job.spec.queue))


def relief_for(
    state: State,
    job: JobRecord,
    *,
    lenders: Collection[str] = (),
    kept: tuple[KeptRun, ...] = (),
) -> Relief:
    """
    Return how hosts differ for a pending job from what they are.

    Args:
        state: The core's state.
        job: Whose view it is.
        lenders: Streams of the jobs whose gathered hosts it may use.
        kept: What must stay free besides, by the word of its picker.
    """
    relief = Relief(state.capacity)
    relief.barring = state.barring(job.spec.queue)
    preys = state.preys_of(job.spec.queue)
    holders = holders_of(state)
    for victim in state.victims.values():
        if not victim.is_aside:
            continue
        holder = holders.get(victim.preemptor)
        is_open = holder is None and victim.spec.queue in preys
        if holder is job or is_open:
            relief.give_slots(victim)
        if is_spared(victim, job, preys):
            relief.spare(victim)
    for holder in state.keepers.values():
        if holder is not job:
            hold(state, relief, holder)
    for lender in state.gatherers.values():
        if lender is not job and lender.stream not in lenders:
            keep_from_others(state, relief, lender)
    add_kept(relief, kept, -1)
    return relief


def is_spared(victim: JobRecord, job: JobRecord, preys: Collection[str]) -> bool:
    """
    Say whether a victim of preemption doesn't keep a job from starting by bounds that spare whoever
    may preempt it.

    Args:
        victim: The job that was stopped.
        job: The other one.
        preys: The queues whose jobs this one may preempt.
    """
    return victim.is_aside and (victim.spec.queue in preys or victim.preemptor == job.job_id)


def ground_of(state: State, relief: Relief, host: int | None = None) -> Ground:
    """
    Return the hosts as a relief has them, or one of them alone.
    """
    ground = Ground(state.capacity)
    ground.differ(relief)
    if host is not None:
        ground.only(host)
    return ground
