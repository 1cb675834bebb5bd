"""
The settings of a whole cluster; they live in the log, never in code.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from domain.amounts import TimeUs
from domain.event import Value
from domain.ids import Name


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
