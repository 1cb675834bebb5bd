"""
EASY backfilling (``easy``): the first job that can't start is promised a start, and later jobs may
start before it unless that would delay it.

When it can start follows from the run limits, or the users' guesses, of the jobs that run. A job
behind it may start when it will have ended by then, or when it takes only what the first job
doesn't need. A job that something else than hosts keeps from starting (a limit, a quota) holds
nobody back and is promised nothing. Where a job in the first one's way may run for ever, no moment
is known, and later jobs may use only hosts that the first one won't get.
"""

from __future__ import annotations

from typing import final

from domain.event import sure
from domain.reservations import BackfillReservation, KeptRun
from projections.scheduling.foreseen import Forecast, SlotsAhead
from projections.scheduling.pickers.ordered import OrderedPicker
from projections.scheduling.pickers.protocol import NO_TERMS, PickerView, Terms
from projections.scheduling.pickers.waiting import NO_PROOF, UNKNOWN, Entry, proof_of
from projections.scheduling.records import JobRecord, QueueRecord

Mark = tuple[int, int]


class _Promise:
    """
    Hold what the first job is promised in this session, and what others may use besides.

    ``extra`` counts the slots that are free at its start beyond what it needs, where slots alone
    decide; None otherwise.
    """

    __slots__ = ("ahead", "entry", "extra", "forecast", "free", "kept", "start_us", "terms")

    def __init__(self, entry: Entry, ahead: SlotsAhead | None, forecast: Forecast | None) -> None:
        self.entry = entry
        self.ahead = ahead
        self.forecast = forecast
        self.extra: int | None = None
        self.start_us = None if forecast is None else forecast.start_us
        self.kept: tuple[KeptRun, ...] | None = None if forecast is None else forecast.kept
        self.free = 0 if ahead is None else ahead.free
        # Of jobs that don't touch what it needs; they are made once.
        self.terms: Terms | None = None


