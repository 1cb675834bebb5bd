"""
Indexes over jobs that wait for something: a moment, another job, an order, being forgotten.

All are derived. They say what a session must look at, so that its work grows with what changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from domain.dependency import parents_of
from domain.effective import values_of
from domain.job_states import ENDED, LIVE, WAITING, JobState
from domain.jobs import ExitRules, JobSpec
from domain.reasons import ReasonCode
from projections.scheduling.alternatives import delays_of
from projections.scheduling.closings import Closings
from projections.scheduling.moments import Moments
from projections.scheduling.pickers.protocol import JobPicker, Planner
from projections.scheduling.queue_traits import QueueTraits
from projections.scheduling.records import JobRecord, StoredState, WorkerRecord

NO_RULES: Final = ExitRules()
KEPT_BACK: Final = frozenset(
    f"reason={code.value}"
    for code in (
        ReasonCode.JOB_START_TIME,
        ReasonCode.JOB_DEPEND,
        ReasonCode.JOB_DEP_INVALID,
        ReasonCode.JOB_DELAY_SCHED,
    )
)
"""The sets of reasons of jobs that aren't ready."""
ORPHANS: Final = f"reason={ReasonCode.JOB_DEP_INVALID.value}"
"""That of jobs whose dependency can never become true."""


