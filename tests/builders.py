"""
Builders of everything that tests need: whatever isn't named has a sensible value.
"""

from __future__ import annotations

from domain.amounts import MEM, Attribute, HostResource, InstanceUnit
from domain.cluster import ClusterSettings, DefaultHostType
from domain.commands import DefineCluster, DefineQueue, JoinWorker, StartScheduler, SubmitJob
from domain.jobs import HostChoice, JobSpec
from domain.queues import QueueSpec
from domain.resreq.syntax import Per, Primary, RusageTerm, simple_requirement
from domain.units import MemoryUnit
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
        "default_host_type": DefaultHostType.ANY,
        "memory_unit": MemoryUnit.MB,
        "reserve_per_task": False,
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
        DefineQueue(
            queue=settings.default_queue, spec=QueueSpec(priority=30, allows_exclusive=True)
        ),
    ]


def a_host(
    name: str = "h1",
    slots: int = 4,
    mem_mb: int | None = None,
    *,
    gpus: int = 0,
    **more: int | str,
) -> JoinWorker:
    """
    Return the joining of a host; further keywords are counted resources in whole units where they
    are numbers, and attributes where they are texts ("yes" is a boolean).
    """
    resources = [
        HostResource(name=resource, total_milli=total * 1_000)
        for resource, total in more.items()
        if isinstance(total, int)
    ]
    attributes = [
        Attribute(name=key, value="true" if value == "yes" else value.removeprefix("~"))
        for key, value in more.items()
        if isinstance(value, str)
    ]
    if gpus:
        units = tuple(InstanceUnit(name=str(number)) for number in range(gpus))
        resources.append(HostResource(name="gpu", total_milli=gpus * 1_000, units=units))
    if mem_mb is not None:
        resources.insert(0, HostResource(name=MEM, total_milli=mem_mb * MB_MILLI, is_real=True))
    return JoinWorker(
        worker=name, slots=slots, resources=tuple(resources), attributes=tuple(attributes)
    )


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
    resreq: str | tuple[str, ...] = (),
    hosts: str = "",
    exclusive: bool = False,
    submit_type: str = "",
) -> SubmitJob:
    """
    Return the submission of a job; *hosts* is "h1+2,h2!" as -m takes it, with commas.
    """
    requirement = None
    if mem_mb is not None:
        per = Per.TASK if per_task else Per.HOST
        term = RusageTerm(resource=MEM, milli=mem_mb * MB_MILLI, per=per)
        requirement = simple_requirement(Primary(rusage=((term,),)))
    spec = JobSpec(
        user=user,
        queue=queue,
        name=name,
        tasks_min=tasks,
        tasks_max=tasks_max or tasks,
        resreq=(resreq,) if isinstance(resreq, str) else resreq,
        requirement=requirement,
        hosts=tuple(_choice(text) for text in hosts.split(",") if text),
        is_exclusive=exclusive,
        submit_type=submit_type,
        user_priority=priority,
        hold=hold,
    )
    return SubmitJob(spec=spec, key=key, digest=digest)


def _choice(text: str) -> HostChoice:
    name, _, wish = text.partition("+")
    return HostChoice(
        host=name.rstrip("!"), preference=int(wish or 0), is_first=name.endswith("!")
    )
