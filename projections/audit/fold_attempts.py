"""
Executions of jobs to rows: dispatched, started, stopped and gone on, ended; and orders about them.
"""

from __future__ import annotations

import json
from typing import Any

from domain.allocations import Allocation, HostRun
from domain.amounts import MEM
from domain.envelope import Envelope
from domain.events.jobs import (
    JobCouldNotStart,
    JobDispatched,
    JobEnded,
    JobFinished,
    JobKillOrdered,
    JobPreemptionEnded,
    JobPreemptionPlanned,
    JobResumed,
    JobResumeOrdered,
    JobResumeRequested,
    JobSignalOrdered,
    JobSignalRequested,
    JobStarted,
    JobStartPromised,
    JobStopRequested,
    JobSuspended,
    JobSuspendOrdered,
)
from domain.ids import job_of_stream
from projections.audit.fold_intervals import end_plan, end_promise, enter, found, happen
from projections.audit.fold_spec import amount_of, amounts_json, success_values
from projections.audit.fold_state import ENDED, FoldState, LiveJob
from projections.audit.rows.hosts import (
    OrderRow,
    PreemptionPlanRow,
    PreemptionRow,
    StartPromiseRow,
)
from projections.audit.rows.jobs import AllocationRow, AttemptRow

INTEGER_MAX = 2**63 - 1
USER_STOPS = ("SUSP_USER_STOP", "SUSP_ADMIN_STOP")
USER_RESUME = "SUSP_USER_RESUME"
PREEMPTED = "SUSP_PREEMPT"


AnyOrder = JobKillOrdered | JobSuspendOrdered | JobResumeOrdered | JobSignalOrdered


def dispatched(state: FoldState, e: Envelope, event: JobDispatched) -> None:
    """
    Begin an execution, with what it holds.
    """
    job = found(state, e)
    if job is None:
        return
    row, allocation = job.row, event.allocation
    end_attempt(state, job, e, "job.dispatched")
    hosts, first_host = state.hosts_text(allocation)
    row.attempt = event.attempt
    row.dispatch_us = e.time_us
    row.first_dispatch_us = e.time_us if row.first_dispatch_us is None else row.first_dispatch_us
    row.start_us = row.exit_code = row.signal = row.cpu_us = row.max_rss_kib = None
    row.tasks = min(allocation.tasks(), INTEGER_MAX)
    row.host_count = min(sum(run.hosts for run in allocation.runs), INTEGER_MAX)
    row.hosts = hosts
    happen(state, job, e, "dispatched")
    job.attempt = AttemptRow(
        row.job_id,
        event.attempt,
        e.position,
        e.time_us,
        None if state.session is None else state.session.number,
        event.index,
        row.tasks,
        row.host_count,
        hosts,
        first_host,
        allocation.allocator,
        allocation.alternative,
        int(allocation.is_exclusive),
        amounts_json(allocation.shared),
        event.ahead_of,
        int(event.is_forced),
    )
    state.written.changed["attempts"][row.job_id, event.attempt] = job.attempt
    _allocate(state, job, e, allocation)


def _allocate(state: FoldState, job: LiveJob, e: Envelope, allocation: Allocation) -> None:
    changed = state.written.changed["allocations"]
    for index, run in enumerate(allocation.runs):
        held = AllocationRow(
            job.row.job_id,
            job.row.attempt,
            index,
            run.first,
            run.hosts,
            state.host_name(run.first),
            run.tasks,
            amounts_json(run.amounts),
            amount_of(MEM, run.amounts),
            _instances(run),
            e.position,
            e.time_us,
        )
        job.allocations.append(held)
        changed[held.job_id, held.attempt, index] = held


def _instances(run: HostRun) -> str:
    if not run.instances:
        return "{}"
    return json.dumps({one.resource: list(one.units) for one in run.instances})


# ------------------------------------------------------------------------------------------ orders


def _order(state: FoldState, e: Envelope, kind: str, event: AnyOrder, why: str = "") -> None:
    """
    Note an order to a worker.
    """
    host, number = event.worker, event.order_number
    job_id = job_of_stream(e.stream)
    order = OrderRow(host, number, kind, job_id, event.attempt, why, e.position, e.time_us)
    state.written.changed["orders"][host, number] = order


def kill_ordered(state: FoldState, e: Envelope, event: JobKillOrdered) -> None:
    """
    Note an order to end an execution.
    """
    found(state, e)
    _order(state, e, "kill", event, event.why)


def signal_requested(state: FoldState, e: Envelope, event: JobSignalRequested) -> None:
    """
    Note who wants which signal sent to a job.
    """
    job = found(state, e)
    if job is not None:
        job.row.signal_requested, job.row.signal_requested_by = event.signal.value, e.actor


def signal_ordered(state: FoldState, e: Envelope, event: JobSignalOrdered) -> None:
    """
    Note an order to send a signal.
    """
    found(state, e)
    _order(state, e, "signal", event, event.signal.value)


