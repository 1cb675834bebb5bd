"""
Commands about jobs.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from domain.event import Value
from domain.ids import JobId, Name
from domain.jobs import JobSpec, WantedHost
from domain.signals import SignalName


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

    Args:
        force: End it at once, whatever its worker says (LSF's ``bkill -r``): its hosts take other
            jobs from then on, though its processes may still be about to end.
    """

    job_id: JobId
    force: bool = False


class SignalJob(Value):
    """
    Ask to send a signal to the processes of a started job (LSF's ``bkill -s``).
    """

    job_id: JobId
    signal: SignalName


class RunJob(Value):
    """
    Ask to start a pending job on these hosts, whatever else waits or is against it (LSF's brun).
    """

    job_id: JobId
    hosts: Annotated[tuple[WantedHost, ...], Field(min_length=1)]


class StopJob(Value):
    """
    Ask to stop a job: a pending one is held, a started one is suspended.
    """

    job_id: JobId


class ResumeJob(Value):
    """
    Ask to let a stopped job go on.
    """

    job_id: JobId


class RequeueJob(Value):
    """
    Ask to put a started job back to pending.
    """

    job_id: JobId
    hold: bool = False


class SwitchJob(Value):
    """
    Ask to move a job to another queue.
    """

    job_id: JobId
    queue: Name


class MoveJob(Value):
    """
    Ask to put a pending job before or behind its equals.

    Args:
        among: Whether those are all jobs of its queue and priority, as for an administrator, or
            only its user's own: then it overtakes those between, which stay as they are.
    """

    job_id: JobId
    to: Literal["top", "bottom"]
    among: Literal["all", "own"] = "all"


class ModifyJob(Value):
    """
    Ask for another content of a job.

    Args:
        spec: The whole new content; user, queue and array stay as they are.
    """

    job_id: JobId
    spec: JobSpec
