"""
The reason sets of a session: found again, made, or changed when what they say isn't so any more.
"""

from __future__ import annotations

from collections.abc import Callable

from domain.errors import InvariantBroken
from domain.event import Event
from domain.events.session import ReasonSetChanged
from domain.ids import REASONS
from domain.reasons import NOTES, PendReason, ReasonCode
from projections.scheduling.forcing import could_never_be
from projections.scheduling.placement.failures import failed_outcome
from projections.scheduling.placement.runner import Pending, PlacementRunner
from projections.scheduling.placement.shortages import identity_of
from projections.scheduling.readiness import can_never_start
from projections.scheduling.records import JobRecord
from projections.scheduling.state import State
from projections.scheduling.status import with_status


class ReasonSets:
    """
    Say in which reason set a job belongs.

    Args:
        state: The core's state.
        runner: Says which requests could never be placed.
        decide: Takes a decision and applies it at once.
    """

    def __init__(
        self, state: State, runner: PlacementRunner, decide: Callable[[str, Event], None]
    ) -> None:
        self._state = state
        self._runner = runner
        self._decide = decide

    def of_reason(self, reason: PendReason) -> int:
        """
        Return the set of one reason of the whole job, made first when nobody is in it yet.
        """
        state = self._state
        fingerprint = f"reason={reason.code.value}" + (f" {reason.detail}" if reason.detail else "")
        kept = state.sets.get(fingerprint)
        if kept is not None:
            return kept.number
        number = state.stored.highest_reason_set + 1
        event = ReasonSetChanged(
            set_number=number,
            fingerprint=fingerprint,
            never=reason.code is ReasonCode.JOB_DEP_INVALID,
            reasons=(reason,),
        )
        self._decide(REASONS, event)
        return number

    def of_outcome(self, fingerprint: str, outcome: Pending, job: JobRecord) -> tuple[int, Pending]:
        """
        Return the request's reason set, made or changed first when these reasons differ from the
        recorded ones, and the outcome: another when asking it for its reasons raised something.
        """
        try:
            return self._of_outcome(fingerprint, outcome, job), outcome
        except InvariantBroken:
            raise
        except Exception as failure:  # noqa: BLE001 - it is told to the job, and the others go on
            failed = failed_outcome(failure)
            return self._of_outcome(fingerprint, failed, job), failed

    def _of_outcome(self, fingerprint: str, outcome: Pending, job: JobRecord) -> int:
        state = self._state
        kept = state.sets.get(fingerprint)
        if kept is not None and state.signatures.get(kept.number) == outcome.signature:
            return kept.number
        found, never = self._described(job, outcome)
        number = kept.number if kept is not None else state.stored.highest_reason_set + 1
        same = (
            kept is not None
            and kept.never == never
            and identity_of(kept.reasons) == identity_of(found)
        )
        if not same:
            event = ReasonSetChanged(
                set_number=number,
                fingerprint=fingerprint,
                never=never,
                reasons=found,
                proved_by=job.job_id,
            )
            self._decide(REASONS, event)
        state.signatures[number] = outcome.signature
        return number

    def _described(self, job: JobRecord, outcome: Pending) -> tuple[tuple[PendReason, ...], bool]:
        """
        Return every reason why a job waits, and whether it could never start.
        """
        state = self._state
        found = outcome.reasons()
        if job.forced_on:
            is_told = job.tells_never and not outcome.has_failed
            return found, is_told and could_never_be(state, self._runner, job)
        if any(reason.hosts for reason in found) or all(each.code in NOTES for each in found):
            found = with_status(found, state)
        if outcome.has_failed:
            return found, False
        never = can_never_start(state, job) or self._runner.never(
            state.request_of(job), state.settings().allocators
        )
        return found, never
