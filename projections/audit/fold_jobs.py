"""
Events of jobs to rows.
"""

from __future__ import annotations

import json
import shlex
from typing import Any

from domain.allocations import Allocation
from domain.amounts import MEM, Amount
from domain.envelope import Envelope
from domain.events.jobs import (
    JobCouldNotStart,
    JobDispatched,
    JobEnded,
    JobFinished,
    JobHeld,
    JobHoldLifted,
    JobKillOrdered,
    JobKillRequested,
    JobPended,
    JobStarted,
    JobSubmitted,
)
from domain.ids import job_of_stream, split_job_id
from domain.job_states import JobState, state_after
from domain.jobs import JobSpec, Program
from projections.audit.fold_reasons import release
from projections.audit.fold_state import KEY_INDEXES, WAITING, FoldState, LiveJob
from projections.audit.rows.hosts import OrderRow
from projections.audit.rows.jobs import AllocationRow, AttemptRow, JobRow, JobStateRow
from projections.audit.rows.reasons import WaitRow

INTEGER_MAX = 2**63 - 1

# Fields of a job's specification that have columns of their own; any other goes into `more`.
SPEC_COLUMNS = frozenset(
    "user group queue project profile name tasks_min tasks_max program resreq needs user_priority "
    "run_limit_us run_estimate_us hold".split()
)


def amounts_json(amounts: tuple[Amount, ...]) -> str:
    """
    Return amounts as a JSON object of resource to thousandths.
    """
    return json.dumps({one.resource: one.milli for one in amounts}) if amounts else "{}"


def amount_of(resource: str, amounts: tuple[Amount, ...]) -> int | None:
    """
    Return the thousandths of one resource, or None when it isn't named.
    """
    return next((one.milli for one in amounts if one.resource == resource), None)


# ------------------------------------------------------------------------------ intervals of a job


def enter(state: FoldState, job: LiveJob, e: Envelope, to: str) -> None:
    """
    Bring a job to another state: its interval ends, and the next one begins.
    """
    row = job.row
    states = state.written.changed["job_states"]
    if job.state is not None:
        job.state.to_position, job.state.to_us = e.position, e.time_us
        states[job.state.job_id, job.state.from_position] = job.state
    row.state, row.state_since_us = to, e.time_us
    job.state = JobStateRow(row.job_id, e.position, e.time_us, to, row.attempt)
    states[row.job_id, e.position] = job.state
    if to != "PEND":
        release(state, e, row.job_id)
    if to not in WAITING:
        end_wait(state, job, e)


def happen(state: FoldState, job: LiveJob, e: Envelope, happening: str) -> bool:
    """
    Bring a job to the state after a happening; say whether that fits the state before it.
    """
    after = state_after(happening, JobState(job.row.state))
    if after is not None and after != job.row.state:
        enter(state, job, e, str(after))
    return after is not None


def begin_wait(
    state: FoldState, job: LiveJob, e: Envelope, kind: str, reason_set: int | None = None
) -> None:
    """
    Begin an interval of waiting for another cause.
    """
    end_wait(state, job, e)
    job.wait = WaitRow(job.row.job_id, e.position, e.time_us, job.row.queue, kind, reason_set)
    state.written.changed["waits"][job.row.job_id, e.position] = job.wait


def end_wait(state: FoldState, job: LiveJob, e: Envelope) -> None:
    """
    End the interval of waiting that is open, if one is.
    """
    if job.wait is None:
        return
    job.wait.to_position, job.wait.to_us = e.position, e.time_us
    state.written.changed["waits"][job.wait.job_id, job.wait.from_position] = job.wait
    job.wait = None


def touch(state: FoldState, job: LiveJob, e: Envelope) -> None:
    """
    Note that a job's row changed at an event.
    """
    job.row.last_position = e.position
    state.written.changed["jobs"][job.row.job_key] = job.row


def found(state: FoldState, e: Envelope) -> LiveJob | None:
    """
    Return the job whose event this is, noted as changed; None when its submission isn't in the log.
    """
    job = state.job(job_of_stream(e.stream))
    if job is not None:
        touch(state, job, e)
    return job


# ---------------------------------------------------------------------------------- what was asked


def command_text(program: Program | None) -> str:
    """
    Return a program as one would type it.
    """
    if program is None:
        return ""
    return program.shell if program.shell is not None else shlex.join(program.argv)


def _more(spec: JobSpec) -> str:
    others = spec.model_fields_set - SPEC_COLUMNS
    if not others:
        return "{}"
    return spec.model_dump_json(include=set(others), exclude_defaults=True)


