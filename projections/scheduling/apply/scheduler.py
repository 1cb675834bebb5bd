"""
Apply events of the scheduler, the cluster, its queues, and refusals.
"""

from __future__ import annotations

from typing import Any, Final

from domain.envelope import Stamped
from domain.events.queues import (
    QueueActivated,
    QueueClosed,
    QueueDefined,
    QueueInactivated,
    QueueOpened,
    QueueRemoved,
)
from domain.events.refusals import AccessDenied, CommandRefused, ReportIgnored
from domain.events.resources import ResourceDefined
from domain.events.scheduler import (
    ClockCorrected,
    ClusterDefined,
    SchedulerStarted,
    SchedulerStopped,
)
from domain.ids import entity_of_stream
from domain.queues import QueueSpec
from projections.scheduling.holds import forget_failures
from projections.scheduling.records import QueueRecord
from projections.scheduling.state import State


def scheduler_started(state: State, stamped: Stamped, event: SchedulerStarted) -> None:
    """
    Remember who runs the scheduler, and which versions of the plug-ins decide from now on.

    Which agents are still there it may not know yet: then a host takes no jobs until its worker is
    heard. Its running jobs are untouched. Hosts where jobs failed are avoided no longer: what was
    wrong may have been mended.
    """
    state.stored.epoch = event.epoch
    state.stored.pickers = event.pickers
    state.stored.allocators = event.allocators
    state.stored.running = True
    state.stored.started_us = stamped.time_us
    state.capacity.freed += 1
    if event.awaits_workers:
        forget_failures(state)
    for worker in state.hosts if event.awaits_workers else ():
        worker.is_awaited = worker.unreachable_us is None and not worker.left
        state.capacity.set_status(worker)


def scheduler_stopped(state: State, stamped: Stamped, event: SchedulerStopped) -> None:
    """
    Remember that it ended in good order.
    """
    state.stored.running = False


def cluster_defined(state: State, stamped: Stamped, event: ClusterDefined) -> None:
    """
    Take the settings over.
    """
    state.stored.cluster = event.settings
    state.define_limits()


def resource_defined(state: State, stamped: Stamped, event: ResourceDefined) -> None:
    """
    Take over what a resource is.
    """
    state.define_resource(event.descriptor)


def queue_defined(state: State, stamped: Stamped, event: QueueDefined) -> None:
    """
    Make or change a queue.
    """
    _set_queue(state, stamped, event.spec)


def _set_queue(state: State, stamped: Stamped, spec: Any) -> None:
    name = entity_of_stream(stamped.stream)[1]
    queue = state.stored.queues.get(name)
    before = None if queue is None else queue.spec
    if queue is None:
        queue = state.stored.queues[name] = QueueRecord(name, spec)
    queue.spec = spec
    if not spec.picker:
        state.stored.blockers.pop(stamped.stream, None)
    if before is None or _without_switches(before) != _without_switches(spec):
        state.define_limits()
        return
    # Jobs and their requests are as they were, only when they may start is another question.
    state.note_queues()
    state.picker.on_queue_update(queue)
    state.capacity.freed += 1


def queue_removed(state: State, stamped: Stamped, event: QueueRemoved) -> None:
    """
    Drop a queue that no job is in; the core builds every index anew then.
    """
    del state.stored.queues[entity_of_stream(stamped.stream)[1]]
    state.stored.blockers.pop(stamped.stream, None)


def _without_switches(spec: QueueSpec) -> QueueSpec:
    return spec.model_copy(update={"is_open": True, "is_active": True})


def _queue_with(**changes: bool) -> Any:
    """
    Return a function that changes switches of the stream's queue.
    """

    def change(state: State, stamped: Stamped, event: object) -> None:
        queue = state.stored.queues[entity_of_stream(stamped.stream)[1]]
        _set_queue(state, stamped, queue.spec.model_copy(update=changes))

    return change


def nothing(state: State, stamped: Stamped, event: object) -> None:
    """
    Change nothing: the event is for history alone.
    """


APPLY: Final[dict[Any, Any]] = {
    SchedulerStarted: scheduler_started,
    SchedulerStopped: scheduler_stopped,
    ClockCorrected: nothing,
    ClusterDefined: cluster_defined,
    ResourceDefined: resource_defined,
    QueueDefined: queue_defined,
    QueueRemoved: queue_removed,
    QueueOpened: _queue_with(is_open=True),
    QueueClosed: _queue_with(is_open=False),
    QueueActivated: _queue_with(is_active=True),
    QueueInactivated: _queue_with(is_active=False),
    CommandRefused: nothing,
    AccessDenied: nothing,
    ReportIgnored: nothing,
}
