"""
Handle commands about the scheduler, the cluster, its queues and its hosts.
"""

from __future__ import annotations

from typing import Any, Final

from domain.commands.policies import RemoveQueue
from domain.commands.settings import (
    CloseWorker,
    ConfigureWorker,
    DefineCluster,
    DefineQueue,
    DefineResource,
    DrainWorker,
    OpenWorker,
    SetQueue,
    StartScheduler,
    StopScheduler,
)
from domain.errors import Refused
from domain.event import Event
from domain.events.queues import (
    QueueActivated,
    QueueClosed,
    QueueDefined,
    QueueInactivated,
    QueueOpened,
    QueueRemoved,
)
from domain.events.resources import ResourceDefined
from domain.events.scheduler import ClusterDefined, SchedulerStarted, SchedulerStopped
from domain.events.workers import WorkerClosed, WorkerConfigured, WorkerDrained, WorkerOpened
from domain.ids import CLUSTER, SCHEDULER, queue_stream, resource_stream, worker_stream
from domain.queues import QueueSpec, check_queue
from domain.resources import check_descriptor
from domain.thresholds import check_thresholds
from domain.units import show_duration
from projections.scheduling.handle.answers import NewEvents
from projections.scheduling.handle.requirements import checked, parsed, parsed_select
from projections.scheduling.placement.runner import FRAMEWORK
from projections.scheduling.state import State

HUNG_AFTER_MIN_US: Final = 30_000_000
"""From the first signal at a run limit to SIGKILL: before that a program only takes its time."""
HUNG_HINT: Final = "A number without a unit means microseconds; an empty value turns it off."


def start_scheduler(state: State, command: StartScheduler, actor: str) -> NewEvents:
    """
    Note who runs the scheduler from now on.
    """
    event = SchedulerStarted(
        epoch=command.epoch,
        holder=command.holder,
        boot_id=command.boot_id,
        code_version=command.code_version,
        pickers=command.pickers,
        allocators=command.allocators,
        awaits_workers=command.awaits_workers,
    )
    return [(SCHEDULER, event)]


def stop_scheduler(state: State, command: StopScheduler, actor: str) -> NewEvents:
    """
    Note that the scheduler ends.
    """
    return [(SCHEDULER, SchedulerStopped(why=command.why))]


def define_cluster(state: State, command: DefineCluster, actor: str) -> NewEvents:
    """
    Change the settings; plug-ins that nobody knows are refused here, not when they are first used.
    """
    settings = command.settings
    _check_picker(state, settings.picker)
    allocators = [plugin.name for plugin in state.stored.allocators if plugin.name not in FRAMEWORK]
    if not settings.allocators:
        raise Refused("allocators", "must name one at least")
    for name in settings.allocators:
        if name not in allocators:
            raise Refused("allocators", f"must be of {', '.join(allocators)}", name)
    if settings.default_queue not in state.stored.queues and state.stored.queues:
        raise Refused("default_queue", "must name a queue that exists", settings.default_queue)
    hung_after_us = settings.hung_after_us
    if hung_after_us is not None and hung_after_us < HUNG_AFTER_MIN_US:
        rule = "must be at least 30s, since the signals that end a job take so long"
        raise Refused("hung_after_us", rule, show_duration(hung_after_us), HUNG_HINT)
    if state.stored.cluster == settings:
        return []
    return [(CLUSTER, ClusterDefined(settings=settings))]


def _check_picker(state: State, name: str) -> None:
    """
    Refuse a picker that nobody knows, here and not when it is first used.
    """
    pickers = [plugin.name for plugin in state.stored.pickers]
    if name not in pickers:
        raise Refused("picker", f"must be one of {', '.join(pickers)}", name)


def define_resource(state: State, command: DefineResource, actor: str) -> NewEvents:
    """
    Say what a resource is; saying the same again changes nothing.
    """
    descriptor = check_descriptor(command.descriptor)
    if state.stored.resources.get(descriptor.name) == descriptor:
        return []
    return [(resource_stream(descriptor.name), ResourceDefined(descriptor=descriptor))]


