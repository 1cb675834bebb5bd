"""
Why hosts take no jobs, whatever the job; and why a job waits by its own state alone.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from domain.ids import job_stream, queue_stream
from domain.job_states import JobState
from domain.reasons import PendReason, ReasonCode
from projections.scheduling.budgets import QUEUE_RANK
from projections.scheduling.capacity import Column, Mask
from projections.scheduling.holds import slots_of
from projections.scheduling.loads import Loads
from projections.scheduling.placement.shortages import spans_of, status_reasons
from projections.scheduling.queue_windows import is_inside, is_inside_run_windows
from projections.scheduling.readiness import can_never_start, closes_too_soon
from projections.scheduling.records import JobRecord, WorkerRecord
from projections.scheduling.state import State

SUSP_RES_RESERVE: Final = "SUSP_RES_RESERVE"
STATUS_CODES: Final = (
    ReasonCode.LOAD_UNAVAIL,
    ReasonCode.SBD_UNREACH,
    ReasonCode.HOST_WINDOW,
    ReasonCode.HOST_DISABLED,
    ReasonCode.HOST_EXCLUSIVE,
    ReasonCode.HOST_NO_LIM,
    ReasonCode.HOST_LOCKED,
    ReasonCode.HOST_ACCPT_ONE,
)
"""Why hosts take no jobs, in the order in which causes are tested."""


def with_status(reasons: tuple[PendReason, ...], state: State) -> tuple[PendReason, ...]:
    """
    Return a placement's reasons after those of hosts that take no jobs; never empty.
    """
    status = state.capacity.status
    if state.told_status is None or state.told_status[0] != status:
        state.told_status = (status, tuple(status_of_hosts(state)))
    return (*state.told_status[1], *reasons)


def status_of_hosts(state: State) -> list[PendReason]:
    """
    Return the reasons of hosts that take no jobs; the first cause that holds counts, in LSF's
    order: left, unreachable, outside its windows, closed, exclusive, blind, locked, just used.
    """
    capacity = state.capacity
    shut = np.flatnonzero(~capacity.takes_jobs).tolist()
    if capacity.hosts and not shut:
        return []
    masks = {code: np.zeros(capacity.hosts, np.bool_) for code in STATUS_CODES}
    for number in shut:
        code = _status_code(state, state.hosts[number])
        if code is not None:
            masks[code][number] = True
    return status_reasons(capacity, list(masks.items()))


def _status_code(state: State, worker: WorkerRecord) -> ReasonCode | None:
    if worker.left:
        return ReasonCode.LOAD_UNAVAIL
    if worker.is_silent:
        return ReasonCode.SBD_UNREACH
    shut = state.capacity.shut.get(worker.number)
    if shut is ReasonCode.HOST_WINDOW:
        return shut
    if worker.closed:
        return ReasonCode.HOST_DISABLED
    if state.capacity.exclusive[worker.number]:
        return ReasonCode.HOST_EXCLUSIVE
    if worker.is_blind:
        return ReasonCode.HOST_NO_LIM
    return ReasonCode.HOST_LOCKED if worker.settings.is_locked else shut


def status_by_use(state: State, worker: WorkerRecord) -> str:
    """
    Return why a host that is open takes no jobs now, "ok" when it does, also when its slots are
    taken.
    """
    if state.capacity.shut.get(worker.number) is ReasonCode.HOST_WINDOW:
        return "window"
    if state.capacity.exclusive[worker.number]:
        return "exclusive"
    if worker.is_blind:
        return "blind"
    if worker.settings.is_locked:
        return "locked"
    is_light = all(state.is_light(worker, each) for each in worker.settings.thresholds)
    return "ok" if is_light else "busy"


def why_suspended(state: State, job: JobRecord) -> str:
    """
    Return why a stopped job doesn't run: what stopped it, or that what it gave back isn't free
    again; "" for a job that isn't stopped.
    """
    if job.state is not JobState.SSUSP or job.stop_actor is not None:
        return job.suspend_why
    window_open = is_inside_run_windows(state, state.queue_of(job))
    preemptor = job_stream(job.preemptor) if job.preemptor else ""
    is_held = preemptor in state.keepers or preemptor in state.live
    if is_held or not window_open or not Loads(state).may_go_on(job):
        return job.suspend_why
    return job.suspend_why if state.capacity.can_come_back(job) else SUSP_RES_RESERVE


def blocker_of(state: State, job: JobRecord) -> JobRecord | None:
    """
    Return the job that holds back the list of a job, None when none does.
    """
    stored, queue = state.stored, state.queue_of(job)
    stream = stored.blockers.get(queue_stream(queue.name), "")
    if not stream and queue.spec.picker in ("", state.settings().picker):
        stream = stored.blocker
    return stored.jobs.get(stream)


def code_of_hold(job: JobRecord) -> ReasonCode:
    """
    Return the reason of a held job: who stopped it, itself where nobody did after its submission.
    """
    by_other = job.stop_actor not in (None, job.spec.user)
    return ReasonCode.ADMIN_STOP if by_other else ReasonCode.USER_STOP


def why_waiting(state: State, job: JobRecord) -> tuple[bool, tuple[PendReason, ...]]:
    """
    Return whether a waiting job can never start as things are, and why it waits now: what is
    recorded, or a cause that comes before it in LSF's order and holds too.
    """
    is_open = is_inside(state, state.queue_of(job))
    if job.stream in state.unready and state.is_ready(job) and is_open:
        sooner = _told_before_readiness(state, job)
        if sooner is not None:
            return can_never_start(state, job), (sooner,)
    never, reasons = recorded_reasons(state, job)
    return never, _with_suspended(state, job, reasons)


def _told_before_readiness(state: State, job: JobRecord) -> PendReason | None:
    """
    Return the cause that LSF tells before a begin time or a dependency: that the queue has no slot
    left, or that its window closes too soon; None when neither holds.
    """
    if state.bounds_nothing(job.spec):
        return None
    short = state.limits.short_of(state.request_of(job), range(QUEUE_RANK, QUEUE_RANK + 1))
    # A state that was folded from events had no session since it was made.
    return short or closes_too_soon(state, job, max(state.session_us, state.stored.time_us))


def recorded_reasons(state: State, job: JobRecord) -> tuple[bool, tuple[PendReason, ...]]:
    """
    Return whether a waiting job can never start as things are, and every recorded reason why it
    waits now.

    A job that is in no reason set waits for the list that holds it back, or hasn't been considered
    yet.
    """
    if job.state is JobState.PSUSP:
        return False, (PendReason(code=code_of_hold(job)),)
    if job.forced_on and job.reason_set:
        kept = state.stored.reason_sets[job.reason_set]
        return kept.never, kept.reasons
    if not state.queue_of(job).spec.is_active:
        return False, (PendReason(code=ReasonCode.QUE_INACT, detail=job.spec.queue),)
    if not is_inside(state, state.queue_of(job)):
        return False, (PendReason(code=ReasonCode.QUE_WINDOW, detail=job.spec.queue),)
    blocker = blocker_of(state, job)
    if job.reason_set:
        kept = state.stored.reason_sets[job.reason_set]
        return kept.never, kept.reasons
    if blocker is not None and blocker is not job:
        return False, (PendReason(code=ReasonCode.JOB_BEHIND, detail=f"job {blocker.job_id}"),)
    return False, (PendReason(code=ReasonCode(job.fresh)),)


def _with_suspended(
    state: State, job: JobRecord, reasons: tuple[PendReason, ...]
) -> tuple[PendReason, ...]:
    """
    Return reasons in which hosts that are short of slots only because of what suspended jobs keep
    say so.
    """
    if not state.barring(job.spec.queue):
        return reasons
    keeping = _kept_for_suspended(state, job)
    found = []
    for reason in reasons:
        hosts = [
            number
            for span in reason.hosts
            for number in range(span.first, span.first + span.hosts)
            if keeping[number]
        ]
        if reason.code is not ReasonCode.HOST_SLOTS or not hosts:
            found.append(reason)
            continue
        numbers = np.array(hosts, np.int64)
        nothing = np.zeros(state.capacity.hosts, np.int64)
        code = ReasonCode.HOST_JOB_SSUSP
        found.append(PendReason(code=code, hosts=spans_of(numbers, nothing)))
        rest = tuple(
            each.model_copy(update={"first": number, "hosts": 1})
            for each in reason.hosts
            for number in range(each.first, each.first + each.hosts)
            if not keeping[number]
        )
        if rest:
            found.append(reason.model_copy(update={"hosts": rest}))
    return tuple(found)


def _kept_for_suspended(state: State, job: JobRecord) -> Mask:
    """
    Return the hosts that have free slots, which suspended jobs of as high a queue keep.
    """
    capacity = state.capacity
    kept = np.zeros(capacity.hosts, np.int64)
    for each in state.barring(job.spec.queue):
        if each.allocation is not None:
            kept += slots_of(state, each.allocation)
    running = capacity.used - _slots_aside(state)
    is_kept: Mask = (kept > 0) & (running < capacity.slots)
    return is_kept


def _slots_aside(state: State) -> Column:
    total = np.zeros(state.capacity.hosts, np.int64)
    for victim in state.victims.values():
        if victim.is_aside and victim.allocation is not None:
            total += slots_of(state, victim.allocation)
    return total
