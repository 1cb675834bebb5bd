"""
The moments that the core waits for: at each, a session may decide something without a new event.
"""

from __future__ import annotations

from collections.abc import Iterator

from domain.job_states import JobState
from domain.preemption import Preemption
from domain.windows import next_change_us
from projections.scheduling.orders import lost_since_us
from projections.scheduling.state import State


def next_wakeup_us(state: State, now_us: int) -> int | None:
    """
    Return the next moment after ``now_us`` at which a session is due, None when none is known.
    """
    # hot: the simulator asks at every moment, and mostly nothing is waited for.
    moments: list[int] = []
    first_us = state.first_timer_us() if state.timers else None
    if first_us is not None:
        # Sessions take out what is due, so the first one is later, but for commands still to come.
        moments.append(max(first_us, now_us + 1))
    if state.has_windows:
        moments += _windows_us(state, now_us)
        closing_us = state.closings.first_us(state, now_us)
        moments += [] if closing_us is None else [max(closing_us, now_us + 1)]
    if state.limits.are_any:
        moments += state.limits.changes_us(now_us)
    if state.timed_hosts:
        moments += state.host_moments_us(now_us)
    if state.gatherers or state.gave_up:
        moments += _gathering_us(state, now_us)
    cluster = state.stored.cluster
    if state.opens_with_time and cluster is not None:
        moments += _preemptions_us(state, cluster.preemption)
    if state.lost_hosts and cluster is not None:
        for worker in state.lost_hosts.values():
            moments.append(lost_since_us(state, worker) + cluster.lost_grace_us)
            if cluster.hung_after_us is not None:
                moments.append(lost_since_us(state, worker) + cluster.hung_after_us)
    if not moments:
        return None
    return min((moment for moment in moments if moment > now_us), default=None)


def _windows_us(state: State, now_us: int) -> Iterator[int]:
    """
    Yield the moments at which windows of queues open or close next.
    """
    for queue in state.stored.queues.values():
        for windows in (queue.spec.run_windows, queue.spec.dispatch_windows):
            change = None if windows is None else next_change_us(windows, now_us)
            if change is not None:
                yield change


def _gathering_us(state: State, now_us: int) -> Iterator[int]:
    """
    Yield the moments until which hosts are kept, and from which jobs may gather again.
    """
    for job in state.gatherers.values():
        if job.promise is not None and job.promise.until_us is not None:
            yield max(job.promise.until_us, now_us + 1)
    for job in state.gave_up.values():
        if job.gave_up_us is not None:
            yield job.gave_up_us + 1


def _preemptions_us(state: State, settings: Preemption) -> Iterator[int]:
    """
    Yield the moments at which waiting jobs may begin to preempt, or running ones to be victims.
    """
    if not any(map(state.preys_of, state.stored.queues)):
        return
    for job in state.stored.jobs.values():
        if job.state is JobState.PEND and settings.delay_us:
            yield job.queue_us + settings.delay_us
        elif job.state is JobState.RUN and settings.no_interval_us:
            yield job.since_us + settings.no_interval_us
