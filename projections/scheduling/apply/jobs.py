"""
Apply events of jobs.
"""

from __future__ import annotations

from typing import Any, Final

from domain.envelope import Stamped
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
    JobRequeued,
    JobRequeueRequested,
    JobRunRequested,
    JobStarted,
    JobStartPromised,
    JobSubmitted,
)
from domain.ids import job_stream_of, number_of_stream
from domain.job_states import JobState
from domain.jobs import ExitRules
from projections.scheduling.apply.stops import give_order, note_eased, note_victim
from projections.scheduling.apply.transitions import move
from projections.scheduling.apply.waiting import begin_waiting, stop_waiting, wait_for_hosts
from projections.scheduling.holds import note_left
from projections.scheduling.promises import borrowed, promise
from projections.scheduling.records import (
    ADMIN_COMMAND,
    EXIT_VALUE,
    FAULTS,
    FRESH_AFTER,
    PRE_EXEC_FAILED,
    ArrayRecord,
    JobRecord,
    KeyRecord,
    OrderRecord,
)
from projections.scheduling.state import State
from projections.scheduling.watches import NO_RULES, ORPHANS

TERM_LOAD: Final = "TERM_LOAD"
REQUEUED_FOR: Final = {TERM_LOAD: "load", "TERM_WINDOW": "window closed"}
"""Why the system puts a running job back, by the reason of the order; else for another job."""


def submitted(state: State, stamped: Stamped, event: JobSubmitted) -> None:
    """
    Add the job, or every element of an array.
    """
    number, index = number_of_stream(stamped.stream)
    stored = state.stored
    stored.highest_job = max(stored.highest_job, number)
    if event.key:
        stored.keys[event.key] = KeyRecord(stamped.stream, event.digest, stamped.time_us)
    array = event.spec.array
    if array is None:
        _add(state, stamped, event, (number, index), stamped.stream)
        return
    indices = array.indices()
    streams = tuple(job_stream_of(number, index) for index in indices)
    stored.arrays[number] = ArrayRecord(number, streams, array.started_max)
    for index, stream in zip(indices, streams, strict=True):
        _add(state, stamped, event, (number, index), stream)


def _add(
    state: State, stamped: Stamped, event: JobSubmitted, identity: tuple[int, int], stream: str
) -> None:
    now_us, (number, index) = stamped.time_us, identity
    # hot: by place, which takes two thirds of the time that the same takes by name.
    job = JobRecord(number, index, stream, event.spec, now_us, now_us, now_us)
    if event.key:
        job.key = event.key
    state.stored.jobs[stream] = job
    if job.spec.dependency is not None:
        state.watch_parents(job)
    if job.spec.hold:
        job.state = JobState.PSUSP
        state.set_waiting_timers(job)
        return
    begin_waiting(state, job)


def held(state: State, stamped: Stamped, event: JobHeld) -> None:
    """
    Keep a pending job back, and remember who did.
    """
    job = state.stored.jobs[stamped.stream]
    stop_waiting(state, job, stamped.time_us)
    job.stop_actor = stamped.actor
    move(state, job, JobState.PSUSP, stamped.time_us)


def hold_lifted(state: State, stamped: Stamped, event: JobHoldLifted) -> None:
    """
    Let a held job wait again; it keeps its place among equals, and avoids no hosts any more.
    """
    job = state.stored.jobs[stamped.stream]
    job.excluded_hosts = ()
    job.stop_actor = None
    state.wanted.pop(stamped.stream, None)
    move(state, job, JobState.PEND, stamped.time_us)
    job.fresh = "USER_RESUME"
    begin_waiting(state, job)


def kill_requested(state: State, stamped: Stamped, event: JobKillRequested) -> None:
    """
    Remember who wants the job ended; the next session decides how.
    """
    job = state.stored.jobs[stamped.stream]
    if job.kill_actor is None or (event.force and not job.kill_forced):
        job.kill_actor, job.kill_forced = stamped.actor, event.force
        if event.force or not job.kill_order:
            state.kills[stamped.stream] = job


def pended(state: State, stamped: Stamped, event: JobPended) -> None:
    """
    Put the job into its reason set.
    """
    job = state.stored.jobs[stamped.stream]
    state.leave_set(job, stamped.time_us)
    state.join_set(job, event.reason_set)
    is_orphan = state.stored.reason_sets[event.reason_set].fingerprint == ORPHANS
    job.orphan_us = stamped.time_us if is_orphan else None
    if is_orphan:
        state.set_orphan_timer(job)
    state.note_kept_back(job)


