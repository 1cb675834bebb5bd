"""
May a job be in its queue and its project: asked when it is submitted, and again when a change may
have taken the right away.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from domain.jobs import JobSpec
from domain.projects import ProjectSpec
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
    if project is None or not _is_member(project, names):
        return PendReason(code=ReasonCode.PROJECT_NO_RIGHT, detail=path)
    return None if project.is_open else PendReason(code=ReasonCode.PROJECT_CLOSED, detail=path)


def projects_of(state: State, user: str) -> tuple[str, ...]:
    """
    Return the open projects whose member a user is, in order of definition.
    """
    names = state.limits.rules.membership.names_of(user)
    return tuple(
        path
        for path, project in state.stored.projects.items()
        if project.is_open and _is_member(project, names)
    )


def _is_member(project: ProjectSpec, names: Sequence[str]) -> bool:
    """
    Say whether somebody is a member: the user's own name comes first, then the groups'.
    """
    return names[0] in project.users or any(name in project.groups for name in names[1:])