def define_queue(state: State, command: DefineQueue, actor: str) -> NewEvents:
    """
    Make a queue, or change one.
    """
    if command.spec.picker:
        _check_picker(state, command.spec.picker)
    spec = check_queue(command.spec)
    if spec.resreq:
        spec = spec.model_copy(update={"requirement": parsed(state, spec.resreq)})
    elif spec.requirement is not None:
        checked(state, spec.requirement)
    spec = _with_load_rules(state, spec)
    if spec.project and state.stored.projects and spec.project not in state.stored.projects:
        raise Refused("project", "must name a project that exists", spec.project)
    known = state.stored.queues.get(command.queue)
    if known is not None and known.spec == spec:
        return []
    return [(queue_stream(command.queue), QueueDefined(spec=spec))]


def _with_load_rules(state: State, spec: QueueSpec) -> QueueSpec:
    """
    Return a queue with what it says of the load of hosts checked. The texts of its conditions count
    alone: what was made of others before, or given beside them, was never checked against them.
    """
    return spec.model_copy(
        update={
            "thresholds": check_thresholds(spec.thresholds, state.catalogue),
            "stop_when": parsed_select(state, spec.stop_condition, "stop_condition"),
            "resume_when": parsed_select(state, spec.resume_condition, "resume_condition"),
        }
    )


def remove_queue(state: State, command: RemoveQueue, actor: str) -> NewEvents:
    """
    Do without a queue that no known job is in and nothing names.
    """
    name = state.queue(command.queue).name
    if name == state.settings().default_queue:
        hint = "Make another one the default first: xce define cluster default_queue=NAME."
        raise Refused("queue", "must not be the default queue", name, hint)
    for job in state.stored.jobs.values():
        if job.spec.queue == name:
            rule = f"must have no jobs, and job {job.job_id} isn't forgotten yet"
            raise Refused("queue", rule, name)
    for limit, spec in state.stored.limits.items():
        entries = spec.queues.names.entries if spec.queues else ()
        if any(entry.name == name for entry in entries):
            raise Refused("queue", f"must not be named by the limit {limit}", name)
    return [(queue_stream(name), QueueRemoved())]


def set_queue(state: State, command: SetQueue, actor: str) -> NewEvents:
    """
    Turn a switch of a queue; turning it to where it is changes nothing.
    """
    spec = state.queue(command.queue).spec
    now, event = {
        "open": (spec.is_open, QueueOpened()),
        "closed": (not spec.is_open, QueueClosed()),
        "active": (spec.is_active, QueueActivated()),
        "inactive": (not spec.is_active, QueueInactivated()),
    }[command.to]
    return [] if now else _one(queue_stream(command.queue), event)


def configure_worker(state: State, command: ConfigureWorker, actor: str) -> NewEvents:
    """
    Set what holds for a host; setting the same again changes nothing.
    """
    worker, settings = state.worker(command.worker), command.settings
    if settings.thresholds:
        thresholds = check_thresholds(settings.thresholds, state.catalogue)
        settings = settings.model_copy(update={"thresholds": thresholds})
    if worker.settings == settings:
        return []
    return _one(worker_stream(worker.name), WorkerConfigured(settings=settings))


def close_worker(state: State, command: CloseWorker, actor: str) -> NewEvents:
    """
    Close a host to new jobs; closing it again changes nothing.
    """
    worker = state.worker(command.worker)
    if worker.closed and not worker.is_draining:
        return []
    return _one(worker_stream(worker.name), WorkerClosed(why=command.why))


def drain_worker(state: State, command: DrainWorker, actor: str) -> NewEvents:
    """
    Let a host run dry; one that is closed already takes no jobs anyway.
    """
    worker = state.worker(command.worker)
    if worker.closed:
        return []
    return _one(worker_stream(worker.name), WorkerDrained(why=command.why))


def open_worker(state: State, command: OpenWorker, actor: str) -> NewEvents:
    """
    Open a host; opening an open one changes nothing.
    """
    worker = state.worker(command.worker)
    return _one(worker_stream(worker.name), WorkerOpened()) if worker.closed else []


def _one(stream: str, event: Event) -> NewEvents:
    return [(stream, event)]


HANDLE: Final[dict[Any, Any]] = {
    StartScheduler: start_scheduler,
    StopScheduler: stop_scheduler,
    DefineCluster: define_cluster,
    DefineQueue: define_queue,
    DefineResource: define_resource,
    SetQueue: set_queue,
    RemoveQueue: remove_queue,
    ConfigureWorker: configure_worker,
    CloseWorker: close_worker,
    DrainWorker: drain_worker,
    OpenWorker: open_worker,
}
