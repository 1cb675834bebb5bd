"""
Events of workers to rows.
"""

from __future__ import annotations

import json
from typing import Any

from domain.amounts import MEM, Attribute, HostResource
from domain.envelope import Envelope
from domain.events.workers import (
    WorkerBecameUnreachable,
    WorkerCameBack,
    WorkerClosed,
    WorkerConfigured,
    WorkerDrained,
    WorkerJoined,
    WorkerLeft,
    WorkerOpened,
    WorkerOrderDone,
    WorkerReported,
)
from domain.ids import entity_of_stream
from projections.audit.fold_attempts import state_with_contact
from projections.audit.fold_intervals import enter, happen, touch
from projections.audit.fold_settings import redefine
from projections.audit.fold_spec import amount_of, amounts_json
from projections.audit.fold_state import FoldState, LiveJob
from projections.audit.rows.hosts import HostLoadRow, HostRow, HostStateRow, OrderRow
from projections.audit.rows.jobs import UsageRow
from projections.audit.rows.settings import ChangeRow


def _host(state: FoldState, e: Envelope) -> HostRow | None:
    """
    Return the host whose event this is, noted as changed; None when it never joined.
    """
    number = state.numbers.get(entity_of_stream(e.stream)[1])
    if number is None:
        return None
    host = state.hosts[number]
    host.last_position = e.position
    state.written.changed["hosts"][number] = host
    return host


def _status(host: HostRow) -> str:
    if host.has_left:
        return "left"
    if host.is_unreachable:
        return "unreachable"
    if host.is_closed:
        return "closed"
    return "locked" if host.is_locked else "ok"


def _settle(state: FoldState, host: HostRow, e: Envelope, why: str = "") -> None:
    """
    Bring a host's status in line with what is known of it: on a change its interval ends, the next
    begins.
    """
    status = _status(host)
    before = state.host_states.get(host.host)
    if before is not None and before.status == status and not why:
        return
    if before is not None:
        state.written.added["changes"].append(
            ChangeRow(
                e.position,
                "status",
                e.time_us,
                e.actor,
                e.cause,
                "worker",
                host.host,
                json.dumps(before.status),
                json.dumps(status),
            )
        )
    _begin_interval(state, host, e, why)


def _begin_interval(state: FoldState, host: HostRow, e: Envelope, why: str) -> None:
    before = state.host_states.get(host.host)
    rows = state.written.changed["host_states"]
    if before is not None:
        before.to_position, before.to_us = e.position, e.time_us
        rows[host.host, before.from_position] = before
    host.status = _status(host)
    row = state.host_states[host.host] = HostStateRow(
        host.host, e.position, e.time_us, host.status, why, e.actor
    )
    rows[host.host, e.position] = row


def joined(state: FoldState, e: Envelope, event: WorkerJoined) -> None:
    """
    Bring a host into being, or into a new incarnation.
    """
    name = entity_of_stream(e.stream)[1]
    host = state.hosts.get(event.host_number)
    if host is None:
        host = HostRow(
            event.host_number,
            name,
            e.time_us,
            e.time_us,
            event.incarnation,
            event.slots,
            None,
            "{}",
            "{}",
            "",
            0,
            0,
            0,
            0,
            "",
            None,
            e.position,
        )
        state.hosts[event.host_number] = host
        state.numbers[name] = event.host_number
        state.forget_texts()
    host.joined_us, host.incarnation, host.slots = e.time_us, event.incarnation, event.slots
    host.resources, host.mem_milli = _resources(event.resources)
    host.attributes = _attributes(event.attributes)
    host.is_unreachable = host.has_left = 0
    host.last_position = e.position
    state.written.changed["hosts"][event.host_number] = host
    redefine(
        state,
        e,
        "worker",
        name,
        slots=event.slots,
        resources=json.loads(host.resources),
        attributes=json.loads(host.attributes),
    )
    _settle(state, host, e)
    _reach(state, e, host)


def _resources(resources: tuple[HostResource, ...]) -> tuple[str, int | None]:
    totals = {one.name: one.total_milli for one in resources}
    return json.dumps(totals), totals.get(MEM)


def _attributes(attributes: tuple[Attribute, ...]) -> str:
    return json.dumps({one.name: one.value for one in attributes})


def _led_by(state: FoldState, host: HostRow) -> list[LiveJob]:
    """
    Return the jobs whose program runs on a host: it is the first of their allocation.
    """
    number = host.host_number
    return [
        job
        for job in state.jobs.values()
        if job.allocations and job.allocations[0].first_number == number
    ]


def _lose(state: FoldState, e: Envelope, host: HostRow) -> None:
    for job in _led_by(state, host):
        if happen(state, job, e, "contact lost"):
            touch(state, job, e)


