"""
Events of the scheduler process and of the cluster's settings.
"""

from __future__ import annotations

from typing import ClassVar

from domain.amounts import TimeUs
from domain.cluster import ClusterSettings
from domain.event import Event, Value
from domain.ids import MaybeName


class PluginVersion(Value):
    """
    Name a plug-in and the version of its rules.
    """

    name: MaybeName
    version: int


class SchedulerStarted(Event):
    """
    Say that a scheduler took the log over (stream ``scheduler``).

    Args:
        epoch: The store's count of writers, so that a stale one can be told.
        holder: Host and process of the driver, or "simulation".
        boot_id: The boot of the host, "" in a simulation.
        code_version: Version of the program.
        pickers: Every picker known, with the version of its rules.
        allocators: Every allocator known, with the version of its rules.
        awaits_workers: Whether workers take no jobs until they are heard again: an agent may be
            gone.
    """

    TYPE_CODE: ClassVar[str] = "scheduler.started"
    epoch: int
    holder: str
    boot_id: str = ""
    code_version: str
    pickers: tuple[PluginVersion, ...]
    allocators: tuple[PluginVersion, ...]
    awaits_workers: bool = False


class SchedulerStopped(Event):
    """
    Say that the scheduler ended in good order (stream ``scheduler``).
    """

    TYPE_CODE: ClassVar[str] = "scheduler.stopped"
    why: str = ""


class ClockCorrected(Event):
    """
    Say that log time was moved forward to the wall clock (stream ``scheduler``).
    """

    TYPE_CODE: ClassVar[str] = "scheduler.clock_corrected"
    forward_us: TimeUs


class ClusterDefined(Event):
    """
    Say what the cluster's settings are from now on (stream ``cluster``).
    """

    TYPE_CODE: ClassVar[str] = "cluster.defined"
    settings: ClusterSettings
