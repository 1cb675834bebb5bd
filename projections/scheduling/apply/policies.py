"""
Apply events of users, user groups, projects, limits and application profiles.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from domain.envelope import Stamped
from domain.events.groups import GroupDefined, GroupRemoved
from domain.events.limits import LimitDefined, LimitRemoved
from domain.events.profiles import ProfileDefined, ProfileRemoved
from domain.events.projects import ProjectDefined, ProjectRemoved
from domain.events.users import UserDefined, UserRemoved
from domain.ids import entity_of_stream
from projections.scheduling.state import State

Apply = Callable[[State, Stamped, Any], None]


def _defined(family: str) -> Apply:
    """
    Return a function that makes or changes the stream's entity in its family.
    """

    def apply(state: State, stamped: Stamped, event: Any) -> None:
        name = entity_of_stream(stamped.stream)[1]
        getattr(state.stored, family)[name] = event.spec
        state.define_limits()

    return apply


def _removed(family: str) -> Apply:
    """
    Return a function that drops the stream's entity from its family.
    """

    def apply(state: State, stamped: Stamped, event: Any) -> None:
        del getattr(state.stored, family)[entity_of_stream(stamped.stream)[1]]
        state.define_limits()

    return apply


APPLY: Final[dict[Any, Any]] = {
    UserDefined: _defined("users"),
    UserRemoved: _removed("users"),
    GroupDefined: _defined("groups"),
    GroupRemoved: _removed("groups"),
    ProjectDefined: _defined("projects"),
    ProjectRemoved: _removed("projects"),
    LimitDefined: _defined("limits"),
    LimitRemoved: _removed("limits"),
    ProfileDefined: _defined("profiles"),
    ProfileRemoved: _removed("profiles"),
}
