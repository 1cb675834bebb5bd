"""
Handle commands about jobs.
"""

from __future__ import annotations

from typing import Any, Final

from domain.amounts import SLOTS
from domain.commands.jobs import HoldJob, KillJob, LiftHold, SubmitJob
from domain.errors import Conflict, Refused
from domain.events.jobs import JobHeld, JobHoldLifted, JobKillRequested, JobSubmitted
from domain.ids import job_stream_of
from domain.job_states import ENDED, state_after
from domain.jobs import JobSpec
from projections.scheduling.handle.answers import NewEvents
from projections.scheduling.records import JobRecord
from projections.scheduling.state import State

HIGHEST_JOB: Final = 9_999_999_999


def submit(state: State, command: SubmitJob, actor: str) -> NewEvents:
    """
    Take a job in, under the next number.

    A key that was used before gives no event: the caller finds its job in ``state.stored.keys``.
    """
    spec = command.spec
    if command.key and _is_known(state, command):
        return []
    _check_spec(state, spec)
    number = state.stored.highest_job + 1
    if number > HIGHEST_JOB:
        raise Refused("job", f"there is no number left above {HIGHEST_JOB}")
    event = JobSubmitted(spec=spec, key=command.key, digest=command.digest)
    return [(job_stream_of(number), event)]


def _is_known(state: State, command: SubmitJob) -> bool:
    known = state.stored.keys.get(command.key)
    if known is None:
        return False
    if known.digest != command.digest:
        raise Conflict(
            "the key was used for another submission",
            hint="Use a new key for another job, or the same content for the same job.",
        )
    return True


def _check_spec(state: State, spec: JobSpec) -> None:
    """
    Refuse what can never be honoured.
    """
    queue = state.queue(spec.queue)
    if not queue.spec.is_open:
        raise Refused("queue", "must be open", spec.queue)
    if spec.tasks_max < spec.tasks_min:
        raise Refused("tasks_max", "must not be below tasks_min", spec.tasks_max)
    names = [need.resource for need in spec.needs]
    if len(set(names)) < len(names):
        raise Refused("needs", "must name each resource once", ", ".join(names))
    if SLOTS in names:
        raise Refused("needs", "must not name slots: a task takes one slot", SLOTS)
    unknown = [name for name in names if name not in state.capacity.resources]
    if unknown and state.capacity.hosts:
        known = ", ".join(sorted(state.capacity.resources)) or "none"
        raise Refused(
            "resreq",
            "must name resources that some host has",
            ", ".join(unknown),
            f"Known: {known}.",
        )


def hold(state: State, command: HoldJob, actor: str) -> NewEvents:
    """
    Keep a pending job back.
    """
    job = state.job(command.job_id)
    _check_move(job, "held", "must be pending to be held")
    return [(job.stream, JobHeld())]


def lift(state: State, command: LiftHold, actor: str) -> NewEvents:
    """
    Let a held job go on.
    """
    job = state.job(command.job_id)
    _check_move(job, "hold lifted", "must be held for its hold to be lifted")
    return [(job.stream, JobHoldLifted())]


def _check_move(job: JobRecord, happening: str, rule: str) -> None:
    if state_after(happening, job.state) is None:
        raise Refused("job_id", rule, f"{job.job_id} is {job.state.value}")


def kill(state: State, command: KillJob, actor: str) -> NewEvents:
    """
    Ask for the job's end; asking again changes nothing.
    """
    job = state.job(command.job_id)
    if job.state in ENDED:
        raise Refused("job_id", "must not have ended", f"{job.job_id} is {job.state.value}")
    if job.kill_actor is not None:
        return []
    return [(job.stream, JobKillRequested())]


HANDLE: Final[dict[Any, Any]] = {
    SubmitJob: submit,
    HoldJob: hold,
    LiftHold: lift,
    KillJob: kill,
}
