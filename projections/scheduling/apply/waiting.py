"""
Put pending jobs into what waits, and take them out.
"""

from __future__ import annotations

from domain.job_states import JobState
from domain.jobs import HostTasks
from projections.scheduling.holds import drop_kept
from projections.scheduling.promises import drop_promise
from projections.scheduling.records import JobRecord
from projections.scheduling.state import State


def begin_waiting(state: State, job: JobRecord) -> None:
    """
    Put a pending job into all that waits, and have its readiness looked at.
    """
    state.waiting += 1
    if job.gave_up_us is not None:
        state.gave_up[job.stream] = job
    state.check_readiness(job)


def wait_for_hosts(
    state: State, job: JobRecord, hosts: tuple[HostTasks, ...], *, tells_never: bool
) -> None:
    """
    Have a pending job wait for the hosts where an operator wants it started; nobody else considers
    it meanwhile.
    """
    job.forced_on, job.tells_never = hosts, tells_never
    state.waiting += 1
    state.wait_for_hosts(job)


def stop_waiting(state: State, job: JobRecord, now_us: int) -> None:
    """
    Take a pending job out of everything that waits.
    """
    if job.state is JobState.PEND:
        state.waiting -= 1
    if job.reason_set:
        state.leave_set(job, now_us)
    job.orphan_us = None
    if job.forced_on:
        job.forced_on, job.tells_never = (), False
        del state.forced[job.stream]
    if job.keeps is not None:
        drop_kept(state, job)
    if job.promise is not None:
        drop_promise(state, job)
    stream, stored = job.stream, state.stored
    for waiting in (state.unready, state.put_back, state.unchecked, state.gave_up):
        if waiting:
            waiting.pop(stream, None)
    state.picker.on_job_state_change(job)
    state.wanted.pop(stream, None)
    if stored.blocker == stream:
        stored.blocker = ""
    if stored.blockers and stream in stored.blockers.values():
        for queue in [queue for queue, held in stored.blockers.items() if held == stream]:
            del stored.blockers[queue]
