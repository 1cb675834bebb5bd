"""
What a user group is made of.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import StringConstraints

from domain.amounts import Count
from domain.errors import Refused
from domain.event import Value
from domain.ids import MaybePath, Name


class GroupSpec(Value):
    """
    Hold a user group.

    Args:
        members: Users, and other groups whose members are members too.
        default_project: The project of a job that names the group and no project.
        slots_max: So many slots at most are used at a time by its members together.
        user_slots_max: So many by each of them.
        jobs_max: So many jobs at most at a time by its members together.
        description: A line for people.
    """

    members: tuple[Name, ...] = ()
    default_project: MaybePath = ""
    slots_max: Count | None = None
    user_slots_max: Count | None = None
    jobs_max: Count | None = None
    description: Annotated[str, StringConstraints(max_length=512)] = ""


class Membership:
    """
    Know which groups users are in, through other groups too.

    Args:
        groups: Every group by its name, in order of definition.
    """

    def __init__(self, groups: Mapping[str, GroupSpec]) -> None:
        self._parents: dict[str, list[str]] = {}
        for name, group in groups.items():
            for member in group.members:
                self._parents.setdefault(member, []).append(name)
        self._known: dict[str, tuple[str, ...]] = {}

    def groups_of(self, user: str) -> tuple[str, ...]:
        """
        Return the groups that a user is in, nearest first.
        """
        known = self._known.get(user)
        if known is None:
            known = self._known[user] = self._groups_of(user)
        return known

    def _groups_of(self, user: str) -> tuple[str, ...]:
        found: dict[str, None] = {}
        todo = [user]
        while todo:
            for group in self._parents.get(todo.pop(0), ()):
                if group not in found:
                    found[group] = None
                    todo.append(group)
        return tuple(found)

    def names_of(self, user: str) -> tuple[str, ...]:
        """
        Return the names that a user goes by in a list: its own, and those of its groups.
        """
        return (user, *self.groups_of(user))


def check_group(name: str, group: GroupSpec, groups: Mapping[str, GroupSpec]) -> None:
    """
    Do nothing when a group makes sense.

    Raises:
        Refused: It would be a member of itself, or names a member twice.
    """
    if len(set(group.members)) < len(group.members):
        raise Refused("members", "must name each member once", " ".join(group.members))
    if name in Membership({**groups, name: group}).groups_of(name):
        raise Refused("members", "a group can't be a member of itself", name)
