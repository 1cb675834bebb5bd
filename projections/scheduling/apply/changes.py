"""
Apply events that change what a job is, or where among others it waits.
"""

from __future__ import annotations

from typing import Any, Final

from domain.amounts import Amount
from domain.envelope import Stamped
from domain.events.jobs import JobModified, JobMoved, JobSwitched
from domain.job_states import LIVE, WAITING, JobState
from domain.jobs import JobSpec
from projections.scheduling.apply.waiting import begin_waiting, stop_waiting, wait_for_hosts
from projections.scheduling.records import JobRecord
from projections.scheduling.state import State


def modified(state: State, stamped: Stamped, event: JobModified) -> None:
    """
    Take the new content over; a pending job is considered anew. How many elements may be started at
    a time is their array's: all of them are considered anew when it changes.
    """
    job = state.stored.jobs[stamped.stream]
    job.fresh = "JOB_MODIFY"
    bound = event.spec.array
    keeps_own, keeps = event.wishes_kept == "all", event.wishes_kept != "none"
    if bound is None or bound == job.spec.array:
        _change(state, stamped, job, event.spec, keeps_wish=keeps_own)
        return
    array = state.stored.arrays[job.number]
    array.started_max = bound.started_max
    for stream in array.elements:
        other = state.stored.jobs[stream]
        if other is job:
            _change(state, stamped, job, event.spec, keeps_wish=keeps_own)
        else:
            other.fresh = "JOB_MODIFY"
            spec = other.spec.model_copy(update={"array": bound})
            _change(state, stamped, other, spec, keeps_wish=keeps)


def switched(state: State, stamped: Stamped, event: JobSwitched) -> None:
    """
    Move the job to another queue, where one that waits comes behind its equals, as if it had just
    been submitted.
    """
    job = state.stored.jobs[stamped.stream]
    job.fresh = "JOB_SWITCH"
    if job.state in WAITING:
        job.queue_us, job.place, job.beside = stamped.time_us, 0, None
    spec = job.spec.model_copy(update={"queue": event.queue})
    _change(state, stamped, job, spec, keeps_wish=event.is_wish_kept)


def _change(
    state: State, stamped: Stamped, job: JobRecord, spec: JobSpec, *, keeps_wish: bool
) -> None:
    pending, wish, tells_never = job.state is JobState.PEND, job.forced_on, job.tells_never
    if pending:
        stop_waiting(state, job, stamped.time_us)
    state.forget_parents(job)
    was_asked, job.spec = job.spec.requirement, spec
    state.watch_parents(job)
    if job.state in LIVE and spec.requirement != was_asked:
        _reserve_anew(state, job)
    if pending and wish and keeps_wish:
        wait_for_hosts(state, job, wish, tells_never=tells_never)
    elif pending:
        begin_waiting(state, job)
    elif job.state is JobState.PSUSP:
        state.set_waiting_timers(job)
    elif job.state in LIVE:
        state.limits.charge_anew(job)
        # A suspended one may shut its hosts to other queues now.
        state.note_suspensions()
        state.set_run_timers(job)


def _reserve_anew(state: State, job: JobRecord) -> None:
    """
    Charge a started job's hosts with what it reserves from now on.
    """
    assert job.allocation is not None, job.stream
    seen, was_aside = dict(job.actual), job.is_aside
    # While it still has what it was charged for.
    state.limits.give_back(job)
    state.capacity.give_back(job)
    needs = state.request_of(job).only.usages[0].needs
    runs = tuple(
        run.model_copy(
            update={
                "amounts": tuple(
                    Amount(resource=need.resource, milli=need.of(run.tasks)) for need in needs
                )
            }
        )
        for run in job.allocation.runs
    )
    job.allocation = job.allocation.model_copy(update={"runs": runs})
    state.capacity.take(job.allocation)
    for number, actual in seen.items():
        state.capacity.reconcile(job, number, actual)
    if was_aside:
        job.is_aside = True
        state.capacity.stand_aside(job)


def moved(state: State, stamped: Stamped, event: JobMoved) -> None:
    """
    Put a pending job at another place among its equals; no picker knows one that an operator wants
    on certain hosts.
    """
    job = state.stored.jobs[stamped.stream]
    job.place, job.beside = event.place, event.beside
    if job.state is JobState.PEND and job.stream not in state.unready and not job.forced_on:
        state.picker.on_job_update(job)


APPLY: Final[dict[Any, Any]] = {
    JobModified: modified,
    JobSwitched: switched,
    JobMoved: moved,
}
