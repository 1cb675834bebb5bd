"""
Events of user groups (streams ``group:NAME``).
"""

from __future__ import annotations

from typing import ClassVar

from domain.event import Event
from domain.groups import GroupSpec


class GroupDefined(Event):
    """
    Say what a user group is from now on; the first one brings it into being.
    """

    TYPE_CODE: ClassVar[str] = "group.defined"
    spec: GroupSpec


class GroupRemoved(Event):
    """
    Say that it is no more.
    """

    TYPE_CODE: ClassVar[str] = "group.removed"