def dispatched(state: State, stamped: Stamped, event: JobDispatched) -> None:
    """
    Give the job its hosts and run it.
    """
    job = state.stored.jobs[stamped.stream]
    now_us = stamped.time_us
    stop_waiting(state, job, now_us)
    move(state, job, JobState.RUN, now_us)
    job.attempt = event.attempt
    allocation = job.allocation = event.allocation
    job.session_number = state.stored.session_number
    job.session_index = event.index
    job.ahead_of = event.ahead_of
    job.is_forced = event.is_forced
    job.gave_up_us = None
    job.dispatch_us = now_us
    job.start_us = None
    if job.ahead_of and state.gatherers:
        job.borrows = borrowed(state, job)
    state.live[stamped.stream] = job
    state.capacity.take(allocation)
    if job.is_forced:
        # Its hosts may be oversubscribed from now on.
        state.capacity.settle_all()
    state.pace_hosts(allocation, now_us)
    if state.limits.are_any:
        state.limits.charge(job)
    state.set_run_timers(job)


def run_requested(state: State, stamped: Stamped, event: JobRunRequested) -> None:
    """
    Remember where an operator wants a pending job started; nobody else considers it meanwhile.
    """
    job = state.stored.jobs[stamped.stream]
    stop_waiting(state, job, stamped.time_us)
    job.fresh = "JOB_MODIFY"
    wait_for_hosts(state, job, event.hosts, tells_never=event.tells_never)


def start_promised(state: State, stamped: Stamped, event: JobStartPromised) -> None:
    """
    Remember what is promised to a pending job.
    """
    job = state.stored.jobs[stamped.stream]
    promise(state, job, event.reservation, stamped.time_us)


def started(state: State, stamped: Stamped, event: JobStarted) -> None:
    """
    Remember when and as which process the attempt began.
    """
    job = state.stored.jobs[stamped.stream]
    job.start_us = stamped.time_us
    job.pid = event.pid
    job.process_group = event.process_group


def finished(state: State, stamped: Stamped, event: JobFinished) -> None:
    """
    End the job and give back what it held; its exit value may put it back to pending.
    """
    job = state.stored.jobs[stamped.stream]
    job.exit_code = event.exit_code
    job.signal = event.signal
    job.why = event.why
    if event.cpu_us or event.max_rss_kib:
        job.cpu_us = max(job.cpu_us, event.cpu_us)
        job.max_rss_kib = max(job.max_rss_kib, event.max_rss_kib)
    well = False
    if job.exit_code is not None and job.signal is None and not job.why:
        value, rules = job.exit_code, state.exit_rules(job)
        well = value == 0 or value in rules.success
        if rules is not NO_RULES:
            _note_exit_value(job, value, rules)
    _end(state, job, JobState.DONE if well else JobState.EXIT, stamped.time_us)


def _note_exit_value(job: JobRecord, value: int, rules: ExitRules) -> None:
    """
    Note that an exit value puts the job back to pending, as often as its rules allow.
    """
    if value not in (*rules.requeue, *rules.exclude):
        return
    if rules.requeue_max is not None and job.exit_requeues >= rules.requeue_max:
        return
    job.requeue_why = EXIT_VALUE
    # Which of several hosts is to blame nobody can tell: parallel jobs avoid none, as in LSF.
    if value in rules.exclude and job.allocation is not None and job.allocation.tasks() == 1:
        first = job.allocation.runs[0].first
        job.excluded_hosts = tuple(sorted({first, *job.excluded_hosts}))


def could_not_start(state: State, stamped: Stamped, event: JobCouldNotStart) -> None:
    """
    End a job whose program couldn't be started; when what runs before it failed, or the host was at
    fault, it goes back to pending and avoids that host, so that it is tried elsewhere.
    """
    job = state.stored.jobs[stamped.stream]
    job.why = event.reason
    if not event.is_final and job.kill_actor is None and job.allocation is not None:
        failed = FAULTS[event.fault] if event.fault else PRE_EXEC_FAILED[event.pre_exec_of]
        job.requeue_why = job.requeue_why or failed
        first = job.allocation.runs[0].first
        job.excluded_hosts = tuple(sorted({first, *job.excluded_hosts}))
    _end(state, job, JobState.EXIT, stamped.time_us)


def ended(state: State, stamped: Stamped, event: JobEnded) -> None:
    """
    End a job without its worker.
    """
    job = state.stored.jobs[stamped.stream]
    job.why = event.why
    _end(state, job, JobState.EXIT, stamped.time_us)


def _end(state: State, job: JobRecord, after: JobState, now_us: int) -> None:
    if job.stream in state.live:
        _leave_hosts(state, job, now_us)
    else:
        stop_waiting(state, job, now_us)
    if job.kill_actor is not None:
        # Whoever wants it ended doesn't want it back.
        job.requeue_why, job.requeue_hold = "", False
    move(state, job, after, now_us)
    job.finish_us = now_us
    if state.kills:
        state.kills.pop(job.stream, None)
    if job.requeue_why:
        state.requeues[job.stream] = job
    else:
        state.note_ended(job)


