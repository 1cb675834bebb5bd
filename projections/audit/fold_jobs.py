"""
Events of waiting jobs to rows: submitted, changed, held, requeued, pended.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from domain.envelope import Envelope
from domain.events.jobs import (
    JobHeld,
    JobHoldLifted,
    JobKillRequested,
    JobModified,
    JobMoved,
    JobPended,
    JobRequeued,
    JobRequeueRequested,
    JobRunRequested,
    JobSubmitted,
    JobSwitched,
)
from domain.ids import job_id_of, job_of_stream, split_job_id
from domain.jobs import hosts_text
from projections.audit.fold_attempts import end_attempt
from projections.audit.fold_intervals import (
    begin_wait,
    end_plan,
    end_promise,
    enter,
    found,
    happen,
    touch,
)
from projections.audit.fold_reasons import release
from projections.audit.fold_spec import ask_anew, asked, job_row, note_change
from projections.audit.fold_state import KEY_INDEXES, WAITING, FoldState, LiveJob
from projections.audit.job_words import STARTED_MAX
from projections.audit.rows.jobs import ArrayRow, JobRow
from projections.audit.schema import SqlValue

# ------------------------------------------------------------------------------------- asked for


def submitted(state: FoldState, e: Envelope, event: JobSubmitted) -> None:
    """
    Begin a job, or every element of an array.
    """
    number, index = split_job_id(job_of_stream(e.stream))
    array = event.spec.array
    indices = (index,) if array is None else array.indices()
    if array is not None:
        text = array.text().partition("%")[0].strip("[]")
        spec = event.spec
        state.written.changed["arrays"][number] = ArrayRow(
            number,
            e.position,
            e.time_us,
            spec.user,
            spec.name,
            text,
            len(indices),
            array.started_max,
        )
    row = job_row(e, event, number, indices[0])
    _begin(state, e, row)
    for one in indices[1:]:
        key = number * KEY_INDEXES + one
        _begin(state, e, replace(row, job_key=key, array_index=one, job_id=job_id_of(number, one)))


def _begin(state: FoldState, e: Envelope, row: JobRow) -> None:
    job = state.jobs[row.job_id] = LiveJob(row)
    touch(state, job, e)
    enter(state, job, e, row.state)
    begin_wait(state, job, e, "held" if row.state == "PSUSP" else "new")


def modified(state: FoldState, e: Envelope, event: JobModified) -> None:
    """
    Take what a job asks for from now on; a pending one is considered anew.
    """
    job = found(state, e)
    if job is None:
        return
    _change(state, e, job, asked(event.spec))
    array = None if event.spec.array is None else state.array(job.row.number)
    if event.spec.array is not None and array is not None:
        bound = event.spec.array.started_max
        if bound != array.started_max:
            note_change(state, e, job.row, STARTED_MAX, array.started_max, bound)
            state.written.changed["arrays"][array.number] = array._replace(started_max=bound)


def switched(state: FoldState, e: Envelope, event: JobSwitched) -> None:
    """
    Move a job to another queue; a pending one is considered anew.
    """
    job = found(state, e)
    if job is not None:
        _change(state, e, job, {"queue": event.queue})


def _change(state: FoldState, e: Envelope, job: LiveJob, columns: dict[str, SqlValue]) -> None:
    ask_anew(state, e, job, columns)
    if job.row.state == "PEND":
        release(state, e, job.row.job_id)
        end_plan(state, job, e)
        end_promise(state, job, e)
        begin_wait(state, job, e, "new")


def moved(state: FoldState, e: Envelope, event: JobMoved) -> None:
    """
    Note that a job was put before or behind its equals.
    """
    job = found(state, e)
    if job is not None:
        ask_anew(state, e, job, {"place": event.place})


def run_requested(state: FoldState, e: Envelope, event: JobRunRequested) -> None:
    """
    Note who wants a job started on which hosts; it waits for these alone from now on.
    """
    job = found(state, e)
    if job is None:
        return
    job.row.run_requested_by = e.actor
    job.row.run_requested_on = hosts_text(event.hosts)
    release(state, e, job.row.job_id)
    end_plan(state, job, e)
    end_promise(state, job, e)
    begin_wait(state, job, e, "new")


def requeue_requested(state: FoldState, e: Envelope, event: JobRequeueRequested) -> None:
    """
    Note that somebody wants a job to go back to pending.
    """
    del event
    job = found(state, e)
    if job is not None:
        job.row.requeue_requested_by = e.actor


def held(state: FoldState, e: Envelope, event: JobHeld) -> None:
    """
    Keep a job back; an administrator also takes over what its user has held.
    """
    del event
    job = found(state, e)
    if job is not None and (job.row.state == "PSUSP" or happen(state, job, e, "held")):
        begin_wait(state, job, e, "held" if e.actor == job.row.user else "held by other")


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


def requeued(state: FoldState, e: Envelope, event: JobRequeued) -> None:
    """
    Put a job back to pending, for its next execution.
    """
    job = found(state, e)
    if job is None:
        return
    end_attempt(state, job, e, event.TYPE_CODE, why=event.why)
    row = job.row
    row.requeues += 1
    row.kill_requested_by = row.kill_requested_us = None
    row.stop_requested_by = row.requeue_requested_by = row.signal_requested_by = None
    row.signal_requested = ""
    row.exit_code = row.signal = row.start_us = row.finish_us = None
    row.end_reason = ""
    enter(state, job, e, "PSUSP" if event.hold else "PEND")
    begin_wait(state, job, e, "held" if event.hold else "new")


HANDLERS: dict[str, Any] = {
    JobSubmitted.TYPE_CODE: submitted,
    JobModified.TYPE_CODE: modified,
    JobSwitched.TYPE_CODE: switched,
    JobMoved.TYPE_CODE: moved,
    JobHeld.TYPE_CODE: held,
    JobHoldLifted.TYPE_CODE: hold_lifted,
    JobKillRequested.TYPE_CODE: kill_requested,
    JobRunRequested.TYPE_CODE: run_requested,
    JobRequeueRequested.TYPE_CODE: requeue_requested,
    JobRequeued.TYPE_CODE: requeued,
    JobPended.TYPE_CODE: pended,
}
