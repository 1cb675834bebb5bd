"""
What pickers have in common that keep the waiting jobs in an order.
"""

from __future__ import annotations

from projections.scheduling.pickers.protocol import PickerView
from projections.scheduling.pickers.waiting import Waiting, named_keys
from projections.scheduling.records import JobRecord, QueueRecord


class OrderedPicker:
    """
    Know the jobs that wait, and each one's place; what comes of it says who inherits.
    """

    def init(self, view: PickerView) -> None:
        self._view = view
        self._waiting = Waiting(view)

    def fini(self) -> None:
        self._waiting = Waiting(self._view)

    def on_queue_update(self, queue: QueueRecord) -> None:
        self._waiting.push_again(queue.name)

    def on_job_push(self, job: JobRecord) -> None:
        self._waiting.push(job)

    def on_job_state_change(self, job: JobRecord) -> None:
        self._waiting.drop(job)

    def on_job_update(self, job: JobRecord) -> None:
        self.on_job_push(job)

    def order_keys(self, job: JobRecord) -> list[tuple[str, int | str]]:
        """
        Return by name what gives a job its place in the order.
        """
        return named_keys(self._view, job)
