"""
Why jobs waited, to rows: reason sets as intervals, and who held a list back.
"""

from __future__ import annotations

import json
from typing import Any

from domain.envelope import Envelope
from domain.events.session import ListHeldBack, ReasonSetChanged
from domain.reasons import PendReason, show_grouped
from projections.audit.fold_state import FoldState
from projections.audit.rows.reasons import ListBlockerRow, ReasonDetailRow, ReasonSetRow


def main_reason(reasons: tuple[PendReason, ...]) -> tuple[str, str]:
    """
    Return code and words of the main reason: one of the whole job first, else the one for most
    hosts; ties in recorded order.
    """
    if not reasons:
        return "", "no reason was recorded"
    whole = [one for one in reasons if not one.hosts]
    main = whole[0] if whole else max(reasons, key=PendReason.host_count)
    return str(main.code), main.text()


def set_changed(state: FoldState, e: Envelope, event: ReasonSetChanged) -> None:
    """
    Begin another interval of a reason set.
    """
    number = event.set_number
    rows = state.written.changed["reason_sets"]
    before = state.reason_sets.get(number)
    if before is not None:
        before.to_position, before.to_us = e.position, e.time_us
        rows[number, before.from_position] = before
    main_code, main_text = main_reason(event.reasons)
    row = state.reason_sets[number] = ReasonSetRow(
        number,
        e.position,
        e.time_us,
        None if state.session is None else state.session.number,
        event.fingerprint,
        int(event.never),
        main_code,
        main_text,
        show_grouped(event.reasons) or main_text,
        max((one.host_count() for one in event.reasons), default=0),
        event.proved_by,
    )
    rows[number, e.position] = row
    details = state.written.added["reason_details"]
    details.extend(_detail(e, number, ordinal, one) for ordinal, one in enumerate(event.reasons))


def _detail(e: Envelope, number: int, ordinal: int, reason: PendReason) -> ReasonDetailRow:
    nearest = max(reason.hosts, key=lambda span: span.available_milli, default=None)
    return ReasonDetailRow(
        number,
        e.position,
        ordinal,
        str(reason.code),
        reason.text(),
        reason.resource,
        reason.detail,
        reason.requested_milli,
        None if nearest is None else nearest.available_milli,
        None if nearest is None else nearest.first,
        reason.host_count(),
        json.dumps([[span.first, span.hosts, span.available_milli] for span in reason.hosts]),
    )


def held_back(state: FoldState, e: Envelope, event: ListHeldBack) -> None:
    """
    Begin an interval in which a job holds back its list.
    """
    change_blocker(state, e, e.stream, event.blocker)


def change_blocker(state: FoldState, e: Envelope, stream: str, blocker: str) -> None:
    """
    End a list's interval and begin the next one; the first of a list begins with the log.
    """
    rows = state.written.changed["list_blockers"]
    before = state.blockers.get(stream) or ListBlockerRow(stream, 0, 0, "")
    if before.blocker == blocker:
        return
    before.to_position, before.to_us = e.position, e.time_us
    rows[stream, before.from_position] = before
    row = state.blockers[stream] = ListBlockerRow(stream, e.position, e.time_us, blocker)
    rows[stream, e.position] = row


def release(state: FoldState, e: Envelope, job_id: str) -> None:
    """
    End the time in which a job held lists back, because it waits no longer.
    """
    for stream, row in list(state.blockers.items()):
        if row.blocker == job_id:
            change_blocker(state, e, stream, "")


HANDLERS: dict[str, Any] = {
    ReasonSetChanged.TYPE_CODE: set_changed,
    ListHeldBack.TYPE_CODE: held_back,
}
