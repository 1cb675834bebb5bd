"""
May a job be in its queue and its project: asked when it is submitted, and again when a change may
have taken the right away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from domain.jobs import JobSpec
from domain.reasons import PendReason, ReasonCode

if TYPE_CHECKING:
    from projections.scheduling.state import State


def right_lost(state: State, spec: JobSpec) -> PendReason | None:
    """
    Return why a job may not be where it is, None when it may.

    Submission for a project needs membership of that very project; as long as no project exists
    everything is allowed.
    """
    users = state.stored.queues[spec.queue].spec.users
    if users is None and not state.stored.projects:
        return None
    names = state.limits.rules.membership.names_of(spec.user)
    if users is not None and not users.holds(names):
        return PendReason(code=ReasonCode.QUE_NO_RIGHT, detail=spec.queue)
    if not state.stored.projects:
        return None
    path = state.limits.project_of(spec)
    project = state.stored.projects.get(path)
    is_member = project is not None and (
        spec.user in project.users or any(name in project.groups for name in names[1:])
    )
    if project is None or not is_member:
        return PendReason(code=ReasonCode.PROJECT_NO_RIGHT, detail=path)
    return None if project.is_open else PendReason(code=ReasonCode.PROJECT_CLOSED, detail=path)
