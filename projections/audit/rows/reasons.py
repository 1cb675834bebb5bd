"""
Tables of why jobs waited: each job's own intervals, the reason sets over time, and who held lists
back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

from projections.audit.schema import Index, table


@table(
    "waits",
    key="job_id from_position",
    fixed="from_us queue kind reason_set",
    indexes=(Index(("reason_set",), where="reason_set IS NOT NULL"),),
)
@dataclass(slots=True)
class WaitRow:
    """
    One interval of a job's waiting in which it was in one reason set, held, or not yet considered.

    The view pend_reasons joins it with how the set and the list's blocker changed meanwhile.
    """

    job_id: Annotated[str, "Job"]
    from_position: Annotated[int, "Position of the event that began it"]
    from_us: Annotated[int, "Begin"]
    queue: Annotated[str, "Queue that it waited in"]
    kind: Annotated[
        str,
        "new (not yet considered), set (in a reason set), held (kept back by its user) or held by "
        "other (by somebody else)",
    ]
    reason_set: Annotated[int | None, "Number of the reason set, for set"]
    to_position: Annotated[
        int | None, "Position of the event that ended it; NULL while it lasts"
    ] = None
    to_us: Annotated[int | None, "End; NULL while it lasts"] = None


@table(
    "reason_sets",
    key="set_number from_position",
    fixed="from_us session fingerprint never main_code main_text summary host_count proved_by",
    indexes=(Index(("from_position",)), Index(("main_code",))),
)
@dataclass(slots=True)
class ReasonSetRow:
    """
    One interval in which the jobs of one request waited for the same reasons; in full in
    reason_details.
    """

    set_number: Annotated[int, "Number of the set"]
    from_position: Annotated[int, "Position of reasons.set_changed"]
    from_us: Annotated[int, "Begin"]
    session: Annotated[int | None, "Session that found it"]
    fingerprint: Annotated[str, "The request, in canonical words"]
    never: Annotated[int, "1 when even the empty cluster couldn't hold it"]
    main_code: Annotated[
        str, "Code of the main reason: the one for most hosts, a reason of the whole job first"
    ]
    main_text: Annotated[str, "The main reason in words"]
    summary: Annotated[str, "All reasons in words, grouped, with counts of hosts"]
    host_count: Annotated[int, "Most hosts that any one of its reasons holds for"]
    proved_by: Annotated[str, "Job whose placement found them, empty when none was tried"]
    to_position: Annotated[
        int | None, "Position of the event that changed it; NULL while it lasts"
    ] = None
    to_us: Annotated[int | None, "End; NULL while it lasts"] = None


@table(
    "reason_details",
    key="set_number from_position ordinal",
    grows=True,
    indexes=(Index(("code",)),),
)
class ReasonDetailRow(NamedTuple):
    """
    One reason of a reason set, with amounts.
    """

    set_number: Annotated[int, "Number of the set"]
    from_position: Annotated[int, "Position of reasons.set_changed"]
    ordinal: Annotated[int, "Place in the set, from 0"]
    code: Annotated[str, "Code of the reason"]
    text: Annotated[str, "The reason in words"]
    resource: Annotated[str, "Resource that is short, empty when none is"]
    detail: Annotated[str, "Job, limit or plug-in concerned, empty when none"]
    requested_milli: Annotated[int, "Smallest amount that was tried and didn't fit, thousandths"]
    most_available_milli: Annotated[
        int | None, "Most that any of its hosts had available, thousandths"
    ]
    nearest_number: Annotated[
        int | None, "Number of the first host that had so much: the nearest to fitting"
    ]
    host_count: Annotated[int, "Hosts that it holds for; 0 for a reason of the whole job"]
    hosts: Annotated[
        str, "Runs of hosts, JSON: [first host number, hosts, available thousandths] each"
    ]


@table(
    "list_blockers",
    key="list from_position",
    fixed="from_us blocker",
    indexes=(Index(("blocker",)),),
)
@dataclass(slots=True)
class ListBlockerRow:
    """
    One interval in which one job held back all later ones of its list (strict orders only), or
    none did.
    """

    list: Annotated[str, "Stream of the list: cluster for all jobs, or queue:NAME"]
    from_position: Annotated[
        int, "Position of the event that began it, 0 for the time before the first"
    ]
    from_us: Annotated[int, "Begin"]
    blocker: Annotated[str, "Job that couldn't start; empty while nobody was held back"]
    to_position: Annotated[
        int | None, "Position of the event that ended it; NULL while it lasts"
    ] = None
    to_us: Annotated[int | None, "End; NULL while it lasts"] = None
