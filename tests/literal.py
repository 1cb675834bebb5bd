"""
The obvious pickers: every ready job once, in order, looked up afresh in each session.

They are the specification that the real ones are compared with.
"""

from __future__ import annotations

from projections.scheduling.pickers.protocol import PickerView
from projections.scheduling.plugins import Plugins
from projections.scheduling.records import JobRecord, QueueRecord


class LiteralFcfs:
    """
    Return every ready job once, in order.
    """

    name = "builtin_fcfs"
    version = 1
    is_strict = False

    def init(self, view: PickerView) -> None:
        self.view = view
        self.jobs: dict[str, JobRecord] = {}
        self.todo: list[JobRecord] = []
        self.stopped: JobRecord | None = None

    def fini(self) -> None:
        pass

    def on_queue_update(self, queue: QueueRecord) -> None:
        pass

    def on_job_push(self, job: JobRecord) -> None:
        self.jobs[job.stream] = job

    def on_job_state_change(self, job: JobRecord) -> None:
        self.jobs.pop(job.stream, None)

    def on_job_update(self, job: JobRecord) -> None:
        pass

    def _key(self, job: JobRecord) -> tuple[int, ...]:
        queue = self.view.queue_of(job).spec
        priority, most = queue.priority, queue.user_priority_max
        wish = -job.spec.user_priority if most is None else -min(job.spec.user_priority, most)
        return (-priority, wish, *job.position)

    def begin_session(self) -> None:
        self.todo = sorted(filter(self.view.is_ready, self.jobs.values()), key=self._key)
        self.stopped = None

    def next_job(self) -> JobRecord | None:
        if self.stopped is not None or not self.todo:
            return None
        return self.todo.pop(0)

    def on_dispatch(self, job: JobRecord) -> None:
        pass

    def on_pend(self, job: JobRecord) -> None:
        if self.is_strict:
            self.stopped = job

    def end_session(self) -> None:
        pass

    def blocker(self) -> JobRecord | None:
        return self.stopped if len(self.jobs) > 1 else None

    def blocked_by(self) -> JobRecord | None:
        return self.stopped


class LiteralStrict(LiteralFcfs):
    """
    Stop at the first job that can't be placed.
    """

    name = "strict_fcfs"
    is_strict = True


class LiteralShortest(LiteralFcfs):
    """
    Order by queue priority, then planned run time, those without one last, then as usual.
    """

    name = "shortest_first"

    def _key(self, job: JobRecord) -> tuple[int, ...]:
        run_us = self.view.planned_run_us(job)
        priority, *usual = super()._key(job)
        return (priority, 0 if run_us is not None else 1, run_us or 0, *usual)


def literal_plugins() -> Plugins:
    """
    Return plug-ins whose pickers are the literal ones, under the real ones' names, where there is
    one.
    """
    literal = {each.name: each for each in (LiteralFcfs, LiteralStrict, LiteralShortest)}
    return Plugins(pickers={**Plugins().pickers, **literal})
