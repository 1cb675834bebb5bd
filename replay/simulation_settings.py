"""
The cluster that a simulation sets up, and the id of its log: functions of what it is given.
"""

from __future__ import annotations

import hashlib
from typing import Final

from domain.cluster import ClusterSettings, DefaultHostType
from domain.commands.settings import DefineCluster, DefineQueue, StartScheduler
from domain.queues import QueueSpec
from domain.units import DAY_US, SECOND_US, MemoryUnit
from projections.scheduling.core import Core
from projections.scheduling.placement.runner import SERIAL
from projections.scheduling.plugins import Plugins
from replay.branch_changes import Changes, check_picker
from replay.cluster_spec import ClusterSpec
from replay.workloads.source import Workload

CODE_VERSION: Final = "0.1.0"
QUEUE: Final = "normal"
QUEUE_SPEC: Final = QueueSpec(
    priority=30, description="all jobs of the workload", allows_exclusive=True
)


def simulation_settings(picker: str, allocators: tuple[str, ...]) -> ClusterSettings:
    """
    Return the settings of a simulated cluster; they are written to its log.
    """
    return ClusterSettings(
        name="simulation",
        default_queue=QUEUE,
        picker=picker,
        allocators=allocators,
        session_interval_us=0,
        session_max_decisions=1_000_000,
        clean_period_us=3_600 * SECOND_US,
        forget_batch=256,
        key_retention_us=DAY_US,
        snapshot_every_events=1_000_000,
        default_host_type=DefaultHostType.ANY,
        memory_unit=MemoryUnit.MB,
        reserve_per_task=False,
    )


def start_of(plugins: Plugins) -> StartScheduler:
    """
    Return the command that a simulation begins with.
    """
    return StartScheduler(
        epoch=1,
        holder="simulation",
        code_version=CODE_VERSION,
        pickers=plugins.picker_versions(),
        allocators=plugins.allocator_versions(),
    )


def checked_settings(picker: str, plugins: Plugins, changes: Changes) -> ClusterSettings:
    """
    Return the settings of a simulated cluster with changes, before anything is written.

    Raises:
        Refused: Nobody knows the picker, or a cluster or queue can't have what is set.
    """
    check_picker("--picker", picker, plugins)
    changes.check_pickers(plugins)
    # The chain is for jobs of more than one task; the serial one is always there beside it.
    chain = tuple(name for name in plugins.allocators if name != SERIAL)
    settings = changes.cluster(simulation_settings(picker, chain))
    queues = [each.name or QUEUE for each in changes.settings if each.kind == "queue"]
    commands = [
        DefineQueue(queue=name, spec=changes.queue(name, QUEUE_SPEC)) for name in queues
    ]  # fmt: skip
    # What a queue asks of hosts is judged by a core, as it is when the simulation sets up its own.
    core = Core(plugins)
    for command in (start_of(plugins), DefineCluster(settings=settings), *commands):
        made = core.handle(command, actor="", now_us=0)
        core.take(made, actor="", cause="", now_us=0)
    return settings


def log_id_of(workload: Workload, cluster: ClusterSpec, picker: str) -> str:
    """
    Return the id of a simulation's log: a function of the workload, the cluster and the policy.
    """
    digest = hashlib.sha256()
    digest.update(repr((workload.name, workload.start_unix_s, cluster, picker)).encode())
    jobs = workload.jobs
    for column in (*jobs.columns(), jobs.submit_part_us, jobs.estimate_s, jobs.run_part_us):
        digest.update(b"" if column is None else column.tobytes())
    if jobs.details is not None:
        digest.update(repr(jobs.details).encode())
    return f"sim-{digest.hexdigest()[:32]}"
