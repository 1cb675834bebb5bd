"""
What requests hold, and how what is wrong with one is told.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, TypeVar

from pydantic import Field, StringConstraints, ValidationError

from domain.amounts import Count, TimeUs
from domain.arrays import ArraySpec
from domain.broken_rules import refused_of
from domain.commands import SubmitJob
from domain.errors import Denied, Refused
from domain.event import Value
from domain.ids import NAME_PATTERN, Name
from domain.jobs import ExitRules, HostChoice, JobLimits, JobSpec, Program, Tasks, Text, WantedHost
from domain.paths import STREAMS, within
from domain.projects import PATH_PATTERN
from domain.texts import PRINTABLE_PATTERN

ELEMENTS_MAX = 100_000

Key = Annotated[str, StringConstraints(max_length=128, pattern=PRINTABLE_PATTERN)]
NameOrNone = Annotated[str, StringConstraints(pattern=rf"^$|{NAME_PATTERN}")]
PathOrNone = Annotated[str, StringConstraints(pattern=rf"^$|{PATH_PATTERN}")]


class SubmitRequest(Value):
    """
    Ask for a job. What isn't given is the cluster's default, and the user is the caller.

    Args:
        key: A name of this submission: the same key with the same content gives the same job.
        user: Who submits; must be the caller, or "".
        queue: Where it waits; "" for the default queue.
        group: The user group that it counts for, "" for all of its user's.
        project: Its project; "" for the queue's, the group's or the cluster's.
        profile: Its application profile, "" for none.
        tasks_min: Fewest tasks; what profile and queue say when not given, else 1.
        program: What to run; either argv or shell.
        resreq: Resource requirement, one text per option.
        hosts: The hosts asked for, all when empty.
        is_exclusive: Whether its hosts may run nothing else.
        array: What makes it an array.
        dependency_text: On which jobs it waits, as LSF writes it.
        begin_us: It doesn't start before this moment.
        deadline_us: It is ended at this moment.
        limits: What an attempt may use at most.
        exits: What its exit values mean; the queue's rules when not given.
        rerunnable: Whether it starts anew when its host is lost; the queue's rule when not given.
        ends_as_orphan: Whether it ends when its dependency can never become true; the cluster's
            rule when not given.
    """

    program: Program
    key: Key = ""
    user: NameOrNone = ""
    queue: NameOrNone = ""
    name: Text = ""
    group: NameOrNone = ""
    project: PathOrNone = ""
    profile: NameOrNone = ""
    tasks_min: Tasks | None = None
    tasks_max: Tasks | None = None
    resreq: tuple[Text, ...] = ()
    hosts: tuple[HostChoice, ...] = ()
    is_exclusive: bool = False
    user_priority: Count = 0
    run_limit_us: TimeUs | None = None
    run_estimate_us: TimeUs | None = None
    hold: bool = False
    array: ArraySpec | None = None
    dependency_text: Text = ""
    begin_us: TimeUs | None = None
    deadline_us: TimeUs | None = None
    limits: JobLimits | None = None
    exits: ExitRules | None = None
    rerunnable: bool | None = None
    ends_as_orphan: bool | None = None


class ModifyRequest(Value):
    """
    Ask to change what a job asks for; what isn't given stays as it is, also of the fields inside of
    program, limits and exits.

    Args:
        queue: Where it waits from now on; "" for the default queue.
        tasks_min: Fewest tasks; null for what profile and queue say, as if never given.
        started_max: So many elements of the job's array may be started at a time, 0 for any number.
    """

    program: Program | None = None
    queue: NameOrNone | None = None
    name: Text | None = None
    group: NameOrNone | None = None
    project: PathOrNone | None = None
    profile: NameOrNone | None = None
    tasks_min: Tasks | None = None
    tasks_max: Tasks | None = None
    resreq: tuple[Text, ...] | None = None
    hosts: tuple[HostChoice, ...] | None = None
    is_exclusive: bool | None = None
    user_priority: Count | None = None
    run_limit_us: TimeUs | None = None
    run_estimate_us: TimeUs | None = None
    dependency_text: Text | None = None
    begin_us: TimeUs | None = None
    deadline_us: TimeUs | None = None
    limits: JobLimits | None = None
    exits: ExitRules | None = None
    rerunnable: bool | None = None
    ends_as_orphan: bool | None = None
    started_max: Count | None = None

    def changed(self, spec: JobSpec, named: str, default_queue: str) -> JobSpec:
        """
        Return a job's content with what was given in place of what it had.

        Args:
            spec: What it had.
            named: The job, or array, that the request names.
            default_queue: Where it waits when "" is given.

        Raises:
            Refused: A field breaks a rule.
        """
        given = {name: getattr(self, name) for name in self.model_fields_set}
        for name in sorted(given):
            if given[name] is None and name not in CLEARABLE:
                raise Refused(name, "can be changed, not taken away")
        if given.get("queue") == "":
            given["queue"] = default_queue
        given |= self._tasks()
        if (most := given.pop("started_max", None)) is not None:
            given["array"] = _bounded(spec, named, most)
        given |= self._merged(spec)
        try:
            return JobSpec(**{**dict(spec), **given})
        except ValidationError as error:
            raise refused_of(error, JobSpec) from None

    def _tasks(self) -> dict[str, object]:
        if "tasks_min" not in self.model_fields_set:
            return {}
        if self.tasks_min is None:
            return {"tasks_min": 1, "tasks_max": self.tasks_max or 1, "names_tasks": False}
        return {"names_tasks": True}

    def _merged(self, spec: JobSpec) -> dict[str, object]:
        """
        Return the objects of which only some fields were given, with the others as they were.
        """
        found: dict[str, object] = {}
        if self.program is not None:
            found["program"] = _program_with(spec.program or Program(), self.program)
        if self.limits is not None:
            limits = _with(spec.limits or JobLimits(), self.limits)
            found["limits"] = None if limits == JobLimits() else limits
        if self.exits is not None:
            found["exits"] = _with(spec.exits or ExitRules(), self.exits)
        return found


def _bounded(spec: JobSpec, named: str, most: int) -> ArraySpec:
    if spec.array is None:
        raise Refused("started_max", "is for arrays only", named)
    if "[" in named:
        hint = f"Name the array: {named.partition('[')[0]}."
        raise Refused("started_max", "is for a whole array", named, hint)
    return spec.array.model_copy(update={"started_max": most or None})


Part = TypeVar("Part", bound=Value)


def _with(old: Part, new: Part) -> Part:
    """
    Return an object with the fields that another one was given.
    """
    return old.model_copy(update={name: getattr(new, name) for name in new.model_fields_set})


def _program_with(old: Program, new: Program) -> Program:
    """
    Return a program that was changed: arguments stand in place of a shell text and the other way
    round, and files named relatively lie in the job's directory.
    """
    given = new.model_fields_set
    merged = _with(old, new)
    if new.shell is not None and "argv" not in given:
        merged = merged.model_copy(update={"argv": ()})
    elif new.argv and "shell" not in given:
        merged = merged.model_copy(update={"shell": None})
    files: dict[str, object] = {
        name: within(merged.cwd, getattr(merged, name)) for name in STREAMS if name in given
    }
    merged = merged.model_copy(update=files)
    check_program(merged)
    return merged


CLEARABLE = frozenset(
    "tasks_min run_limit_us run_estimate_us begin_us deadline_us limits exits rerunnable"
    " ends_as_orphan".split()
)
"""Fields that may be absent from a job, or from what was asked of it."""


class ChosenJobs(Value):
    """
    Say which jobs a request for job 0 means: those that haven't ended and fit all that is given.

    Args:
        user: Of this user, the caller when "", of everybody when "all".
        queue: In this queue, "" for any.
        host: With tasks on this host, "" for any.
        name: Of this name, in which * stands for any text; "" for any.
    """

    user: NameOrNone = ""
    queue: NameOrNone = ""
    host: NameOrNone = ""
    name: Text = ""


class KillRequest(ChosenJobs):
    """
    Ask to end a job, maybe by force: without waiting for its worker.
    """

    force: bool = False


class SignalRequest(ChosenJobs):
    """
    Ask to send a signal: a name with or without SIG, or a number.
    """

    signal: Annotated[str, StringConstraints(min_length=1, max_length=16)]


class RunRequest(Value):
    """
    Ask to start a pending job on hosts, each with so many tasks.
    """

    hosts: Annotated[tuple[WantedHost, ...], Field(min_length=1)]


class RequeueRequest(Value):
    """
    Ask to put a started job back to pending.
    """

    hold: bool = False


class SwitchRequest(Value):
    """
    Ask to move a job to another queue.
    """

    queue: Name


class CloseRequest(Value):
    """
    Ask to close a host, for those who ask later.
    """

    why: Annotated[str, StringConstraints(max_length=1024)] = ""


class RecordRequest(Value):
    """
    Ask for a recording.

    Args:
        file: Where to; an absolute path on the scheduler's host, that isn't there yet.
        states_every: A whole state is written every so many events.
    """

    file: Annotated[str, StringConstraints(min_length=1, max_length=4096)]
    states_every: Annotated[int, Field(ge=1, le=2**62)] = 50_000


def submit_command(body: bytes, *, user: str, default_queue: str) -> SubmitJob:
    """
    Return the command that the body of a submission asks for.

    Raises:
        Refused: A field breaks a rule.
        Denied: It is for another user.
    """
    try:
        asked = SubmitRequest.model_validate_json(body)
    except ValidationError as error:
        raise refused_of(error, SubmitRequest) from None
    if asked.user not in ("", user):
        raise Denied("user", "must be the caller", asked.user)
    check_program(asked.program)
    if asked.array is not None:
        _check_array(asked.array)
    try:
        spec = JobSpec(
            user=user,
            queue=asked.queue or default_queue,
            group=asked.group,
            project=asked.project,
            profile=asked.profile,
            name=asked.name,
            names_tasks=asked.tasks_min is not None,
            tasks_min=asked.tasks_min or 1,
            tasks_max=asked.tasks_max or asked.tasks_min or 1,
            program=asked.program,
            resreq=asked.resreq,
            hosts=asked.hosts,
            is_exclusive=asked.is_exclusive,
            user_priority=asked.user_priority,
            run_limit_us=asked.run_limit_us,
            run_estimate_us=asked.run_estimate_us,
            hold=asked.hold,
            array=asked.array,
            dependency_text=asked.dependency_text,
            begin_us=asked.begin_us,
            deadline_us=asked.deadline_us,
            limits=asked.limits,
            exits=asked.exits,
            rerunnable=asked.rerunnable,
            ends_as_orphan=asked.ends_as_orphan,
        )
    except ValidationError as error:
        raise refused_of(error, JobSpec) from None
    if not asked.key:
        return SubmitJob(spec=spec)
    content = spec.__pydantic_serializer__.to_json(spec, exclude_defaults=True)
    return SubmitJob(spec=spec, key=asked.key, digest=hashlib.sha256(content).hexdigest()[:32])


def _check_array(array: ArraySpec) -> None:
    """
    Refuse an array of more elements than a state should have to hold at once.
    """
    count = sum(len(each.indices()) for each in array.ranges)
    if count > ELEMENTS_MAX:
        raise Refused("array", f"must have at most {ELEMENTS_MAX} elements", count)


def check_program(program: Program) -> None:
    """
    Refuse a program that no worker could start.
    """
    if program.shell is None and not (program.argv and program.argv[0]):
        rule = "must begin with the name of a program, unless a shell text is given"
        raise Refused("program.argv", rule)
    if program.cwd and not program.cwd.startswith("/"):
        raise Refused("program.cwd", "must be an absolute path", program.cwd)
    names = [variable.name for variable in program.env]
    if len(set(names)) < len(names):
        raise Refused("program.env", "must name each variable once", _first_double(names))
    wrong = next((name for name in names if "=" in name), None)
    if wrong is not None:
        raise Refused("program.env", "must not have = in a variable's name", wrong)
    for field, texts in _texts(program):
        if "\0" in texts:
            raise Refused(f"program.{field}", "must not hold the character NUL")


def _texts(program: Program) -> tuple[tuple[str, str], ...]:
    env = "".join([variable.name + variable.value for variable in program.env])
    files = "".join([each.local + each.remote for each in program.transfers])
    paths = ("cwd", program.cwd), ("stdin", program.stdin), ("stdout", program.stdout)
    command = ("argv", "".join(program.argv)), ("shell", program.shell or ""), ("env", env)
    return (*command, *paths, ("transfers", files), ("stderr", program.stderr))


def _first_double(names: list[str]) -> str:
    return next(name for index, name in enumerate(names) if name in names[:index])
