"""
One scheduling session: pick, place, pend. It reads like the specification.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from domain.allocations import Allocation
from domain.envelope import Stamped
from domain.errors import InvariantBroken
from domain.event import Event, sure, sure_of_all
from domain.events.jobs import JobDispatched, JobEnded, JobPended, JobStartPromised
from domain.events.session import JobsForgotten, ListHeldBack, SessionHeld
from domain.ids import CLUSTER, SESSION
from domain.job_states import JobState
from domain.reasons import ReasonCode
from projections.scheduling.forcing import forced_fingerprint, place_forced
from projections.scheduling.gathering import Gathering
from projections.scheduling.id_ranges import ranges_of
from projections.scheduling.orders import Orders
from projections.scheduling.own_view import ground_of, is_as_all_see_it, relief_for
from projections.scheduling.pickers.lists import PickerLists, held_back
from projections.scheduling.pickers.protocol import NO_TERMS, JobPicker, Terms
from projections.scheduling.placement.failures import failed_outcome
from projections.scheduling.placement.ground import Ground
from projections.scheduling.placement.runner import Pending, Placed, PlacementRunner
from projections.scheduling.preemption import Preemption
from projections.scheduling.promises import may_borrow, promised_anew
from projections.scheduling.readiness import (
    READY,
    ends_as_orphan,
    kept_back,
    kept_from_starting,
    note_windows,
    others_may_start,
)
from projections.scheduling.reason_sets import ReasonSets
from projections.scheduling.records import JobRecord
from projections.scheduling.request import Request
from projections.scheduling.resumption import Resumption
from projections.scheduling.state import State
from projections.scheduling.trace_session import SessionTracing
from projections.scheduling.trace_writing import Tracer
from projections.scheduling.watches import order_of

Record = Callable[..., Stamped]
"""Stamps a decision and applies it: stream, event, time, and by name actor and cause."""

PASSES_MAX: Final = 50
"""So often a session asks a picker whose promises depend on each other."""
TERM_ORPHAN_SYSTEM: Final = "TERM_ORPHAN_SYSTEM"


class Session:
    """
    Hold sessions, one after the other. Only decisions outlive one, until they are taken.

    Args:
        state: The core's state.
        runner: Places requests.
        record: Stamps a decision and applies it at once.

    ``made`` holds what one decides, behind the session's own event. ``is_settled`` is False when
    another one at the same moment may start more.
    """

    def __init__(self, state: State, runner: PlacementRunner, record: Record) -> None:
        self._state = state
        self._runner = runner
        self._record = record
        self._sets = ReasonSets(state, runner, self._decided)
        self._planner = state.planner
        self._is_listed = isinstance(state.picker, PickerLists)
        self._in_a_row = 0
        self.is_settled = True
        self._tracer: Tracer | None = None

    def _begin(self, now_us: int, tracing: SessionTracing | None) -> None:
        state = self._state
        self._now_us = now_us
        self._tracing = tracing
        self.made: list[Stamped] = []
        self._cause = ""
        self._settings = settings = state.settings()
        self._dispatches = 0
        self._left = settings.session_max_decisions
        self._unsat: dict[str, int] = {}
        self._freed = state.capacity.freed

    def take_made(self) -> list[Stamped]:
        """
        Hand over what the last session decided: kept here, it would be the next one's to free.
        """
        made, self.made = self.made, []
        return made

    def hold(self, now_us: int, tracing: SessionTracing | None = None) -> bool:
        """
        Decide everything that can be decided now.

        Args:
            now_us: The session's time.
            tracing: Writes down how jobs are decided, None for not at all.

        Returns:
            Whether it ran to its end; False when it stopped at the most decisions of a session.
        """
        self._begin(now_us, tracing)
        state = self._state
        self._note_time()
        if state.put_back:
            state.consider_put_back()
        if state.has_orders_to_give(now_us):
            Orders(state, self._decided, now_us).carry_out()
        if state.forced:
            self._start_forced()
        became_ready = self._check_readiness() if state.unchecked else []
        if state.keepers:
            self._preemption().end_idle_holds()
        if state.gatherers or state.gave_up:
            self._gathering().give_up()
        keeping: list[JobRecord] = []
        if state.gatherers or state.keepers:
            keeping = [*state.gatherers.values(), *state.keepers.values()]
        self._try_all()
        may_go_on = (keeping or self._dispatches) and others_may_start(
            state, keeping, now_us, are_dispatched=self._dispatches > 0
        )
        self._in_a_row = self._in_a_row + 1 if may_go_on else 0
        self.is_settled = self._in_a_row % PASSES_MAX == 0
        if self._left <= 0:
            state.keep_back_still(became_ready)
            return False
        if state.victims:
            Resumption(state, self._decided).let_go_on()
        if became_ready:
            self._leave_old_reasons(became_ready)
        self._note_blocker()
        if self.made:
            self._forget_jobs()
        return not state.put_back

    def _note_time(self) -> None:
        """
        Note what the moment itself opens or shuts.
        """
        state, now_us = self._state, self._now_us
        state.session_us = now_us
        changed = (state.has_windows or state.windows_open) and note_windows(state, now_us)
        if state.timed_hosts:
            state.note_hosts(now_us)
        if state.limits.note_time(now_us) or changed or state.opens_with_time:
            state.capacity.freed += 1

    def _try_all(self) -> None:
        """
        Try the jobs, and record what is promised. A picker whose promises depend on those of the
        last try is asked until it promises nothing else, and so it is while hosts may have opened
        to jobs by what others took: another session at this moment must find nothing to decide.
        """
        for _ in range(PASSES_MAX):
            left, self._unsat = self._left, {}
            self._try_jobs(self._state.picker)
            if self._left <= 0:
                return
            if self._planner is not None or self._state.promised:
                self._note_promises()
            if self._left == left:
                return
            is_stepwise = self._planner is not None and self._planner.is_stepwise()
            if not (is_stepwise or self._state.may_open_by_taking()):
                return

    def _try_jobs(self, picker: JobPicker) -> None:
        """
        Try the jobs in the order of the picker.
        """
        picker.begin_session()
        next_job = picker.next_job
        place = self._place if self._tracing is None else self._place_traced
        while self._left > 0 and (job := next_job()) is not None:
            if place(job):
                picker.on_dispatch(job)
            else:
                picker.on_pend(job)
        picker.end_session()

    def _preemption(self) -> Preemption:
        found = Preemption(self._state, self._runner, self._decided, self._now_us)
        found.tracer = self._tracer
        return found

    def _gathering(self) -> Gathering:
        found = Gathering(self._state, self._runner, self._decided, self._now_us)
        found.tracer = self._tracer
        return found

    def _decided(self, stream: str, event: Event) -> None:
        made, record, now_us = self.made, self._record, self._now_us
        if not made:
            number = self._state.stored.session_number + 1
            self._cause = f"session {number}"
            held = sure_of_all(SessionHeld, {"number": number})
            made.append(record(SESSION, held, now_us, actor="", cause=self._cause))
        self._left -= 1
        made.append(record(stream, event, now_us, actor="", cause=self._cause))

    def _start_forced(self) -> None:
        """
        Start jobs where operators want them, or record why that can't be.
        """
        for job in sorted(self._state.forced.values(), key=order_of):
            tracer = None if self._tracing is None else self._tracing.begin_forced(job)
            self._tracer = tracer
            try:
                self._start_where_wanted(job)
            finally:
                self._tracer = None
                if tracer is not None and self._tracing is not None:
                    self._tracing.end(tracer)

    def _start_where_wanted(self, job: JobRecord) -> None:
        outcome = place_forced(self._state, self._runner, job, self._tracer)
        if isinstance(outcome, Placed):
            self._dispatch(job, outcome.allocation, is_forced=True)
            return
        number, outcome = self._sets.of_outcome(forced_fingerprint(self._state, job), outcome, job)
        self._pend(job, number)
        if self._tracer is not None:
            self._tracer.pended(outcome, number)

    # -- readiness

    def _check_readiness(self) -> list[JobRecord]:
        """
        Look at the pending jobs whose readiness may have changed: hand the ready ones to the
        picker, and record why the others are kept back.

        Returns:
            The jobs that became ready.
        """
        state = self._state
        ready = []
        unchecked = sorted(state.unchecked.values(), key=order_of)
        state.unchecked = {}
        for job in unchecked:
            if job.forced_on:
                continue  # When it may start by itself is no question any more.
            # Known of every waiting job, ``may_open_by_taking`` looks through them quickly.
            state.request_of(job)
            reason = kept_back(state, job, self._now_us)
            if reason is None:
                if state.unready.pop(job.stream, None) is not None or not job.reason_set:
                    ready.append(job)
                state.picker.on_job_push(job)
            elif reason.code is ReasonCode.JOB_DEP_INVALID and ends_as_orphan(
                state, job, self._now_us
            ):
                self._decided(job.stream, JobEnded(why=TERM_ORPHAN_SYSTEM))
            else:
                state.picker.on_job_state_change(job)
                state.unready[job.stream] = job
                self._pend(job, self._sets.of_reason(reason))
        return ready

    def _leave_old_reasons(self, jobs: list[JobRecord]) -> None:
        """
        Record that jobs which became ready but weren't tried no longer wait for what kept them
        back.
        """
        for job in jobs:
            kept = self._state.stored.reason_sets.get(job.reason_set)
            is_old = kept is not None and kept.fingerprint.startswith("reason=")
            if is_old and job.state is JobState.PEND:
                self._pend(job, self._sets.of_reason(READY))

    # -- one job

    def _place_traced(self, job: JobRecord) -> bool:
        """
        Try to place one job, and write down how it is decided if it is traced.
        """
        assert self._tracing is not None
        tracer = self._tracer = self._tracing.begin(job)
        try:
            is_placed = self._place(job)
        finally:
            self._tracer = None
            if tracer is not None:
                self._tracing.end(tracer)
        if not is_placed:
            fingerprint = self._state.request_of(job).fingerprint
            if fingerprint in self._unsat:
                self._tracing.note_proof(fingerprint, job)
        return is_placed

    def _place(self, job: JobRecord) -> bool:
        """
        Try to place one job, and decide what came of it.
        """
        if job.stream not in self._state.gatherers:
            return self._placed(job)
        # What it has gathered is its own.
        limits = self._state.limits
        limits.unreserve(job)
        try:
            return self._placed(job)
        finally:
            limits.reserve(job)

    def _placed(self, job: JobRecord) -> bool:
        state = self._state
        terms = NO_TERMS if self._planner is None else self._planner.terms_of(job)
        request = state.request_of(job)
        proved = self._proved(request.fingerprint)
        if proved is not None and (not state.is_plain or request.opens_by_taking):
            if self._tracer is not None and self._tracing is not None:
                self._tracer.skipped(self._tracing.proved_by(request.fingerprint), proved)
            if not terms.ahead_of:
                self._pend(job, proved)
            return False
        outcome, ahead_of = self._try(job, request, terms)
        if isinstance(outcome, Placed):
            self._dispatch(job, outcome.allocation, ahead_of)
            return True
        if terms.ahead_of:
            # It waits behind that job, as ``ListHeldBack`` says.
            if self._tracer is not None:
                self._tracer.behind(outcome, terms.ahead_of)
            return False
        self._pend_for(job, outcome, proved)
        return False

    def _dispatch(
        self, job: JobRecord, found: Allocation, ahead_of: str = "", *, is_forced: bool = False
    ) -> None:
        """
        Start a job where it was placed.
        """
        event = sure_of_all(
            JobDispatched,
            {
                "attempt": job.attempt + 1,
                "index": self._dispatches,
                "allocation": self._charged(job, found),
                "ahead_of": ahead_of,
                "is_forced": is_forced,
            },
        )
        self._dispatches += 1
        self._decided(job.stream, event)
        if self._tracer is not None:
            self._tracer.dispatched(event.allocation)

    def _pend_for(self, job: JobRecord, outcome: Pending, proved: int | None) -> None:
        """
        Preempt or gather for a job that couldn't be placed, and record why it waits.

        Args:
            job: Which job.
            outcome: Why.
            proved: The reason set of an earlier job that asked for the same; the literal core tries
                all the same, and tells its reasons.
        """
        state, is_open = self._state, False
        if job.keeps is not None or state.preys_of(job.spec.queue):
            is_open, outcome = self._preemption().attempt(job, outcome)
        if not outcome.has_failed and not is_open and state.gathers(job):
            outcome = self._gathering().attempt(job, outcome)
        if proved is not None:
            self._pend(job, proved)
            return
        # What is held for the job is part of what it asks for.
        request = state.request_of(job)
        number, outcome = self._sets.of_outcome(request.fingerprint, outcome, job)
        if not (outcome.has_failed or is_open):
            self._unsat[request.fingerprint] = number
        self._pend(job, number)
        if self._tracer is not None:
            self._tracer.pended(outcome, number)

    def _proved(self, fingerprint: str) -> int | None:
        """
        Return the reason set of a request that was proved impossible in this session, None when
        none was since something was freed.
        """
        freed = self._state.capacity.freed
        if freed != self._freed:
            self._unsat.clear()
            self._freed = freed
        return self._unsat.get(fingerprint)

    def _charged(self, job: JobRecord, allocation: Allocation) -> Allocation:
        """
        Return an allocation with what is charged for it.
        """
        limits = self._state.limits
        charges = limits.charges_of(job.spec, allocation) if limits.are_any else ()
        return allocation.model_copy(update={"charges": charges}) if charges else allocation

    def _try(self, job: JobRecord, request: Request, terms: Terms) -> tuple[Placed | Pending, str]:
        """
        Return the outcome of a job's placement, and the id of the job that it overtakes, "" for
        none.
        """
        state = self._state
        kept = kept_from_starting(state, job, self._now_us)
        if self._tracer is not None:
            self._tracer.limits(request, kept)
        if kept is not None:
            # Whether it is for ever depends on what hosts there are.
            return Pending((state.capacity.status, kept.code, kept.detail), lambda: (kept,)), ""
        try:
            outcome = self._place_beside(job, request, terms)
            if isinstance(outcome, Placed) or not state.gatherers:
                return outcome, terms.ahead_of
            lenders = {
                each.stream: each.job_id
                for each in state.gatherers.values()
                if each is not job and may_borrow(state, job, each, self._now_us)
            }
            if not lenders:
                return outcome, ""
            outcome = self._place_beside(job, request, terms, lenders)
            return outcome, next(iter(lenders.values()))
        except InvariantBroken:
            raise
        except Exception as failure:  # noqa: BLE001 - it is told to the job, and the others go on
            return failed_outcome(failure), ""

    def _place_beside(
        self, job: JobRecord, request: Request, terms: Terms, lenders: Collection[str] = ()
    ) -> Placed | Pending:
        """
        Try to place a job beside what is kept for others, but for those who lend it.
        """
        state, tracer, chain = self._state, self._tracer, self._settings.allocators
        is_plain = not terms.kept and is_as_all_see_it(state, job)
        if is_plain and tracer is None:
            return self._runner.place(request, chain)
        ground = Ground(state.capacity)
        if not is_plain:
            ground = ground_of(state, relief_for(state, job, lenders=lenders, kept=terms.kept))
        if tracer is not None:
            tracer.beside(terms, lenders)
            ground.tracer = tracer
        return self._runner.place_on(ground, request, chain)

    def _pend(self, job: JobRecord, number: int) -> None:
        if job.reason_set != number:
            self._decided(job.stream, sure_of_all(JobPended, {"reason_set": number}))

    # -- after the last job

    def _note_promises(self) -> None:
        """
        Record what pickers promise, where that has changed.
        """
        found = {} if self._planner is None else self._planner.promises()
        if found is None:
            return
        for stream, reservation in promised_anew(self._state, found):
            self._decided(stream, sure(JobStartPromised, reservation=reservation))

    def _note_blocker(self) -> None:
        """
        Record of each list which job holds back the rest, when that has changed.
        """
        stored, picker = self._state.stored, self._state.picker
        if not self._is_listed:
            # hot: one picker has one blocker, mostly the one of before.
            only = picker.blocker()
            if only is None or only.stream == stored.blocker:
                return
        for stream, blocker in held_back(picker):
            known = stored.blocker if stream == CLUSTER else stored.blockers.get(stream)
            if blocker.stream != known:
                self._decided(stream, sure_of_all(ListHeldBack, {"blocker": blocker.job_id}))

    def _forget_jobs(self) -> None:
        """
        Forget jobs that ended long ago, enough at once: only in a session that is recorded anyway.
        """
        settings = self._settings
        before_us = self._now_us - settings.clean_period_us
        numbers = self._state.forgettable(before_us, settings.forget_batch)
        if numbers:
            self._decided(SESSION, JobsForgotten(ranges=ranges_of(numbers)))