# long: one line for each column of the widest table.
def job_row(e: Envelope, event: JobSubmitted, job_id: str) -> JobRow:
    """
    Return the row of a job that was submitted.
    """
    spec, (number, index) = event.spec, split_job_id(job_id)
    program = spec.program or Program()
    return JobRow(
        job_key=number * KEY_INDEXES + index,
        job_id=job_id,
        number=number,
        array_index=index,
        user=spec.user,
        user_group=spec.group,
        queue=spec.queue,
        project=spec.project,
        profile=spec.profile,
        name=spec.name,
        command=command_text(spec.program),
        uses_shell=int(program.shell is not None),
        cwd=program.cwd,
        stdin=program.stdin,
        stdout=program.stdout,
        stderr=program.stderr,
        umask=program.umask,
        env_count=len(program.env),
        tasks_min=spec.tasks_min,
        tasks_max=spec.tasks_max,
        resreq="\n".join(spec.resreq),
        needs=json.dumps([need.model_dump() for need in spec.needs]) if spec.needs else "[]",
        user_priority=spec.user_priority,
        run_limit_us=spec.run_limit_us,
        run_estimate_us=spec.run_estimate_us,
        submission_key=event.key,
        request_digest=event.digest,
        more=_more(spec),
        submitted_by=e.actor,
        submit_position=e.position,
        submit_us=e.time_us,
        state="PSUSP" if spec.hold else "PEND",
        state_since_us=e.time_us,
        last_position=e.position,
    )


def submitted(state: FoldState, e: Envelope, event: JobSubmitted) -> None:
    """
    Begin a job.
    """
    job_id = job_of_stream(e.stream)
    job = state.jobs[job_id] = LiveJob(job_row(e, event, job_id))
    touch(state, job, e)
    enter(state, job, e, job.row.state)
    begin_wait(state, job, e, "held" if event.spec.hold else "new")


def held(state: FoldState, e: Envelope, event: JobHeld) -> None:
    """
    Keep a job back.
    """
    del event
    job = found(state, e)
    if job is not None and happen(state, job, e, "held"):
        begin_wait(state, job, e, "held")


def hold_lifted(state: FoldState, e: Envelope, event: JobHoldLifted) -> None:
    """
    Let a held job go on: it is considered anew.
    """
    del event
    job = found(state, e)
    if job is not None and happen(state, job, e, "hold lifted"):
        begin_wait(state, job, e, "new")


def kill_requested(state: FoldState, e: Envelope, event: JobKillRequested) -> None:
    """
    Note who wants a job ended.
    """
    del event
    job = found(state, e)
    if job is not None:
        job.row.kill_requested_by, job.row.kill_requested_us = e.actor, e.time_us


# -------------------------------------------------------------------------------------- decisions


def pended(state: FoldState, e: Envelope, event: JobPended) -> None:
    """
    Put a waiting job into a reason set.
    """
    job = found(state, e)
    if job is None:
        return
    job.row.reason_set = event.reason_set
    if job.row.state in WAITING:
        begin_wait(state, job, e, "set", event.reason_set)


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
        amounts_json(allocation.shared),
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
            e.position,
            e.time_us,
        )
        job.allocations.append(held)
        changed[held.job_id, held.attempt, index] = held


def kill_ordered(state: FoldState, e: Envelope, event: JobKillOrdered) -> None:
    """
    Note an order to end an execution.
    """
    job_id = job_of_stream(e.stream)
    found(state, e)
    order = OrderRow(
        event.worker,
        event.order_number,
        "kill",
        job_id,
        event.attempt,
        event.why,
        e.position,
        e.time_us,
    )
    earlier = state.order(event.worker, event.order_number)
    if earlier is not None:
        order.done_position, order.done_us, order.outcome = (
            earlier.done_position,
            earlier.done_us,
            earlier.outcome,
        )
    state.written.changed["orders"][event.worker, event.order_number] = order


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


def end(state: FoldState, job: LiveJob, e: Envelope, happening: str, why: str) -> None:
    """
    End a job for good.
    """
    if happen(state, job, e, happening):
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
        end(state, job, e, "finished badly", event.why)


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
    is_well = event.exit_code == 0 and event.signal is None and not event.why
    end(state, job, e, "finished well" if is_well else "finished badly", event.why)


def ended(state: FoldState, e: Envelope, event: JobEnded) -> None:
    """
    End a job that no worker ended.
    """
    job = found(state, e)
    if job is not None:
        end_attempt(state, job, e, event.TYPE_CODE, why=event.why)
        end(state, job, e, "ended unstarted", event.why)


HANDLERS: dict[str, Any] = {
    JobSubmitted.TYPE_CODE: submitted,
    JobHeld.TYPE_CODE: held,
    JobHoldLifted.TYPE_CODE: hold_lifted,
    JobKillRequested.TYPE_CODE: kill_requested,
    JobPended.TYPE_CODE: pended,
    JobDispatched.TYPE_CODE: dispatched,
    JobKillOrdered.TYPE_CODE: kill_ordered,
    JobStarted.TYPE_CODE: started,
    JobCouldNotStart.TYPE_CODE: could_not_start,
    JobFinished.TYPE_CODE: finished,
    JobEnded.TYPE_CODE: ended,
}
