"""
Trace the sessions of a core: which jobs, where to, and what is written of jobs that a session
didn't try.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile
from typing import Final, final

import numpy as np

from domain.job_states import WAITING, JobState
from domain.jobs import hosts_text
from domain.reasons import TEXTS, PendReason, ReasonCode
from projections.scheduling.capacity import Column, reserved_on
from projections.scheduling.pickers.lists import PickerLists
from projections.scheduling.pickers.protocol import JobPicker
from projections.scheduling.records import JobRecord
from projections.scheduling.state import State
from projections.scheduling.status import code_of_hold, status_of_hosts
from projections.scheduling.trace import (
    DecisionTrace,
    Outcome,
    Passed,
    SessionMark,
    TraceSettings,
    Verdict,
)
from projections.scheduling.trace_outcomes import skipped_outcome
from projections.scheduling.trace_store import TraceStore
from projections.scheduling.trace_writing import Tracer

PROVERS_MAX: Final = 8_192


@final
class Tracing:
    """
    Be what a core is given to trace its sessions.

    Args:
        settings: What is traced; others take effect at the next session.
        store: Where traces are kept.
        on_trace: Told of each trace as it is complete.
        is_replay: Whether every session that is held is known to be recorded.
    """

    def __init__(
        self,
        settings: TraceSettings,
        store: TraceStore,
        on_trace: Callable[[DecisionTrace], None] | None = None,
        *,
        is_replay: bool = False,
    ) -> None:
        self.settings = settings
        self.store = store
        self.on_trace = on_trace
        self.is_replay = is_replay
        self._provers: dict[str, tuple[str, int]] = {}
        self._sessions = 0
        self._waiting: dict[str, JobRecord] = {}
        self._newest = ""

    def begin(self, state: State, now_us: int) -> SessionTracing:
        """
        Return what traces one session, with the settings as they are now.
        """
        self._sessions += 1
        return SessionTracing(self, self.settings, state, now_us, self._sessions)

    def prover_of(self, fingerprint: str) -> tuple[str, int] | None:
        """
        Return the job that proved a request unsatisfiable last, and in which of the traced
        sessions.
        """
        return self._provers.get(fingerprint)

    def note_prover(self, fingerprint: str, job_id: str, session: int) -> None:
        """
        Note which job proved a request unsatisfiable.
        """
        if len(self._provers) >= PROVERS_MAX:
            self._provers.clear()
        self._provers[fingerprint] = (job_id, session)

    def waiting(self, state: State) -> list[JobRecord]:
        """
        Return every job that waits, in order of submission as far as it is known.

        Equivalent to: look at all jobs. Differs in: those known from the last session are looked at
        again, and those that came since; all are when that isn't right by the count.
        """
        jobs = state.stored.jobs
        known = {
            stream: job
            for stream, job in self._waiting.items()
            if job.state in WAITING and jobs.get(stream) is job
        }
        since = takewhile(lambda stream: stream != self._newest, reversed(jobs))
        for stream in reversed(list(since)):
            if jobs[stream].state in WAITING:
                known[stream] = jobs[stream]
        if sum(job.state is JobState.PEND for job in known.values()) != state.waiting:
            known = {stream: job for stream, job in jobs.items() if job.state in WAITING}
        self._newest = next(reversed(jobs), "")
        self._waiting = known
        return list(known.values())

    def keep(self, trace: DecisionTrace) -> None:
        """
        Keep a complete trace.
        """
        self.store.put(trace)
        if self.on_trace is not None:
            self.on_trace(trace)


@final
class SessionTracing:
    """
    Trace one session.
    """

    def __init__(
        self, tracing: Tracing, settings: TraceSettings, state: State, now_us: int, serial: int
    ) -> None:
        self._tracing = tracing
        self._serial = serial
        self._settings = settings
        self._state = state
        number = state.stored.session_number + 1
        self._mark = SessionMark(number, now_us, tracing.is_replay)
        self._place = 0
        self._tried: set[str] = set()
        self._overages: dict[str, Column] = {}
        self._alike: dict[tuple[str, int, str], Passed] = {}
        self._status: tuple[int, list[PendReason]] | None = None
        self._begun_with = state.stored.session_number

    # -- a job that is tried

    def begin(self, job: JobRecord) -> Tracer | None:
        """
        Return what writes down how a job is decided, None when it isn't traced.
        """
        tracer = self._begun(job)
        if tracer is not None:
            picker = _picker_of(self._state, job)
            tracer.trace.picker = picker.name
            tracer.ordered(picker, job)
            tracer.unavailable(self._unavailable())
        return tracer

    def begin_forced(self, job: JobRecord) -> Tracer | None:
        """
        Return the same for a job that an operator wants started on certain hosts.
        """
        tracer = self._begun(job)
        if tracer is not None:
            tracer.trace.forced_on = hosts_text(job.forced_on)
        return tracer

    def _begun(self, job: JobRecord) -> Tracer | None:
        self._place += 1
        if not self._settings.has(job.stream, number=job.number, index=job.index):
            return None
        self._tried.add(job.stream)
        trace = DecisionTrace(
            job.job_id,
            self._mark,
            self._settings.level,
            place=self._place,
            request=self._state.request_of(job).fingerprint,
        )
        return Tracer(trace, self._settings.lines_max, self._state, self._overage)

    def _unavailable(self) -> list[PendReason]:
        """
        Return the reasons of hosts that take no jobs, looked up once while they hold.
        """
        status = self._state.capacity.status
        if self._status is None or self._status[0] != status:
            self._status = (status, status_of_hosts(self._state))
        return self._status[1]

    def proved_by(self, fingerprint: str) -> str:
        """
        Return the job that proved a request unsatisfiable in this session.
        """
        found = self._tracing.prover_of(fingerprint)
        return found[0] if found is not None and found[1] == self._serial else ""

    def note_proof(self, fingerprint: str, job: JobRecord) -> None:
        """
        Note that a job proved a request unsatisfiable.
        """
        if not self.proved_by(fingerprint):
            self._tracing.note_prover(fingerprint, job.job_id, self._serial)

    def end(self, tracer: Tracer) -> None:
        """
        Keep what was written.
        """
        self._tracing.keep(tracer.trace)

    # -- jobs that aren't

    def finish(self, *, is_complete: bool) -> None:
        """
        Write of every traced job that waits and wasn't tried, why it wasn't: beside its trace, or
        as a trace of its own where there is room.

        Args:
            is_complete: Whether the session ran to its end.
        """
        if self._state.stored.session_number != self._begun_with:
            self._mark.is_recorded = True
        store = self._tracing.store
        for job in self._waiting():
            passed = self._passed(job, is_complete=is_complete)
            # What was decided isn't given up for what wasn't.
            if store.pass_over(job.job_id, passed) or not store.has_room_for(job.job_id):
                continue
            trace = DecisionTrace(
                job.job_id, self._mark, self._settings.level,
                picker=_picker_of(self._state, job).name,
                request=self._state.request_of(job).fingerprint,
                outcome=passed.outcome,
            )  # fmt: skip
            self._tracing.keep(trace)

    def _passed(self, job: JobRecord, *, is_complete: bool) -> Passed:
        """
        Return why a job wasn't tried; one object for all that ask for the same and wait alike.
        """
        state, stream = self._state, job.stream
        is_usual = job.state is JobState.PEND and job.kill_actor is None and is_complete
        if not is_usual or stream in state.unready or stream in state.unchecked:
            return Passed(self._mark, self._why_not(job, is_complete=is_complete))
        key = (state.request_of(job).fingerprint, job.reason_set, job.spec.queue)
        found = self._alike.get(key)
        if found is None:
            outcome = self._why_not(job, is_complete=is_complete)
            found = self._alike[key] = Passed(self._mark, outcome)
        return found

    def _waiting(self) -> list[JobRecord]:
        """
        Return the traced jobs that wait and weren't tried, in order of submission.
        """
        if self._settings.streams is None:
            known = self._tracing.waiting(self._state)
            return [job for job in known if job.stream not in self._tried]
        jobs, arrays = self._state.stored.jobs, sorted(self._settings.arrays)
        elements = [stream for each in arrays for stream in self._state.streams_of(each)]
        streams = dict.fromkeys([*sorted(self._settings.streams), *elements])
        found = [jobs[stream] for stream in streams if stream in jobs]
        return [job for job in found if job.state in WAITING and job.stream not in self._tried]

    def _why_not(self, job: JobRecord, *, is_complete: bool) -> Outcome:
        state = self._state
        if job.state is not JobState.PEND:
            return _not_tried(code_of_hold(job))
        if job.kill_actor is not None:
            return Outcome(Verdict.NOT_TRIED, why="it is to be ended")
        if job.stream in state.unready:
            kept = state.stored.reason_sets.get(job.reason_set)
            reason = kept.reasons[0] if kept is not None and kept.reasons else None
            return _not_tried(ReasonCode.JOB_NEW if reason is None else reason.code, reason)
        if not state.queue_of(job).spec.is_active:
            return _not_tried(ReasonCode.QUE_INACT)
        if not state.windows_open.get(job.spec.queue, True):
            return _not_tried(ReasonCode.QUE_WINDOW)
        if not is_complete or job.stream in state.unchecked or job.stream in state.put_back:
            why = "the session had made as many decisions as it may before its turn came"
            return Outcome(Verdict.NOT_TRIED, why=why)
        return self._passed_over(job)

    def _passed_over(self, job: JobRecord) -> Outcome:
        """
        Return why the picker didn't hand out a job that is ready.
        """
        state = self._state
        picker = state.picker
        blocker = picker.blocker_of(job) if isinstance(picker, PickerLists) else picker.blocker()
        if blocker is not None and blocker is not job:
            found = _not_tried(ReasonCode.JOB_BEHIND)
            found.because_of = blocker.job_id
            return found
        fingerprint = state.request_of(job).fingerprint
        by = self.proved_by(fingerprint)
        if by:
            return skipped_outcome(by, job.reason_set)
        why = "its picker didn't hand it out"
        if job.reason_set:
            why = "its request proved unsatisfiable before, and nothing has changed for it since"
        prover = self._tracing.prover_of(fingerprint)
        by = prover[0] if prover is not None else ""
        return Outcome(Verdict.NOT_TRIED, why=why, because_of=by, reason_set=job.reason_set)

    # -- accounts

    def _overage(self, resource: str) -> Column:
        """
        Return, by host, what jobs use of a resource beyond what they asked for.
        """
        found = self._overages.get(resource)
        if found is None:
            found = self._overages[resource] = overage_of(self._state, resource)
        return found


def overage_of(state: State, resource: str) -> Column:
    """
    Return, by host, what live jobs use of a resource beyond what they asked for.
    """
    column = np.zeros(state.capacity.hosts, np.int64)
    for job in state.live.values():
        for number, actual in job.actual.items() if job.allocation is not None else ():
            asked = reserved_on(job, number).get(resource, 0)
            if asked and not (job.is_aside and resource in state.capacity.released):
                column[number] += max(0, actual.get(resource, 0) - asked)
    return column


def _picker_of(state: State, job: JobRecord) -> JobPicker:
    """
    Return who picks from the list that a job is in.
    """
    picker = state.picker
    return picker.picker_of(job) if isinstance(picker, PickerLists) else picker


def _not_tried(code: ReasonCode, reason: PendReason | None = None) -> Outcome:
    detail = "" if reason is None else reason.detail
    why = TEXTS[code].format(resource="")
    return Outcome(Verdict.NOT_TRIED, why=why, reasons=((code.value, "", detail),))