class Watches(Moments):
    """
    Hold what sessions must look at.

    Args:
        stored: The stored state.
        picker: Learns of every job that becomes ready.

    ``unchecked`` holds pending jobs whose readiness must be worked out; ``unready`` those that were
    found not to be ready; ``put_back`` those that a session took from a lost host: the next
    one considers them. ``run_windows_open`` says of each queue with run windows whether it is
    inside them. ``kills``, ``requeues``, ``signals`` and ``demands`` hold jobs that the next
    session must end, put back, have signalled, stop or let go on; ``forced`` pending ones that
    operators want started on certain hosts. ``over_limit`` holds jobs whose use must be compared
    with their limits. ``victims`` are live jobs that were stopped, or ordered to, for others;
    ``keepers`` pending ones for which hosts are held. ``promised`` are the pending jobs with a
    backfill reservation; ``gatherers`` those for which hosts are kept now; ``gave_up`` those that
    gave back what they had gathered, until a later session.
    """

    def __init__(self, stored: StoredState, picker: JobPicker) -> None:
        super().__init__(stored)
        self.picker = picker
        self.note_queues()
        self.waiting = 0
        self.unchecked: dict[str, JobRecord] = {}
        self.unready: dict[str, JobRecord] = {}
        self.run_windows_open: dict[str, bool] = {}
        self.put_back: dict[str, JobRecord] = {}
        self.kills: dict[str, JobRecord] = {}
        self.requeues: dict[str, JobRecord] = {}
        self.signals: dict[str, JobRecord] = {}
        self.forced: dict[str, JobRecord] = {}
        self.demands: dict[str, JobRecord] = {}
        self.victims: dict[str, JobRecord] = {}
        self.keepers: dict[str, JobRecord] = {}
        self.over_limit: dict[str, JobRecord] = {}
        self.lost_hosts: dict[str, WorkerRecord] = {}
        self.planner = picker if isinstance(picker, Planner) else None
        self.promised: dict[str, JobRecord] = {}
        self.gatherers: dict[str, JobRecord] = {}
        self.gave_up: dict[str, JobRecord] = {}
        self.closings = Closings()
        self.has_windows = False
        self.pressed: dict[int, WorkerRecord] = {}
        self.has_stop_conditions = False

    def index_jobs(self, jobs: Collection[JobRecord]) -> None:
        """
        Build every index over jobs, and tell the picker of those that may be ready.
        """
        for job in jobs:
            if job.preemptor and job.state in LIVE:
                # What a job asks for depends on who stops for it.
                self.victims[job.stream] = job
        for job in jobs:
            self.watch_parents(job)
            self._index_kept(job)
            if job.state is JobState.PEND:
                self._index_pending(job)
            elif job.state is JobState.PSUSP:
                self.set_waiting_timers(job)
            elif job.state in LIVE:
                self._index_live(job)
            elif job.state in ENDED:
                if job.requeue_why:
                    self.requeues[job.stream] = job
                else:
                    self.note_ended(job)
            wanted = job.kill_actor is not None or job.requeue_why
            is_ordered = job.kill_order and not job.kill_forced
            if wanted and not is_ordered and job.state not in ENDED:
                self.kills[job.stream] = job
        for worker in self.stored.workers.values():
            if worker.unreachable_us is not None:
                self.lost_hosts[worker.name] = worker

    def _index_pending(self, job: JobRecord) -> None:
        self.waiting += 1
        if job.forced_on:
            self.wait_for_hosts(job)
            return
        self.check_readiness(job)
        self.keep_back_still((job,))

    def keep_back_still(self, jobs: Iterable[JobRecord]) -> None:
        """
        Have the next session look at those pending jobs of which the last that was said is what
        keeps them from being tried: when they are ready and aren't tried, that must be said.
        """
        for job in jobs:
            if job.state is JobState.PEND and self.note_kept_back(job):
                self.unchecked[job.stream] = job

    def note_kept_back(self, job: JobRecord) -> bool:
        """
        Note, and say, whether the last that was said of a pending job is what keeps it from being
        tried.
        """
        kept = self.stored.reason_sets.get(job.reason_set)
        if kept is None or kept.fingerprint not in KEPT_BACK:
            return False
        self.unready[job.stream] = job
        return True

    def _index_kept(self, job: JobRecord) -> None:
        if job.keeps is not None:
            self.keepers[job.stream] = job
        is_pending = job.state is JobState.PEND and not job.forced_on
        if job.gave_up_us is not None and is_pending:
            self.gave_up[job.stream] = job
        if job.promise is not None:
            self.promised[job.stream] = job
            if job.promise.is_held:
                self.gatherers[job.stream] = job

    def _index_live(self, job: JobRecord) -> None:
        self.live[job.stream] = job
        self._watch_run(job)
        if job.signals_wanted:
            self.signals[job.stream] = job
        if job.stop_actor is not None or job.resume_wanted or job.suspend_why:
            self.demands[job.stream] = job

    # -- readiness

    def check_readiness(self, job: JobRecord) -> None:
        """
        Give a pending job to the picker when nothing but its queue can keep it back, otherwise have
        the next session look at it.
        """
        spec = job.spec
        if self.has_windows:
            self.closings.note(job)
        if self.requirement_of(spec, is_checked=False) is not None:
            self.set_alternative_timers(job)
        is_timed = spec.begin_us is not None or spec.deadline_us is not None
        if spec.dependency is None and not is_timed and spec.queue not in self.delaying:
            self.picker.on_job_push(job)
            return
        self.unchecked[job.stream] = job
        self.set_waiting_timers(job)

    def wait_for_hosts(self, job: JobRecord) -> None:
        """
        Have each session try to start a job where an operator wants it; no picker knows it.
        """
        self.forced[job.stream] = job
        self.set_alternative_timers(job)
        self.set_waiting_timers(job)

    def time_alternatives_anew(self) -> None:
        """
        Do so for all pending jobs that have a requirement of a profile or queue: it may have
        changed.
        """
        told = [each.requirement for each in self.stored.profiles.values()]
        told += [each.spec.requirement for each in self.stored.queues.values()]
        if any(map(delays_of, told)):
            for job in self.stored.jobs.values():
                if job.state is JobState.PEND:
                    self.set_alternative_timers(job)

    def check_readiness_anew(self, were: Collection[str]) -> None:
        """
        Have all jobs looked at whose queues delay new ones, or did: that may have changed.
        """
        if not (were or self.delaying):
            return
        for job in self.stored.jobs.values():
            if job.state is JobState.PEND and job.spec.queue in (*were, *self.delaying):
                self.unchecked[job.stream] = job
                self.set_waiting_timers(job)

    def consider_put_back(self) -> None:
        """
        Let the jobs that an earlier session took from lost hosts be considered in this one.
        """
        jobs, self.put_back = self.put_back, {}
        for job in jobs.values():
            self.check_readiness(job)

    def watch_parents(self, job: JobRecord) -> None:
        """
        Have a waiting job looked at whenever one of its parents changes its state.
        """
        is_over = job.state in ENDED and not job.requeue_why
        if job.spec.dependency is None or is_over:
            return
        for number in parents_of(job.spec.dependency):
            self.children.setdefault(number, {})[job.stream] = job

    def forget_parents(self, job: JobRecord) -> None:
        """
        Stop to watch a job's parents.
        """
        if job.spec.dependency is None:
            return
        for number in parents_of(job.spec.dependency):
            kept = self.children.get(number)
            if kept is not None:
                kept.pop(job.stream, None)
                if not kept:
                    del self.children[number]

    def look_at_dependants(self, job: JobRecord) -> None:
        """
        Have the next session look at the jobs that depend on this one, which changed its state.
        """
        if job.state in ENDED and not job.requeue_why:
            self.forget_parents(job)
        for stream, child in self.children.get(job.number, {}).items():
            if child.state is JobState.PEND:
                self.unchecked[stream] = child

    # -- moments

    def note_other_values(self) -> None:
        """
        Have jobs looked at when they reach what bounds them since definitions have changed.
        """
        for job in self.live.values():
            self._watch_run(job)
        for job in self.stored.jobs.values():
            if job.spec.deadline_us is not None and job.state in WAITING:
                self.set_waiting_timers(job)
            if job.orphan_us is not None:
                self.unchecked[job.stream] = job
                self.set_orphan_timer(job)

    def _watch_run(self, job: JobRecord) -> None:
        self.set_run_timers(job)
        if self.values_of(job).limits is not None:
            self.over_limit[job.stream] = job

    def set_run_timers(self, job: JobRecord) -> None:
        """
        Have a running job looked at when it reaches its run limit or deadline, or hangs; and note
        when it will have ended.
        """
        if job.state is JobState.RUN:
            self.note_run(job)
        self.set_live_timers(job)

    def run_limit_us(self, job: JobRecord) -> int | None:
        """
        Return the run limit in force: the job's own, else its profile's or its queue's.
        """
        return self.values_of(job).run_limit_us

    def longest_run_us(self, job: JobRecord) -> int | None:
        """
        Return how long the job may run by what ends it: its run limit in force, else its limit of
        processor time shared by its tasks (LSF's rule); None when it has neither.
        """
        values = self.values_of(job)
        if values.run_limit_us is not None:
            return values.run_limit_us
        cpu_us = None if values.limits is None else values.limits.cpu_us
        return None if cpu_us is None else cpu_us // values.tasks_min

    def planned_run_us(self, job: JobRecord) -> int | None:
        """
        Return how long the job is planned to run: its run limit in force, else what its user
        expects, else its limit of processor time; None when none is known.
        """
        values = self.values_of(job)
        if values.run_limit_us is not None:
            return values.run_limit_us
        if values.run_estimate_us is not None or values.limits is None:
            return values.run_estimate_us
        return values.limits.cpu_us

    def values_of(self, job: JobRecord) -> JobSpec:
        """
        Return a job with what its profile and queue fill in, but for the requirement.
        """
        return self.values_for(job.spec)

    def values_for(self, spec: JobSpec) -> JobSpec:
        """
        Return the same of a job's content.
        """
        if not spec.profile and spec.queue in self._adding_nothing:
            return spec
        queue = self.stored.queues[spec.queue].spec
        profile = self.stored.profiles.get(spec.profile) if spec.profile else None
        return values_of(spec, profile, queue)

    def note_queues(self) -> None:
        """
        Note which queues' definitions have nothing to say of jobs: none they fill in, or at all.
        """
        traits = {name: QueueTraits.of(each.spec) for name, each in self.stored.queues.items()}
        self._inactive = {
            name for name, each in self.stored.queues.items() if not each.spec.is_active
        }
        self._adding_nothing = {name for name, each in traits.items() if not each.fills_in}
        self._saying_nothing = {
            name for name in self._adding_nothing if not traits[name].bounds_jobs
        }
        self.delaying = {
            name: each.spec.new_job_delay_us
            for name, each in self.stored.queues.items()
            if each.spec.new_job_delay_us
        }
        self._gathering = {name for name, each in traits.items() if each.gathers}
        self._asking_more = {name for name, each in traits.items() if each.asks_more}

    def gathers(self, job: JobRecord) -> bool:
        """
        Say whether a pending job may keep what is free until it can start, or does.
        """
        return job.stream in self.gatherers or job.spec.queue in self._gathering

    def has_orders_to_give(self, now_us: int) -> bool:
        """
        Say whether a session may have something to decide about started or unwanted jobs.
        """
        return bool(
            self.kills
            or self.requeues
            or self.signals
            or self.demands
            or self.over_limit
            or self.lost_hosts
            or self.pressed
            or self.has_stop_conditions
            or self.run_windows_open
            or (self.timers and self.timers[0][0] <= now_us)
        )

    # -- rules

    def exit_rules(self, job: JobRecord) -> ExitRules:
        """
        Return what the job's exit values mean: its own rules, else its profile's or its queue's.
        """
        return self.values_of(job).exits or NO_RULES

    def is_rerunnable(self, job: JobRecord) -> bool:
        """
        Say whether the job starts anew when its host is lost.
        """
        return bool(self.values_of(job).rerunnable)

    def is_of_bounded_array(self, job: JobRecord) -> bool:
        """
        Say whether a job is an element of an array of which only so many may be started at a time.
        """
        return job.index > 0 and self.stored.arrays[job.number].started_max is not None

    def started_elements(self, number: int) -> int:
        """
        Return how many elements of an array are started and haven't ended.
        """
        jobs = self.stored.jobs
        array = self.stored.arrays[number]
        return sum(jobs[stream].state in LIVE for stream in array.elements)

    def drop_orders(self, job: JobRecord) -> None:
        """
        Drop the orders that stand for a job which has left its hosts.
        """
        for worker in self.stored.workers.values():
            for number in [n for n, order in worker.orders.items() if order.stream == job.stream]:
                del worker.orders[number]


def order_of(job: JobRecord) -> tuple[int, int]:
    """
    Return what orders jobs when nothing else does: number, then index.
    """
    return (job.number, job.index)
