"""
What a session does to started jobs before it looks at waiting ones: end, put back, stop, let go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from domain.amounts import MEM
from domain.event import Event
from domain.events.jobs import (
    JobEnded,
    JobKillOrdered,
    JobRequeued,
    JobResumeOrdered,
    JobSignalOrdered,
    JobSuspendOrdered,
)
from domain.job_states import LIVE, JobState
from domain.jobs import JobLimits
from domain.preemption import OnPreempt
from domain.terminations import LOST_HOST, Termination
from projections.scheduling.handle.reports import why_killed
from projections.scheduling.loads import Loads, is_by_load
from projections.scheduling.records import ADMIN_COMMAND, TO_TOP_AFTER, JobRecord, WorkerRecord
from projections.scheduling.state import State
from projections.scheduling.watches import order_of

TERM_RUNLIMIT: Final = "TERM_RUNLIMIT"
TERM_DEADLINE: Final = "TERM_DEADLINE"
TERM_MEMLIMIT: Final = "TERM_MEMLIMIT"
TERM_CPULIMIT: Final = "TERM_CPULIMIT"
TERM_PROCESSLIMIT: Final = "TERM_PROCESSLIMIT"
TERM_SWAP: Final = "TERM_SWAP"
TERM_THREADLIMIT: Final = "TERM_THREADLIMIT"
TERM_WINDOW: Final = "TERM_WINDOW"
TERM_LOAD: Final = "TERM_LOAD"
TERM_REMOVE_HUNG_JOB: Final = Termination.REMOVE_HUNG_JOB.value
SWAP: Final = "swp"
TERM_REQUEUE_OWNER: Final = "TERM_REQUEUE_OWNER"
TERM_REQUEUE_ADMIN: Final = "TERM_REQUEUE_ADMIN"
SUSP_USER_STOP: Final = "SUSP_USER_STOP"
SUSP_ADMIN_STOP: Final = "SUSP_ADMIN_STOP"
SUSP_QUEUE_WINDOW: Final = "SUSP_QUEUE_WINDOW"
KIB_MILLI: Final = 1_000
KILL_SIGNALS: Final = ("SIGTERM", "SIGKILL")
RUN_LIMIT_SIGNALS: Final = ("SIGUSR2", "SIGINT", "SIGTERM", "SIGKILL")

Decide = Callable[[str, Event], None]


class Orders:
    """
    Give the orders of one session.

    Args:
        state: The core's state.
        decide: Takes a decision and applies it at once.
        now_us: The session's time.
    """

    def __init__(self, state: State, decide: Decide, now_us: int) -> None:
        self._state = state
        self._decide = decide
        self._now_us = now_us
        self._loads = Loads(state)

    def carry_out(self) -> None:
        """
        Decide everything that doesn't wait for a host, in one fixed order.
        """
        self._send_signals()
        self._end_what_reached_its_limit(self._state.due(self._now_us))
        self._give_up_lost_jobs()
        self._end_what_is_unwanted()
        self._put_back()
        self._stop_and_let_go_on()

    # -- signals

    def _send_signals(self) -> None:
        """
        Order what users want sent to their programs, in the order in which they asked.
        """
        for job in sorted(self._state.signals.values(), key=order_of):
            for wanted in job.signals_wanted:
                worker = self._worker(job)
                event = JobSignalOrdered(
                    attempt=job.attempt,
                    worker=worker.name,
                    order_number=worker.last_order + 1,
                    signal=wanted.signal,
                )
                self._decide(job.stream, event)

    # -- ends

    def _end_what_reached_its_limit(self, due: Iterable[JobRecord]) -> None:
        """
        End jobs that reached a moment or an amount at which they must end; a waiting one whose
        moment to begin has come is looked at again.
        """
        reached: list[tuple[tuple[int, int, int], str, JobRecord]] = []
        for job in due:
            moment_us, why = self._limit_reached(job)
            if why:
                # Not as the timers come: which are left of a job depends on when it was seen last.
                reached.append(((moment_us, job.number, job.index), why, job))
            elif job.state is JobState.PEND:
                # It may ask for something else by now.
                self._state.wanted.pop(job.stream, None)
                self._state.unchecked[job.stream] = job
        for _, why, job in sorted(reached, key=lambda each: each[0]):
            if job.state in LIVE and why != TERM_REMOVE_HUNG_JOB:
                self._order_kill(job, why)
            else:
                self._decide(job.stream, JobEnded(why=why))
        over = self._state.over_limit
        for job in sorted(over.values(), key=order_of):
            why = usage_limit_reached(job, self._state.values_of(job).limits)
            if why and job.state in LIVE:
                self._order_kill(job, why)
        over.clear()

    def _limit_reached(self, job: JobRecord) -> tuple[int, str]:
        """
        Return since when a job must have ended, and why; "" when it needn't.
        """
        hung_after_us = self._state.settings().hung_after_us
        if job.kill_order and hung_after_us is not None:
            moment_us = job.kill_us + hung_after_us
            if moment_us <= self._now_us:
                return moment_us, TERM_REMOVE_HUNG_JOB
        deadline = job.spec.deadline_us
        if deadline is not None and deadline <= self._now_us:
            return deadline, TERM_DEADLINE
        limit = self._state.run_limit_us(job)
        if limit is None or job.state is not JobState.RUN:
            return 0, ""
        moment_us = job.since_us + limit - job.run_us
        return (moment_us, TERM_RUNLIMIT) if moment_us <= self._now_us else (0, "")

    def _end_what_is_unwanted(self) -> None:
        """
        End pending jobs that somebody wants ended, and order the workers of started ones to; by
        force those end at once, and their workers learn that they have nothing to do with them.
        """
        for job in sorted(self._state.kills.values(), key=order_of):
            if job.state in LIVE and job.kill_forced:
                self._decide(job.stream, JobEnded(why=_why_forced(job)))
            elif job.state in LIVE:
                is_wanted = job.kill_actor is not None
                self._order_kill(job, why_killed(job) if is_wanted else _why_put_back(job))
            else:
                self._decide(job.stream, JobEnded(why=why_killed(job)))

    def _order_kill(self, job: JobRecord, why: str, *, requeue: bool = False) -> None:
        if job.kill_order:
            return
        worker = self._worker(job)
        event = JobKillOrdered(
            attempt=job.attempt,
            worker=worker.name,
            order_number=worker.last_order + 1,
            why=why,
            signals=RUN_LIMIT_SIGNALS if why == TERM_RUNLIMIT else KILL_SIGNALS,
            requeue=requeue,
        )
        self._decide(job.stream, event)

    def _worker(self, job: JobRecord) -> WorkerRecord:
        assert job.allocation is not None, job.stream
        return self._state.hosts[job.allocation.runs[0].first]

    # -- back to pending

    def _give_up_lost_jobs(self) -> None:
        """
        Put back the rerunnable jobs of hosts that have been silent for longer than the grace time;
        the others end, or where the cluster keeps them stay UNKWN until the host is back, or for as
        long as they may hang.
        """
        settings = self._state.settings()
        if not self._state.lost_hosts:
            return
        given_up = {
            worker.number
            for worker in self._state.lost_hosts.values()
            if self._now_us >= lost_since_us(self._state, worker) + settings.lost_grace_us
        }
        lost = [
            job
            for job in self._state.live.values()
            if job.state is JobState.UNKWN
            and job.allocation is not None
            and job.allocation.runs[0].first in given_up
        ]
        for job in sorted(lost, key=order_of):
            if self._state.is_rerunnable(job) and job.kill_actor is None:
                event = JobRequeued(why="lost host", hold=job.requeue_hold, to_top=True)
                self._decide(job.stream, event)
            elif settings.lost_jobs == "requeue":
                self._decide(job.stream, JobEnded(why=LOST_HOST))
            elif self._hangs(job):
                self._decide(job.stream, JobEnded(why=TERM_REMOVE_HUNG_JOB))

    def _hangs(self, job: JobRecord) -> bool:
        """
        Say whether a job's host has been lost for so long that it isn't waited for any more.
        """
        hung_after_us = self._state.settings().hung_after_us
        if hung_after_us is None:
            return False
        return self._now_us >= lost_since_us(self._state, self._worker(job)) + hung_after_us

    def _put_back(self) -> None:
        """
        Put back jobs that ended with an exit value which says so, or because somebody asked.
        """
        for job in sorted(self._state.requeues.values(), key=order_of):
            event = JobRequeued(
                why="command" if job.requeue_why == ADMIN_COMMAND else job.requeue_why,
                hold=job.requeue_hold,
                to_top=job.requeue_why in TO_TOP_AFTER,
            )
            self._decide(job.stream, event)

    # -- stop and go on

    def _stop_and_let_go_on(self) -> None:
        """
        Stop what users or windows want stopped; let go on what nothing keeps stopped any more.
        """
        self._note_windows()
        for job in sorted(self._state.demands.values(), key=self._turn_of):
            self._look_at(job)
        if self._state.pressed or self._state.has_stop_conditions:
            for job, why in list(self._loads.to_stop()):
                self._stop(job, why, TERM_LOAD, self._loads.way_to_stop(job))
        self._state.demands = {
            stream: job
            for stream, job in self._state.demands.items()
            if job.state is not JobState.RUN
        }

    def _note_windows(self) -> None:
        """
        Look at the started jobs of queues whose run window has closed.
        """
        queues = self._state.stored.queues
        closed = {
            name
            for name, is_open in self._state.run_windows_open.items()
            if not is_open and name in queues
        }
        if closed:
            for stream, job in self._state.live.items():
                if job.spec.queue in closed and job.state is JobState.RUN:
                    self._state.demands[stream] = job

    def _look_at(self, job: JobRecord) -> None:
        window_open = self._state.run_windows_open.get(job.spec.queue, True)
        if job.kill_order or job.suspend_order or job.resume_order:
            return
        if job.state is JobState.RUN and job.stop_actor is not None:
            by_user = job.stop_actor == job.spec.user
            self._suspend(job, SUSP_USER_STOP if by_user else SUSP_ADMIN_STOP)
        elif job.state is JobState.RUN and not window_open:
            on_window = self._state.queue_of(job).spec.on_window
            self._stop(job, SUSP_QUEUE_WINDOW, TERM_WINDOW, on_window)
        elif (
            job.state is JobState.SSUSP
            and window_open
            and _may_go_on(job)
            and self._state.capacity.can_come_back(job)
            and self._loads.may_go_on(job)
        ):
            self._resume(job)

    def _turn_of(self, job: JobRecord) -> tuple[int, ...]:
        """
        Return what orders jobs that are stopped or let go on: those of higher queues go on first.
        """
        is_stopped = job.state is JobState.SSUSP
        priority = self._state.queue_of(job).spec.priority if is_stopped else 0
        return (int(is_stopped), -priority, *order_of(job))

    def _stop(self, job: JobRecord, why: str, term: str, on_stop: OnPreempt) -> None:
        """
        Stop a job in the way that its queue has for that cause.
        """
        if on_stop is OnPreempt.SUSPEND:
            self._suspend(job, why)
        else:
            self._order_kill(job, term, requeue=on_stop is OnPreempt.REQUEUE)

    def _suspend(self, job: JobRecord, why: str) -> None:
        worker = self._worker(job)
        event = JobSuspendOrdered(
            attempt=job.attempt, worker=worker.name, order_number=worker.last_order + 1, why=why
        )
        self._decide(job.stream, event)

    def _resume(self, job: JobRecord) -> None:
        worker = self._worker(job)
        event = JobResumeOrdered(
            attempt=job.attempt, worker=worker.name, order_number=worker.last_order + 1
        )
        self._decide(job.stream, event)


def _why_forced(job: JobRecord) -> str:
    by_user = job.kill_actor == job.spec.user
    return (Termination.FORCE_OWNER if by_user else Termination.FORCE_ADMIN).value


def _why_put_back(job: JobRecord) -> str:
    return TERM_REQUEUE_ADMIN if job.requeue_why == ADMIN_COMMAND else TERM_REQUEUE_OWNER


def _may_go_on(job: JobRecord) -> bool:
    """
    Say whether nothing but its queue's window or its hosts can keep a suspended job stopped.
    """
    if job.stop_actor is not None:
        return False
    by_system = job.suspend_why == SUSP_QUEUE_WINDOW or is_by_load(job.suspend_why)
    return job.resume_wanted or by_system


def usage_limit_reached(job: JobRecord, limits: JobLimits | None) -> str:
    """
    Return why a job must end by what it was seen to use, "" when it needn't.
    """
    if limits is None:
        return ""
    if limits.memory_kib is not None and _used_kib(job, MEM) > limits.memory_kib:
        return TERM_MEMLIMIT
    if limits.swap_kib is not None and _used_kib(job, SWAP) > limits.swap_kib:
        return TERM_SWAP
    if limits.cpu_us is not None and job.cpu_us > limits.cpu_us:
        return TERM_CPULIMIT
    if limits.processes is not None and job.processes > limits.processes:
        return TERM_PROCESSLIMIT
    if limits.threads is not None and job.threads > limits.threads:
        return TERM_THREADLIMIT
    return ""


def _used_kib(job: JobRecord, resource: str) -> int:
    """
    Return what the job was last seen to use on all its hosts together.
    """
    return sum(actual.get(resource, 0) for actual in job.actual.values()) // KIB_MILLI


def lost_since_us(state: State, worker: WorkerRecord) -> int:
    """
    Return from when the grace time of a silent worker counts: the later of its last report and the
    scheduler's own start.
    """
    return max(worker.report_us, state.stored.started_us)
