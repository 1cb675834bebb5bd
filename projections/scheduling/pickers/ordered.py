"""
What pickers have in common that keep the waiting jobs in an order.
"""

from __future__ import annotations

from typing import ClassVar

from projections.scheduling.pickers.protocol import PickerView
from projections.scheduling.pickers.waiting import Waiting, named_keys
from projections.scheduling.records import JobRecord, QueueRecord


class OrderedPicker:
    """
    Know the jobs that wait, and each one's place; what comes of it says who inherits.
    """

    order: ClassVar[type[Waiting]] = Waiting

    def init(self, view: PickerView) -> None:
        self._view = view
        self._waiting = self.order(view)

    def fini(self) -> None:
        self._waiting = self.order(self._view)

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


class GreedyPicker(OrderedPicker):
    """
    Be one where a job that can't be placed holds nobody back, but proves for the session, as long
    as nothing changes for its request (``epoch_of``), that those can't either who ask for the same.
    """

    def begin_session(self) -> None:
        # Nothing outlives a session but by events: one that decided nothing leaves no proof behind.
        self._proved: dict[str, int] = {}

    def _may_succeed(self, job: JobRecord) -> bool:
        """
        Say whether a job is to be tried: nothing is proved against it, or it has to learn that.
        """
        if not self._view.is_ready(job):
            return False
        fingerprint = self._view.fingerprint_of(job)
        is_proved = self._proved.get(fingerprint) == self._view.epoch_of(fingerprint)
        return not (is_proved and self._view.knows_reasons(job))

    def on_pend(self, job: JobRecord) -> None:
        fingerprint = self._view.fingerprint_of(job)
        self._proved[fingerprint] = self._view.epoch_of(fingerprint)

    def blocker(self) -> JobRecord | None:
        return None
