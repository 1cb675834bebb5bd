"""
Handle commands about jobs, but for those that change what a job is or where it waits.
"""

from __future__ import annotations

from typing import Any, Final

from domain.commands.jobs import (
    HoldJob,
    KillJob,
    LiftHold,
    RequeueJob,
    ResumeJob,
    RunJob,
    SignalJob,
    StopJob,
    SubmitJob,
)
from domain.effective import task_ranges
from domain.errors import Conflict, Refused
from domain.event import sure_of_all
from domain.events.jobs import (
    JobHeld,
    JobHoldLifted,
    JobKillRequested,
    JobRequeueRequested,
    JobResumeRequested,
    JobRunRequested,
    JobSignalRequested,
    JobStopRequested,
    JobSubmitted,
)
from domain.ids import job_stream_of
from domain.job_states import ENDED, LIVE, JobState, state_after
from domain.jobs import HostTasks, JobSpec
from projections.scheduling.handle.allowed import check_policies
from projections.scheduling.handle.answers import NewEvents
from projections.scheduling.handle.dependencies import with_parents
from projections.scheduling.handle.requirements import with_requirement
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
    check_spec(state, spec)
    if spec.resreq or spec.requirement is not None:
        spec = with_requirement(state, spec)
    if spec.dependency_text:
        spec = with_parents(state, spec)
    if state.settings().user_priority_max is not None:
        spec = with_priority(state, spec)
    check_policies(state, spec)
    number = state.stored.highest_job + 1
    if number > HIGHEST_JOB:
        raise Refused("job", f"there is no number left above {HIGHEST_JOB}")
    event = sure_of_all(
        JobSubmitted, {"spec": spec, "key": command.key, "digest": command.digest}
    )
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


