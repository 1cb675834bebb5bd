"""
Shortest job first (``shortest_first``): jobs of a queue priority by their planned run time.

The plan is the run limit, or else the user's guess; jobs with neither come last. Ties come in the
usual order. It is greedy: a job that can't be placed holds nobody back.
"""

from __future__ import annotations

from typing import final

from domain.units import show_duration
from projections.scheduling.pickers.ordered import GreedyPicker
from projections.scheduling.pickers.protocol import PickerView
from projections.scheduling.pickers.waiting import Entry, Key, Waiting, key_of
from projections.scheduling.records import JobRecord


class _Shortest(Waiting):
    """
    Order by queue priority, then by planned run time, then as usual.
    """

    def key_of(self, job: JobRecord) -> Key:
        run_us = self._view.planned_run_us(job)
        priority, *usual = key_of(self._view, job)
        return (priority, int(run_us is None), run_us or 0, *usual)


@final
class ShortestFirst(GreedyPicker):
    """
    Pick the shortest job first.

    Equivalent to: return every ready job once, in this order. Differs in: a job that knows
    why it waits isn't returned when its request proved impossible in this session, and nothing can
    have changed for it since (``epoch_of``).
    """

    name = "shortest_first"
    version = 1
    order = _Shortest

    def init(self, view: PickerView) -> None:
        super().init(view)
        self._todo: list[Entry] = []

    def begin_session(self) -> None:
        super().begin_session()
        self._todo = self._waiting.entries[::-1]

    def next_job(self) -> JobRecord | None:
        while self._todo:
            job = self._todo.pop().job
            if self._may_succeed(job):
                return job
        return None

    def on_dispatch(self, job: JobRecord) -> None:
        """
        Do nothing: the job stopped to wait.
        """

    def end_session(self) -> None:
        self._todo = []

    def order_keys(self, job: JobRecord) -> list[tuple[str, int | str]]:
        """
        Return by name what gives a job its place in the order.
        """
        run_us = self._view.planned_run_us(job)
        priority, *usual = super().order_keys(job)
        planned = "unknown" if run_us is None else show_duration(run_us)
        return [priority, ("planned_run", planned), *usual]
