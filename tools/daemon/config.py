"""
What the live driver can be told, and what a cluster begins with: written to its log, once.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from domain.cluster import ClusterSettings, DefaultHostType
from domain.commands import DefineCluster, DefineQueue
from domain.queues import QueueSpec
from domain.units import DAY_US, HOUR_US, MemoryUnit
from tools.agent.files import SOCKET_NAME

DEFAULT_QUEUE = "normal"


@dataclass(frozen=True, slots=True)
class DaemonSettings:
    """
    Hold how one scheduler process runs; nothing of it belongs to the log.

    Args:
        cluster_name: What a new cluster is called.
        snapshot_every_events: How often a new cluster takes snapshots.
        snapshot_limit_s: A snapshot that isn't made in this time, nor in ten times that of the one
            before it, is given up.
        silent_after_s: A worker that said nothing for so long is unreachable.
        batch_max: So many requests at most share one commit.
        body_bytes_max: A larger request is refused.
        connections_max: So many at once are served.
    """

    cluster_name: str = "xce"
    snapshot_every_events: int = 100_000
    snapshot_limit_s: float = 600.0
    silent_after_s: float = 60.0
    batch_max: int = 512
    body_bytes_max: int = 2 << 20
    connections_max: int = 512


@dataclass(frozen=True, slots=True)
class ClusterFiles:
    """
    Name the files of a cluster.
    """

    directory: Path

    @property
    def log(self) -> Path:
        """
        Return the directory of the event log.
        """
        return self.directory / "log"

    @property
    def snapshots(self) -> Path:
        """
        Return the directory of the snapshots.
        """
        return self.directory / "snapshots"

    @property
    def socket(self) -> Path:
        """
        Return where the scheduler listens.
        """
        return self.directory / SOCKET_NAME

    @property
    def journal(self) -> Path:
        """
        Return where the scheduler writes its log lines.
        """
        return self.directory / "scheduler.log"

    @property
    def follower_log(self) -> Path:
        """
        Return where the audit follower writes its complaints.
        """
        return self.directory / "audit.log"

    @property
    def identity(self) -> Path:
        """
        Return the file that says which log belongs here.
        """
        return self.directory / "cluster.json"

    @property
    def key(self) -> Path:
        """
        Return the file of the cluster's secret key.
        """
        return self.directory / "cluster.key"

    @property
    def workers(self) -> Path:
        """
        Return where local workers have their directories.
        """
        return self.directory / "workers"


def first_commands(settings: DaemonSettings) -> tuple[DefineCluster, DefineQueue]:
    """
    Return what a new cluster is told: its settings and its default queue.
    """
    cluster = ClusterSettings(
        name=settings.cluster_name,
        default_queue=DEFAULT_QUEUE,
        picker="builtin_fcfs",
        allocators=("parjob", "fill"),
        session_interval_us=0,
        session_max_decisions=1000,
        clean_period_us=HOUR_US,
        forget_batch=256,
        key_retention_us=DAY_US,
        snapshot_every_events=settings.snapshot_every_events,
        default_host_type=DefaultHostType.ANY,
        memory_unit=MemoryUnit.MB,
        reserve_per_task=False,
    )
    queue = QueueSpec(
        priority=30, description="for everything that names no queue", allows_exclusive=True
    )
    return DefineCluster(settings=cluster), DefineQueue(queue=DEFAULT_QUEUE, spec=queue)
