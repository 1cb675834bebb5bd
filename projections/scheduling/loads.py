"""
Which jobs the load of their hosts stops, and which of them it lets go on.

A host's load is what its worker reported last. One job of a host is stopped for each report: what
that did to the load isn't known before the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from domain.job_states import JobState
from domain.preemption import OnPreempt
from domain.resreq.syntax import Requirement
from domain.thresholds import LoadThreshold
from projections.scheduling.placement.stopping import is_stopping
from projections.scheduling.records import JobRecord, WorkerRecord
from projections.scheduling.state import State

SUSP_LOAD: Final = "SUSP_LOAD"
SUSP_QUE_STOP_COND: Final = "SUSP_QUE_STOP_COND"


def is_by_load(suspend_why: str) -> bool:
    """
    Say whether a suspend reason is about the load of hosts.
    """
    return suspend_why.startswith(SUSP_LOAD) or suspend_why == SUSP_QUE_STOP_COND


class Loads:
    """
    Judge the load of hosts in one session.

    Args:
        state: The core's state.
    """

    def __init__(self, state: State) -> None:
        self._state = state

    def to_stop(self) -> Iterator[tuple[JobRecord, str]]:
        """
        Yield the jobs to stop, and why: on each host that is under too much load, and has reported
        since a job was stopped there for it, the one of the lowest queue that was started last.
        """
        state = self._state
        workers = state.hosts if state.has_stop_conditions else state.pressed.values()
        hosts = {
            worker.number
            for worker in workers
            if worker.eased_us is None or worker.eased_us < worker.report_us
        }
        if not hosts:
            return
        found: dict[int, tuple[tuple[int, ...], JobRecord, str]] = {}
        for job in state.live.values():
            if job.state is not JobState.RUN or not _is_left_alone(job):
                continue
            for worker in self._hosts_of(job):
                if worker.number not in hosts:
                    continue
                why = self._why_stopped(job, worker)
                known = found.get(worker.number)
                if why and (known is None or self._rank(job) < known[0]):
                    found[worker.number] = (self._rank(job), job, why)
        stopped: set[str] = set()
        for number in sorted(found):
            _, job, why = found[number]
            if job.stream not in stopped:
                stopped.add(job.stream)
                yield job, why

    def way_to_stop(self, job: JobRecord) -> OnPreempt:
        """
        Return what becomes of a job where the load is too much: what its queue says, but that it is
        put back from each host once. The next time it is suspended there: a load that it brings
        about itself would fall when it is put back, and it would begin anew for ever.
        """
        on_load = self._state.queue_of(job).spec.on_load
        was_here = any(worker.number in job.eased_hosts for worker in self._hosts_of(job))
        return OnPreempt.SUSPEND if was_here and on_load is OnPreempt.REQUEUE else on_load

    def may_go_on(self, job: JobRecord) -> bool:
        """
        Say whether the load of a stopped job's hosts lets it go on.
        """
        resume_when = self._state.queue_of(job).spec.resume_when
        for worker in self._hosts_of(job):
            if self._why_stopped(job, worker):
                return False
            if resume_when is not None:
                if not self._meets(resume_when, worker):
                    return False
                continue
            thresholds = self._thresholds(job, worker)
            if not all(self._state.is_light(worker, each) for each in thresholds):
                return False
        return True

    def _why_stopped(self, job: JobRecord, worker: WorkerRecord) -> str:
        for threshold in self._thresholds(job, worker):
            if self._state.is_too_much(worker, threshold):
                return f"{SUSP_LOAD}({threshold.index})"
        stop_when = self._state.queue_of(job).spec.stop_when
        if stop_when is not None and self._meets(stop_when, worker):
            return SUSP_QUE_STOP_COND
        return ""

    def _meets(self, select: Requirement, worker: WorkerRecord) -> bool:
        """
        Say whether a host meets a select by what its worker reported last.
        """
        expr = select.only.select
        assert expr is not None, select
        return is_stopping(self._state.capacity, expr, worker.number)

    def _thresholds(self, job: JobRecord, worker: WorkerRecord) -> Iterable[LoadThreshold]:
        return (*worker.settings.thresholds, *self._state.queue_of(job).spec.thresholds)

    def _hosts_of(self, job: JobRecord) -> Iterator[WorkerRecord]:
        for number, _, _ in job.allocation.shares() if job.allocation else ():
            yield self._state.hosts[number]

    def _rank(self, job: JobRecord) -> tuple[int, ...]:
        start_us = job.dispatch_us if job.start_us is None else job.start_us
        priority = self._state.queue_of(job).spec.priority
        return (priority, -(start_us or 0), -job.number, -job.index)


def _is_left_alone(job: JobRecord) -> bool:
    """
    Say whether nothing else is about to stop or end a job.
    """
    is_ordered = job.kill_order or job.suspend_order or job.resume_order
    return not is_ordered and job.kill_actor is None and not job.requeue_why
