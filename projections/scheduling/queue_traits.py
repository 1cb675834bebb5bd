"""
What a queue's definition has to say at all, so that jobs of a plain queue aren't asked of it.
"""

from __future__ import annotations

from typing import NamedTuple

from domain.queues import QueueSpec


class QueueTraits(NamedTuple):
    """
    Say what a queue's definition has to say at all.

    Args:
        fills_in: Jobs get values from it that they don't name themselves.
        bounds_jobs: It says who may use it, where, when, how long or how much.
        gathers: Jobs that can't start yet keep what is free.
        asks_more: What it says is part of what its jobs ask for.
    """

    fills_in: bool
    bounds_jobs: bool
    gathers: bool
    asks_more: bool

    @classmethod
    def of(cls, queue: QueueSpec) -> QueueTraits:
        """
        Work the traits out.
        """
        bounds = (queue.users, queue.hosts, queue.run_windows)
        bounds_jobs = queue.has_ceilings or any(bound is not None for bound in bounds)
        times = (queue.slot_reserve_us, queue.resource_reserve_us)
        gathers = any(each is not None for each in times)
        more = (queue.users, queue.run_windows, queue.requirement)
        asks_more = queue.is_backfill or any(each is not None for each in more)
        return cls(queue.fills_in, bounds_jobs, gathers, asks_more)
