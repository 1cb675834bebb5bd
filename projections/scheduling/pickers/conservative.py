"""
Conservative backfilling (``conservative``): every job that can't start is promised a start, and no
later one may delay it.

Where slots alone count, free slots are kept by time. Each job is put into the earliest gap where it
fits; when running jobs end early, the promised ones are moved forward, in order of their starts,
and none back. Only a job that outruns its plan, or a lost host, makes a promise fail.

Elsewhere (amounts, selects, hosts that take no jobs) the first jobs that can't start are promised
hosts, each beside all that is promised to others, at any time; a promise is moved forward when that
is possible. Every job keeps clear of what it wouldn't have left in time. A job that may have to
wait for one without a plan is promised nothing, and holds nobody back.
"""

from __future__ import annotations

from typing import Final, NamedTuple, final

from domain.event import sure
from domain.reservations import BackfillReservation, KeptRun
from projections.scheduling.foreseen import SlotsAhead
from projections.scheduling.pickers.ordered import OrderedPicker
from projections.scheduling.pickers.profile import FOREVER, Profile
from projections.scheduling.pickers.protocol import NO_TERMS, PickerView, Terms
from projections.scheduling.pickers.waiting import NO_PROOF, UNKNOWN, Entry, Key, proof_of
from projections.scheduling.pickers.wide_profile import WideProfile, profile_of
from projections.scheduling.records import JobRecord, QueueRecord

Mark = tuple[int, int, int]

PROMISES_MAX: Final = 20
"""So many are promised hosts where more than slots counts: each costs some trial placements."""


class _Held(NamedTuple):
    """
    Hold hosts that are promised to a job from some moment on.
    """

    job: JobRecord
    promise: BackfillReservation

    def wanted(self) -> tuple[int, tuple[KeptRun, ...]]:
        """
        Return the moment and the hosts.
        """
        return self.promise.start_us or 0, self.promise.runs

    def lends(self, now_us: int, run_us: int) -> bool:
        """
        Say whether a job that runs so long from now on has left by then.
        """
        return run_us != UNKNOWN and now_us + run_us <= self.wanted()[0]


