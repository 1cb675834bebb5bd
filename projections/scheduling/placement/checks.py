"""
One thing that a host must have for a bucket.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from domain.reasons import ReasonCode
from projections.scheduling.capacity import Column


@dataclass(slots=True, frozen=True)
class Check:
    """
    Check one thing that a host must have.

    Args:
        available: What each host of the cluster has.
        requested: A bucket's tasks -> what it asks for, in thousandths.
        limit: The most tasks that matter -> how many tasks each host could take by this alone.
        detail: The name of the limit that it is about, "" when it is about what the host has.
        scale: What ``available`` is multiplied by to be in thousandths.
    """

    code: ReasonCode
    resource: str
    available: Column
    requested: Callable[[int], int]
    limit: Callable[[int], Column]
    detail: str = ""
    scale: int = 1

    def amounts(self) -> Column:
        """
        Return what each host of the cluster has, in thousandths.
        """
        return self.available * self.scale
