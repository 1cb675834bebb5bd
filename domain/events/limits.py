"""
Events of limits (streams ``limit:NAME``).
"""

from __future__ import annotations

from typing import ClassVar

from domain.event import Event
from domain.limits import LimitSpec


class LimitDefined(Event):
    """
    Say what a limit is from now on; the first one brings it into being.
    """

    TYPE_CODE: ClassVar[str] = "limit.defined"
    spec: LimitSpec


class LimitRemoved(Event):
    """
    Say that it is no more.
    """

    TYPE_CODE: ClassVar[str] = "limit.removed"
