"""
Handle commands about jobs.
"""

from __future__ import annotations

from typing import Any, Final

from domain.commands.jobs import (
    HoldJob,
    KillJob,
    LiftHold,
    ModifyJob,
    MoveJob,
    RequeueJob,
    ResumeJob,
    RunJob,
    SignalJob,
    StopJob,
    SubmitJob,
    SwitchJob,
)
from domain.errors import Conflict, Refused
from domain.event import sure_of_all
from domain.events.jobs import (
    Beside,
    JobHeld,
    JobHoldLifted,
    JobKillRequested,
    JobModified,
    JobMoved,
    JobRequeueRequested,
    JobResumeRequested,
    JobRunRequested,
    JobSignalRequested,
    JobStopRequested,
    JobSubmitted,
    JobSwitched,
)
from domain.ids import job_stream_of
from domain.job_states import ENDED, LIVE, JobState, state_after
from domain.jobs import HostTasks, JobSpec, Program
from domain.resreq import EMPTY
from domain.resreq.merge import terms_of
from projections.scheduling.handle.allowed import check_hosts_of_queue, check_policies
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
    _check_spec(state, spec)
    if spec.resreq or spec.requirement is not None:
        spec = with_requirement(state, spec)
    if spec.dependency_text:
        spec = with_parents(state, spec)
    if state.settings().user_priority_max is not None:
        spec = _with_priority(state, spec)
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


def _with_priority(state: State, spec: JobSpec) -> JobSpec:
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


def _check_spec(state: State, spec: JobSpec) -> None:
    """
    Refuse what can never be honoured.
    """
    queue = state.queue(spec.queue)
    if not queue.spec.is_open:
        raise Refused("queue", "must be open", spec.queue)
    if spec.tasks_max < spec.tasks_min:
        raise Refused("tasks_max", "must not be below tasks_min", spec.tasks_max)
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
    return [] if hosts == job.forced_on else [(job.stream, JobRunRequested(hosts=hosts))]


def _with_tasks(command: RunJob, spec: JobSpec) -> tuple[HostTasks, ...]:
    """
    Return how many tasks each host gets: one where that isn't said, but all that are left on the
    only such host.
    """
    open_ones = [each for each in command.hosts if each.tasks is None]
    said = sum(each.tasks or 0 for each in command.hosts)
    rest = max(1, spec.tasks_min - said) if len(open_ones) == 1 else 1
    hosts = tuple(
        HostTasks(host=each.host, tasks=rest if each.tasks is None else each.tasks)
        for each in command.hosts
    )
    tasks = sum(each.tasks for each in hosts)
    if not spec.tasks_min <= tasks <= spec.tasks_max:
        least, most = spec.tasks_min, spec.tasks_max
        span = f"{least}" if least == most else f"{least} to {most}"
        raise Refused("hosts", f"must get {span} tasks together", tasks)
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


def switch(state: State, command: SwitchJob, actor: str) -> NewEvents:
    """
    Move a job to another queue that would take it as a new one.
    """
    job = state.job(command.job_id)
    if job.state in ENDED:
        raise Refused("job_id", "must not have ended", f"{job.job_id} is {job.state.value}")
    if job.spec.queue == command.queue:
        return []
    spec = job.spec.model_copy(update={"queue": command.queue})
    _check_spec(state, spec)
    check_policies(state, spec)
    if job.state in LIVE:
        check_hosts_of_queue(state, job, command.queue)
    return [(job.stream, JobSwitched(queue=command.queue))]


def move(state: State, command: MoveJob, actor: str) -> NewEvents:
    """
    Put a pending job before or behind all jobs of its queue and priority that wait, or only those
    of its user; then nothing changes when it is there already.
    """
    job = state.job(command.job_id)
    if job.state is not JobState.PEND:
        raise Refused("job_id", "must be pending to be moved", f"{job.job_id} is {job.state.value}")
    is_top, queue = command.to == "top", state.queue_of(job).spec
    priority = queue.counted_priority(job.spec.user_priority)
    equals = [
        other
        for other in state.stored.jobs.values()
        if other.state is JobState.PEND
        and other is not job
        and other.spec.queue == job.spec.queue
        and queue.counted_priority(other.spec.user_priority) == priority
    ]
    if command.among == "own":
        own = [one for one in equals if one.spec.user == job.spec.user]
        moved = _beside_own(job, own, is_top=is_top)
        return [] if moved is None else [(job.stream, moved)]
    places = [other.place for other in equals]
    place = min(places, default=1) - 1 if is_top else max(places, default=-1) + 1
    return [(job.stream, JobMoved(place=place))]


