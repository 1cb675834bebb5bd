"""
Handle commands that change what a job is, or where among others it waits.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from domain.commands.jobs import ModifyJob, MoveJob, SwitchJob
from domain.effective import task_ranges
from domain.errors import Refused
from domain.events.jobs import Beside, JobModified, JobMoved, JobSwitched
from domain.job_states import ENDED, LIVE, JobState
from domain.jobs import JobSpec, Program
from domain.resreq import EMPTY
from domain.resreq.merge import terms_of
from projections.scheduling.handle.allowed import check_hosts_of_queue, check_policies
from projections.scheduling.handle.answers import NewEvents
from projections.scheduling.handle.dependencies import with_parents
from projections.scheduling.handle.jobs import check_spec, with_priority
from projections.scheduling.handle.requirements import with_requirement
from projections.scheduling.records import JobRecord
from projections.scheduling.state import State


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
    check_spec(state, spec)
    check_policies(state, spec)
    if job.state in LIVE:
        check_hosts_of_queue(state, job, command.queue)
    kept = bool(job.forced_on) and _is_met_by(state, job, spec)
    return [(job.stream, JobSwitched(queue=command.queue, is_wish_kept=kept))]


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
OUTPUT: Final = ("stdout", "stderr")
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
    _check_changeable(state, job, new, changed)
    check_spec(state, new)
    if "user_priority" in changed:
        new = with_priority(state, new)
    check_policies(state, new)
    if new.dependency_text and new.dependency_text == old.dependency_text:
        # Its parents are those of its submission, whatever names mean by now.
        new = new.model_copy(update={"dependency": old.dependency})
    else:
        new = with_parents(state, new)
    kept = _wishes_kept(state, job, new)
    found: NewEvents = []
    if "queue" in changed:
        found.append((job.stream, JobSwitched(queue=new.queue, is_wish_kept=kept == "all")))
    if changed != ["queue"]:
        found.append((job.stream, JobModified(spec=new, wishes_kept=kept)))
    return found


def _check_changeable(state: State, job: JobRecord, new: JobSpec, changed: list[str]) -> None:
    """
    Refuse to change what nothing changes, or what nothing changes any more.
    """
    if "user" in changed:
        raise Refused("user", "can't be changed by a modification")
    if "array" in changed and not _only_bound_differs(job.spec, new):
        raise Refused("array", "can't be changed but for how many may be started at a time")
    if job.state in ENDED:
        raise Refused("job_id", "must not have ended", f"{job.job_id} is {job.state.value}")
    if job.state in LIVE:
        fixed = [name for name in changed if name not in _changeable(state, job, new)]
        if fixed:
            rule = "can't be changed once the job has started"
            field = _differs(job.spec, new, fixed[0])
            raise Refused(field, rule, None, _instead(job, fixed[0]))
        _check_hosts_have(state, job, new)


def _differs(old: JobSpec, new: JobSpec, name: str) -> str:
    """
    Return a field that was changed, and of an object which of its own fields.
    """
    both = [getattr(each, name) for each in (old, new)]
    if not isinstance(both[1], Program) or not isinstance(both[0], Program):
        return name
    parts = (part for part in Program.model_fields if part not in OUTPUT)
    first = next(part for part in parts if getattr(both[0], part) != getattr(both[1], part))
    return f"{name}.{first}"


def _instead(job: JobRecord, name: str) -> str:
    """
    Return how a field of a started job is changed that a modification doesn't.
    """
    if name == "queue":
        return f"xce switch QUEUE {job.job_id} moves a started job."
    return f"xce requeue {job.job_id} puts it back first."


def _wishes_kept(state: State, job: JobRecord, new: JobSpec) -> Literal["none", "others", "all"]:
    """
    Return whose wishes to be started on certain hosts outlive a modification: all but its own, if
    that gives it tasks that it may no longer have.
    """
    if job.forced_on and _is_met_by(state, job, new):
        return "all"
    array = state.stored.arrays.get(job.number) if new.array != job.spec.array else None
    elements = () if array is None else array.elements
    others = any(state.stored.jobs[stream].forced_on for stream in elements if stream != job.stream)
    return "others" if others else "none"


def _is_met_by(state: State, job: JobRecord, new: JobSpec) -> bool:
    """
    Say whether a job of this content may have the tasks that an operator wants it to have.
    """
    tasks = sum(each.tasks for each in job.forced_on)
    return any(each.least <= tasks <= each.most for each in task_ranges(state.values_for(new)))


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
    bare = [program.model_copy(update=dict.fromkeys(OUTPUT, "")) for program in both]
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
    SwitchJob: switch,
    MoveJob: move,
    ModifyJob: modify,
}
