"""
The moments that the core waits for: at each, a session may decide something without a new event.
"""

from __future__ import annotations

from collections.abc import Iterator

from domain.job_states import JobState
from domain.windows import next_change_us
from projections.scheduling.orders import lost_since_us
from projections.scheduling.state import State


def next_wakeup_us(state: State, now_us: int) -> int | None:
    """
    Return the next moment after ``now_us`` at which a session is due, None when none is known.
    """
    moments = []
    if state.timers:
        # Sessions take out what is due, so the first one is later, but for commands still to come.
        moments.append(max(state.timers[0][0], now_us + 1))
    for queue in state.stored.queues.values():
        for windows in (queue.spec.run_windows, queue.spec.dispatch_windows):
            change = None if windows is None else next_change_us(windows, now_us)
            if change is not None:
                moments.append(change)
    moments += state.limits.changes_us(now_us)
    moments += _preemptions_us(state)
    moments += state.host_moments_us(now_us)
    if state.stored.cluster is not None:
        grace_us = state.stored.cluster.lost_grace_us
        moments += [
            lost_since_us(state, worker) + grace_us for worker in state.lost_hosts.values()
        ]
    return min((moment for moment in moments if moment > now_us), default=None)


def _preemptions_us(state: State) -> Iterator[int]:
    """
    Yield the moments at which waiting jobs may begin to preempt, or running ones to be victims.
    """
    if state.stored.cluster is None:
        return
    settings = state.stored.cluster.preemption
    if not settings.opens_with_time or not any(map(state.preys_of, state.stored.queues)):
        return
    for job in state.stored.jobs.values():
        if job.state is JobState.PEND and settings.delay_us:
            yield job.queue_us + settings.delay_us
        elif job.state is JobState.RUN and settings.no_interval_us:
            yield job.since_us + settings.no_interval_us