@final
class Conservative(OrderedPicker):
    """
    Backfill around every job that can't start.
    """

    name = "conservative"
    version = 1

    def init(self, view: PickerView) -> None:
        super().init(view)
        self._todo: list[Entry] = []
        self._starts: dict[str, int] = {}
        self._ahead: SlotsAhead | None = None
        self._first: Entry | None = None
        self._held: dict[str, _Held] = {}
        self._terms = NO_TERMS
        self._failed: set[tuple[str, tuple[KeptRun, ...]]] = set()
        self._lent: dict[tuple[str, ...], tuple[KeptRun, ...]] = {}
        self._lent_at: tuple[int, int] | None = None
        self._proved = NO_PROOF
        self._profile: Profile | WideProfile | None = None
        self._fresh: dict[str, Entry] = {}
        self._is_stirred = True
        self._is_calm = self._is_told = self._is_late = False
        self._has_started = self._has_endless = False
        self._settled: Mark | None = None
        self._until_us = 0

    # -- jobs come and go

    def on_queue_update(self, queue: QueueRecord) -> None:
        self._is_stirred = True
        super().on_queue_update(queue)

    def on_job_push(self, job: JobRecord) -> None:
        self._fresh[job.stream] = self._waiting.push(job)

    def on_job_state_change(self, job: JobRecord) -> None:
        self._is_stirred = True
        super().on_job_state_change(job)
        self._fresh.pop(job.stream, None)

    def on_job_update(self, job: JobRecord) -> None:
        self._is_stirred = True
        super().on_job_update(job)

    # -- a session

    def begin_session(self) -> None:
        fresh, self._fresh = sorted(self._fresh.values()), {}
        self._is_calm = self._is_late = self._has_started = self._has_endless = False
        if self._is_at_rest():
            self._add(fresh)
            return
        self._is_told = False
        self._starts, self._held, self._first = {}, {}, None
        self._failed, self._profile, self._lent_at = set(), None, None
        ready = [entry for entry in self._waiting.entries if self._view.is_ready(entry.job)]
        self._ahead = self._slots_ahead(ready)
        self._todo = ready[::-1]
        if self._ahead is not None:
            self._fit_in(ready, self._ahead)
        else:
            self._hold(ready)

    def _mark(self) -> Mark:
        view = self._view
        return (view.changes(), view.runs_changed(), view.hosts_changed())

    def _is_at_rest(self) -> bool:
        """
        Say whether every promise stands as a session has left and recorded it, where slots alone
        count: nothing happened since but that jobs came in, and neither a promise nor a running job
        is due.
        """
        is_kept = self._is_told and not self._is_stirred
        is_same = is_kept and self._settled == self._mark()
        return is_same and self._view.now_us() < self._until_us

    def _add(self, fresh: list[Entry]) -> None:
        """
        Give new jobs their starts beside what is promised.
        """
        now_us, profile = self._view.now_us(), self._profile
        assert profile is not None, "it is kept while all is at rest"
        new = [entry for entry in fresh if self._view.is_ready(entry.job)]
        if any(self._view.slots_ahead(entry.job) is None for entry in new):
            self._settled = None
            self._fresh = {entry.job.stream: entry for entry in fresh}
            self.begin_session()
            return
        self._is_calm = not new
        self._is_told = self._is_calm
        profile.advance(now_us)
        for entry in new:
            self._put(entry, profile)
        self._try_due(new, [] if self._first is None else [self._first], now_us)

    def _hold(self, ready: list[Entry]) -> None:
        """
        Take over the promised hosts that can still be had.
        """
        found: list[tuple[int, Key, Entry]] = []
        for entry in ready:
            promise = entry.job.promise
            is_ours = promise is not None and promise.policy == self.name and bool(promise.runs)
            if promise is not None and is_ours and promise.start_us is not None:
                found.append((promise.start_us, entry.key, entry))
        for start_us, _, entry in sorted(found, key=lambda each: each[:2]):
            promise = entry.job.promise
            assert promise is not None, entry.job.stream
            wanted = [*(held.wanted() for held in self._held.values()), (start_us, promise.runs)]
            if self._view.kept_for(wanted) is not None:
                self._held[entry.job.stream] = _Held(entry.job, promise)

    def _slots_ahead(self, ready: list[Entry]) -> SlotsAhead | None:
        """
        Return the free slots by time when they alone count for every job.
        """
        found = None
        alike: set[str] = set()
        for entry in ready:
            # What else could keep a job from starting is in its fingerprint.
            fingerprint = self._view.fingerprint_of(entry.job)
            if fingerprint not in alike:
                alike.add(fingerprint)
                found = self._view.slots_ahead(entry.job)
                if found is None:
                    return None
        return found

    def _fit_in(self, ready: list[Entry], ahead: SlotsAhead) -> None:
        """
        Give every job its start; those that are due now are the ones to try, and beside them the
        first of the others, so that its reasons are known.
        """
        now_us = self._view.now_us()
        profile, promised, others = self._promised(ready, ahead, now_us)
        self._profile = profile
        for start_us, entry in promised:
            if profile.has_earlier(entry.slots, start_us, _run_us(entry)):
                profile.take(-entry.slots, start_us, _run_us(entry))
                self._put(entry, profile)
            else:
                self._starts[entry.job.stream] = start_us
        for entry in sorted(others):
            self._put(entry, profile)
        self._try_due(ready, [], now_us)

    def _try_due(self, entries: list[Entry], known: list[Entry], now_us: int) -> None:
        """
        Have those tried that are due now, the first of the others, and who never gets a start and
        hasn't been told so.

        Args:
            entries: In order of their keys.
            known: Beside these, who may be the first.
            now_us: The session's time.
        """
        due = [entry for entry in entries if self._starts.get(entry.job.stream) == now_us]
        later = [entry for entry in entries if self._starts.get(entry.job.stream, 0) > now_us]
        self._first = min(
            [*known, *later],
            key=lambda entry: (self._starts[entry.job.stream], entry.key),
            default=None,
        )
        self._todo = due[::-1]
        if self._first is not None and not self._is_known(self._first.job):
            # It is tried last, when the others have their slots, so that it can't be placed.
            self._todo.insert(0, self._first)
        self._todo[:0] = [
            entry
            for entry in reversed(entries)
            if entry.job.stream not in self._starts and not entry.job.reason_set
        ]

    def _promised(
        self, ready: list[Entry], ahead: SlotsAhead, now_us: int
    ) -> tuple[Profile | WideProfile, list[tuple[int, Entry]], list[Entry]]:
        """
        Return the free slots by time beside the promised starts that still hold, the jobs that have
        these, in order of them, and the others.
        """
        kept: list[tuple[int, Entry]] = []
        others: list[Entry] = []
        for entry in ready:
            promise = entry.job.promise
            is_ours = promise is not None and promise.policy == self.name
            start_us = promise.start_us if promise is not None and is_ours else None
            if start_us is None:
                others.append(entry)
            else:
                kept.append((max(start_us, now_us), entry))
        kept.sort(key=lambda pair: (pair[0], pair[1].key))
        taken = [(entry.slots, start_us, _run_us(entry)) for start_us, entry in kept]
        profile = profile_of(now_us, ahead.free, ahead.by_time(), taken)
        if profile.holds_all():
            return profile, kept, others
        profile, found = profile_of(now_us, ahead.free, ahead.by_time()), []
        for start_us, entry in kept:
            if profile.fits(entry.slots, start_us, _run_us(entry)):
                profile.take(entry.slots, start_us, _run_us(entry))
                found.append((start_us, entry))
            else:
                others.append(entry)
        return profile, found, others

    def _put(self, entry: Entry, profile: Profile | WideProfile) -> None:
        start_us = profile.first(entry.slots, _run_us(entry))
        if start_us is not None:
            profile.take(entry.slots, start_us, _run_us(entry))
            self._starts[entry.job.stream] = start_us

    def _is_known(self, job: JobRecord) -> bool:
        return bool(job.reason_set) and self._proved == proof_of(self._view, job)

    def next_job(self) -> JobRecord | None:
        while self._todo:
            entry = self._todo.pop()
            if not self._view.is_ready(entry.job):
                continue
            self._terms = self._terms_for(entry)
            key = (self._view.fingerprint_of(entry.job), self._terms.kept)
            if key not in self._failed:
                return entry.job
        return None

    def _terms_for(self, entry: Entry) -> Terms:
        if self._ahead is not None:
            first = self._first
            if first is None or first.key >= entry.key:
                return NO_TERMS
            return Terms(first.job.job_id)
        kept = self._kept(entry.run_us, beside=entry.job)
        others = [held for stream, held in self._held.items() if stream != entry.job.stream]
        return Terms(others[0].job.job_id, kept) if others else NO_TERMS

    def _kept(self, run_us: int, beside: JobRecord) -> tuple[KeptRun, ...]:
        """
        Return what a job that runs so long must keep clear of.
        """
        now_us = self._view.now_us()
        lent_by = [
            held
            for held in self._held.values()
            if held.job is not beside and not held.lends(now_us, run_us)
        ]
        if not lent_by:
            return ()
        mark = (self._view.changes(), self._view.runs_changed())
        if self._lent_at != mark:
            self._lent, self._lent_at = {}, mark
        streams = tuple([held.job.stream for held in lent_by])
        found = self._lent.get(streams)
        if found is None:
            kept = self._view.kept_for([held.wanted() for held in lent_by])
            # What can't be had any more by now is promised anew in the next session.
            found = self._lent[streams] = () if kept is None else kept
        return found

    def terms_of(self, job: JobRecord) -> Terms:
        return self._terms

    def kept_from(self, job: JobRecord) -> tuple[KeptRun, ...]:
        run_us = self._view.planned_run_us(job)
        if self._ahead is None:
            return self._kept(UNKNOWN if run_us is None else run_us, beside=job)
        first, start_us = self._first, self._view.now_us()
        if first is None:
            return ()
        if run_us is not None and start_us + run_us <= self._starts[first.job.stream]:
            return ()
        return self._ahead.kept(first.slots, self._starts[first.job.stream])

    def on_dispatch(self, job: JobRecord) -> None:
        self._has_started = True
        if self._view.planned_run_us(job) is None:
            self._has_endless = True
        self._starts.pop(job.stream, None)
        self._held.pop(job.stream, None)

    def on_pend(self, job: JobRecord) -> None:
        if self._ahead is not None:
            self._proved = proof_of(self._view, job)
            # One before it took more than the fewest slots with which it starts.
            is_due = self._starts.get(job.stream) == self._view.now_us()
            self._is_late = self._is_late or (is_due and self._has_started)
            return
        self._failed.add((self._view.fingerprint_of(job), self._terms.kept))
        held = self._held.get(job.stream)
        if held is None and len(self._held) >= PROMISES_MAX:
            return
        others = [each for each in self._held.values() if each.job is not job]
        beside = tuple(run for each in others for run in each.promise.runs)
        forecast = self._view.forecast(job, beside)
        if forecast is None or forecast.start_us is None:
            return
        if held is None or forecast.start_us < held.wanted()[0]:
            promise = BackfillReservation(
                policy=self.name,
                start_us=forecast.start_us,
                runs=forecast.wanted(),
                shared=forecast.shared,
            )
            self._held[job.stream] = _Held(job, promise)
            self._lent_at = None

    def end_session(self) -> None:
        """
        Note how all was left, if it was gone through and slots alone count: with a job whose end
        nobody knows they do so no longer.
        """
        self._is_stirred, self._settled = bool(self._todo), None
        if self._ahead is not None and not self._has_endless:
            self._settled = self._mark()
            due_us = self._ahead.due_us
            self._until_us = min(self._starts.values(), default=FOREVER)
            self._until_us = self._until_us if due_us is None else min(self._until_us, due_us)

    # -- what is recorded of it

    def blocker(self) -> JobRecord | None:
        if len(self._waiting.entries) < 2:
            return None
        if self._ahead is not None:
            return None if self._first is None else self._first.job
        return next((held.job for held in self._held.values()), None)

    def promises(self) -> dict[str, BackfillReservation] | None:
        if self._is_calm or self._is_late:
            return None
        self._is_told = True
        if self._ahead is None:
            return {stream: held.promise for stream, held in self._held.items()}
        return {
            entry.job.stream: self._reservation(entry, self._ahead)
            for entry in self._waiting.entries
            if entry.job.stream in self._starts
        }

    def is_stepwise(self) -> bool:
        return self._ahead is None or self._is_late

    def _reservation(self, entry: Entry, ahead: SlotsAhead) -> BackfillReservation:
        """
        Return what is promised: as recorded, while the start is the same. Hosts are named to the
        job that comes first alone.
        """
        before, start_us = entry.job.promise, self._starts[entry.job.stream]
        is_first = entry is self._first
        if (
            before is not None
            and before.policy == self.name
            and before.start_us == start_us
            and (not is_first or (before.runs and ahead.still_hold(before.runs, start_us)))
        ):
            return before
        runs = ahead.wanted(entry.slots, start_us) if is_first else ()
        return sure(BackfillReservation, policy=self.name, start_us=start_us, runs=runs)


def _run_us(entry: Entry) -> int:
    return FOREVER if entry.run_us == UNKNOWN else max(1, entry.run_us)
