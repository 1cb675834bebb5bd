"""
Events of application profiles (streams ``profile:NAME``).
"""

from __future__ import annotations

from typing import ClassVar

from domain.event import Event
from domain.profiles import ProfileSpec


class ProfileDefined(Event):
    """
    Say what an application profile is from now on; the first one brings it into being.
    """

    TYPE_CODE: ClassVar[str] = "profile.defined"
    spec: ProfileSpec


class ProfileRemoved(Event):
    """
    Say that it is no more.
    """

    TYPE_CODE: ClassVar[str] = "profile.removed"
