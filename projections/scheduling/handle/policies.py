"""
Handle commands about users, user groups, projects, limits and application profiles.

Saying what is so already changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from domain.commands.policies import (
    DefineGroup,
    DefineLimit,
    DefineProfile,
    DefineProject,
    DefineUser,
    RemoveGroup,
    RemoveLimit,
    RemoveProfile,
    RemoveProject,
    RemoveUser,
)
from domain.errors import NotFound, Refused
from domain.event import Event
from domain.events.groups import GroupDefined, GroupRemoved
from domain.events.limits import LimitDefined, LimitRemoved
from domain.events.profiles import ProfileDefined, ProfileRemoved
from domain.events.projects import ProjectDefined, ProjectRemoved
from domain.events.users import UserDefined, UserRemoved
from domain.groups import check_group
from domain.ids import group_stream, limit_stream, profile_stream, project_stream, user_stream
from domain.job_states import ENDED
from domain.limits import Scope, check_amounts
from domain.name_lists import EVERYBODY
from domain.profiles import ProfileSpec, check_profile_spec
from domain.projects import parent_of
from projections.scheduling.handle.answers import NewEvents
from projections.scheduling.handle.requirements import checked, parsed
from projections.scheduling.state import State

NAMES_SHOWN: Final = 8
"""So many of what there is are named to somebody who named what there isn't."""


def define_user(state: State, command: DefineUser, actor: str) -> NewEvents:
    """
    Make a user known, or change one.
    """
    if state.stored.users.get(command.user) == command.spec:
        return []
    return [(user_stream(command.user), UserDefined(spec=command.spec))]


def define_group(state: State, command: DefineGroup, actor: str) -> NewEvents:
    """
    Make a user group, or change one.
    """
    groups = state.stored.groups
    check_group(command.group, command.spec, groups)
    _check_project(state, "default_project", command.spec.default_project)
    if groups.get(command.group) == command.spec:
        return []
    return [(group_stream(command.group), GroupDefined(spec=command.spec))]


def _check_project(state: State, field: str, path: str) -> None:
    if path and state.stored.projects and path not in state.stored.projects:
        raise Refused(field, "must name a project that exists", path)


def define_project(state: State, command: DefineProject, actor: str) -> NewEvents:
    """
    Make a project, or change one.
    """
    path, spec, projects = command.project, command.spec, state.stored.projects
    above = parent_of(path)
    if above and above not in projects:
        raise Refused("project", "must be a part of a project that exists", path)
    check_amounts(spec.quotas, state.catalogue, is_of_hosts=False)
    _check_known("groups", spec.groups, state.stored.groups)
    if projects.get(path) == spec:
        return []
    return [(project_stream(path), ProjectDefined(spec=spec))]


def define_limit(state: State, command: DefineLimit, actor: str) -> NewEvents:
    """
    Make a limit, or change one.
    """
    spec, stored = command.spec, state.stored
    check_amounts(spec.amounts, state.catalogue, is_of_hosts=spec.hosts is not None)
    _check_scope("queues", spec.queues, stored.queues)
    _check_scope("groups", spec.groups, stored.groups)
    _check_scope("profiles", spec.profiles, stored.profiles)
    if stored.projects:
        _check_scope("projects", spec.projects, stored.projects)
    if stored.limits.get(command.limit) == spec:
        return []
    return [(limit_stream(command.limit), LimitDefined(spec=spec))]


def _check_scope(field: str, scope: Scope | None, known: Mapping[str, object]) -> None:
    if scope is not None:
        names = (entry.name for entry in scope.names.entries)
        _check_known(field, (name for name in names if name not in EVERYBODY), known)


def _check_known(field: str, names: Iterable[str], known: Mapping[str, object]) -> None:
    unknown = next((name for name in names if name not in known), None)
    if unknown is not None:
        some = ", ".join(list(known)[:NAMES_SHOWN]) or "none"
        more = len(known) - NAMES_SHOWN
        ends = f" and {more} more" if more > 0 else ""
        raise Refused(field, "must name what exists", unknown, f"There are: {some}{ends}.")


def define_profile(state: State, command: DefineProfile, actor: str) -> NewEvents:
    """
    Make an application profile, or change one; its requirement is parsed and checked here.
    """
    spec: ProfileSpec = command.spec
    if spec.resreq:
        spec = spec.model_copy(update={"requirement": parsed(state, spec.resreq)})
    elif spec.requirement is not None:
        checked(state, spec.requirement)
    check_profile_spec(spec)
    if state.stored.profiles.get(command.profile) == spec:
        return []
    return [(profile_stream(command.profile), ProfileDefined(spec=spec))]


# ------------------------------------------------------------------------------------ doing without


def remove_user(state: State, command: RemoveUser, actor: str) -> NewEvents:
    """
    Let nothing hold for a user by itself any more; nobody loses a right by it.
    """
    return _removed("user", command.user, state.stored.users, user_stream, UserRemoved())


def remove_group(state: State, command: RemoveGroup, actor: str) -> NewEvents:
    """
    Do without a group that nothing names.
    """
    stored, name = state.stored, command.group
    for what, found in (
        ("group", [each for each, spec in stored.groups.items() if name in spec.members]),
        ("project", [each for each, spec in stored.projects.items() if name in spec.groups]),
    ):
        if found:
            raise Refused("group", f"must not be named by the {what} {found[0]}", name)
    return _removed("group", name, stored.groups, group_stream, GroupRemoved())


def remove_project(state: State, command: RemoveProject, actor: str) -> NewEvents:
    """
    Do without a project that has no parts; jobs that wait for it are held back.
    """
    path, projects = command.project, state.stored.projects
    part = next((each for each in projects if parent_of(each) == path), None)
    if part is not None:
        raise Refused("project", f"must have no parts such as {part}", path)
    return _removed("project", path, projects, project_stream, ProjectRemoved())


def remove_limit(state: State, command: RemoveLimit, actor: str) -> NewEvents:
    """
    Do without a limit.
    """
    return _removed("limit", command.limit, state.stored.limits, limit_stream, LimitRemoved())


def remove_profile(state: State, command: RemoveProfile, actor: str) -> NewEvents:
    """
    Do without a profile that no job uses.
    """
    name = command.profile
    for job in state.stored.jobs.values():
        if job.spec.profile == name and job.state not in ENDED:
            raise Refused("profile", f"must not be used by job {job.job_id}", name)
    return _removed("profile", name, state.stored.profiles, profile_stream, ProfileRemoved())


def _removed(
    field: str, name: str, known: Mapping[str, object], stream_of: Any, event: Event
) -> NewEvents:
    if name not in known:
        raise NotFound(field, "must name one that exists", name)
    return [(stream_of(name), event)]


HANDLE: Final[dict[Any, Any]] = {
    DefineUser: define_user,
    DefineGroup: define_group,
    DefineProject: define_project,
    DefineLimit: define_limit,
    DefineProfile: define_profile,
    RemoveUser: remove_user,
    RemoveGroup: remove_group,
    RemoveProject: remove_project,
    RemoveLimit: remove_limit,
    RemoveProfile: remove_profile,
}
