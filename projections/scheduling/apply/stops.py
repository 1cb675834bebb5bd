"""
Apply events of jobs that are stopped and go on: by users, by windows, for other jobs.
"""

from __future__ import annotations

from typing import Any, Final

from domain.envelope import Stamped
from domain.events.jobs import (
    JobPreemptionEnded,
    JobPreemptionPlanned,
    JobResumed,
    JobResumeOrdered,
    JobResumeRequested,
    JobSignalOrdered,
    JobSignalRequested,
    JobStopRequested,
    JobSuspended,
    JobSuspendOrdered,
)
from domain.job_states import JobState
from projections.scheduling.apply.transitions import move
from projections.scheduling.holds import keep, note_left, note_spared
from projections.scheduling.loads import is_by_load
from projections.scheduling.records import JobRecord, OrderRecord, WantedSignal
from projections.scheduling.state import State

SUSP_USER_STOP: Final = "SUSP_USER_STOP"
SUSP_ADMIN_STOP: Final = "SUSP_ADMIN_STOP"
SUSP_USER_RESUME: Final = "SUSP_USER_RESUME"
SUSP_QUEUE_WINDOW: Final = "SUSP_QUEUE_WINDOW"
SUSP_PREEMPT: Final = "SUSP_PREEMPT"


def give_order(state: State, worker: str, number: int, order: OrderRecord) -> None:
    """
    Let an order stand until its worker reports it done.
    """
    record = state.stored.workers[worker]
    record.last_order = number
    record.orders[number] = order


def stop_requested(state: State, stamped: Stamped, event: JobStopRequested) -> None:
    """
    Remember who wants the job stopped; the next session orders it. What the system has stopped is
    stopped by whoever asked from now on.
    """
    job = state.stored.jobs[stamped.stream]
    job.stop_actor = stamped.actor
    job.resume_wanted = False
    if job.state is JobState.SSUSP:
        job.suspend_why = SUSP_USER_STOP if stamped.actor == job.spec.user else SUSP_ADMIN_STOP
        move(state, job, JobState.USUSP, stamped.time_us)
    state.demands[stamped.stream] = job


def suspend_ordered(state: State, stamped: Stamped, event: JobSuspendOrdered) -> None:
    """
    Remember the order and why it was given.
    """
    job = state.stored.jobs[stamped.stream]
    job.suspend_order = event.order_number
    job.suspend_why = event.why
    if is_by_load(event.why):
        note_eased(state, job, stamped.time_us)
    note_victim(state, job, event.preemptor)
    order = OrderRecord("suspend", stamped.stream, event.attempt, event.why, event.signal)
    give_order(state, event.worker, event.order_number, order)


def note_eased(state: State, job: JobRecord, now_us: int) -> None:
    """
    Remember that the hosts of a job have one job less to run, since their load was too much.
    """
    for number, _, _ in job.allocation.shares() if job.allocation else ():
        state.hosts[number].eased_us = now_us


def note_victim(state: State, job: JobRecord, preemptor: str) -> None:
    """
    Remember for which job this one must leave its hosts, "" when for none.
    """
    job.preemptor = preemptor
    if preemptor:
        job.preemptions += 1
        state.victims[job.stream] = job
        state.capacity.changed += 1


def _stand_aside(state: State, job: JobRecord) -> None:
    """
    Give back what a stopped job gives back to everybody, and open a victim's slots to those for
    whom it has stopped.
    """
    job.is_aside = True
    state.capacity.stand_aside(job)
    state.limits.charge_anew(job)


def preemption_planned(state: State, stamped: Stamped, event: JobPreemptionPlanned) -> None:
    """
    Hold for a pending job what its victims give back, and what else it needs beside.
    """
    keep(state, state.stored.jobs[stamped.stream], event.allocation)


def preemption_ended(state: State, stamped: Stamped, event: JobPreemptionEnded) -> None:
    """
    Hold nothing for the job any more.
    """
    keep(state, state.stored.jobs[stamped.stream], None)


