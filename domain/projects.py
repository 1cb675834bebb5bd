"""
What a project is made of. Projects nest: ``/a/b`` is a part of ``/a``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final

from pydantic import StringConstraints

from domain.event import Value
from domain.ids import Name
from domain.limits import LimitAmount

_PART: Final = "[A-Za-z0-9][A-Za-z0-9_.@+-]{0,63}"
PATH_PATTERN: Final = rf"^/?{_PART}(/{_PART}){{0,15}}$"

ProjectPath = Annotated[str, StringConstraints(pattern=PATH_PATTERN)]


class ProjectSpec(Value):
    """
    Hold a project as its administrator defined it.

    Args:
        users: Who may submit for it; members of the projects above or below it may not by that.
        groups: Groups whose members may.
        quotas: How much its jobs, and those of the projects below it, may have at a time together.
        is_open: Whether it takes submissions and its jobs may start.
        description: A line for people.
    """

    users: tuple[Name, ...] = ()
    groups: tuple[Name, ...] = ()
    quotas: tuple[LimitAmount, ...] = ()
    is_open: bool = True
    description: Annotated[str, StringConstraints(max_length=512)] = ""


def parent_of(path: str) -> str:
    """
    Return the path of the project above, "" when there is none.
    """
    return path.rpartition("/")[0]


def with_ancestors(path: str) -> Iterator[str]:
    """
    Yield a project and those above it, the nearest first.
    """
    while path:
        yield path
        path = parent_of(path)
