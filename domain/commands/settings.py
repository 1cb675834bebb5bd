"""
Commands about the cluster, its queues and its hosts.
"""

from __future__ import annotations

from typing import Literal

from domain.cluster import ClusterSettings
from domain.event import Value
from domain.events.scheduler import PluginVersion
from domain.ids import Name
from domain.lines import Line, Why
from domain.queues import QueueSpec
from domain.resources import ResourceDescriptor
from domain.workers import HostSettings


class StartScheduler(Value):
    """
    Tell that a driver took the log over.

    Args:
        awaits_workers: Whether it can't know yet which workers are still there.
    """

    epoch: int
    holder: Line
    boot_id: Line = ""
    code_version: Line
    pickers: tuple[PluginVersion, ...]
    allocators: tuple[PluginVersion, ...]
    awaits_workers: bool = False


class StopScheduler(Value):
    """
    Tell that the driver ends in good order.
    """

    why: Why = ""


class DefineCluster(Value):
    """
    Ask for other settings of the cluster.
    """

    settings: ClusterSettings


class DefineQueue(Value):
    """
    Ask for a queue, or for another definition of one.
    """

    queue: Name
    spec: QueueSpec


class SetQueue(Value):
    """
    Ask to open, close, activate or inactivate a queue.
    """

    queue: Name
    to: Literal["open", "closed", "active", "inactive"]

    @property
    def what(self) -> str:
        """
        Return the name under which a refusal is recorded: each switch has one of its own.
        """
        return {
            "open": "OpenQueue",
            "closed": "CloseQueue",
            "active": "ActivateQueue",
            "inactive": "InactivateQueue",
        }[self.to]


class DefineResource(Value):
    """
    Ask for a resource of the site's own, or for another definition of one.
    """

    descriptor: ResourceDescriptor


class ConfigureWorker(Value):
    """
    Ask for other settings of a host.
    """

    worker: Name
    settings: HostSettings


class CloseWorker(Value):
    """
    Ask to close a host to new jobs.
    """

    worker: Name
    why: Why = ""


class DrainWorker(Value):
    """
    Ask to let a host run dry: no new jobs, and those that it has end by themselves.
    """

    worker: Name
    why: Why = ""


class OpenWorker(Value):
    """
    Ask to open a host again.
    """

    worker: Name
