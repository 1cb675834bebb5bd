"""
Events of the scheduler itself to rows: runs, sessions, refusals, what it forgot.
"""

from __future__ import annotations

import json
from typing import Any

from domain.envelope import Envelope
from domain.events.log import LogArchived, LogBranched, LogPruned
from domain.events.refusals import AccessDenied, CommandRefused, ReportIgnored
from domain.events.scheduler import (
    ClockCorrected,
    PluginVersion,
    SchedulerStarted,
    SchedulerStopped,
)
from domain.events.session import JobsForgotten, SessionHeld
from projections.audit.fold_hosts import await_hosts
from projections.audit.fold_state import FoldState
from projections.audit.rows.events import (
    BranchRow,
    ClockCorrectionRow,
    ForgottenRow,
    LogUpkeepRow,
    RefusalRow,
    SchedulerRunRow,
    SessionRow,
)
from projections.audit.wording import command_words


def _plugins(plugins: tuple[PluginVersion, ...]) -> str:
    return json.dumps({one.name: one.version for one in plugins})


def scheduler_started(state: FoldState, e: Envelope, event: SchedulerStarted) -> None:
    """
    Begin a run of the scheduler.
    """
    state.run = SchedulerRunRow(
        e.position,
        e.time_us,
        event.epoch,
        event.holder,
        event.boot_id,
        event.code_version,
        _plugins(event.pickers),
        _plugins(event.allocators),
    )
    state.written.changed["scheduler_runs"][e.position] = state.run
    if event.awaits_workers:
        await_hosts(state, e)


def scheduler_stopped(state: FoldState, e: Envelope, event: SchedulerStopped) -> None:
    """
    End a run of the scheduler in good order.
    """
    if state.run is not None and state.run.stopped_position is None:
        run = state.run
        run.stopped_position, run.stopped_us, run.stopped_why = e.position, e.time_us, event.why
        state.written.changed["scheduler_runs"][run.position] = run


def clock_corrected(state: FoldState, e: Envelope, event: ClockCorrected) -> None:
    """
    Note that log time went forward.
    """
    state.written.added["clock_corrections"].append(
        ClockCorrectionRow(e.position, e.time_us, event.forward_us)
    )


def session_held(state: FoldState, e: Envelope, event: SessionHeld) -> None:
    """
    Begin a session; the events up to the end of the step are its decisions.
    """
    state.session = SessionRow(event.number, e.position, e.time_us)


def jobs_forgotten(state: FoldState, e: Envelope, event: JobsForgotten) -> None:
    """
    Note which jobs the scheduler's state dropped.
    """
    added = state.written.added["forgotten"]
    added.extend(
        ForgottenRow(e.position, ordinal, one.first, one.last, e.time_us)
        for ordinal, one in enumerate(event.ranges)
    )


def log_branched(state: FoldState, e: Envelope, event: LogBranched) -> None:
    """
    Note where the log was branched from another one.
    """
    state.written.added["branches"].append(
        BranchRow(
            e.position,
            e.time_us,
            event.parent_log_id,
            event.parent_position,
            event.parent_digest,
            json.dumps(event.changes, ensure_ascii=False),
        )
    )


def log_archived(state: FoldState, e: Envelope, event: LogArchived) -> None:
    """
    Note that a range was moved to a file.
    """
    _log_upkeep(state, e, event, "archived", (1, event.file, event.sha256))


def log_pruned(state: FoldState, e: Envelope, event: LogPruned) -> None:
    """
    Note that a range was removed for ever.
    """
    _log_upkeep(state, e, event, "pruned", (event.files, "", ""))


def _log_upkeep(
    state: FoldState,
    e: Envelope,
    event: LogArchived | LogPruned,
    kind: str,
    files: tuple[int, str, str],
) -> None:
    state.written.added["log_upkeep"].append(
        LogUpkeepRow(
            e.position,
            e.time_us,
            event.wall_time_us,
            e.actor,
            kind,
            event.first_position,
            event.last_position,
            event.digest,
            *files,
        )
    )


def command_refused(state: FoldState, e: Envelope, event: CommandRefused) -> None:
    """
    Note a refused command.
    """
    state.written.added["refusals"].append(
        RefusalRow(
            e.position,
            e.time_us,
            e.actor,
            "refused",
            command_words(event.command),
            event.subject,
            event.field,
            event.rule,
            event.value,
            "",
            None,
            None,
        )
    )


def access_denied(state: FoldState, e: Envelope, event: AccessDenied) -> None:
    """
    Note a denied access.
    """
    state.written.added["refusals"].append(
        RefusalRow(
            e.position,
            e.time_us,
            e.actor,
            "denied",
            command_words(event.action),
            event.subject,
            event.field,
            event.rule or "access denied",
            event.value,
            "",
            None,
            None,
        )
    )


def report_ignored(state: FoldState, e: Envelope, event: ReportIgnored) -> None:
    """
    Note a report that changed nothing.
    """
    state.written.added["refusals"].append(
        RefusalRow(
            e.position,
            e.time_us,
            e.actor,
            "ignored",
            event.report,
            event.job_id,
            "",
            event.why,
            "",
            event.worker,
            event.incarnation,
            event.attempt,
        )
    )


HANDLERS: dict[str, Any] = {
    LogArchived.TYPE_CODE: log_archived,
    LogBranched.TYPE_CODE: log_branched,
    LogPruned.TYPE_CODE: log_pruned,
    SchedulerStarted.TYPE_CODE: scheduler_started,
    SchedulerStopped.TYPE_CODE: scheduler_stopped,
    ClockCorrected.TYPE_CODE: clock_corrected,
    SessionHeld.TYPE_CODE: session_held,
    JobsForgotten.TYPE_CODE: jobs_forgotten,
    CommandRefused.TYPE_CODE: command_refused,
    AccessDenied.TYPE_CODE: access_denied,
    ReportIgnored.TYPE_CODE: report_ignored,
}