@final
class Easy(OrderedPicker):
    """
    Backfill around the first job that can't start.

    Equivalent to: in each session return jobs in order until one can't start; promise it a start;
    then return every later job once that may start beside it. Differs in: a session before which
    nothing changed but that jobs came in looks at those alone, since nothing has become possible
    for the others.
    """

    name = "easy"
    version = 1

    def init(self, view: PickerView) -> None:
        super().init(view)
        self._fresh: dict[str, Entry] = {}
        self._place = 0
        self._current: Entry | None = None
        self._promise: _Promise | None = None
        self._todo: list[Entry] | None = None
        self._terms = NO_TERMS
        self._is_through = self._is_stirred = False
        self._settled: Mark | None = None
        self._proved = NO_PROOF
        self._known: dict[str, int] = {}
        self._seen = -1
        self._failed: set[tuple[str, bool]] = set()

    # -- jobs come and go

    def on_queue_update(self, queue: QueueRecord) -> None:
        self._settled = None
        super().on_queue_update(queue)

    def on_job_push(self, job: JobRecord) -> None:
        self._fresh[job.stream] = self._waiting.push(job)

    def on_job_state_change(self, job: JobRecord) -> None:
        self._waiting.drop(job)
        self._fresh.pop(job.stream, None)

    def on_job_update(self, job: JobRecord) -> None:
        self._settled = None
        self.on_job_push(job)

    # -- a session

    def begin_session(self) -> None:
        self._place = 0
        self._current = None
        self._terms = NO_TERMS
        self._is_through = self._is_stirred = False
        self._failed.clear()
        before, self._promise = self._promise, None
        self._todo = None
        known, self._known = self._known, {}
        if before is None or self._settled != self._mark():
            return
        # What others took behind them may have changed the reasons of those tried before.
        epoch_of = self._view.epoch_of
        if any(epoch_of(fingerprint) != epoch for fingerprint, epoch in known.items()):
            return
        first = self._waiting.by_stream.get(before.entry.job.stream)
        fresh = sorted(self._fresh.values())
        if first is not None and (not fresh or fresh[0].key > first.key):
            self._promise, self._known = before, known
            self._todo = fresh

    def _note_proof(self, job: JobRecord) -> None:
        """
        Note that a job which is not behind the first one can't start, and its reasons are known: a
        copy of what the first one that asks for the same has proved in this session.
        """
        stream, fingerprint, epoch = proof_of(self._view, job)
        self._proved = (stream, fingerprint, self._known.setdefault(fingerprint, epoch))

    def _mark(self) -> Mark:
        return (self._view.changes(), self._view.runs_changed())

    def next_job(self) -> JobRecord | None:
        if self._promise is None:
            job = self._next_in_order()
            if job is not None or self._promise is None:
                return job
        return self._next_beside(self._promise)

    def _next_in_order(self) -> JobRecord | None:
        """
        Return the next job, None when the last one is known not to start, or none is left.
        """
        entries = self._waiting.entries
        while self._place < len(entries):
            entry = entries[self._place]
            job = entry.job
            if not self._view.is_ready(job):
                self._place += 1
                continue
            if job.reason_set:
                is_short, ahead = self._is_short(entry)
                if is_short:
                    self._look_ahead(entry, ahead)
                    if self._promise is not None:
                        return None
                    continue
            self._current = entry
            return job
        self._is_through = True
        return None

    def _is_short(self, entry: Entry) -> tuple[bool, SlotsAhead | None]:
        """
        Say whether a job is known not to start now, and its reasons to be as they were: nothing has
        become free, or too few slots where these alone count; that is noted. Return the slots ahead
        beside, as far as they were looked at.
        """
        proof = proof_of(self._view, entry.job)
        if self._proved == proof:
            self._known.setdefault(proof[1], proof[2])
            return True, None
        is_same = self._proved[:2] == proof[:2] and self._seen == self._view.hosts_changed()
        ahead = self._view.slots_ahead(entry.job) if is_same else None
        if ahead is None or ahead.free >= entry.slots:
            return False, ahead
        self._note_proof(entry.job)
        return True, ahead

    def _look_ahead(self, entry: Entry, ahead: SlotsAhead | None = None) -> None:
        """
        Promise a start to a job that can't start now, or pass it over where none is foreseen.
        """
        ahead = ahead or self._view.slots_ahead(entry.job)
        if ahead is not None:
            first = ahead.first(entry.slots)
            if first is not None:
                self._promise = _Promise(entry, ahead, None)
                self._promise.start_us, self._promise.extra = first
        else:
            forecast = self._view.forecast(entry.job)
            if forecast is not None:
                self._promise = _Promise(entry, None, forecast)
        self._place += 1

    def _next_beside(self, promise: _Promise) -> JobRecord | None:
        """
        Return the next job that may start without delaying the first one.
        """
        now_us, start_us, extra = self._view.now_us(), promise.start_us, promise.extra
        entries = self._waiting.entries if self._todo is None else self._todo
        is_counted, free = promise.ahead is not None, promise.free
        place, count = self._place, len(entries)
        failed, fingerprint_of = self._failed, self._view.fingerprint_of
        # hot: jobs that are too large are passed over first, then those of which another that asks
        # for the same has failed in this session on such terms.
        while place < count and (free > 0 or not is_counted):
            entry = entries[place]
            _, slots, run_us, job = entry
            if is_counted and slots > free:
                place += 1
                continue
            ends = start_us is not None and run_us >= 0 and now_us + run_us <= start_us
            fits = not is_counted or ends or extra is None or slots <= extra
            if not fits or (fingerprint_of(job), ends) in failed or not self._view.is_ready(job):
                place += 1
                continue
            self._place, self._current = place, entry
            self._terms = self._terms_for(promise, job, ends=ends)
            return job
        self._place, self._is_through = place, True
        return None

    def _terms_for(self, promise: _Promise, job: JobRecord, *, ends: bool) -> Terms:
        terms = promise.terms
        if terms is None:
            terms = promise.terms = Terms(promise.entry.job.job_id)
        if ends or (promise.ahead is not None and job.spec.tasks_min == job.spec.tasks_max):
            return terms
        return Terms(terms.ahead_of, self._kept(promise))

    def _kept(self, promise: _Promise) -> tuple[KeptRun, ...]:
        if promise.kept is None:
            assert promise.ahead is not None, "hosts are known where more than slots counts"
            start_us = self._view.now_us() if promise.start_us is None else promise.start_us
            promise.kept = promise.ahead.kept(promise.entry.slots, start_us)
        return promise.kept

    def terms_of(self, job: JobRecord) -> Terms:
        return self._terms

    def kept_from(self, job: JobRecord) -> tuple[KeptRun, ...]:
        promise, run_us = self._promise, self._view.planned_run_us(job)
        if promise is None:
            return ()
        start_us = promise.start_us
        knows_both = run_us is not None and start_us is not None
        if knows_both and self._view.now_us() + (run_us or 0) <= (start_us or 0):
            return ()
        if promise.ahead is not None:
            # Others have started since.
            promise.kept = None
        return self._kept(promise)

    def on_dispatch(self, job: JobRecord) -> None:
        promise = self._promise
        if self._todo is not None:
            self._place += 1
        if promise is None or job.allocation is None:
            return
        slots, run_us = job.allocation.tasks(), self._taken().run_us
        promise.free -= slots
        ends = promise.start_us is not None and run_us != UNKNOWN
        if promise.start_us is None or not ends or (
            self._view.now_us() + run_us > promise.start_us
        ):
            promise.extra = None if promise.extra is None else promise.extra - slots
            # Which free hosts the first job gets is another question now.
            self._is_stirred = True
            promise.kept = promise.kept if promise.ahead is None else None

    def on_pend(self, job: JobRecord) -> None:
        entry = self._taken()
        if self._promise is None:
            self._note_proof(job)
            self._seen = self._view.hosts_changed()
            self._look_ahead(entry)
            return
        now_us, start_us = self._view.now_us(), self._promise.start_us
        ends = start_us is not None and entry.run_us >= 0 and now_us + entry.run_us <= start_us
        self._failed.add((self._view.fingerprint_of(job), ends))
        self._place += 1

    def _taken(self) -> Entry:
        assert self._current is not None, "on_dispatch and on_pend follow next_job"
        return self._current

    def end_session(self) -> None:
        self._settled = self._mark() if self._is_through else None
        if self._is_through:
            self._fresh = {}

    # -- what is recorded of it

    def blocker(self) -> JobRecord | None:
        promise = self._promise
        if promise is None or len(self._waiting.entries) < 2:
            return None
        return promise.entry.job

    def promises(self) -> dict[str, BackfillReservation]:
        promise = self._promise
        if promise is None:
            return {}
        return {promise.entry.job.stream: self._reservation(promise)}

    def is_stepwise(self) -> bool:
        return False

    def _reservation(self, promise: _Promise) -> BackfillReservation:
        """
        Return what is promised: as recorded, while that holds.
        """
        before, start_us = promise.entry.job.promise, promise.start_us
        if promise.ahead is None or start_us is None:
            forecast = promise.forecast
            assert forecast is not None, "a promise has a forecast or the slots ahead"
            return BackfillReservation(
                policy=self.name, start_us=start_us, runs=forecast.wanted(), shared=forecast.shared
            )
        if (
            before is not None
            and before.policy == self.name
            and before.start_us == start_us
            # Jobs that end by then only lend what is promised.
            and (not self._is_stirred or promise.ahead.still_hold(before.runs, start_us))
        ):
            return before
        runs = promise.ahead.wanted(promise.entry.slots, start_us)
        return sure(BackfillReservation, policy=self.name, start_us=start_us, runs=runs)
