"""
Tables of hosts: what they have, their states as intervals, load, and orders to their workers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

from projections.audit.schema import Index, table


@table("hosts", key="host_number", indexes=(Index(("host",)),), fixed="host first_joined_us")
@dataclass(slots=True)
class HostRow:
    """
    One host as it is now; how it got there is in host_states and changes.
    """

    host_number: Annotated[int, "Place in host order, given at the first join and kept for ever"]
    host: Annotated[str, "Name of host and worker"]
    first_joined_us: Annotated[int, "When it first joined"]
    joined_us: Annotated[int, "When it last joined"]
    incarnation: Annotated[int, "Rises with each join"]
    slots: Annotated[int, "Tasks that it can hold"]
    mem_milli: Annotated[int | None, "Memory, thousandths of a KiB; NULL when unknown"]
    resources: Annotated[str, "Consumable resources, JSON object of name to total thousandths"]
    attributes: Annotated[str, "What a select expression can name, JSON object"]
    status: Annotated[
        str, "ok, locked (by its settings), closed (by an administrator), unreachable or left"
    ]
    is_closed: Annotated[int, "1 while an administrator keeps it closed"]
    is_locked: Annotated[int, "1 while its settings lock it"]
    is_unreachable: Annotated[int, "1 while it is silent"]
    has_left: Annotated[int, "1 while its agent has ended in good order"]
    why: Annotated[str, "Why it was closed, empty when not said"]
    last_report_us: Annotated[int | None, "When its worker last reported"]
    last_position: Annotated[int, "Position of its last event"]


@table("host_states", key="host from_position", fixed="from_us status why actor")
@dataclass(slots=True)
class HostStateRow:
    """
    One interval in which a host had one status; a host's intervals cover its life without gap or
    overlap.
    """

    host: Annotated[str, "Host"]
    from_position: Annotated[int, "Position of the event that began it"]
    from_us: Annotated[int, "Begin"]
    status: Annotated[str, "ok, locked, closed, unreachable or left"]
    why: Annotated[str, "Why, empty when not said"]
    actor: Annotated[str, "Who did it; empty for the scheduler itself"]
    to_position: Annotated[
        int | None, "Position of the event that ended it; NULL while it lasts"
    ] = None
    to_us: Annotated[int | None, "End; NULL while it lasts"] = None


@table("host_load", key="position", grows=True, indexes=(Index(("host", "time_us")),))
class HostLoadRow(NamedTuple):
    """
    One report of a worker: what was free by the operating system's own figures.
    """

    position: Annotated[int, "Position of worker.reported"]
    host: Annotated[str, "Host"]
    incarnation: Annotated[int, "Incarnation of its worker"]
    time_us: Annotated[int, "When"]
    free_mem_milli: Annotated[
        int | None, "Free memory, thousandths of a KiB; NULL when not reported"
    ]
    job_count: Annotated[int, "Jobs whose usage came with the report"]
    load: Annotated[str, "Every figure reported, JSON object of name to thousandths"]


@table(
    "orders",
    key="host order_number",
    fixed="kind job_id attempt why ordered_position ordered_us",
    indexes=(Index(("job_id",)),),
)
@dataclass(slots=True)
class OrderRow:
    """
    One order to a worker, and when it was carried out.
    """

    host: Annotated[str, "Host whose worker has to do it"]
    order_number: Annotated[int, "Rises by one with each order to that worker"]
    kind: Annotated[str, "What to do, such as kill; empty when the order itself isn't known"]
    job_id: Annotated[str, "Job"]
    attempt: Annotated[int, "Execution"]
    why: Annotated[str, "Reason, such as TERM_OWNER"]
    ordered_position: Annotated[int | None, "Position of the decision"]
    ordered_us: Annotated[int | None, "When it was ordered"]
    done_position: Annotated[int | None, "Position of worker.order_done; NULL until then"] = None
    done_us: Annotated[int | None, "When the worker reported it done"] = None
    outcome: Annotated[str | None, "What the worker said about it"] = None


@table(
    "preemptions",
    key="victim ordered_position",
    fixed="attempt preemptor why host order_number ordered_us",
    indexes=(Index(("preemptor",)),),
)
@dataclass(slots=True)
class PreemptionRow:
    """
    One time that a running job was ordered to stop for another one.
    """

    victim: Annotated[str, "Job that had to stop"]
    ordered_position: Annotated[int, "Position of the decision"]
    attempt: Annotated[int, "Execution that had to stop"]
    preemptor: Annotated[str, "Job that it stopped for; empty when not recorded"]
    why: Annotated[str, "Suspend reason"]
    host: Annotated[str, "Host whose worker had to do it"]
    order_number: Annotated[int, "Number of the order to that worker"]
    ordered_us: Annotated[int, "When it was ordered"]
    suspended_us: Annotated[int | None, "When it had stopped; NULL until then"] = None
    resumed_us: Annotated[int | None, "When it went on; NULL until then"] = None
    ended_us: Annotated[int | None, "When its execution ended meanwhile"] = None


@table(
    "preemption_plans",
    key="job_id from_position",
    fixed="from_us tasks host_count hosts victims",
)
@dataclass(slots=True)
class PreemptionPlanRow:
    """
    One interval in which hosts were held for a pending job that suspends others.
    """

    job_id: Annotated[str, "Job that they are held for"]
    from_position: Annotated[int, "Position of the decision"]
    from_us: Annotated[int, "Begin"]
    tasks: Annotated[int, "Tasks over all hosts"]
    host_count: Annotated[int, "Hosts"]
    hosts: Annotated[str, "Hosts with their tasks: 4*h1 2*h2..h9"]
    victims: Annotated[str, "Ids of the jobs that were ordered to stop for it, as a JSON list"]
    to_position: Annotated[
        int | None, "Position of the event that ended it; NULL while it lasts"
    ] = None
    to_us: Annotated[int | None, "End; NULL while it lasts"] = None


@table(
    "start_promises",
    key="job_id from_position",
    fixed="from_us policy start_us is_held slots host_count hosts until_us",
)
@dataclass(slots=True)
class StartPromiseRow:
    """
    One interval in which a pending job had one backfill reservation: by when it starts, and where.
    """

    job_id: Annotated[str, "Job that the start is promised to"]
    from_position: Annotated[int, "Position of the decision"]
    from_us: Annotated[int, "Begin"]
    policy: Annotated[str, "Who promised: a picker, or slot_reserve"]
    start_us: Annotated[int | None, "When it starts at the latest; NULL when nobody knows"]
    is_held: Annotated[int, "1 when the hosts are kept for it from now on, as gathered so far"]
    slots: Annotated[int, "Slots over all hosts"]
    host_count: Annotated[int, "Hosts"]
    hosts: Annotated[str, "Hosts with their slots: 4*h1 2*h2..h9"]
    until_us: Annotated[int | None, "When it gives them back; NULL for never"]
    to_position: Annotated[
        int | None, "Position of the event that ended it; NULL while it lasts"
    ] = None
    to_us: Annotated[int | None, "End; NULL while it lasts"] = None
