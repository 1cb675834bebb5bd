"""
The settings of a whole cluster; they live in the log, never in code.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from domain.amounts import TimeUs
from domain.event import Value
from domain.ids import MaybePath, Name
from domain.preemption import Preemption
from domain.resreq.merge import QueueResreq
from domain.units import MemoryUnit


class DefaultHostType(StrEnum):
    """
    Name which hosts a job means that asks for no kind of system: any, or those like the one it was
    submitted from.
    """

    ANY = "any"
    LOCAL = "local"


class ClusterSettings(Value):
    """
    Hold the cluster's settings.

    Args:
        name: What people call it.
        default_queue: Where a job without a queue goes.
        picker: Name of the picker for all queues without one of their own.
        allocators: The chain of allocators for jobs of more than one task, in order.
        session_interval_us: Least distance between two sessions.
        session_max_decisions: A session ends after so many decisions, and the next goes on.
        clean_period_us: A job that ended longer ago is forgotten by the state (history still knows
            it).
        forget_batch: So many jobs at least are forgotten by one event.
        key_retention_us: For how long the key of a submission is kept.
        snapshot_every_events: A snapshot is due after so many events.
        default_host_type: Which hosts a requirement means that names no kind of system; "local" is
            LSF's rule.
        memory_unit: What a number without a suffix means for memory.
        reserve_per_task: Whether rusage without a suffix counts for each task; otherwise for each
            host, and once for the job where the resource is shared.
        accept_interval_us: So long after a job was started on a host no other one is (LSF's
            JOB_ACCEPT_INTERVAL), 0 for at once.
        lost_jobs: What becomes of jobs on a lost host after the grace time: "requeue" (rerunnable
            ones; others end) or "keep" (UNKWN until the host is back).
        lost_grace_us: Counted from the later of the worker's last report and the scheduler's start.
        end_orphans: Whether jobs end whose dependency can never become true.
        orphan_grace_us: For so long such a job waits on, since somebody may mend it (LSF's
            ORPHAN_JOB_TERM_GRACE_PERIOD); not one that itself asks to end.
        hung_after_us: So long after its worker was ordered to end it, or its host was lost, a job
            that still hasn't ended is ended without it (LSF's REMOVE_HUNG_JOBS_FOR); None for
            never. At least 30 s, which a job's signals take. Of lost hosts it matters where jobs
            are kept, and not before ``lost_grace_us``.
        names_mean_last_job: Whether a name in a dependency means its user's latest job of that
            name, and not all of them (LSF's JOB_DEP_LAST_SUB).
        user_priority_max: The highest priority that a user may give a job; one that names none has
            half of it (LSF's MAX_USER_PRIORITY). Without it any may be given, and that one has 0.
        default_project: The project of a job that names none, and whose queue and group name none.
        queue_resreq: Whether a queue's requirement means nothing, or what LSF has it mean.
        preemption: How jobs may suspend others.
        parallel_sched_by_slot: Whether a parallel job may have all slots of a host; otherwise at
            most as many as the host has processors.
    """

    name: Name
    default_queue: Name
    picker: Name
    allocators: tuple[Name, ...]
    session_interval_us: TimeUs
    session_max_decisions: Annotated[int, Field(ge=1, le=2**31 - 1)]
    clean_period_us: TimeUs
    forget_batch: Annotated[int, Field(ge=1, le=2**31 - 1)]
    key_retention_us: TimeUs
    snapshot_every_events: Annotated[int, Field(ge=1, le=2**62)]
    default_host_type: DefaultHostType
    memory_unit: MemoryUnit
    reserve_per_task: bool
    accept_interval_us: TimeUs = 0
    lost_jobs: Literal["requeue", "keep"] = "requeue"
    lost_grace_us: TimeUs = 600_000_000
    end_orphans: bool = False
    orphan_grace_us: TimeUs = 0
    hung_after_us: TimeUs | None = None
    names_mean_last_job: bool = False
    user_priority_max: Annotated[int, Field(ge=2, le=2**31 - 1)] | None = None
    default_project: MaybePath = ""
    queue_resreq: QueueResreq = QueueResreq.IGNORE
    preemption: Preemption = Preemption()
    parallel_sched_by_slot: bool = True
