"""
Apply events of workers.
"""

from __future__ import annotations

from typing import Any, Final

from domain.envelope import Stamped
from domain.events.workers import (
    WorkerBecameUnreachable,
    WorkerCameBack,
    WorkerClosed,
    WorkerConfigured,
    WorkerDrained,
    WorkerJoined,
    WorkerLeft,
    WorkerOpened,
    WorkerOrderDone,
    WorkerReported,
)
from domain.ids import entity_of_stream, job_stream
from domain.job_states import JobState, state_after
from projections.scheduling.apply.transitions import move
from projections.scheduling.holds import lose_kept
from projections.scheduling.records import WorkerRecord
from projections.scheduling.state import State


def _worker(state: State, stamped: Stamped) -> WorkerRecord:
    return state.stored.workers[entity_of_stream(stamped.stream)[1]]


def joined(state: State, stamped: Stamped, event: WorkerJoined) -> None:
    """
    Add a worker, or take over what one that joined again has now.
    """
    name = entity_of_stream(stamped.stream)[1]
    worker = state.stored.workers.get(name)
    if worker is None:
        worker = WorkerRecord(
            name=name,
            number=event.host_number,
            incarnation=event.incarnation,
            slots=event.slots,
            resources=event.resources,
            attributes=event.attributes,
            joined_us=stamped.time_us,
            report_us=stamped.time_us,
        )
        state.stored.workers[name] = worker
        state.hosts.append(worker)
    worker.incarnation = event.incarnation
    worker.slots = event.slots
    worker.resources = event.resources
    worker.attributes = event.attributes
    worker.report_us = stamped.time_us
    worker.left = worker.is_awaited = False
    worker.load, worker.is_blind = {}, False
    _reach_again(state, stamped, worker)
    state.with_victims_back(lambda: state.capacity.set_host(worker))
    state.note_load(worker)
    state.note_vocabulary()


def reported(state: State, stamped: Stamped, event: WorkerReported) -> None:
    """
    Take over load and usage, which were measured together.
    """
    worker = _worker(state, stamped)
    worker.report_us = stamped.time_us
    for amount in event.load:
        worker.load[amount.resource] = amount.milli
    for usage in event.jobs:
        job = state.live.get(job_stream(usage.job_id))
        if job is None or job.attempt != usage.attempt:
            continue
        actual = {amount.resource: amount.milli for amount in usage.amounts}
        state.capacity.reconcile(job, worker.number, actual)
        job.cpu_us = max(job.cpu_us, usage.cpu_us)
        job.processes = usage.processes
        job.threads = usage.threads
        if state.values_of(job).limits is not None:
            state.over_limit[job.stream] = job
    state.capacity.set_load(worker)
    state.note_load(worker)
    if worker.is_blind != event.is_blind:
        worker.is_blind = event.is_blind
        state.capacity.set_status(worker)


def configured(state: State, stamped: Stamped, event: WorkerConfigured) -> None:
    """
    Take over what holds for the host.
    """
    worker = _worker(state, stamped)
    bounds_users = event.settings.user_slots_max != worker.settings.user_slots_max
    bounds_load = event.settings.thresholds != worker.settings.thresholds
    worker.settings = event.settings
    if bounds_load:
        state.capacity.set_thresholds(worker)
        state.note_load(worker)
        state.forget_requests()
    state.note_host(worker, stamped.time_us)
    state.capacity.set_status(worker)
    if bounds_users:
        state.define_limits()


def closed(state: State, stamped: Stamped, event: WorkerClosed | WorkerDrained) -> None:
    """
    Close the host, for good or to run dry; its running jobs go on.
    """
    worker = _worker(state, stamped)
    worker.closed = True
    worker.closed_why = event.why
    worker.is_draining = isinstance(event, WorkerDrained)
    state.capacity.set_status(worker)


def opened(state: State, stamped: Stamped, event: WorkerOpened) -> None:
    """
    Open the host.
    """
    worker = _worker(state, stamped)
    worker.closed = False
    worker.closed_why = ""
    worker.is_draining = False
    state.capacity.set_status(worker)


def became_unreachable(state: State, stamped: Stamped, event: WorkerBecameUnreachable) -> None:
    """
    Take no jobs for it, and lose contact to those whose first host it is.
    """
    worker = _worker(state, stamped)
    worker.unreachable_us = stamped.time_us
    worker.is_awaited = False
    state.lost_hosts[worker.name] = worker
    lose_kept(state, worker)
    for job in state.jobs_led_by(worker):
        after = state_after("contact lost", job.state)
        if after is not None:
            move(state, job, after, stamped.time_us)
    state.capacity.set_status(worker)


def came_back(state: State, stamped: Stamped, event: WorkerCameBack) -> None:
    """
    Reach the host and its jobs again.
    """
    worker = _worker(state, stamped)
    worker.report_us = stamped.time_us
    worker.is_awaited = False
    _reach_again(state, stamped, worker)
    state.capacity.set_status(worker)


def _reach_again(state: State, stamped: Stamped, worker: WorkerRecord) -> None:
    if worker.unreachable_us is None:
        return
    worker.unreachable_us = None
    state.lost_hosts.pop(worker.name, None)
    for job in state.jobs_led_by(worker):
        if job.state is JobState.UNKWN:
            move(state, job, job.state_before_loss, stamped.time_us)
            state.set_run_timers(job)


def left(state: State, stamped: Stamped, event: WorkerLeft) -> None:
    """
    Place nothing on it until it joins again.
    """
    worker = _worker(state, stamped)
    worker.left = True
    worker.is_awaited = False
    lose_kept(state, worker)
    state.capacity.set_status(worker)


def order_done(state: State, stamped: Stamped, event: WorkerOrderDone) -> None:
    """
    Remember the last order carried out.
    """
    worker = _worker(state, stamped)
    worker.last_order_done = max(worker.last_order_done, event.order_number)
    for number in [number for number in worker.orders if number <= event.order_number]:
        del worker.orders[number]


APPLY: Final[dict[Any, Any]] = {
    WorkerJoined: joined,
    WorkerReported: reported,
    WorkerConfigured: configured,
    WorkerClosed: closed,
    WorkerDrained: closed,
    WorkerOpened: opened,
    WorkerBecameUnreachable: became_unreachable,
    WorkerCameBack: came_back,
    WorkerLeft: left,
    WorkerOrderDone: order_done,
}