def _beside_own(job: JobRecord, own: list[JobRecord], *, is_top: bool) -> JobMoved | None:
    """
    Return how a job comes right before the first of its user's own that wait, or right behind the
    last, without another's job between; None when it is before or behind them all.
    """
    if not own:
        return None
    outer = (min if is_top else max)(own, key=lambda one: one.position)
    if (job.position < outer.position) is is_top:
        return None
    stands = outer.beside
    if stands is not None:
        stands = stands.but(rank=stands.rank + (-1 if is_top else 1))
    else:
        # Right before a job is right behind where one of the index before it would be.
        index = outer.index - is_top
        stands = Beside(queue_us=outer.queue_us, number=outer.number, index=index)
    return JobMoved(place=outer.place, beside=stands)


CHANGEABLE_WHEN_STARTED: Final = frozenset(
    {"run_limit_us", "limits", "rerunnable", "name", "array"}
)
REQUIREMENT: Final = frozenset({"resreq", "requirement"})


def modify(state: State, command: ModifyJob, actor: str) -> NewEvents:
    """
    Change what a pending job asks for, or of a started one its limits and what it reserves on its
    hosts.
    """
    job = state.job(command.job_id)
    old, new = job.spec, command.spec
    if old.resreq != new.resreq:
        new = new.model_copy(update={"requirement": None})
    if old.dependency_text and not new.dependency_text:
        # What the text said goes with it. A job that never had one keeps what it was given.
        new = new.model_copy(update={"dependency": None})
    new = with_requirement(state, new)
    changed = [name for name in type(new).model_fields if getattr(old, name) != getattr(new, name)]
    changed = [name for name in changed if name != "dependency"]
    if not changed:
        return []
    for name in ("user", "queue"):
        if name in changed:
            raise Refused(name, "can't be changed by a modification")
    if "array" in changed and not _only_bound_differs(old, new):
        raise Refused("array", "can't be changed but for how many may be started at a time")
    if job.state in ENDED:
        raise Refused("job_id", "must not have ended", f"{job.job_id} is {job.state.value}")
    if job.state in LIVE:
        fixed = [name for name in changed if name not in _changeable(state, job, new)]
        if fixed:
            raise Refused(fixed[0], "can't be changed once the job has started", job.job_id)
        _check_hosts_have(state, job, new)
    _check_spec(state, new)
    if "user_priority" in changed:
        new = _with_priority(state, new)
    check_policies(state, new)
    if new.dependency_text and new.dependency_text == old.dependency_text:
        # Its parents are those of its submission, whatever names mean by now.
        new = new.model_copy(update={"dependency": old.dependency})
    else:
        new = with_parents(state, new)
    return [(job.stream, JobModified(spec=new))]


def _changeable(state: State, job: JobRecord, new: JobSpec) -> frozenset[str]:
    """
    Return the fields of a started job that may become what they are to be.
    """
    free = CHANGEABLE_WHEN_STARTED
    if _only_amounts_differ(state, job, new):
        free = free | REQUIREMENT
    return free | {"program"} if _only_output_differs(job.spec, new) else free


def _only_bound_differs(old: JobSpec, new: JobSpec) -> bool:
    return (
        old.array is not None and new.array is not None and old.array.ranges == new.array.ranges
    )


def _only_output_differs(old: JobSpec, new: JobSpec) -> bool:
    """
    Say whether nothing of the program changes but where its output goes: its next start, after a
    requeue, looks there.
    """
    both = [each.program or Program() for each in (old, new)]
    bare = [program.model_copy(update={"stdout": "", "stderr": ""}) for program in both]
    return bare[0] == bare[1]


def _only_amounts_differ(state: State, job: JobRecord, new: JobSpec) -> bool:
    """
    Say whether a new requirement only reserves other amounts on each host: nothing that hosts
    share, and no named units.
    """
    both = [job.spec.requirement or EMPTY, new.requirement or EMPTY]
    if not all(requirement.is_simple for requirement in both):
        return False
    shared = state.capacity.pools.by_name
    named = [term.resource for requirement in both for term in terms_of(requirement)]
    has_units = job.allocation is not None and any(run.instances for run in job.allocation.runs)
    if has_units or any(name in shared for name in named):
        return False
    bare = [requirement.only.model_copy(update={"rusage": ()}) for requirement in both]
    return bare[0] == bare[1]


def _check_hosts_have(state: State, job: JobRecord, new: JobSpec) -> None:
    """
    Refuse to have a started job reserve what one of its hosts doesn't have at all.
    """
    if job.allocation is None or new.requirement == job.spec.requirement:
        return
    columns = state.capacity.resources
    for term in terms_of(new.requirement or EMPTY):
        for number, _, _ in job.allocation.shares():
            column = columns.get(term.resource)
            if column is None or not column.present[number]:
                host = state.hosts[number].name
                raise Refused("resreq", f"must reserve what {host} has", term.resource)


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
    SwitchJob: switch,
    MoveJob: move,
    ModifyJob: modify,
}
