"""
Commands about jobs.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import StringConstraints

from domain.event import Value
from domain.ids import JobId
from domain.jobs import JobSpec


class SubmitJob(Value):
    """
    Ask for a job.

    Args:
        spec: The job, its queue named.
        key: A key of the client's own: the same key with the same content gives the same job, never
            a second one.
    """

    spec: JobSpec
    key: Annotated[str, StringConstraints(max_length=128)] = ""
    digest: Annotated[str, StringConstraints(max_length=128)] = ""


class HoldJob(Value):
    """
    Ask to keep a pending job back.
    """

    job_id: JobId


class LiftHold(Value):
    """
    Ask to let a held job go on.
    """

    job_id: JobId


class KillJob(Value):
    """
    Ask to end a job, pending or running.
    """

    job_id: JobId
