"""
What was asked for, to the columns of a job; and what a modification changes of them.
"""

from __future__ import annotations

import json
import shlex
from typing import Any

from domain.amounts import Amount
from domain.envelope import Envelope
from domain.events.jobs import JobSubmitted
from domain.jobs import JobSpec, Program
from domain.resreq.syntax import Per
from projections.audit.fold_state import KEY_INDEXES, FoldState, LiveJob
from projections.audit.rows.jobs import JobRow
from projections.audit.rows.settings import ChangeRow
from projections.audit.schema import SqlValue

# Fields of a job's specification that have columns of their own, or are only the parsed form of one
# that has; any other goes into the column `more`.
SPEC_COLUMNS = frozenset(
    "user group queue project profile name tasks_min tasks_max program resreq requirement hosts "
    "is_exclusive user_priority run_limit_us run_estimate_us hold array dependency_text dependency "
    "begin_us deadline_us".split()
)

MORE = "more"


def flat(content: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """
    Return the leaves of nested objects by their joined names; lists are leaves.
    """
    leaves: dict[str, Any] = {}
    for name, value in content.items():
        if isinstance(value, dict) and value:
            leaves |= flat(value, f"{prefix}{name}.")
        else:
            leaves[prefix + name] = value
    return leaves


def amounts_json(amounts: tuple[Amount, ...]) -> str:
    """
    Return amounts as a JSON object of resource to thousandths.
    """
    return json.dumps({one.resource: one.milli for one in amounts}) if amounts else "{}"


def amount_of(resource: str, amounts: tuple[Amount, ...]) -> int | None:
    """
    Return the thousandths of one resource, or None when it isn't named.
    """
    return next((one.milli for one in amounts if one.resource == resource), None)


def command_text(program: Program | None) -> str:
    """
    Return a program as one would type it.
    """
    if program is None:
        return ""
    return program.shell if program.shell is not None else shlex.join(program.argv)


def _more(spec: JobSpec) -> str:
    others = {name for name in spec.model_fields_set if name not in SPEC_COLUMNS}
    if not others:
        return "{}"
    return spec.model_dump_json(include=others, exclude_defaults=True)


def reserved(spec: JobSpec) -> list[tuple[str, int, bool]]:
    """
    Return resource, thousandths and whether per task of what a simple requirement reserves.
    """
    requirement = spec.requirement
    if requirement is None or not requirement.is_simple or not requirement.only.rusage:
        return []
    return [(one.resource, one.milli, one.per is Per.TASK) for one in requirement.only.rusage[0]]


def _needs(spec: JobSpec) -> str:
    names = ("resource", "milli", "per_task")
    return json.dumps([dict(zip(names, one, strict=True)) for one in reserved(spec)])


# long: one line for each column.
def asked(spec: JobSpec) -> dict[str, SqlValue]:
    """
    Return the columns of a job that say what its user asked for.
    """
    program = spec.program or Program()
    return {
        "user": spec.user,
        "user_group": spec.group,
        "queue": spec.queue,
        "project": spec.project,
        "profile": spec.profile,
        "name": spec.name,
        "command": command_text(spec.program),
        "uses_shell": int(program.shell is not None),
        "cwd": program.cwd,
        "stdin": program.stdin,
        "stdout": program.stdout,
        "stderr": program.stderr,
        "pre_exec": program.pre_exec,
        "post_exec": program.post_exec,
        "transfers": "\n".join(one.text() for one in program.transfers),
        "umask": program.umask,
        "env_count": len(program.env),
        "tasks_min": spec.tasks_min,
        "tasks_max": spec.tasks_max,
        "resreq": "\n".join(spec.resreq),
        "needs": _needs(spec),
        "hosts_asked": " ".join(one.text() for one in spec.hosts),
        "is_exclusive": int(spec.is_exclusive),
        "dependency": spec.dependency_text,
        "begin_us": spec.begin_us,
        "deadline_us": spec.deadline_us,
        "user_priority": spec.user_priority,
        "run_limit_us": spec.run_limit_us,
        "run_estimate_us": spec.run_estimate_us,
        MORE: _more(spec),
    }


def job_row(e: Envelope, event: JobSubmitted, number: int, index: int) -> JobRow:
    """
    Return the row of a job that was submitted, or of one element of an array.
    """
    return JobRow(
        job_key=number * KEY_INDEXES + index,
        job_id=f"{number}[{index}]" if index else str(number),
        number=number,
        array_index=index,
        submission_key=event.key,
        request_digest=event.digest,
        submitted_by=e.actor,
        submit_position=e.position,
        submit_us=e.time_us,
        state="PSUSP" if event.spec.hold else "PEND",
        state_since_us=e.time_us,
        last_position=e.position,
        **asked(event.spec),  # type: ignore[arg-type]
    )


def ask_anew(state: FoldState, e: Envelope, job: LiveJob, columns: dict[str, SqlValue]) -> None:
    """
    Take columns of a job as changed, and note each that differs, old and new.
    """
    row = job.row
    state.written.reworded.add(row.job_key)
    for name, value in sorted(columns.items()):
        old = getattr(row, name)
        if old != value:
            setattr(row, name, value)
            if name == MORE:
                _note_more(state, e, row, str(old), str(value))
            else:
                note_change(state, e, row, name, old, value)


def _note_more(state: FoldState, e: Envelope, row: JobRow, old: str, new: str) -> None:
    """
    Note each field that differs of those that share a column.
    """
    was, becomes = flat(json.loads(old)), flat(json.loads(new))
    for field in sorted(was.keys() | becomes.keys()):
        if was.get(field) != becomes.get(field):
            note_change(state, e, row, field, was.get(field), becomes.get(field))


def note_change(
    state: FoldState, e: Envelope, row: JobRow, field: str, old: object, new: object
) -> None:
    """
    Note that a field of a job, or of its array, has another value.
    """
    texts = (json.dumps(value, ensure_ascii=False) for value in (old, new))
    state.written.added["changes"].append(
        ChangeRow(e.position, field, e.time_us, e.actor, e.cause, "job", row.job_id, *texts)
    )


def success_values(state: FoldState, job: LiveJob) -> tuple[int, ...]:
    """
    Return the exit values besides 0 that mean success: the job's own rules, else its queue's.
    """
    rules = json.loads(job.row.more).get("exits") if job.row.more != "{}" else None
    if rules is None:
        queue = state.definitions.get(("queue", job.row.queue))
        if queue is None or '"exits": null' in queue.content:
            return ()
        rules = json.loads(queue.content).get("exits")
    return tuple((rules or {}).get("success", ()))
