"""
Commands about users, user groups, projects, limits and application profiles, and the end of queues.
"""

from __future__ import annotations

from domain.event import Value
from domain.groups import GroupSpec
from domain.ids import Name
from domain.limits import LimitSpec
from domain.profiles import ProfileSpec
from domain.projects import ProjectPath, ProjectSpec
from domain.users import UserSpec


class DefineUser(Value):
    """
    Ask for a user, or for another definition of one.
    """

    user: Name
    spec: UserSpec


class RemoveUser(Value):
    """
    Ask to do without a user.
    """

    user: Name


class DefineGroup(Value):
    """
    Ask for a user group, or for another definition of one.
    """

    group: Name
    spec: GroupSpec


class RemoveGroup(Value):
    """
    Ask to do without a user group.
    """

    group: Name


class DefineProject(Value):
    """
    Ask for a project, or for another definition of one.
    """

    project: ProjectPath
    spec: ProjectSpec


class RemoveProject(Value):
    """
    Ask to do without a project.
    """

    project: ProjectPath


class DefineLimit(Value):
    """
    Ask for a limit, or for another definition of one.
    """

    limit: Name
    spec: LimitSpec


class RemoveLimit(Value):
    """
    Ask to do without a limit.
    """

    limit: Name


class DefineProfile(Value):
    """
    Ask for an application profile, or for another definition of one.
    """

    profile: Name
    spec: ProfileSpec


class RemoveProfile(Value):
    """
    Ask to do without an application profile.
    """

    profile: Name


class RemoveQueue(Value):
    """
    Ask to do without a queue.
    """

    queue: Name