def _reach(state: FoldState, e: Envelope, host: HostRow) -> None:
    for job in _led_by(state, host):
        if job.row.state == "UNKWN":
            enter(state, job, e, state_with_contact(job))
            touch(state, job, e)


def reported(state: FoldState, e: Envelope, event: WorkerReported) -> None:
    """
    Note load and usage.
    """
    name = entity_of_stream(e.stream)[1]
    host = _host(state, e)
    if host is not None:
        host.last_report_us = e.time_us
    state.written.added["host_load"].append(
        HostLoadRow(
            e.position,
            name,
            event.incarnation,
            e.time_us,
            amount_of(MEM, event.load),
            len(event.jobs),
            amounts_json(event.load),
        )
    )
    usage = state.written.added["rusage"]
    for ordinal, used in enumerate(event.jobs):
        usage.append(
            UsageRow(
                e.position,
                used.job_id,
                used.attempt,
                ordinal,
                name,
                e.time_us,
                amount_of(MEM, used.amounts),
                used.cpu_us,
                used.processes,
                used.threads,
                amounts_json(used.amounts),
            )
        )


def configured(state: FoldState, e: Envelope, event: WorkerConfigured) -> None:
    """
    Note what an administrator set for a host.
    """
    host = _host(state, e)
    if host is not None:
        redefine(state, e, "worker", host.host, settings=event.settings.model_dump(mode="json"))
        host.is_locked = int(event.settings.is_locked)
        _settle(state, host, e)


def closed(state: FoldState, e: Envelope, event: WorkerClosed | WorkerDrained) -> None:
    """
    Close a host, for good or to run dry.
    """
    host = _host(state, e)
    if host is not None:
        host.is_closed, host.why = 1, event.why
        _settle(state, host, e, event.why)


def opened(state: FoldState, e: Envelope, event: WorkerOpened) -> None:
    """
    Open a host.
    """
    del event
    host = _host(state, e)
    if host is not None:
        host.is_closed, host.why = 0, ""
        _settle(state, host, e)


def became_unreachable(state: FoldState, e: Envelope, event: WorkerBecameUnreachable) -> None:
    """
    Note that a host is silent; what runs on it is unknown.
    """
    host = _host(state, e)
    if host is not None:
        host.is_unreachable = 1
        silent = f"silent for {event.silent_us // 1_000_000}.{event.silent_us % 1_000_000:06d} s"
        _settle(state, host, e, silent)
        _lose(state, e, host)


def await_hosts(state: FoldState, e: Envelope) -> None:
    """
    Note that the scheduler began, and can't know yet which hosts' agents are still there. One event
    begins an interval of each host, so it is no row of changes, which have one subject.
    """
    for host in state.hosts.values():
        if not host.has_left and not host.is_unreachable:
            host.is_unreachable = 1
            state.written.changed["hosts"][host.host_number] = host
            _begin_interval(state, host, e, "not heard since the scheduler's start")


def came_back(state: FoldState, e: Envelope, event: WorkerCameBack) -> None:
    """
    Note that a silent host reports again.
    """
    del event
    host = _host(state, e)
    if host is not None:
        host.is_unreachable = 0
        _settle(state, host, e)
        _reach(state, e, host)


def left(state: FoldState, e: Envelope, event: WorkerLeft) -> None:
    """
    Note that a host's agent ended in good order.
    """
    del event
    host = _host(state, e)
    if host is not None:
        host.has_left = 1
        _settle(state, host, e)


def order_done(state: FoldState, e: Envelope, event: WorkerOrderDone) -> None:
    """
    Note that an order was carried out.
    """
    name = entity_of_stream(e.stream)[1]
    _host(state, e)
    order = state.order(name, event.order_number)
    if order is None:
        order = OrderRow(name, event.order_number, "", "", 0, "", None, None)
    order.done_position, order.done_us, order.outcome = e.position, e.time_us, event.outcome
    state.written.changed["orders"][name, event.order_number] = order


HANDLERS: dict[str, Any] = {
    WorkerJoined.TYPE_CODE: joined,
    WorkerReported.TYPE_CODE: reported,
    WorkerClosed.TYPE_CODE: closed,
    WorkerDrained.TYPE_CODE: closed,
    WorkerConfigured.TYPE_CODE: configured,
    WorkerOpened.TYPE_CODE: opened,
    WorkerBecameUnreachable.TYPE_CODE: became_unreachable,
    WorkerCameBack.TYPE_CODE: came_back,
    WorkerLeft.TYPE_CODE: left,
    WorkerOrderDone.TYPE_CODE: order_done,
}
