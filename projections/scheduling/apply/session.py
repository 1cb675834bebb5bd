"""
Apply decisions that belong to no single job.
"""

from __future__ import annotations

from typing import Any, Final

from domain.envelope import Stamped
from domain.events.session import JobsForgotten, ListHeldBack, ReasonSetChanged, SessionHeld
from domain.ids import CLUSTER, job_stream
from projections.scheduling.records import ReasonSet
from projections.scheduling.state import State


def session_held(state: State, stamped: Stamped, event: SessionHeld) -> None:
    """
    Count the session.
    """
    state.stored.session_number = event.number


def reason_set_changed(state: State, stamped: Stamped, event: ReasonSetChanged) -> None:
    """
    Make a reason set, or change the reasons of all jobs that are in it.
    """
    stored = state.stored
    kept = stored.reason_sets.get(event.set_number)
    if kept is None:
        kept = ReasonSet(
            number=event.set_number,
            fingerprint=event.fingerprint,
            never=event.never,
            reasons=event.reasons,
            since_us=stamped.time_us,
            empty_since_us=stamped.time_us,
        )
        stored.reason_sets[event.set_number] = kept
        state.sets[event.fingerprint] = kept
        stored.highest_reason_set = max(stored.highest_reason_set, event.set_number)
    kept.never = event.never
    kept.reasons = event.reasons
    kept.since_us = stamped.time_us
    kept.proved_by = event.proved_by
    state.signatures.pop(event.set_number, None)


def list_held_back(state: State, stamped: Stamped, event: ListHeldBack) -> None:
    """
    Remember which job holds back its list: that of a queue, or of the cluster's picker.
    """
    if stamped.stream == CLUSTER:
        state.stored.blocker = job_stream(event.blocker)
    else:
        state.stored.blockers[stamped.stream] = job_stream(event.blocker)


def jobs_forgotten(state: State, stamped: Stamped, event: JobsForgotten) -> None:
    """
    Drop jobs that ended long ago, keys that have outlived their time, and reason sets nobody is in.
    """
    numbers = {number for ids in event.ranges for number in range(ids.first, ids.last + 1)}
    state.drop_jobs(numbers)
    settings = state.settings()
    _drop_old_keys(state, stamped.time_us - settings.key_retention_us)
    state.drop_empty_sets(stamped.time_us - settings.clean_period_us)


def _drop_old_keys(state: State, before_us: int) -> None:
    keys = state.stored.keys
    for key in list(keys):
        if keys[key].time_us > before_us:
            return
        del keys[key]


APPLY: Final[dict[Any, Any]] = {
    SessionHeld: session_held,
    ReasonSetChanged: reason_set_changed,
    ListHeldBack: list_held_back,
    JobsForgotten: jobs_forgotten,
}
