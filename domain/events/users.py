"""
Events of users (streams ``user:NAME``).
"""

from __future__ import annotations

from typing import ClassVar

from domain.event import Event
from domain.users import UserSpec


class UserDefined(Event):
    """
    Say what a user is from now on; the first one brings it into being.
    """

    TYPE_CODE: ClassVar[str] = "user.defined"
    spec: UserSpec


class UserRemoved(Event):
    """
    Say that it is no more.
    """

    TYPE_CODE: ClassVar[str] = "user.removed"
