"""
Shortest job first (``shortest_first``): jobs of a queue priority by their planned run time.

The plan is the run limit, or else the user's guess; jobs with neither come last. Ties come in the
usual order. It is greedy: a job that can't be placed holds nobody back.
"""

from __future__ import annotations

from typing import final

from domain.units import show_duration
from projections.scheduling.pickers.grouped import GroupedPicker
from projections.scheduling.pickers.waiting import Key
from projections.scheduling.records import JobRecord


@final
class ShortestFirst(GroupedPicker):
    """
    Pick the shortest job first.
    """

    name = "shortest_first"
    version = 1

    def key_of(self, job: JobRecord) -> Key:
        run_us = self._view.planned_run_us(job)
        priority, *usual = super().key_of(job)
        return (priority, int(run_us is None), run_us or 0, *usual)

    def order_keys(self, job: JobRecord) -> list[tuple[str, int | str]]:
        """
        Return by name what gives a job its place in the order.
        """
        run_us = self._view.planned_run_us(job)
        priority, *usual = super().order_keys(job)
        planned = "unknown" if run_us is None else show_duration(run_us)
        return [priority, ("planned_run", planned), *usual]
