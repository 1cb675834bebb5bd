"""
Events of projects (streams ``project:PATH``).
"""

from __future__ import annotations

from typing import ClassVar

from domain.event import Event
from domain.projects import ProjectSpec


class ProjectDefined(Event):
    """
    Say what a project is from now on; the first one brings it into being.
    """

    TYPE_CODE: ClassVar[str] = "project.defined"
    spec: ProjectSpec


class ProjectRemoved(Event):
    """
    Say that it is no more.
    """

    TYPE_CODE: ClassVar[str] = "project.removed"
