"""
Refuse jobs that their queue, profile, project or limits can never allow; what is only full now
pends.
"""

from __future__ import annotations

from collections.abc import Sequence

from domain.effective import check_ceilings, check_fixed, check_tasks_within
from domain.errors import Denied, Refused
from domain.job_states import JobState
from domain.jobs import JobSpec
from domain.reasons import PendReason, ReasonCode
from domain.units import MEMORY_NAMES, show_memory, show_milli
from projections.scheduling.budgets import LIMIT_RANK, QUEUE_RANK
from projections.scheduling.records import JobRecord
from projections.scheduling.rights import projects_of, right_lost
from projections.scheduling.state import State

UNNAMED = "Where projects are defined each job counts for one: name it, or have a default defined."

MEMBERS_SHOWN = 8

COUNTED = {"jobs": "jobs", "slots": "tasks", "tasks": "tasks"}

FIELDS = {
    ReasonCode.QUE_NO_RIGHT: ("queue", "doesn't take jobs of this user"),
    ReasonCode.PROJECT_NO_RIGHT: ("project", "must be one whose member the user is"),
    ReasonCode.PROJECT_CLOSED: ("project", "must be open"),
}


def check_policies(state: State, spec: JobSpec) -> None:
    """
    Do nothing, or refuse a job that can never be allowed, and name what doesn't allow it.

    Raises:
        Denied: Its user has no right to its queue or project.
        Refused: It is over a ceiling, contradicts its profile, or is more than a limit holds.
    """
    if spec.queue in state.stored.queues and state.bounds_nothing(spec):
        return
    lost = right_lost(state, spec)
    if lost is not None:
        field, rule = FIELDS[lost.code]
        hint = _membership(state, spec) if lost.code is ReasonCode.PROJECT_NO_RIGHT else None
        raise Denied(field, rule, lost.detail or "none", hint)
    queue = state.queue(spec.queue).spec
    profile = state.stored.profiles.get(spec.profile) if spec.profile else None
    if spec.profile and profile is None:
        raise Refused("profile", "must name a profile that exists", spec.profile)
    if profile is not None:
        check_fixed(spec, profile)
    trial = _as_record(spec)
    state.requirement_of(spec)
    effective = state.effective(trial)
    check_tasks_within(effective, queue)
    check_ceilings(effective, queue)
    _check_limits(state, trial)


def _membership(state: State, spec: JobSpec) -> str:
    """
    Return why a user may not submit for a project, and what would help.
    """
    path, user = state.limits.project_of(spec), spec.user
    own = projects_of(state, user)
    others = f" {user} is a member of {_some(own)}: name one." if own else ""
    if not path:
        return UNNAMED + others
    project = state.stored.projects.get(path)
    if project is None:
        return f"No such project is defined.{others or f' {user} is a member of none.'}"
    default = "" if spec.project else f"Nothing named a project, and {path} is the default. "
    why = f"{user} isn't among its users ({_some(project.users)})"
    if project.groups:
        why += f" nor in one of its groups ({_some(project.groups)})"
    added = f"of its users too: xce definitions project {path} shows them"
    if len(project.users) < MEMBERS_SHOWN:
        added = f'one: xce define project {path} users="{" ".join((*project.users, user))}"'
    return f"{default}{why}.{others} An administrator makes {user} {added}."


def _some(names: Sequence[str]) -> str:
    """
    Return the first few of some names.
    """
    more = len(names) - MEMBERS_SHOWN
    return (", ".join(names[:MEMBERS_SHOWN]) or "none") + (f" and {more} more" if more > 0 else "")


def _check_limits(state: State, trial: JobRecord) -> None:
    """
    Refuse a job whose least need is more than a limit holds when nothing is in use.
    """
    if not state.limits.budgets_of(trial.spec):
        return
    request = state.request_of(trial)
    ranks = range(QUEUE_RANK, LIMIT_RANK + 1)
    reason = state.limits.short_of(request, ranks, is_empty=True)
    if reason is not None:
        raise _over(reason)


def _over(reason: PendReason) -> Refused:
    # Whatever isn't counted by tasks or jobs is reserved by a requirement.
    field = COUNTED.get(reason.resource, "resreq")
    # What isn't a limit by itself says of what it is one: "queue night".
    limit = reason.detail if " " in reason.detail else f"limit {reason.detail}"
    rule = f"is more than {limit} ever allows of {reason.resource}"
    show = show_memory if reason.resource in MEMORY_NAMES else show_milli
    return Refused(field, rule, show(reason.requested_milli), "xce limits shows what may be.")


def _as_record(spec: JobSpec) -> JobRecord:
    """
    Return a job that isn't there yet, as one that is held: nothing about it is remembered.
    """
    return JobRecord(
        number=0,
        index=0,
        stream="",
        spec=spec,
        submit_us=0,
        queue_us=0,
        since_us=0,
        state=JobState.PSUSP,
    )


def check_hosts_of_queue(state: State, job: JobRecord, queue: str) -> None:
    """
    Refuse to move a started job to a queue that doesn't have its hosts.
    """
    names = state.queue(queue).spec.hosts
    if names is None or job.allocation is None:
        return
    for host, _ in state.host_names(job.allocation):
        if not names.holds([host]):
            raise Refused("queue", f"must have the job's host {host}", queue)
