"""
What holds for a job: its own values over its profile's over its queue's. The one place where they
are merged.

A profile's *default* holds where the job says nothing, a *fixed* value can't be said otherwise, a
*select* is ANDed to the job's own. A queue fills in what nobody said, and has ceilings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from domain.errors import Refused
from domain.jobs import EnvironmentVariable, ExitRules, JobLimits, JobSpec, PreExecOf, Program
from domain.profiles import ProfileSpec
from domain.queues import QueueSpec
from domain.resources import BUILT_IN_ONLY, Catalogue
from domain.resreq.merge import Mark, QueueResreq, effective_requirement
from domain.resreq.syntax import EMPTY, Requirement
from domain.resreq.tasks import TaskRange, kept_counts, task_range
from domain.units import show_by_name

T = TypeVar("T")

NO_LIMITS: Final = JobLimits()


@dataclass(slots=True, frozen=True)
class Around:
    """
    Hold what runs around a job's command, and how.

    Args:
        pre_exec: Commands before it with who says so (queue, profile, job), the outermost first.
        post_exec: Commands after it, the outermost last.
        nice: How much lower than usual the priority of its processes is.
    """

    pre_exec: tuple[tuple[PreExecOf, str], ...] = ()
    post_exec: tuple[str, ...] = ()
    nice: int = 0


def around(profile: ProfileSpec | None, queue: QueueSpec, program: Program | None = None) -> Around:
    """
    Return what queue, profile and the job itself run around its command; its files are copied next
    to it, but for its own pre-exec, which may need them.
    """
    transfers = program.transfers if program else ()
    before: tuple[tuple[PreExecOf, str], ...] = (
        ("queue", queue.pre_exec),
        ("profile", profile.pre_exec if profile else ""),
        *(("job", each.before()) for each in transfers),
        ("job", program.pre_exec if program else ""),
    )
    after = (
        *(each.after() for each in transfers),
        program.post_exec if program else "",
        profile.post_exec if profile else "",
        queue.post_exec,
    )
    return Around(tuple(each for each in before if each[1]), tuple(filter(None, after)), queue.nice)


# ------------------------------------------------------------------------------------- requirement


def requirement_of(
    spec: JobSpec,
    profile: ProfileSpec | None,
    queue: QueueSpec,
    *,
    queue_resreq: QueueResreq = QueueResreq.IGNORE,
    catalogue: Catalogue = BUILT_IN_ONLY,
) -> Requirement | None:
    """
    Return the requirement that holds for a job, None when nobody says one.

    Raises:
        Refused: The job says something else than a fixed profile, or reserves more than it may.
    """
    is_merged = queue_resreq is QueueResreq.MERGE and (queue.requirement or queue.reservations)
    if not is_merged and (profile is None or profile.requirement is None):
        return spec.requirement
    found = effective_requirement(
        spec.requirement,
        profile.requirement if profile else None,
        queue.requirement,
        mark=profile.resreq_mark if profile else Mark.DEFAULT,
        queue_resreq=queue_resreq,
        ranges=queue.reservations,
        catalogue=catalogue,
    )
    return None if found == EMPTY and spec.requirement is None else found


# ------------------------------------------------------------------------------------- other values


def values_of(spec: JobSpec, profile: ProfileSpec | None, queue: QueueSpec) -> JobSpec:
    """
    Return a job with the values of its profile and queue filled in, but for the requirement; the
    job itself when they say nothing. Nothing is refused here: a fixed value simply holds.
    """
    if profile is None and not queue.fills_in:
        return spec
    filled = spec if profile is None else _with_profile(spec, profile)
    return _with_queue(filled, queue)


def names_tasks(spec: JobSpec) -> bool:
    """
    Say whether a job names its count of tasks.
    """
    return spec.names_tasks or (spec.tasks_min, spec.tasks_max) != (1, 1)


def _with_profile(spec: JobSpec, profile: ProfileSpec) -> JobSpec:
    changes: dict[str, object] = {}
    tasks = profile.tasks
    if tasks is not None and (profile.tasks_mark is Mark.FIXED or not names_tasks(spec)):
        changes.update(tasks_min=tasks[0], tasks_max=tasks[1], names_tasks=True)
    for name, mark in (
        ("run_limit_us", profile.run_limit_mark),
        ("rerunnable", profile.rerunnable_mark),
    ):
        changes[name] = _one(getattr(spec, name), getattr(profile, name), mark)
    changes["exits"] = _exits(spec.exits, profile.exits, profile.exits_mark)
    if profile.limits is not None:
        changes["limits"] = _limits(spec.limits, profile.limits, profile.limits_mark)
    if profile.env and spec.program is not None:
        changes["program"] = _program(spec.program, profile)
    return spec.model_copy(update=changes)


def _one(own: T | None, theirs: T | None, mark: Mark) -> T | None:
    """
    Return the value that holds: the job's own where it has one and may.
    """
    return theirs if theirs is not None and (own is None or mark is Mark.FIXED) else own


def _exits(own: ExitRules | None, theirs: ExitRules | None, mark: Mark) -> ExitRules | None:
    """
    Return what exit values mean: which put a job back, which are a success, and how often it goes
    back, each from whoever says it.
    """
    if own is None or theirs is None:
        return own or theirs
    first, second = (theirs, own) if mark is Mark.FIXED else (own, theirs)
    back = first if first.requeue or first.exclude else second
    most = second.requeue_max if first.requeue_max is None else first.requeue_max
    return ExitRules(
        requeue=back.requeue,
        exclude=back.exclude,
        success=first.success or second.success,
        requeue_max=most,
    )


def _limits(own: JobLimits | None, theirs: JobLimits, mark: Mark) -> JobLimits:
    """
    Return limits merged one by one.
    """
    own = own or NO_LIMITS
    return JobLimits(
        **{
            name: _one(getattr(own, name), getattr(theirs, name), mark)
            for name in JobLimits.model_fields
        }
    )


def _program(own: Program, profile: ProfileSpec) -> Program:
    """
    Return a program with the variables of its profile, each by itself.
    """
    values = {each.name: each.value for each in own.env}
    for each in profile.env:
        if each.name not in values or profile.env_mark is Mark.FIXED:
            values[each.name] = each.value
    env = tuple(EnvironmentVariable(name=name, value=value) for name, value in values.items())
    return own.model_copy(update={"env": env})


def _with_queue(spec: JobSpec, queue: QueueSpec) -> JobSpec:
    changes: dict[str, object] = {}
    if queue.bounds_tasks:
        least, most = _tasks(spec, queue)
        changes.update(tasks_min=least, tasks_max=most)
    usual = queue.run_limit_usual_us
    if spec.run_limit_us is None and usual is not None:
        changes["run_limit_us"] = usual
    if queue.exits is not None:
        changes["exits"] = _exits(spec.exits, queue.exits, Mark.DEFAULT)
    if spec.rerunnable is None and queue.rerunnable:
        changes["rerunnable"] = True
    if queue.job_limits_default is not None or queue.job_limits_max is not None:
        below = _limits(queue.job_limits_default, queue.job_limits_max or NO_LIMITS, Mark.DEFAULT)
        changes["limits"] = _limits(spec.limits, below, Mark.DEFAULT)
    return spec.model_copy(update=changes) if changes else spec


def _tasks(spec: JobSpec, queue: QueueSpec) -> tuple[int, int]:
    """
    Return a job's tasks within the queue's range: a job that names none gets the queue's default,
    a range is clipped. A compound says its counts itself.
    """
    least, most = queue.tasks_min or 1, queue.tasks_max or spec.tasks_max
    if not names_tasks(spec):
        is_counted = spec.requirement is not None and not spec.requirement.is_simple
        default = 1 if is_counted else queue.tasks_default or least
        return default, default
    if spec.tasks_max < least or spec.tasks_min > most:
        return spec.tasks_min, spec.tasks_max
    return max(spec.tasks_min, least), min(spec.tasks_max, most)


# ------------------------------------------------------------------------------ what isn't allowed


def check_fixed(spec: JobSpec, profile: ProfileSpec) -> None:
    """
    Do nothing, or refuse what a job says otherwise than its profile has fixed.

    Raises:
        Refused: It does.
    """
    _check_commands(spec.program, profile)
    own_tasks = (spec.tasks_min, spec.tasks_max) if names_tasks(spec) else None
    pairs: list[tuple[str, object, object, Mark]] = [
        ("tasks", own_tasks, profile.tasks, profile.tasks_mark),
        ("run_limit_us", spec.run_limit_us, profile.run_limit_us, profile.run_limit_mark),
        ("exits", spec.exits, profile.exits, profile.exits_mark),
        ("rerunnable", spec.rerunnable, profile.rerunnable, profile.rerunnable_mark),
    ]
    for name in JobLimits.model_fields:
        own, theirs = (getattr(each or NO_LIMITS, name) for each in (spec.limits, profile.limits))
        pairs.append((f"limits.{name}", own, theirs, profile.limits_mark))
    fixed = {each.name: each.value for each in profile.env}
    for variable in spec.program.env if spec.program else ():
        theirs = fixed.get(variable.name)
        pairs.append((f"env {variable.name}", variable.value, theirs, profile.env_mark))
    for field, own, theirs, mark in pairs:
        if mark is Mark.FIXED and None not in (own, theirs) and own != theirs:
            raise Refused(field, "is fixed by the job's profile", own)


def _check_commands(program: Program | None, profile: ProfileSpec) -> None:
    """
    Do nothing, or refuse a job's own commands before and after it where its profile doesn't allow
    any, or fixes its own.
    """
    for field in ("pre_exec", "post_exec"):
        own = getattr(program, field) if program else ""
        theirs = getattr(profile, field)
        if own and not profile.allows_job_exec:
            raise Refused(f"program.{field}", "isn't allowed by the job's profile", own)
        if own and theirs and own != theirs and profile.exec_mark is Mark.FIXED:
            raise Refused(f"program.{field}", "is fixed by the job's profile", own)


def check_tasks_within(effective: JobSpec, queue: QueueSpec) -> None:
    """
    Do nothing, or refuse a count of tasks outside the queue's range.

    Args:
        effective: The job with its profile's and queue's values filled in.
        queue: Its queue.

    Raises:
        Refused: It is outside.
    """
    ranges = [TaskRange(effective.tasks_min, effective.tasks_max)]
    requirement = effective.requirement
    if requirement is not None and not requirement.is_simple and not names_tasks(effective):
        ranges = [task_range(compound, None) for compound in requirement.compounds]
    least, most = queue.tasks_min or 1, queue.tasks_max
    for asked in ranges:
        if asked.most < least or (most is not None and asked.least > most):
            shown = f"at least {least}" if most is None else f"{least} to {most}"
            raise Refused("tasks", f"must be within the queue's range, {shown}", str(asked))


def task_ranges(effective: JobSpec) -> tuple[TaskRange, ...]:
    """
    Return how many tasks a job may have, a range for each of its alternatives.

    Args:
        effective: The job with its profile's and queue's values filled in.
    """
    requirement, said = effective.requirement, TaskRange(effective.tasks_min, effective.tasks_max)
    if requirement is None or requirement.is_simple:
        return (said,)
    asked = said if names_tasks(effective) else None
    found = [kept_counts(compound, asked) for compound in requirement.compounds]
    return tuple(
        TaskRange(sum(each.least for each in counts), sum(each.most for each in counts))
        for counts in found
    )


def check_ceilings(
    effective: JobSpec, queue: QueueSpec, *, show: Callable[[str, int], object] = show_by_name
) -> None:
    """
    Do nothing, or refuse what a queue never allows, whatever is free.

    Args:
        effective: The job with its profile's and queue's values filled in.
        queue: Its queue.
        show: Returns how a field's value is told.

    Raises:
        Refused: It is over one of the queue's ceilings, which is named.
    """
    longest = queue.run_limit_max_us
    if longest is not None and (effective.run_limit_us or 0) > longest:
        rule = f"must be at most the queue's {show('run_limit_us', longest)}"
        raise Refused("run_limit_us", rule, show("run_limit_us", effective.run_limit_us or 0))
    if effective.is_exclusive and not queue.allows_exclusive:
        raise Refused("is_exclusive", "isn't allowed in this queue", effective.queue)
    most = queue.job_limits_max or NO_LIMITS
    for name in JobLimits.model_fields:
        ceiling, value = getattr(most, name), getattr(effective.limits or NO_LIMITS, name)
        if ceiling is not None and value is not None and value > ceiling:
            rule = f"must be at most the queue's {show(name, ceiling)}"
            raise Refused(f"limits.{name}", rule, show(name, value))
