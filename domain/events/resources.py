"""
Events of the site's own resources (streams ``resource:NAME``).
"""

from __future__ import annotations

from typing import ClassVar

from domain.event import Event
from domain.resources import ResourceDescriptor


class ResourceDefined(Event):
    """
    Say what a resource is from now on; a shared one with its totals.
    """

    TYPE_CODE: ClassVar[str] = "resource.defined"
    descriptor: ResourceDescriptor