def stop_requested(state: FoldState, e: Envelope, event: JobStopRequested) -> None:
    """
    Note who wants a job stopped; what the system has stopped is stopped by them from now on.
    """
    del event
    job = found(state, e)
    if job is None:
        return
    job.row.stop_requested_by = e.actor
    if job.row.state == "SSUSP":
        job.row.suspend_reason = USER_STOPS[e.actor != job.row.user]
        enter(state, job, e, "USUSP")


def suspend_ordered(state: FoldState, e: Envelope, event: JobSuspendOrdered) -> None:
    """
    Note an order to stop an execution, and for whom.
    """
    _order(state, e, "suspend", event, event.why)
    job = found(state, e)
    if job is None:
        return
    row = job.row
    row.suspend_reason, row.suspend_order = event.why, event.order_number
    row.preempted_for = event.preemptor
    if event.preemptor or event.why == PREEMPTED:
        row.preemptions += 1
        job.preemption = PreemptionRow(
            row.job_id,
            e.position,
            event.attempt,
            event.preemptor,
            event.why,
            event.worker,
            event.order_number,
            e.time_us,
        )
        _note_preemption(state, job.preemption)


def preemption_planned(state: FoldState, e: Envelope, event: JobPreemptionPlanned) -> None:
    """
    Note what is held for a pending job while its victims stop.
    """
    job = found(state, e)
    if job is None:
        return
    end_plan(state, job, e)
    allocation = event.allocation
    job.plan = PreemptionPlanRow(
        job.row.job_id,
        e.position,
        e.time_us,
        min(allocation.tasks(), INTEGER_MAX),
        min(sum(run.hosts for run in allocation.runs), INTEGER_MAX),
        state.hosts_text(allocation)[0],
        json.dumps(event.victims),
    )
    state.written.changed["preemption_plans"][job.row.job_id, e.position] = job.plan


def preemption_ended(state: FoldState, e: Envelope, event: JobPreemptionEnded) -> None:
    """
    Note that nothing is held for a job any more.
    """
    del event
    job = found(state, e)
    if job is not None:
        end_plan(state, job, e)


def start_promised(state: FoldState, e: Envelope, event: JobStartPromised) -> None:
    """
    Note by when a pending job starts, or that this is no longer promised.
    """
    job = found(state, e)
    if job is None:
        return
    end_promise(state, job, e)
    reservation = event.reservation
    if reservation is None:
        return
    job.promise = StartPromiseRow(
        job.row.job_id,
        e.position,
        e.time_us,
        reservation.policy,
        reservation.start_us,
        int(reservation.is_held),
        min(reservation.slots(), INTEGER_MAX),
        min(sum(run.hosts for run in reservation.runs), INTEGER_MAX),
        state.runs_text(tuple((run.first, run.hosts, run.slots) for run in reservation.runs)),
        reservation.until_us,
    )
    state.written.changed["start_promises"][job.row.job_id, e.position] = job.promise


def _note_preemption(state: FoldState, row: PreemptionRow) -> None:
    state.written.changed["preemptions"][row.victim, row.ordered_position] = row


def suspended(state: FoldState, e: Envelope, event: JobSuspended) -> None:
    """
    Stop a job: by a user it is USUSP, by the scheduler SSUSP.
    """
    del event
    job = found(state, e)
    if job is None:
        return
    job.row.suspend_order = None
    enter(state, job, e, "SSUSP" if job.row.stop_requested_by is None else "USUSP")
    if job.preemption is not None:
        job.preemption.suspended_us = e.time_us
        _note_preemption(state, job.preemption)


def resume_requested(state: FoldState, e: Envelope, event: JobResumeRequested) -> None:
    """
    Let a stopped job wait for the session that lets it go on.
    """
    del event
    job = found(state, e)
    if job is None:
        return
    job.row.stop_requested_by = None
    if not job.row.suspend_reason:
        return
    if job.row.state == "USUSP":
        enter(state, job, e, "SSUSP")
    is_victim = job.row.state == "SSUSP" and bool(job.row.preempted_for)
    job.row.suspend_reason = PREEMPTED if is_victim else USER_RESUME


def resume_ordered(state: FoldState, e: Envelope, event: JobResumeOrdered) -> None:
    """
    Note an order to let an execution go on.
    """
    found(state, e)
    _order(state, e, "resume", event)


def resumed(state: FoldState, e: Envelope, event: JobResumed) -> None:
    """
    Let a stopped job run again.
    """
    del event
    job = found(state, e)
    if job is None:
        return
    job.row.suspend_reason = job.row.preempted_for = ""
    enter(state, job, e, "RUN")
    if job.preemption is not None:
        job.preemption.resumed_us = e.time_us
        _note_preemption(state, job.preemption)
        job.preemption = None