def _leave_hosts(state: State, job: JobRecord, now_us: int) -> None:
    """
    Give back what a live job holds, and drop the orders that stand for it.
    """
    if state.rememberer is not None:
        state.is_applying = True
        state.rememberer.on_run_end(job, now_us)
        state.is_applying = False
    state.capacity.give_back(job)
    if job.is_forced:
        # They may be oversubscribed no longer.
        state.capacity.settle_all()
    if state.limits.are_any:
        state.limits.give_back(job)
    if job.borrows:
        job.borrows = ()
        state.capacity.changed += 1
    del state.live[job.stream]
    if state.demands:
        state.demands.pop(job.stream, None)
    if job.kill_order or job.suspend_order or job.resume_order or job.signalled:
        state.drop_orders(job)
    if job.signals_wanted:
        del state.signals[job.stream]
    job.signals_wanted = job.signalled = ()
    job.is_forced = False
    if job.actual:
        job.actual = {}
    job.suspend_order = job.resume_order = 0
    job.resume_wanted = job.is_aside = False
    job.spared_from = ()
    if state.victims:
        state.victims.pop(job.stream, None)
    if job.preemptor:
        preemptor, job.preemptor = job.preemptor, ""
        note_left(state, preemptor)


def kill_ordered(state: State, stamped: Stamped, event: JobKillOrdered) -> None:
    """
    Remember the order; it stands until its worker reports it done or the job has ended.
    """
    job = state.stored.jobs[stamped.stream]
    job.kill_order, job.kill_us = event.order_number, stamped.time_us
    state.set_hung_timer(job)
    job.why = event.why
    signals = event.signals
    order = OrderRecord("kill", stamped.stream, event.attempt, event.why, signals=signals)
    give_order(state, event.worker, event.order_number, order)
    if not job.kill_forced:
        state.kills.pop(stamped.stream, None)
    if event.why == TERM_LOAD:
        note_eased(state, job, stamped.time_us)
        if event.requeue and job.allocation is not None:
            hosts = {number for number, _, _ in job.allocation.shares()}
            job.eased_hosts = tuple(sorted(hosts.union(job.eased_hosts)))
    if event.requeue:
        job.requeue_why = REQUEUED_FOR.get(event.why, "preempted")
    if event.preemptor:
        note_victim(state, job, event.preemptor)


# -- changes


def requeue_requested(state: State, stamped: Stamped, event: JobRequeueRequested) -> None:
    """
    Remember that the job must go back to pending; the next session orders its end first.
    """
    job = state.stored.jobs[stamped.stream]
    job.requeue_why = "command" if stamped.actor in ("", job.spec.user) else ADMIN_COMMAND
    job.requeue_hold = event.hold
    if not job.kill_order:
        state.kills[stamped.stream] = job


def requeued(state: State, stamped: Stamped, event: JobRequeued) -> None:
    """
    Put the job back to pending: in front of its equals, or behind them.
    """
    job = state.stored.jobs[stamped.stream]
    now_us = stamped.time_us
    if stamped.stream in state.live:
        _leave_hosts(state, job, now_us)
    state.requeues.pop(stamped.stream, None)
    state.kills.pop(stamped.stream, None)
    move(state, job, JobState.PEND, now_us)
    if not event.to_top:
        job.queue_us, job.beside = now_us, None
    job.allocation = None
    job.requeues += 1
    job.exit_requeues += event.why == EXIT_VALUE
    job.requeue_why, job.requeue_hold = "", False
    job.kill_actor, job.kill_order, job.stop_actor, job.suspend_why = None, 0, None, ""
    job.kill_forced = False
    job.exit_code = job.signal = job.finish_us = job.start_us = None
    job.why = ""
    job.pid = job.process_group = job.run_us = 0
    job.fresh = FRESH_AFTER.get(event.why, "JOB_REQUEUED")
    if event.hold:
        job.state = JobState.PSUSP
        state.set_waiting_timers(job)
        return
    if event.why == "lost host":
        state.waiting += 1
        state.put_back[stamped.stream] = job
        return
    begin_waiting(state, job)


APPLY: Final[dict[Any, Any]] = {
    JobSubmitted: submitted,
    JobHeld: held,
    JobHoldLifted: hold_lifted,
    JobKillRequested: kill_requested,
    JobPended: pended,
    JobDispatched: dispatched,
    JobStarted: started,
    JobRunRequested: run_requested,
    JobStartPromised: start_promised,
    JobFinished: finished,
    JobCouldNotStart: could_not_start,
    JobEnded: ended,
    JobKillOrdered: kill_ordered,
    JobRequeueRequested: requeue_requested,
    JobRequeued: requeued,
}