def suspended(state: State, stamped: Stamped, event: JobSuspended) -> None:
    """
    Stop the job's clock: stopped by a user it is USUSP, by the system SSUSP.
    """
    job = state.stored.jobs[stamped.stream]
    job.suspend_order = 0
    by_user = job.stop_actor is not None
    move(state, job, JobState.USUSP if by_user else JobState.SSUSP, stamped.time_us)
    _stand_aside(state, job)
    state.demands[stamped.stream] = job


def resume_requested(state: State, stamped: Stamped, event: JobResumeRequested) -> None:
    """
    Let a stopped job wait for the session that lets it go on: it is SSUSP until then.
    """
    job = state.stored.jobs[stamped.stream]
    job.stop_actor = None
    if not job.suspend_why:
        return  # Nothing has stopped it yet, so there is nothing to go on with.
    if job.state is JobState.USUSP:
        move(state, job, JobState.SSUSP, stamped.time_us)
    if job.preemptor:
        # It goes on when what it gives back is free again, also if it hasn't stopped yet.
        job.suspend_why = SUSP_PREEMPT
        return
    job.resume_wanted = True
    job.suspend_why = SUSP_USER_RESUME
    state.demands[stamped.stream] = job


def signal_requested(state: State, stamped: Stamped, event: JobSignalRequested) -> None:
    """
    Remember who wants which signal sent; the next session orders it.
    """
    job = state.stored.jobs[stamped.stream]
    job.signals_wanted = (*job.signals_wanted, WantedSignal(event.signal, stamped.actor))
    state.signals[stamped.stream] = job


def signal_ordered(state: State, stamped: Stamped, event: JobSignalOrdered) -> None:
    """
    Remember the order, and on whose behalf: it may be what ends the job.
    """
    job = state.stored.jobs[stamped.stream]
    sent = tuple(each for each in job.signals_wanted if each.signal is event.signal)
    job.signals_wanted = tuple(
        each for each in job.signals_wanted if each.signal is not event.signal
    )
    others = (each for each in job.signalled if each.signal is not event.signal)
    job.signalled = (*others, *sent)
    if not job.signals_wanted:
        state.signals.pop(stamped.stream, None)
    order = OrderRecord("signal", stamped.stream, event.attempt, "", event.signal.value)
    give_order(state, event.worker, event.order_number, order)


def resume_ordered(state: State, stamped: Stamped, event: JobResumeOrdered) -> None:
    """
    Remember the order.
    """
    job = state.stored.jobs[stamped.stream]
    job.resume_order = event.order_number
    note_left(state, job.preemptor)
    if job.is_aside:
        job.is_aside = False
        state.capacity.come_back(job)
        state.limits.charge_anew(job)
    order = OrderRecord("resume", stamped.stream, event.attempt, "")
    give_order(state, event.worker, event.order_number, order)


def resumed(state: State, stamped: Stamped, event: JobResumed) -> None:
    """
    Let the job's clock go on.
    """
    job = state.stored.jobs[stamped.stream]
    job.resume_order = 0
    job.resume_wanted = False
    job.suspend_why = ""
    if job.preemptor:
        preemptor, job.preemptor = job.preemptor, ""
        job.spared_from = tuple(dict.fromkeys((*job.spared_from, preemptor)))
        # What that one asks for now depends on whether it still has victims.
        del state.victims[job.stream]
        note_spared(state, preemptor)
    move(state, job, JobState.RUN, stamped.time_us)
    state.capacity.changed += 1
    state.set_run_timers(job)
    state.demands[stamped.stream] = job


APPLY: Final[dict[Any, Any]] = {
    JobStopRequested: stop_requested,
    JobSuspendOrdered: suspend_ordered,
    JobSignalRequested: signal_requested,
    JobSignalOrdered: signal_ordered,
    JobSuspended: suspended,
    JobResumeRequested: resume_requested,
    JobResumeOrdered: resume_ordered,
    JobResumed: resumed,
    JobPreemptionPlanned: preemption_planned,
    JobPreemptionEnded: preemption_ended,
}
