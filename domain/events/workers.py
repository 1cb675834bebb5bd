"""
Events of workers (streams ``worker:NAME``).
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from domain.allocations import HostNumber
from domain.amounts import Amount, Attribute, Count, HostResource, TimeUs
from domain.event import Event, Value
from domain.ids import JobId
from domain.workers import HostSettings

Incarnation = Annotated[int, Field(ge=1, le=2**31 - 1)]


class WorkerJoined(Event):
    """
    Say that a worker's agent joined, with what the host has.

    Args:
        incarnation: Rises with each join; reports of an older one are stale.
        host_number: The host's place in host order, given at the first join and kept for ever.
        slots: How many tasks it can hold.
        resources: Its consumable resources.
        attributes: What a select expression can name.
    """

    TYPE_CODE: ClassVar[str] = "worker.joined"
    incarnation: Incarnation
    host_number: HostNumber
    slots: Count
    resources: tuple[HostResource, ...] = ()
    attributes: tuple[Attribute, ...] = ()


class JobUsage(Value):
    """
    Say what one attempt was seen to use on the reporting host.

    Args:
        amounts: Use by the resource's own name, memory in thousandths of a KiB.
        cpu_us: Processor time so far.
        processes: How many processes it has.
        threads: How many threads they have together.
    """

    job_id: JobId
    attempt: int
    amounts: tuple[Amount, ...] = ()
    cpu_us: TimeUs = 0
    processes: Count = 0
    threads: Count = 0


class WorkerReported(Event):
    """
    Say what a worker measured, load and the use of its jobs together.

    Args:
        load: What is free by the operating system's own figures (``mem``) and load indices.
        jobs: The jobs whose use changed beyond the threshold.
        is_blind: Whether it lives and can't measure its load: no job starts there until it can.
    """

    TYPE_CODE: ClassVar[str] = "worker.reported"
    incarnation: Incarnation
    load: tuple[Amount, ...] = ()
    jobs: tuple[JobUsage, ...] = ()
    is_blind: bool = False


class WorkerConfigured(Event):
    """
    Say what an administrator set for the host from now on.
    """

    TYPE_CODE: ClassVar[str] = "worker.configured"
    settings: HostSettings


class WorkerClosed(Event):
    """
    Say that an administrator closed the host to new jobs.
    """

    TYPE_CODE: ClassVar[str] = "worker.closed"
    why: str = ""


class WorkerDrained(Event):
    """
    Say that an administrator lets the host run dry: it takes no new jobs until it is opened again,
    and those that it has end by themselves.
    """

    TYPE_CODE: ClassVar[str] = "worker.drained"
    why: str = ""


class WorkerOpened(Event):
    """
    Say that an administrator opened the host again.
    """

    TYPE_CODE: ClassVar[str] = "worker.opened"


class WorkerBecameUnreachable(Event):
    """
    Say that a worker was silent for too long.
    """

    TYPE_CODE: ClassVar[str] = "worker.became_unreachable"
    silent_us: TimeUs


class WorkerCameBack(Event):
    """
    Say that an unreachable worker reported again, or one that the scheduler hadn't heard since its
    start, in the same incarnation.
    """

    TYPE_CODE: ClassVar[str] = "worker.came_back"
    incarnation: Incarnation


class WorkerLeft(Event):
    """
    Say that a worker's agent ended in good order; its host takes no jobs until it joins again.
    """

    TYPE_CODE: ClassVar[str] = "worker.left"
    incarnation: Incarnation


class WorkerOrderDone(Event):
    """
    Say that a worker carried out an order.
    """

    TYPE_CODE: ClassVar[str] = "worker.order_done"
    incarnation: Incarnation
    order_number: Annotated[int, Field(ge=1)]
    outcome: str = ""
