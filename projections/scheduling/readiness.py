"""
Which pending jobs may be tried at all, and why the others may not. Nothing else asks this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from domain.dependency import ParentElement, Verdict, evaluate
from domain.effective import check_ceilings, check_fixed, check_tasks_within
from domain.errors import Refused
from domain.job_states import ENDED, JobState
from domain.reasons import PendReason, ReasonCode
from domain.windows import is_open, next_change_us
from projections.scheduling.budgets import LIMIT_RANK, QUEUE_RANK, USER_RANK, Budget
from projections.scheduling.capacity import Column
from projections.scheduling.own_view import is_spared
from projections.scheduling.records import JobRecord
from projections.scheduling.rights import right_lost
from projections.scheduling.state import State

SIGNALLED: Final = 128
"""What shells add to the number of the signal that ended a program."""

FOREVER: Final = 2**63

READY: Final = PendReason(code=ReasonCode.JOB_NEW)


class Parents:
    """
    Be what a dependency asks of parents: their states as they are.
    """

    def __init__(self, state: State) -> None:
        self._state = state

    def elements(self, number: int) -> Sequence[ParentElement]:
        """
        Return a job, or the elements of an array in order of index.
        """
        jobs = self._state.stored.jobs
        return [
            ParentElement(
                state=job.state,
                index=job.index,
                exit_code=_exit_code(job) if job.state in ENDED else None,
            )
            for job in (jobs[stream] for stream in self._state.streams_of(number))
        ]


def _exit_code(job: JobRecord) -> int | None:
    """
    Return the code that a job ended with, as shells tell it of a signal; None when it never ran.
    """
    return job.exit_code if job.signal is None else SIGNALLED + job.signal


def verdict_of(state: State, job: JobRecord) -> Verdict:
    """
    Return how the job's dependency stands.
    """
    if job.spec.dependency is None:
        return Verdict.TRUE
    rank = 0
    if job.index:
        rank = state.stored.arrays[job.number].elements.index(job.stream)
    return evaluate(job.spec.dependency, Parents(state), own_rank=rank)


def ends_as_orphan(state: State, job: JobRecord, now_us: int) -> bool:
    """
    Say whether a job ends now whose dependency can never become true: at once when it asks for it
    itself, after the grace time by the cluster's rule.
    """
    asked, settings = job.spec.ends_as_orphan, state.settings()
    if asked is not None or not settings.end_orphans:
        return bool(asked)
    since_us = now_us if job.orphan_us is None else job.orphan_us
    return now_us >= since_us + settings.orphan_grace_us


def kept_back(state: State, job: JobRecord, now_us: int) -> PendReason | None:
    """
    Return why a pending job may not be tried, None when it may; the first cause in LSF's order.
    """
    begin_us = job.spec.begin_us
    if begin_us is not None and now_us < begin_us:
        return PendReason(code=ReasonCode.JOB_START_TIME)
    verdict = verdict_of(state, job)
    if verdict is Verdict.NEVER:
        return PendReason(code=ReasonCode.JOB_DEP_INVALID)
    if verdict is not Verdict.TRUE:
        return PendReason(code=ReasonCode.JOB_DEPEND)
    delay_us = state.delaying.get(job.spec.queue, 0)
    if now_us < job.submit_us + delay_us:
        return PendReason(code=ReasonCode.JOB_DELAY_SCHED)
    return None


def kept_from_starting(state: State, job: JobRecord, now_us: int) -> PendReason | None:
    """
    Return why a job that may be tried can't start now whatever the hosts have, None when it can.

    Everything that this looks at is in the job's fingerprint, so it holds for all jobs of it.
    """
    if not job.index and state.bounds_nothing(job.spec):
        return None
    budgets, request = state.limits, state.request_of(job)
    return (
        right_lost(state, job.spec)
        or budgets.short_of(request, range(QUEUE_RANK, QUEUE_RANK + 1))
        or _too_late(state, job, now_us)
        or budgets.short_of(request, range(USER_RANK, LIMIT_RANK))
        or not_allowed(state, job)
        or _array_limit(state, job)
        or budgets.short_of(
            request, range(LIMIT_RANK, LIMIT_RANK + 1), headroom=_left_to(state, job)
        )
    )


def others_may_start(
    state: State, keeping: Iterable[JobRecord], now_us: int, *, are_dispatched: bool
) -> bool:
    """
    Say whether jobs may start now that had their turn before: one behind them gave back what was
    kept for it, or what was started behind the one that is promised hosts used up what bounds both,
    so that these hosts needn't stay free for it.

    Args:
        state: After the jobs were tried.
        keeping: For whom hosts were kept before they were.
        now_us: The session's time.
        are_dispatched: Whether any was started.
    """
    if any(
        job.state is JobState.PEND
        and job.stream not in state.gatherers
        and job.stream not in state.keepers
        for job in keeping
    ):
        return True
    if not are_dispatched or not (state.limits.are_any or state.stored.arrays):
        return False
    # All that decides it is in the fingerprint: of jobs alike, one is asked.
    alike = {state.fingerprint_of(job): job for job in state.promised.values()}
    return any(kept_from_starting(state, job, now_us) for job in alike.values())


def _left_to(state: State, job: JobRecord) -> Callable[[Budget], int | Column] | None:
    """
    Return what limits leave to a job that may preempt some which were stopped, None when they leave
    it what they leave to all.
    """
    preys = state.preys_of(job.spec.queue) if state.victims else ()
    spared = [each for each in state.victims.values() if is_spared(each, job, preys)]
    return state.limits.left_beside(spared) if spared else None


def kept_whoever_stops(state: State, job: JobRecord, now_us: int) -> PendReason | None:
    """
    Return why a job that may be tried can't start now whoever stopped for it, None when it could.
    """
    if not job.index and state.bounds_nothing(job.spec):
        return None
    return (
        right_lost(state, job.spec)
        or _too_late(state, job, now_us)
        or not_allowed(state, job)
        or _array_limit(state, job)
    )


def not_allowed(state: State, job: JobRecord) -> PendReason | None:
    """
    Return what of a job's values its profile or queue no longer allow, None when they allow all.
    """
    spec = job.spec
    queue = state.stored.queues[spec.queue].spec
    profile = state.stored.profiles.get(spec.profile) if spec.profile else None
    if profile is None and not spec.is_exclusive and not queue.has_ceilings:
        return None
    try:
        effective = state.effective(job)
        check_tasks_within(effective, queue)
    except Refused as refused:
        return PendReason(code=ReasonCode.QUE_PROCLIMIT, detail=refused.rule)
    try:
        state.requirement_of(spec)
        # It becomes a reason, whose words in older logs have plain numbers.
        check_ceilings(effective, queue, show=lambda _, value: value)
        if profile is not None:
            check_fixed(spec, profile)
    except Refused as refused:
        return PendReason(code=ReasonCode.JOB_NOT_ALLOWED, detail=refused.text()[:200])
    return None


def can_never_start(state: State, job: JobRecord) -> bool:
    """
    Say whether what bounds the job could never hold it, however empty the cluster.
    """
    request, ranks = state.request_of(job), range(QUEUE_RANK, LIMIT_RANK + 1)
    is_over = state.limits.short_of(request, ranks, is_empty=True) is not None
    return is_over or not_allowed(state, job) is not None


def _too_late(state: State, job: JobRecord, now_us: int) -> PendReason | None:
    """
    Return why a job couldn't finish in time if it started now, None when it could.
    """
    closes = closes_too_soon(state, job, now_us)
    if closes is not None:
        return closes
    limit, deadline = state.longest_run_us(job), job.spec.deadline_us
    if deadline is not None and limit is not None and now_us + limit > deadline:
        return PendReason(code=ReasonCode.JOB_MISS_DEADLINE)
    return None


def closes_too_soon(state: State, job: JobRecord, now_us: int) -> PendReason | None:
    """
    Return that the window of the job's queue closes before it would end, None when it doesn't.
    """
    limit = state.longest_run_us(job)
    queue = state.queue_of(job).spec
    if queue.run_windows is not None and not queue.ignore_deadline and limit is not None:
        closes = next_change_us(queue.run_windows, now_us)
        if closes is not None and now_us + limit > closes:
            return PendReason(code=ReasonCode.QUE_WINDOW_WILL_CLOSE, detail=job.spec.queue)
    return None


def _array_limit(state: State, job: JobRecord) -> PendReason | None:
    """
    Return that as many elements of the job's array are started as may be, None when more may.
    """
    array = state.stored.arrays.get(job.number) if job.index else None
    if array is None or array.started_max is None:
        return None
    if state.started_elements(job.number) < array.started_max:
        return None
    return PendReason(code=ReasonCode.JOB_ARRAY_JLIMIT, detail=f"{array.started_max} at a time")


def note_windows(state: State, now_us: int) -> bool:
    """
    Note which queues are inside their windows now.

    Returns:
        Whether that differs from the last session, so that jobs may start that couldn't before; or
        whether one closes too soon for some of them from now on.
    """
    if not (state.has_windows or state.windows_open):
        return False
    queues = state.stored.queues
    run = {
        name: is_open(queue.spec.run_windows, now_us)
        for name, queue in queues.items()
        if queue.spec.run_windows is not None
    }
    both = {
        name: run.get(name, True) and is_open(queue.spec.dispatch_windows, now_us)
        for name, queue in queues.items()
        if queue.spec.dispatch_windows is not None
    }
    now_open = {**run, **both}
    changed = now_open != state.windows_open or now_us >= state.windows_until_us
    state.windows_open, state.run_windows_open = now_open, run
    if changed:
        state.windows_until_us = _first_change_us(state, now_us)
        state.closings.note_all(state)
    return state.closings.are_due(state, now_us) or changed


def _first_change_us(state: State, now_us: int) -> int:
    """
    Return until when all windows of queues are as they are. They may have closed and opened again
    between two sessions, and how long a job may run depends on when they close.
    """
    moments = (
        next_change_us(windows, now_us)
        for queue in state.stored.queues.values()
        for windows in (queue.spec.run_windows, queue.spec.dispatch_windows)
        if windows is not None
    )
    return min((moment for moment in moments if moment is not None), default=FOREVER)
