"""
Builders of everything that tests need: whatever isn't named has a sensible value.
"""

from __future__ import annotations

from domain.amounts import MEM, HostResource
from domain.cluster import ClusterSettings
from domain.commands import DefineCluster, DefineQueue, JoinWorker, StartScheduler, SubmitJob
from domain.jobs import JobSpec, Need
from domain.queues import QueueSpec
from projections.scheduling.plugins import Plugins

SECOND_US = 1_000_000
MB_MILLI = 1_024_000


def some_settings(**changes: object) -> ClusterSettings:
    """
    Return settings of a small cluster.
    """
    values: dict[str, object] = {
        "name": "test",
        "default_queue": "normal",
        "picker": "builtin_fcfs",
        "allocators": ("parjob", "fill"),
        "session_interval_us": 0,
        "session_max_decisions": 10_000,
        "clean_period_us": 3_600 * SECOND_US,
        "forget_batch": 3,
        "key_retention_us": 3_600 * SECOND_US,
        "snapshot_every_events": 1_000,
    }
    return ClusterSettings(**{**values, **changes})


def beginning(
    settings: ClusterSettings | None = None, plugins: Plugins | None = None
) -> list[object]:
    """
    Return the commands that a first start gives.
    """
    plugins = plugins or Plugins()
    settings = settings or some_settings()
    return [
        StartScheduler(
            epoch=1,
            holder="test",
            code_version="test",
            pickers=plugins.picker_versions(),
            allocators=plugins.allocator_versions(),
        ),
        DefineCluster(settings=settings),
        DefineQueue(queue=settings.default_queue, spec=QueueSpec(priority=30)),
    ]


def a_host(name: str = "h1", slots: int = 4, mem_mb: int | None = None, **more: int) -> JoinWorker:
    """
    Return the joining of a host; further keywords are counted resources in whole units.
    """
    resources = [
        HostResource(name=resource, total_milli=total * 1_000) for resource, total in more.items()
    ]
    if mem_mb is not None:
        resources.insert(0, HostResource(name=MEM, total_milli=mem_mb * MB_MILLI, is_real=True))
    return JoinWorker(worker=name, slots=slots, resources=tuple(resources))


def a_job(
    tasks: int = 1,
    *,
    tasks_max: int | None = None,
    mem_mb: int | None = None,
    per_task: bool = False,
    queue: str = "normal",
    user: str = "alice",
    priority: int = 0,
    hold: bool = False,
    name: str = "",
    key: str = "",
    digest: str = "",
) -> SubmitJob:
    """
    Return the submission of a job.
    """
    needs = ()
    if mem_mb is not None:
        needs = (Need(resource=MEM, milli=mem_mb * MB_MILLI, per_task=per_task),)
    spec = JobSpec(
        user=user,
        queue=queue,
        name=name,
        tasks_min=tasks,
        tasks_max=tasks_max or tasks,
        needs=needs,
        user_priority=priority,
        hold=hold,
    )
    return SubmitJob(spec=spec, key=key, digest=digest)
