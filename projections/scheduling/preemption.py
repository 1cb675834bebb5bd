"""
Suspend running jobs for a waiting one; ``resumption.py`` lets them go on again.

A waiting job that preempts is a *preemptor*; those it stops are its *victims*. What they give back,
and whatever else the preemptor needs beside, is held for it until it starts. Nobody is suspended
for a job that couldn't start then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from domain.allocations import Allocation
from domain.amounts import SLOTS
from domain.errors import InvariantBroken
from domain.event import Event
from domain.events.jobs import (
    JobKillOrdered,
    JobPreemptionEnded,
    JobPreemptionPlanned,
    JobSuspendOrdered,
)
from domain.job_states import JobState
from domain.preemption import JobType, OnPreempt, PreemptPolicy, SuspendSignals, Trigger
from domain.reasons import ReasonCode
from projections.scheduling.holds import victims_of, waits_to_be_ready
from projections.scheduling.own_view import ground_of, relief_for
from projections.scheduling.placement.failures import failed_outcome
from projections.scheduling.placement.relief import Relief
from projections.scheduling.placement.runner import Pending, Placed, PlacementRunner
from projections.scheduling.readiness import kept_whoever_stops
from projections.scheduling.records import JobRecord
from projections.scheduling.request import Request
from projections.scheduling.state import State
from projections.scheduling.trace_writing import Tracer
from projections.scheduling.watches import order_of

SUSP_PREEMPT: Final = "SUSP_PREEMPT"
TERM_PREEMPT: Final = "TERM_PREEMPT"
SLOT_CODES: Final = frozenset(
    {
        ReasonCode.HOST_SLOTS,
        ReasonCode.JOB_NO_SPAN,
        ReasonCode.JOB_SPREAD_TASK,
        ReasonCode.QUE_JOB_LIMIT,
        ReasonCode.QUE_PJOB_LIMIT,
        ReasonCode.QUE_USR_JLIMIT,
        ReasonCode.QUE_USR_PJLIMIT,
        ReasonCode.USER_JOB_LIMIT,
        ReasonCode.USER_PJOB_LIMIT,
        ReasonCode.UGRP_JOB_LIMIT,
        ReasonCode.UGRP_PJOB_LIMIT,
        ReasonCode.QUE_HOST_JLIMIT,
        ReasonCode.QUE_PROC_JLIMIT,
        ReasonCode.USER_PROC_JLIMIT,
        ReasonCode.HOST_USR_JLIMIT,
    }
)

Rank = tuple[int, ...]
Chosen = tuple[list[JobRecord], Allocation]


class Preemption:
    """
    Preempt in one session. Made afresh for each.

    Args:
        state: The core's state.
        runner: Places requests, on trial too.
        decide: Takes a decision and applies it at once.
        now_us: The session's time.
    """

    def __init__(
        self,
        state: State,
        runner: PlacementRunner,
        decide: Callable[[str, Event], None],
        now_us: int,
    ) -> None:
        self._state = state
        self._runner = runner
        self._decide = decide
        self._now_us = now_us
        self.tracer: Tracer | None = None

    # -- stopping

    def end_idle_holds(self) -> None:
        """
        Hold nothing any more for preemptors that can't be tried now.
        """
        state = self._state
        for job in sorted(state.keepers.values(), key=order_of):
            if not state.is_ready(job) or waits_to_be_ready(state, job):
                self._decide(job.stream, JobPreemptionEnded())

    def _stop(self, job: JobRecord, found: Chosen | None) -> bool:
        """
        Order those to stop who were found, and hold for the job what they give back.
        """
        if found is None:
            if job.keeps is None:
                return False
            self._decide(job.stream, JobPreemptionEnded())
            return True
        victims, allocation = found
        if self.tracer is not None:
            self.tracer.victims(victims, [self._rank(victim, job) for victim in victims])
        if victims or job.keeps is None:
            ids = tuple(victim.job_id for victim in victims)
            self._decide(job.stream, JobPreemptionPlanned(allocation=allocation, victims=ids))
        for victim in victims:
            self._order(victim, job)
        return True

    def attempt(self, job: JobRecord, outcome: Pending) -> tuple[bool, Pending]:
        """
        Stop the fewest jobs that let this one start, whose placement has just failed.

        Returns:
            Whether its request isn't proved impossible by this: it waits for victims to stop, or
            what was held for it has just become free. And why it waits: as before, or what was
            raised on the way.
        """
        found = None
        try:
            found = self.find(job, outcome)
        except InvariantBroken:
            raise
        except Exception as failure:  # noqa: BLE001 - nobody is stopped, and the job is told
            outcome = failed_outcome(failure)
        return self._stop(job, found), outcome

    def find(self, job: JobRecord, outcome: Pending) -> Chosen | None:
        """
        Return the fewest jobs to stop for one whose placement has just failed, nobody when those
        are enough that are about to; None when nobody helps. Nothing is changed.

        Raises:
            PluginFailed: An allocator raised on trial.
        """
        tracer = self.tracer
        if not self._may_preempt(job, outcome):
            if tracer is not None and self._state.preys_of(job.spec.queue):
                tracer.preemption("not_tried", "the job may not preempt now")
            return None
        request = self._state.request_of(job)
        base = relief_for(self._state, job)
        coming = [victim for victim in victims_of(self._state, job) if not victim.is_aside]
        for victim in coming:
            base.spare(victim)
            base.give_all(victim, is_ended=bool(victim.kill_order))
        if coming:
            allocation = self._trial(request, base, ())
            if allocation is not None:
                if tracer is not None:
                    detail = "those that are about to stop suffice"
                    tracer.preemption("waits", detail, count=len(coming))
                return [], allocation
        candidates = self._candidates(job)
        if not candidates or self._trial(request, base, candidates) is None:
            if tracer is not None:
                detail = "it couldn't start if all candidates stopped" if candidates else (
                    "there is no candidate"
                )
                tracer.preemption("failed", detail, count=len(candidates))
            return None
        if tracer is not None:
            tracer.preemption("possible", "candidates in order of rank", count=len(candidates))
        on_host = self._fewest_on_one_host(job, request, base, candidates)
        is_serial = all(
            sum(part.tasks_max for part in branch.parts) == 1 for branch in request.branches
        )
        # What a limit of the whole job counts may run on any host.
        if on_host is not None and is_serial and not request.budgets:
            return on_host
        spread = self._fewest(request, base, candidates)
        if on_host is None or (spread is not None and len(spread[0]) < len(on_host[0])):
            return spread
        return on_host

    def _may_preempt(self, job: JobRecord, outcome: Pending) -> bool:
        settings = self._state.settings().preemption
        if outcome.has_failed or not self._state.preys_of(job.spec.queue):
            return False
        if self._now_us < job.queue_us + settings.delay_us:
            return False
        if kept_whoever_stops(self._state, job, self._now_us) is not None:
            return False
        if settings.trigger is Trigger.ANY:
            return True
        if JobType.EXCLUSIVE in settings.job_types and self._state.capacity.exclusive.any():
            # Such a host takes no jobs at all, so nothing is told of its slots.
            return True
        return any(
            reason.code in SLOT_CODES or reason.resource in (SLOTS, *settings.resources)
            for reason in outcome.reasons()
        )

    # -- whom

    def _candidates(self, job: JobRecord) -> list[JobRecord]:
        """
        Return the jobs that may be stopped for this one, in order of their rank.
        """
        preys = self._state.preys_of(job.spec.queue)
        found = [
            other
            for other in self._state.live.values()
            if other.spec.queue in preys and self._may_be_victim(other, job)
        ]
        return sorted(found, key=lambda other: self._rank(other, job))

    def _may_be_victim(self, other: JobRecord, job: JobRecord) -> bool:
        is_ordered = other.kill_order or other.suspend_order or other.resume_order
        is_wanted = other.kill_actor is None and other.stop_actor is None and not other.requeue_why
        if other.state is not JobState.RUN or is_ordered or not is_wanted:
            return False
        if other.allocation is None or other.is_forced or self._is_kept_by_kind(other):
            return False
        return job.job_id not in other.spared_from and not self._is_protected(other)

    def _is_kept_by_kind(self, other: JobRecord) -> bool:
        """
        Say whether a job is of a kind that isn't stopped for others here.
        """
        kinds = self._state.settings().preemption.job_types
        if other.allocation is not None and other.allocation.is_exclusive:
            return JobType.EXCLUSIVE not in kinds
        # Who borrows is ahead of the one that lends.
        return bool(other.ahead_of) and JobType.BACKFILL not in kinds

    def _is_protected(self, other: JobRecord) -> bool:
        settings = self._state.settings().preemption
        if settings.times_max is not None and other.preemptions >= settings.times_max:
            return True
        if self._now_us < other.since_us + settings.no_interval_us:
            return True
        limit_us = self._state.run_limit_us(other)
        if limit_us is None:
            return False
        run_us = self._run_us(other)
        left_us = limit_us - run_us
        has_run_long = (settings.no_run_us and run_us >= settings.no_run_us) or (
            settings.no_run_percent and run_us * 100 >= limit_us * settings.no_run_percent
        )
        ends_soon = (settings.no_finish_us and left_us <= settings.no_finish_us) or (
            settings.no_finish_percent and left_us * 100 <= limit_us * settings.no_finish_percent
        )
        return bool(has_run_long or ends_soon)

    def _run_us(self, job: JobRecord) -> int:
        return job.run_us + self._now_us - job.since_us

    def _class(self, other: JobRecord, job: JobRecord) -> Rank:
        """
        Return what ranks a victim before the work that is lost: the preference of its queue, its
        queue's priority, its own; or how long it has run, where that comes first.
        """
        queue = self._state.queue_of(job).spec
        prey = self._state.queue_of(other).spec
        names = queue.preemptible_queues
        preference = 0 if names is None else names.preference_of(other.spec.queue)
        if queue.preempt_policy is PreemptPolicy.LEAST_RUN_TIME:
            return (-preference, prey.priority, self._run_us(other))
        return (-preference, prey.priority, prey.counted_priority(other.spec.user_priority))

    def _rank(self, other: JobRecord, job: JobRecord) -> Rank:
        start_us = other.dispatch_us if other.start_us is None else other.start_us
        return (*self._class(other, job), -(start_us or 0), -other.number, -other.index)

    # -- how few

    def _trial(
        self,
        request: Request,
        base: Relief,
        victims: list[JobRecord] | tuple[JobRecord, ...],
        host: int | None = None,
    ) -> Allocation | None:
        """
        Place a request as if these victims had stopped, on one host alone or on all.
        """
        relief = base.copy()
        for victim in victims:
            ends = self._state.queue_of(victim).spec.on_preempt is not OnPreempt.SUSPEND
            relief.spare(victim)
            relief.give_all(victim, is_ended=ends)
        ground = ground_of(self._state, relief, host)
        # It may be budgets that keep the job from starting, and nobody gives back any of them.
        ground.differs_in_budgets = True
        outcome = self._runner.place_on(ground, request, self._state.settings().allocators)
        return outcome.allocation if isinstance(outcome, Placed) else None

    def _fewest(
        self, request: Request, base: Relief, ranked: list[JobRecord], host: int | None = None
    ) -> Chosen | None:
        """
        Return the victims that are needed: add them in order of their rank until the job can be
        placed, then drop, last added first, each that isn't needed.

        Equivalent to: add one at a time. Differs in: how many must be added is found by bisection,
        since a job that can be placed can be placed too when more is free.
        """
        allocation = self._trial(request, base, ranked, host)
        if allocation is None:
            return None
        low, high = 1, len(ranked)
        while low < high:
            middle = (low + high) // 2
            found = self._trial(request, base, ranked[:middle], host)
            if found is None:
                low = middle + 1
            else:
                high, allocation = middle, found
        chosen = ranked[:high]
        for victim in reversed(ranked[:high]):
            rest = [each for each in chosen if each is not victim]
            found = self._trial(request, base, rest, host) if rest else None
            if found is not None:
                chosen, allocation = rest, found
        return chosen, allocation

    def _fewest_on_one_host(
        self, job: JobRecord, request: Request, base: Relief, ranked: list[JobRecord]
    ) -> Chosen | None:
        """
        Return the victims on the host that needs the fewest, ties by the rank of their kind, then
        by host order; None when no host alone suffices.
        """
        best: tuple[int, list[Rank], int] | None = None
        found: Chosen | None = None
        for least, kind, host, on_host in sorted(
            self._hosts_to_try(job, request, base, ranked), key=lambda entry: entry[:3]
        ):
            if best is not None and (least, [kind], host) > best:
                break
            chosen = self._fewest(request, base, on_host, host)
            if chosen is None:
                continue
            kinds = sorted((self._class(each, job) for each in chosen[0]), reverse=True)
            key = (len(chosen[0]), kinds, host)
            if best is None or key < best:
                best, found = key, chosen
        return found

    def _hosts_to_try(
        self, job: JobRecord, request: Request, base: Relief, ranked: list[JobRecord]
    ) -> Iterator[tuple[int, Rank, int, list[JobRecord]]]:
        """
        Yield hosts where the tasks may fit: how many victims are needed at least, the best kind of
        victim, the host, and its candidates in order of their rank.
        """
        capacity = self._state.capacity
        usable = ground_of(self._state, base).usable
        tasks = min(sum(part.tasks_min for part in branch.parts) for branch in request.branches)
        matching = self._matching(request)
        on_hosts: dict[int, list[tuple[JobRecord, int]]] = {}
        for other in ranked:
            for number, count, _ in other.allocation.shares() if other.allocation else ():
                on_hosts.setdefault(number, []).append((other, count))
        for number in sorted(on_hosts):
            counts = sorted((count for _, count in on_hosts[number]), reverse=True)
            missing = tasks - int(usable[number])
            is_open = capacity.is_fit(number) and matching[number]
            if not is_open or sum(counts) < missing:
                continue
            least = 1
            while sum(counts[:least]) < missing:
                least += 1
            victims = [other for other, _ in on_hosts[number]]
            yield least, self._class(victims[0], job), number, victims

    def _matching(self, request: Request) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """
        Return the hosts that match what never changes of a simple select; all for any other.
        """
        capacity = self._state.capacity
        if len(request.branches) > 1 or len(request.branches[0].parts) > 1:
            return np.ones(capacity.hosts, np.bool_)
        static = tuple(
            each for each in request.branches[0].parts[0].conditions if each.is_static
        )
        if not static:
            return np.ones(capacity.hosts, np.bool_)
        return capacity.selector.static(static)

    # -- orders

    def _order(self, victim: JobRecord, job: JobRecord) -> None:
        """
        Order a victim's worker to stop it, or to end it where its queue says so.
        """
        assert victim.allocation is not None, victim.stream
        state = self._state
        worker = state.hosts[victim.allocation.runs[0].first]
        number = worker.last_order + 1
        on_preempt = state.queue_of(victim).spec.on_preempt
        event: Event
        if on_preempt is OnPreempt.SUSPEND:
            is_lsf = state.settings().preemption.signals is SuspendSignals.LSF
            is_serial = victim.allocation.tasks() == 1
            event = JobSuspendOrdered(
                attempt=victim.attempt,
                worker=worker.name,
                order_number=number,
                why=SUSP_PREEMPT,
                signal="SIGSTOP" if is_lsf and is_serial else "SIGTSTP",
                preemptor=job.job_id,
            )
        else:
            event = JobKillOrdered(
                attempt=victim.attempt,
                worker=worker.name,
                order_number=number,
                why=TERM_PREEMPT,
                preemptor=job.job_id,
                requeue=on_preempt is OnPreempt.REQUEUE,
            )
        self._decide(victim.stream, event)
