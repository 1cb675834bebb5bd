"""
Tables of the log itself: events, sessions, refusals, runs of the scheduler.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

from projections.audit.schema import Index, table


@table(
    "events",
    key="position",
    grows=True,
    indexes=(
        Index(("stream", "position")),
        Index(("actor", "position"), where="actor <> ''"),
    ),
)
class EventRow(NamedTuple):
    """
    One event of the log, as it was recorded. Environments of programs are left out: they stay in
    the log.
    """

    position: Annotated[int, "Place in the whole log, from 1"]
    time_us: Annotated[int, "Log time, microseconds UTC"]
    stream: Annotated[str, "Entity it belongs to, such as job:0000004711, queue:normal, worker:h1"]
    version: Annotated[int, "Place within its stream, from 1"]
    type: Annotated[str, "Permanent code of the event type, such as job.dispatched"]
    actor: Annotated[str, "User on whose behalf; empty for the scheduler itself"]
    cause: Annotated[str, "Command or session number that it follows from; empty when none"]
    session: Annotated[int | None, "Session that decided it; NULL for what came in from outside"]
    ends_step: Annotated[int, "1 when it is the last of its step (the unit of atomicity)"]
    payload: Annotated[str, "What it says, as JSON; fields equal to their default are left out"]


@table("sessions", key="number", fixed="position time_us")
@dataclass(slots=True)
class SessionRow:
    """
    One scheduling session that decided something; sessions without a decision leave no trace.
    """

    number: Annotated[int, "Number of the session, from 1"]
    position: Annotated[int, "Position of its session.held event"]
    time_us: Annotated[int, "When it was held"]
    last_position: Annotated[int, "Position of its last decision"] = 0
    dispatched: Annotated[int, "Jobs dispatched"] = 0
    pended: Annotated[int, "Jobs that joined or changed their reason set"] = 0
    reason_sets: Annotated[int, "Reason sets that changed"] = 0
    orders: Annotated[int, "Orders given to workers"] = 0
    others: Annotated[int, "Other decisions"] = 0


@table(
    "refusals",
    key="position",
    grows=True,
    indexes=(Index(("actor", "position")), Index(("subject", "position"))),
)
class RefusalRow(NamedTuple):
    """
    One command that was refused, access that was denied, or report that was ignored; nothing
    changed.
    """

    position: Annotated[int, "Position of the event"]
    time_us: Annotated[int, "When"]
    actor: Annotated[str, "Who asked; the worker's user for a report"]
    kind: Annotated[str, "refused, denied or ignored"]
    command: Annotated[str, "Command, action or report"]
    subject: Annotated[str, "What it was about: a job, queue or host; empty when unknown"]
    field: Annotated[str, "Offending field, for refused and denied"]
    rule: Annotated[str, "Rule that it broke, or why a report was ignored"]
    value: Annotated[str, "What was given, when recorded"]
    worker: Annotated[str, "Reporting worker, for ignored"]
    incarnation: Annotated[int | None, "Its incarnation, for ignored"]
    attempt: Annotated[int | None, "Attempt that the report was about, for ignored"]


@table(
    "scheduler_runs",
    key="position",
    fixed="started_us epoch holder boot_id code_version pickers allocators",
)
@dataclass(slots=True)
class SchedulerRunRow:
    """
    One time that a scheduler took the log over. Without an end it was killed, or it runs still.
    """

    position: Annotated[int, "Position of scheduler.started"]
    started_us: Annotated[int, "When it took over"]
    epoch: Annotated[int, "The store's count of writers"]
    holder: Annotated[str, "Host and process, or simulation"]
    boot_id: Annotated[str, "Boot of the host; empty in a simulation"]
    code_version: Annotated[str, "Version of the program"]
    pickers: Annotated[str, "Known pickers and the versions of their rules, as a JSON object"]
    allocators: Annotated[str, "Known allocators and the versions of their rules, as a JSON object"]
    stopped_position: Annotated[
        int | None, "Position of scheduler.stopped; NULL without a good end"
    ] = None
    stopped_us: Annotated[int | None, "When it stopped in good order"] = None
    stopped_why: Annotated[str | None, "Why it stopped"] = None


@table("clock_corrections", key="position", grows=True)
class ClockCorrectionRow(NamedTuple):
    """
    One time that log time was moved forward to the wall clock.
    """

    position: Annotated[int, "Position of the event"]
    time_us: Annotated[int, "Log time of the correction"]
    forward_us: Annotated[int, "By how much log time went forward"]


@table("branches", key="position", grows=True)
class BranchRow(NamedTuple):
    """
    One time that this log was branched from another: everything before was copied from there.
    """

    position: Annotated[int, "Position of log.branched"]
    time_us: Annotated[int, "Log time of it"]
    parent_log_id: Annotated[str, "Log that was copied"]
    parent_position: Annotated[int, "Last position that was copied"]
    parent_digest: Annotated[str, "Digest of that log's history up to there"]
    changes: Annotated[str, "What was changed from here on, in words, as a JSON list"]


@table("log_upkeep", key="position", grows=True)
class LogUpkeepRow(NamedTuple):
    """
    One time that a range of this log was moved to a file, or that such files were removed.
    """

    position: Annotated[int, "Position of log.archived or log.pruned"]
    time_us: Annotated[int, "Log time of it, which stands still while nobody schedules"]
    wall_time_us: Annotated[int, "When, by the clock of whoever did it"]
    actor: Annotated[str, "Who did it"]
    kind: Annotated[str, "archived or pruned"]
    first_position: Annotated[int, "First position concerned"]
    last_position: Annotated[int, "Last position concerned"]
    digest: Annotated[str, "The log's digest at the last position"]
    files: Annotated[int, "How many segment files"]
    file: Annotated[str, "Name of the file; empty when files were removed"]
    sha256: Annotated[str, "Digest of the file; empty when files were removed"]


@table("forgotten", key="position ordinal", grows=True)
class ForgottenRow(NamedTuple):
    """
    One range of job numbers that the scheduler's state dropped, long after they ended; these
    tables keep them.
    """

    position: Annotated[int, "Position of jobs.forgotten"]
    ordinal: Annotated[int, "Place of the range in the event, from 0"]
    first_number: Annotated[int, "First job number"]
    last_number: Annotated[int, "Last job number"]
    time_us: Annotated[int, "When"]
