"""
What a queue is made of.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from domain.event import Value

QUEUE_PRIORITY_MAX = 1_000_000


class QueueSpec(Value):
    """
    Hold a queue as its administrator defined it.

    Args:
        priority: Jobs of a queue of higher priority are considered first.
        is_open: Whether it takes submissions.
        is_active: Whether its jobs may start.
        picker: Name of a picker of its own, "" for the cluster's.
        description: A line for people.
    """

    priority: Annotated[int, Field(ge=0, le=QUEUE_PRIORITY_MAX)]
    is_open: bool = True
    is_active: bool = True
    picker: str = ""
    description: str = ""