def state_with_contact(job: LiveJob) -> str:
    """
    Return the state of a job whose host reports again: what its suspension says.
    """
    row = job.row
    if not row.suspend_reason or row.suspend_order is not None:
        return "RUN"
    return "USUSP" if row.stop_requested_by is not None else "SSUSP"


# ---------------------------------------------------------------------------------------- the end


def end_attempt(state: FoldState, job: LiveJob, e: Envelope, outcome: str, **said: Any) -> None:
    """
    End the execution that is open: its row is completed, and what it holds is given back.
    """
    changed = state.written.changed["allocations"]
    for held in job.allocations:
        held.to_position, held.to_us = e.position, e.time_us
        changed[held.job_id, held.attempt, held.run_index] = held
    job.allocations = []
    row = job.row
    row.suspend_reason, row.suspend_order, row.preempted_for = "", None, ""
    if job.preemption is not None:
        job.preemption.ended_us = e.time_us
        _note_preemption(state, job.preemption)
        job.preemption = None
    if job.attempt is None:
        return
    job.attempt.end_position, job.attempt.end_us, job.attempt.outcome = (
        e.position,
        e.time_us,
        outcome,
    )
    for name, value in said.items():
        setattr(job.attempt, name, value)
    state.written.changed["attempts"][job.attempt.job_id, job.attempt.attempt] = job.attempt
    job.attempt = None


def end(state: FoldState, job: LiveJob, e: Envelope, to: str, why: str) -> None:
    """
    End a job; only a requeue can bring it back.
    """
    if job.row.state not in ENDED:
        enter(state, job, e, to)
    job.row.finish_us, job.row.end_reason = e.time_us, why
    state.note_end(job)


def started(state: FoldState, e: Envelope, event: JobStarted) -> None:
    """
    Note that a worker started an execution.
    """
    job = found(state, e)
    if job is None or job.attempt is None or job.attempt.attempt != event.attempt:
        return
    job.row.start_us = job.attempt.start_us = e.time_us
    job.attempt.pid, job.attempt.process_group = event.pid, event.process_group
    state.written.changed["attempts"][job.row.job_id, event.attempt] = job.attempt


def could_not_start(state: FoldState, e: Envelope, event: JobCouldNotStart) -> None:
    """
    End a job whose execution couldn't be started.
    """
    job = found(state, e)
    if job is not None:
        end_attempt(state, job, e, event.TYPE_CODE, why=event.why)
        end(state, job, e, "EXIT", event.reason)


def finished(state: FoldState, e: Envelope, event: JobFinished) -> None:
    """
    End a job whose execution ended on its worker.
    """
    job = found(state, e)
    if job is None:
        return
    row = job.row
    end_attempt(
        state,
        job,
        e,
        event.TYPE_CODE,
        why=event.why,
        exit_code=event.exit_code,
        signal=event.signal,
        cpu_us=event.cpu_us,
        max_rss_kib=event.max_rss_kib,
    )
    row.exit_code, row.signal = event.exit_code, event.signal
    row.cpu_us, row.max_rss_kib = event.cpu_us, event.max_rss_kib
    end(state, job, e, "DONE" if _is_well(state, job, event) else "EXIT", event.why)


def _is_well(state: FoldState, job: LiveJob, event: JobFinished) -> bool:
    if event.signal is not None or event.why or event.exit_code is None:
        return False
    return event.exit_code == 0 or event.exit_code in success_values(state, job)


def ended(state: FoldState, e: Envelope, event: JobEnded) -> None:
    """
    End a job that no worker ended.
    """
    job = found(state, e)
    if job is not None:
        end_attempt(state, job, e, event.TYPE_CODE, why=event.why)
        end(state, job, e, "EXIT", event.why)


HANDLERS: dict[str, Any] = {
    JobDispatched.TYPE_CODE: dispatched,
    JobKillOrdered.TYPE_CODE: kill_ordered,
    JobSignalRequested.TYPE_CODE: signal_requested,
    JobSignalOrdered.TYPE_CODE: signal_ordered,
    JobStopRequested.TYPE_CODE: stop_requested,
    JobPreemptionPlanned.TYPE_CODE: preemption_planned,
    JobPreemptionEnded.TYPE_CODE: preemption_ended,
    JobSuspendOrdered.TYPE_CODE: suspend_ordered,
    JobSuspended.TYPE_CODE: suspended,
    JobResumeRequested.TYPE_CODE: resume_requested,
    JobResumeOrdered.TYPE_CODE: resume_ordered,
    JobResumed.TYPE_CODE: resumed,
    JobStartPromised.TYPE_CODE: start_promised,
    JobStarted.TYPE_CODE: started,
    JobCouldNotStart.TYPE_CODE: could_not_start,
    JobFinished.TYPE_CODE: finished,
    JobEnded.TYPE_CODE: ended,
}
