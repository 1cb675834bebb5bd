"""
What a queue is made of.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from domain.amounts import TimeUs
from domain.event import Value
from domain.jobs import ExitRules
from domain.windows import Windows

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
        run_windows: Outside of them nothing starts and running jobs are suspended; None for always.
        dispatch_windows: Outside of them nothing starts; None for always.
        ignore_deadline: Start jobs that couldn't end before the run windows close.
        run_limit_max_us: A job that asks for a longer run limit is refused.
        run_limit_default_us: The run limit of a job that names none.
        exits: What exit values mean for jobs without rules of their own.
        rerunnable: Whether jobs start anew when their host is lost, unless they say otherwise.
    """

    priority: Annotated[int, Field(ge=0, le=QUEUE_PRIORITY_MAX)]
    is_open: bool = True
    is_active: bool = True
    picker: str = ""
    description: str = ""
    run_windows: Windows | None = None
    dispatch_windows: Windows | None = None
    ignore_deadline: bool = False
    run_limit_max_us: TimeUs | None = None
    run_limit_default_us: TimeUs | None = None
    exits: ExitRules | None = None
    rerunnable: bool = False