def with_priority(state: State, spec: JobSpec) -> JobSpec:
    """
    Return the job with half of the highest priority where it names none.

    Raises:
        Refused: It asks for more than the highest.
    """
    most = state.settings().user_priority_max
    if most is None or 0 < spec.user_priority <= most:
        return spec
    if spec.user_priority > most:
        raise Refused("user_priority", f"must be at most {most}", spec.user_priority)
    return spec.model_copy(update={"user_priority": most // 2})


def check_spec(state: State, spec: JobSpec) -> None:
    """
    Refuse what can never be honoured.
    """
    queue = state.queue(spec.queue)
    if not queue.spec.is_open:
        raise Refused("queue", "must be open", spec.queue)
    if spec.tasks_max < spec.tasks_min:
        raise Refused("tasks_max", "must not be below the fewest tasks", spec.tasks_max)
    if spec.hosts:
        _check_hosts(state, spec)


def _check_hosts(state: State, spec: JobSpec) -> None:
    """
    Refuse hosts that nobody knows, and one asked for twice.
    """
    _check_names(state, [choice.host for choice in spec.hosts])


def _check_names(state: State, names: list[str]) -> None:
    unknown = next((name for name in names if name not in state.stored.workers), None)
    if unknown is not None:
        raise Refused("hosts", "must name workers that have joined", unknown)
    if len(set(names)) < len(names):
        raise Refused("hosts", "must name each host once", " ".join(names))


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
    _check_may_resume(job, actor)
    return [(job.stream, JobHoldLifted())]


def _check_may_resume(job: JobRecord, actor: str) -> None:
    if job.stop_actor not in (None, job.spec.user) and actor == job.spec.user:
        raise Refused("job_id", "was stopped by an administrator, who must resume it", job.job_id)


def _check_move(job: JobRecord, happening: str, rule: str) -> None:
    if state_after(happening, job.state) is None:
        raise Refused("job_id", rule, f"{job.job_id} is {job.state.value}")


def kill(state: State, command: KillJob, actor: str) -> NewEvents:
    """
    Ask for the job's end; asking again changes nothing, unless it is to be by force now.
    """
    job = state.job(command.job_id)
    if job.state in ENDED:
        raise Refused("job_id", "must not have ended", f"{job.job_id} is {job.state.value}")
    if job.kill_actor is not None and (job.kill_forced or not command.force):
        return []
    return [(job.stream, JobKillRequested(force=command.force))]


def run(state: State, command: RunJob, actor: str) -> NewEvents:
    """
    Ask to start a pending job on hosts that must be there, with as many tasks as it may have.
    """
    job = state.job(command.job_id)
    if job.state is not JobState.PEND:
        rule = "must be pending to be started on hosts"
        raise Refused("job_id", rule, f"{job.job_id} is {job.state.value}")
    if job.kill_actor is not None:
        raise Refused("job_id", "must not be about to end to be started on hosts", job.job_id)
    _check_names(state, [each.host for each in command.hosts])
    for each in command.hosts:
        worker = state.worker(each.host)
        if worker.left or worker.is_silent:
            raise Refused("hosts", "must be reached", each.host)
    hosts = _with_tasks(command, state.effective(job))
    if hosts == job.forced_on and job.tells_never:
        return []
    return [(job.stream, JobRunRequested(hosts=hosts, tells_never=True))]


def _with_tasks(command: RunJob, spec: JobSpec) -> tuple[HostTasks, ...]:
    """
    Return how many tasks each host gets: one where that isn't said, but all that are left on the
    only such host.
    """
    open_ones = [each for each in command.hosts if each.tasks is None]
    said = sum(each.tasks or 0 for each in command.hosts)
    ranges = task_ranges(spec)
    rest = max(1, ranges[0].least - said) if len(open_ones) == 1 else 1
    hosts = tuple(
        HostTasks(host=each.host, tasks=rest if each.tasks is None else each.tasks)
        for each in command.hosts
    )
    tasks = sum(each.tasks for each in hosts)
    if not any(each.least <= tasks <= each.most for each in ranges):
        spans = dict.fromkeys(
            f"{each.least}" if each.least == each.most else f"{each.least} to {each.most}"
            for each in ranges
        )
        raise Refused("hosts", f"must get {' or '.join(spans)} tasks together", tasks)
    return hosts


def signal(state: State, command: SignalJob, actor: str) -> NewEvents:
    """
    Ask to send a signal to a started job; asking again before that was ordered changes nothing.
    """
    job = state.job(command.job_id)
    if job.state not in LIVE:
        rule = "must be started to be sent a signal"
        raise Refused("job_id", rule, f"{job.job_id} is {job.state.value}")
    if any(wanted.signal is command.signal for wanted in job.signals_wanted):
        return []
    return [(job.stream, JobSignalRequested(signal=command.signal))]


def stop(state: State, command: StopJob, actor: str) -> NewEvents:
    """
    Hold a pending job, or ask to suspend a started one; stopping a stopped one changes nothing,
    unless an administrator takes it over.
    """
    job = state.job(command.job_id)
    if job.state is JobState.PEND:
        return [(job.stream, JobHeld())]
    is_by_other = actor != job.spec.user
    if job.state is JobState.PSUSP:
        takes_over = is_by_other and job.stop_actor in (None, job.spec.user)
        return [(job.stream, JobHeld())] if takes_over else []
    if job.stop_actor is not None:
        takes_over = is_by_other and job.stop_actor == job.spec.user
        return [(job.stream, JobStopRequested())] if takes_over else []
    _check_move(job, "stopped", "must be pending, running or suspended to be stopped")
    return [(job.stream, JobStopRequested())]


def resume(state: State, command: ResumeJob, actor: str) -> NewEvents:
    """
    Let a held job wait again, or ask to let a stopped one go on.

    What an administrator stopped, its user can't let go on; what the system suspended goes on by
    itself.
    """
    job = state.job(command.job_id)
    is_held = job.state is JobState.PSUSP
    if job.stop_actor is None and not is_held:
        rule = "must be held or stopped by a user to be resumed"
        raise Refused("job_id", rule, f"{job.job_id} is {job.state.value}")
    _check_may_resume(job, actor)
    if is_held:
        return [(job.stream, JobHoldLifted())]
    return [(job.stream, JobResumeRequested())]


def requeue(state: State, command: RequeueJob, actor: str) -> NewEvents:
    """
    Ask to put a started job back to pending; asking again changes nothing.
    """
    job = state.job(command.job_id)
    if job.state not in (JobState.RUN, JobState.USUSP, JobState.SSUSP):
        rule = "must be started to be put back to pending"
        raise Refused("job_id", rule, f"{job.job_id} is {job.state.value}")
    if job.requeue_why:
        return []
    return [(job.stream, JobRequeueRequested(hold=command.hold))]


HANDLE: Final[dict[Any, Any]] = {
    SubmitJob: submit,
    HoldJob: hold,
    LiftHold: lift,
    KillJob: kill,
    SignalJob: signal,
    StopJob: stop,
    ResumeJob: resume,
    RunJob: run,
    RequeueJob: requeue,
}
