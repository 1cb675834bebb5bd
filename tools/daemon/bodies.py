"""
What requests hold, and how what is wrong with one is told.
"""

from __future__ import annotations

import hashlib
from typing import Annotated

from pydantic import StringConstraints, ValidationError

from domain.amounts import Count, TimeUs
from domain.commands import SubmitJob
from domain.errors import Denied, Refused
from domain.event import Value
from domain.ids import NAME_PATTERN
from domain.jobs import HostChoice, JobSpec, Program, Tasks, Text

Key = Annotated[str, StringConstraints(max_length=128, pattern=r"^[\x21-\x7e]*$")]
NameOrNone = Annotated[str, StringConstraints(pattern=rf"^$|{NAME_PATTERN}")]
SHOWN_MAX = 200


class SubmitRequest(Value):
    """
    Ask for a job. What isn't given is the cluster's default, and the user is the caller.

    Args:
        key: A name of this submission: the same key with the same content gives the same job.
        user: Who submits; must be the caller, or "".
        queue: Where it waits; "" for the default queue.
        program: What to run; either argv or shell.
        resreq: Resource requirement, one text per option.
        hosts: The hosts asked for, all when empty.
        is_exclusive: Whether its hosts may run nothing else.
    """

    program: Program
    key: Key = ""
    user: NameOrNone = ""
    queue: NameOrNone = ""
    name: Text = ""
    project: NameOrNone = ""
    tasks_min: Tasks = 1
    tasks_max: Tasks | None = None
    resreq: tuple[Text, ...] = ()
    hosts: tuple[HostChoice, ...] = ()
    is_exclusive: bool = False
    user_priority: Count = 0
    run_limit_us: TimeUs | None = None
    run_estimate_us: TimeUs | None = None
    hold: bool = False


class CloseRequest(Value):
    """
    Ask to close a host, for those who ask later.
    """

    why: Annotated[str, StringConstraints(max_length=1024)] = ""


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
        raise refused_of(error) from None
    if asked.user not in ("", user):
        raise Denied("user", f"must be the caller, {user}", asked.user)
    _check_program(asked.program)
    try:
        spec = JobSpec(
            user=user,
            queue=asked.queue or default_queue,
            project=asked.project,
            name=asked.name,
            tasks_min=asked.tasks_min,
            tasks_max=asked.tasks_min if asked.tasks_max is None else asked.tasks_max,
            program=asked.program,
            resreq=asked.resreq,
            hosts=asked.hosts,
            is_exclusive=asked.is_exclusive,
            user_priority=asked.user_priority,
            run_limit_us=asked.run_limit_us,
            run_estimate_us=asked.run_estimate_us,
            hold=asked.hold,
        )
    except ValidationError as error:
        raise refused_of(error) from None
    if not asked.key:
        return SubmitJob(spec=spec)
    content = spec.__pydantic_serializer__.to_json(spec, exclude_defaults=True)
    return SubmitJob(spec=spec, key=asked.key, digest=hashlib.sha256(content).hexdigest()[:32])


def _check_program(program: Program) -> None:
    """
    Refuse a program that no worker could start.
    """
    if program.shell is None and not (program.argv and program.argv[0]):
        raise Refused("program.argv", "must name a program, or else program.shell be given")
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
    paths = ("cwd", program.cwd), ("stdin", program.stdin), ("stdout", program.stdout)
    command = ("argv", "".join(program.argv)), ("shell", program.shell or ""), ("env", env)
    return (*command, *paths, ("stderr", program.stderr))


def _first_double(names: list[str]) -> str:
    return next(name for index, name in enumerate(names) if name in names[:index])


def refused_of(error: ValidationError) -> Refused:
    """
    Return what pydantic found wrong first, as field and rule.
    """
    first = error.errors(include_url=False, include_context=False)[0]
    field = ".".join(str(part) for part in first["loc"]) or "body"
    value = first.get("input")
    shown = None if value is None or isinstance(value, dict | list) else str(value)[:SHOWN_MAX]
    return Refused(field, first["msg"][:SHOWN_MAX], shown)
