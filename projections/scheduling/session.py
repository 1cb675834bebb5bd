"""
One scheduling session: pick, place, pend. It reads like the specification.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile

from domain.errors import PluginFailed
from domain.event import Event
from domain.events.jobs import JobDispatched, JobEnded, JobKillOrdered, JobPended
from domain.events.session import IdRange, JobsForgotten, ListHeldBack, ReasonSetChanged
from domain.ids import CLUSTER, REASONS, SESSION
from domain.job_states import LIVE
from domain.reasons import PendReason, ReasonCode
from projections.scheduling.handle.reports import why_killed
from projections.scheduling.placement.runner import Pending, Placed, PlacementRunner, identity_of
from projections.scheduling.records import JobRecord
from projections.scheduling.state import State
from projections.scheduling.status import with_status

Decide = Callable[[str, Event], None]


class Session:
    """
    Hold one session. Made afresh for each.

    Args:
        state: The core's state.
        runner: Places requests.
        decide: Takes a decision: stamps it and applies it at once.
        now_us: The session's time.
    """

    def __init__(self, state: State, runner: PlacementRunner, decide: Decide, now_us: int) -> None:
        self._state = state
        self._runner = runner
        self._decide = decide
        self._now_us = now_us
        self._dispatches = 0
        self._left = state.settings().session_max_decisions
        self._unsat: dict[str, int] = {}

    def hold(self) -> bool:
        """
        Decide everything that can be decided now.

        Returns:
            Whether it ran to its end; False when it stopped at the most decisions of a session.
        """
        self._carry_out_kills()
        picker = self._state.picker
        picker.begin_session()
        while self._left > 0 and (job := picker.next_job()) is not None:
            if self._place(job):
                picker.on_dispatch(job)
            else:
                picker.on_pend(job)
        picker.end_session()
        if self._left <= 0:
            return False
        self._note_blocker()
        self._forget_jobs()
        return True

    def _decided(self, stream: str, event: Event) -> None:
        self._left -= 1
        self._decide(stream, event)

    # -- kills

    def _carry_out_kills(self) -> None:
        """
        End pending jobs that somebody wants ended, and order the workers of running ones to end
        them.
        """
        wanted = sorted(self._state.kills.values(), key=lambda job: (job.number, job.index))
        for job in wanted:
            if job.state in LIVE:
                self._order_kill(job)
            else:
                self._decided(job.stream, JobEnded(why=why_killed(job)))

    def _order_kill(self, job: JobRecord) -> None:
        assert job.allocation is not None, job.stream
        worker = self._state.hosts[job.allocation.runs[0].first]
        event = JobKillOrdered(
            attempt=job.attempt,
            worker=worker.name,
            order_number=worker.last_order + 1,
            why=why_killed(job),
        )
        self._decided(job.stream, event)

    # -- one job

    def _place(self, job: JobRecord) -> bool:
        """
        Try to place one job, and decide what came of it.
        """
        request = self._state.request_of(job)
        proved = self._unsat.get(request.fingerprint)
        if proved is not None:
            self._pend(job, proved)
            return False
        outcome = self._try(job)
        if isinstance(outcome, Placed):
            event = JobDispatched(
                attempt=job.attempt + 1, index=self._dispatches, allocation=outcome.allocation
            )
            self._dispatches += 1
            self._decided(job.stream, event)
            return True
        number = self._set_of(request.fingerprint, outcome, job)
        self._unsat[request.fingerprint] = number
        self._pend(job, number)
        return False

    def _try(self, job: JobRecord) -> Placed | Pending:
        request = self._state.request_of(job)
        try:
            return self._runner.place(request, self._state.settings().allocators)
        except PluginFailed as failure:
            text = f"{failure.plugin}: {failure.cause}"[:200]
            reasons = (PendReason(code=ReasonCode.PLUGIN_FAILED, detail=text),)
            return Pending(("plug-in failed", text), lambda: reasons)

    def _pend(self, job: JobRecord, number: int) -> None:
        if job.reason_set != number:
            self._decided(job.stream, JobPended(reason_set=number))

    def _set_of(self, fingerprint: str, outcome: Pending, job: JobRecord) -> int:
        """
        Return the request's reason set, made or changed first when these reasons differ from the
        recorded ones.
        """
        state = self._state
        kept = state.sets.get(fingerprint)
        if kept is not None and state.signatures.get(kept.number) == outcome.signature:
            return kept.number
        found = with_status(outcome.reasons(), state)
        never = self._runner.never(state.request_of(job), state.settings().allocators)
        number = kept.number if kept is not None else state.stored.highest_reason_set + 1
        same = (
            kept is not None
            and kept.never == never
            and identity_of(kept.reasons) == identity_of(found)
        )
        if not same:
            event = ReasonSetChanged(
                set_number=number, fingerprint=fingerprint, never=never, reasons=found
            )
            self._decided(REASONS, event)
        state.signatures[number] = outcome.signature
        return number

    # -- after the last job

    def _note_blocker(self) -> None:
        """
        Record which job holds back the rest of its list, when that has changed.
        """
        blocker = self._state.picker.blocker()
        if blocker is not None and blocker.stream != self._state.stored.blocker:
            self._decided(CLUSTER, ListHeldBack(blocker=blocker.job_id))

    def _forget_jobs(self) -> None:
        """
        Forget jobs that ended long ago, enough at once, and only when the session is recorded
        anyway.
        """
        settings = self._state.settings()
        if self._left == settings.session_max_decisions:
            return
        ended, batch = self._state.ended, settings.forget_batch
        before_us = self._now_us - settings.clean_period_us
        if len(ended) < batch or (ended[batch - 1].finish_us or 0) > before_us:
            return
        numbers = [
            job.number for job in takewhile(lambda job: (job.finish_us or 0) <= before_us, ended)
        ]
        self._decided(SESSION, JobsForgotten(ranges=ranges_of(sorted(numbers))))


def ranges_of(numbers: list[int]) -> tuple[IdRange, ...]:
    """
    Return ascending job numbers as ranges.
    """
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return tuple(IdRange(first=first, last=last) for first, last in ranges)
