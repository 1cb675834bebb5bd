"""
What a job is made of when it is submitted.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from domain.amounts import Count, Milli, TimeUs
from domain.event import Value
from domain.ids import Name

Text = Annotated[str, StringConstraints(max_length=4096)]
Path = Annotated[str, StringConstraints(max_length=4096)]
Tasks = Annotated[int, Field(ge=1, le=1_000_000)]


class EnvironmentVariable(Value):
    """
    Hold one variable of the job's environment.
    """

    name: Annotated[str, StringConstraints(min_length=1, max_length=1024)]
    value: Annotated[str, StringConstraints(max_length=131_072)]


class Program(Value):
    """
    Say what to run and where: an argument list, or a shell text when the job asked for a shell.

    Paths are "" when not given: standard input is then empty, and output goes to files in the
    worker's own directory.
    """

    argv: tuple[Annotated[str, StringConstraints(max_length=131_072)], ...] = ()
    shell: Annotated[str, StringConstraints(max_length=1_048_576)] | None = None
    cwd: Path = ""
    env: tuple[EnvironmentVariable, ...] = ()
    umask: Annotated[int, Field(ge=0, le=0o777)] | None = None
    stdin: Path = ""
    stdout: Path = ""
    stderr: Path = ""


class Need(Value):
    """
    Say how much of one resource the job reserves on each of its hosts.

    Args:
        resource: Its name.
        milli: Thousandths of the base unit.
        per_task: Whether the amount counts for each task; otherwise it counts once for each host.
    """

    resource: Name
    milli: Milli
    per_task: bool = False


class JobSpec(Value):
    """
    Hold a job as its user asked for it.

    Args:
        user: Who submitted it.
        queue: The queue it waits in.
        tasks_min: Fewest tasks it starts with.
        tasks_max: Most tasks it can use.
        resreq: Resource requirement as written, one text per option.
        needs: The amounts that the requirement reserves, parsed.
        run_limit_us: Wall-clock run limit without suspended time, None without a limit.
        run_estimate_us: The user's guess of the run time, for planning only.
    """

    user: Name
    group: str = ""
    queue: Name
    project: str = ""
    profile: str = ""
    name: Text = ""
    tasks_min: Tasks = 1
    tasks_max: Tasks = 1
    program: Program | None = None
    resreq: tuple[Text, ...] = ()
    needs: tuple[Need, ...] = ()
    user_priority: Count = 0
    run_limit_us: TimeUs | None = None
    run_estimate_us: TimeUs | None = None
    hold: bool = False
