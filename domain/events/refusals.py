"""
What was refused, denied or ignored (stream ``refusals``).
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import StringConstraints

from domain.event import Event

Short = Annotated[str, StringConstraints(max_length=1024)]


class CommandRefused(Event):
    """
    Say that a command was refused, and by which rule.
    """

    TYPE_CODE: ClassVar[str] = "command.refused"
    command: Short
    subject: Short = ""
    field: Short
    rule: Short
    value: Short = ""


class AccessDenied(Event):
    """
    Say that somebody asked for what they may not do, and by which rule.
    """

    TYPE_CODE: ClassVar[str] = "access.denied"
    action: Short
    subject: Short = ""
    field: Short = ""
    rule: Short = ""
    value: Short = ""


class ReportIgnored(Event):
    """
    Say that a worker's report was stale or didn't fit, and changed nothing.
    """

    TYPE_CODE: ClassVar[str] = "report.ignored"
    report: Short
    worker: Short
    incarnation: int
    job_id: Short = ""
    attempt: int = 0
    why: Short
