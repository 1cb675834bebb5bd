"""
Events to rows: one small function for each event type, by family, in the files ``fold_*``.

The result doesn't depend on how the log is cut into batches: what is still open is kept between
batches, and is read back from the tables after a restart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from domain.envelope import Envelope
from domain.event import Event
from projections.audit import (
    fold_attempts,
    fold_hosts,
    fold_jobs,
    fold_log,
    fold_reasons,
    fold_settings,
)
from projections.audit.fold_state import Batch, FoldState, NoRows, RowSource
from projections.audit.rows.events import EventRow

Handler = Callable[[FoldState, Envelope, Any], None]

HANDLERS: dict[str, Handler] = {
    **fold_jobs.HANDLERS,
    **fold_attempts.HANDLERS,
    **fold_hosts.HANDLERS,
    **fold_reasons.HANDLERS,
    **fold_settings.HANDLERS,
    **fold_log.HANDLERS,
}
"""Type code -> what the event does to the tables besides ``events``."""

# What is counted for the session that decided it; everything else counts as "others".
_COUNTED = {
    "job.dispatched": "dispatched",
    "job.pended": "pended",
    "reasons.set_changed": "reason_sets",
    "job.kill_ordered": "orders",
    "job.suspend_ordered": "orders",
    "job.resume_ordered": "orders",
}
# The environment of a program may hold secrets: it stays in the log.
_LEFT_OUT: Any = {"spec": {"program": {"env"}}}


def payload_of(event: Event) -> str:
    """
    Return what an event says, as JSON, without environments and without what equals its default.
    """
    if event.TYPE_CODE in ("job.submitted", "job.modified"):
        return event.model_dump_json(exclude=_LEFT_OUT, exclude_defaults=True)
    return event.__pydantic_serializer__.to_json(event, exclude_defaults=True).decode()


class Fold:
    """
    Turn envelopes, taken in order of position, into rows.

    Args:
        source: Where the rows of earlier transactions are.
    """

    def __init__(self, source: RowSource | None = None) -> None:
        self.state = FoldState(source or NoRows())
        self._events = self.state.written.added

    def take_all(self, envelopes: Iterable[Envelope]) -> None:
        """
        Take several envelopes.
        """
        for envelope in envelopes:
            self.take(envelope)

    def take(self, envelope: Envelope) -> None:
        """
        Take the next envelope of the log.
        """
        # hot: tools.bench.audit_catch_up; once an event.
        position, stream, version, time_us, actor, cause, event, ends_step = envelope
        state = self.state
        code = event.TYPE_CODE
        handler = HANDLERS.get(code)
        if handler is not None:
            handler(state, envelope, event)
        session = state.session
        if session is not None:
            counted = _COUNTED.get(code, "others")
            if code != "session.held":
                setattr(session, counted, getattr(session, counted) + 1)
            session.last_position = position
            state.written.changed["sessions"][session.number] = session
            if ends_step:
                state.session = None
        state.written.added["events"].append(
            EventRow(
                position,
                time_us,
                stream,
                version,
                code,
                actor,
                cause,
                None if session is None else session.number,
                int(ends_step),
                payload_of(event),
            )
        )

    def drain(self) -> Batch:
        """
        Return what to write since the last time.
        """
        return self.state.drain()
