"""
Shortest job first (``shortest_first``): jobs of a queue priority by their planned run time.

The plan is the run limit, or else the user's guess; jobs with neither come last. Ties come in the
usual order. It is greedy: a job that can't be placed holds nobody back.
"""

from __future__ import annotations

from typing import final

from domain.units import show_duration
from projections.scheduling.pickers.protocol import PickerView
from projections.scheduling.pickers.waiting import Entry, Key, Waiting, key_of, named_keys
from projections.scheduling.records import JobRecord, QueueRecord


class _Shortest(Waiting):
    """
    Order by queue priority, then by planned run time, then as usual.
    """

    def key_of(self, job: JobRecord) -> Key:
        run_us = self._view.planned_run_us(job)
        priority, *usual = key_of(self._view, job)
        return (priority, int(run_us is None), run_us or 0, *usual)


@final
class ShortestFirst:
    """
    Pick the shortest job first.

    Equivalent to: return every ready job once, in this order. Differs in: a job whose request
    proved impossible in this session, and for which nothing can have changed since (``epoch_of``),
    isn't returned.
    """

    name = "shortest_first"
    version = 1

    def init(self, view: PickerView) -> None:
        self._view = view
        self._waiting = _Shortest(view)
        self._todo: list[Entry] = []
        self._proved: dict[str, int] = {}

    def fini(self) -> None:
        self._waiting = _Shortest(self._view)

    def on_queue_update(self, queue: QueueRecord) -> None:
        self._waiting.push_again(queue.name)

    def on_job_push(self, job: JobRecord) -> None:
        self._waiting.push(job)

    def on_job_state_change(self, job: JobRecord) -> None:
        self._waiting.drop(job)

    def on_job_update(self, job: JobRecord) -> None:
        self.on_job_push(job)

    def begin_session(self) -> None:
        # Nothing outlives a session but by events: one that decided nothing leaves no proof behind.
        self._proved = {}
        self._todo = self._waiting.entries[::-1]

    def next_job(self) -> JobRecord | None:
        while self._todo:
            job = self._todo.pop().job
            if self._may_succeed(job):
                return job
        return None

    def _may_succeed(self, job: JobRecord) -> bool:
        if not self._view.is_ready(job):
            return False
        fingerprint = self._view.fingerprint_of(job)
        is_proved = self._proved.get(fingerprint) == self._view.epoch_of(fingerprint)
        return not (is_proved and self._view.knows_reasons(job))

    def on_dispatch(self, job: JobRecord) -> None:
        """
        Do nothing: the job stopped to wait.
        """

    def on_pend(self, job: JobRecord) -> None:
        fingerprint = self._view.fingerprint_of(job)
        self._proved[fingerprint] = self._view.epoch_of(fingerprint)

    def end_session(self) -> None:
        self._todo = []

    def order_keys(self, job: JobRecord) -> list[tuple[str, int | str]]:
        """
        Return by name what gives a job its place in the order.
        """
        run_us = self._view.planned_run_us(job)
        priority, *usual = named_keys(self._view, job)
        planned = "unknown" if run_us is None else show_duration(run_us)
        return [priority, ("planned_run", planned), *usual]

    def blocker(self) -> JobRecord | None:
        return None
