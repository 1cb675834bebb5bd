"""
What a job is made of when it is submitted.
"""

from __future__ import annotations

from collections.abc import Iterable
from shlex import quote
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from domain.amounts import Count, Milli, TimeUs
from domain.arrays import ArraySpec
from domain.dependency.syntax import Dependency
from domain.event import Value
from domain.ids import MaybeName, MaybePath, Name
from domain.lines import Line
from domain.resreq.syntax import Per, Requirement

Text = Annotated[str, StringConstraints(max_length=4096)]
Path = Annotated[str, StringConstraints(max_length=4096)]
Shell = Annotated[str, StringConstraints(max_length=65_536)]
Tasks = Annotated[int, Field(ge=1, le=1_000_000)]


PreExecOf = Literal["", "queue", "profile", "job"]
"""Who says what runs before a job's own command; "" for nobody."""


HostFault = Literal["", "memory", "host"]
"""What of a host kept a job from starting there: it had no memory, or failed otherwise; "" for
nothing."""


class EnvironmentVariable(Value):
    """
    Hold one variable of the job's environment.
    """

    name: Annotated[str, StringConstraints(min_length=1, max_length=1024)]
    value: Annotated[str, StringConstraints(max_length=131_072)]


FilePath = Annotated[str, StringConstraints(min_length=1, max_length=4096)]


class FileTransfer(Value):
    """
    Say which file to copy between where a job was submitted and where it runs (LSF's -f).

    Relative paths count from the job's directory; one that is the same file isn't copied.

    Args:
        op: ``>`` copies *local* to *remote* before the command, ``<`` copies *remote* to *local*
            after it, ``<<`` appends it there; ``<>`` does both.
    """

    local: FilePath
    op: Literal[">", "<", "<<", "<>"]
    remote: FilePath

    def text(self) -> str:
        """
        Return it as -f takes it.
        """
        return f"{self.local} {self.op} {self.remote}"

    def before(self) -> str:
        """
        Return the shell text that does it before the command, "" when there is none.
        """
        return _copy(self.local, self.remote) if self.op in (">", "<>") else ""

    def after(self) -> str:
        """
        Return the same of after it.
        """
        if self.op == "<<":
            return f"cat -- {quote(self.remote)} >> {quote(self.local)}"
        return _copy(self.remote, self.local) if self.op in ("<", "<>") else ""


def _copy(source: str, target: str) -> str:
    first, second = quote(source), quote(target)
    return f"[ {first} -ef {second} ] || cp -- {first} {second}"


class Program(Value):
    """
    Say what to run and where: an argument list, or a shell text when the job asked for a shell.

    Paths are "" when not given: standard input is then empty, and output goes to files in the
    worker's own directory.

    Args:
        pre_exec: A shell text that must succeed before it; on failure the job is tried elsewhere.
        post_exec: A shell text that is run after it, however it ended.
        transfers: Files to copy before it and after it.
    """

    argv: tuple[Annotated[str, StringConstraints(max_length=131_072)], ...] = ()
    shell: Annotated[str, StringConstraints(max_length=1_048_576)] | None = None
    cwd: Path = ""
    env: tuple[EnvironmentVariable, ...] = ()
    umask: Annotated[int, Field(ge=0, le=0o777)] | None = None
    stdin: Path = ""
    stdout: Path = ""
    stderr: Path = ""
    pre_exec: Shell = ""
    post_exec: Shell = ""
    transfers: Annotated[tuple[FileTransfer, ...], Field(max_length=100)] = ()


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


class HostChoice(Value):
    """
    Hold one host that a job asks for.

    Args:
        preference: Hosts of a higher one come first.
        is_first: Whether it may be the host that runs the job's command; where some hosts are
            marked so, one of them must be.
    """

    host: Name
    preference: Count = 0
    is_first: bool = False

    def text(self) -> str:
        """
        Return it as -m takes it.
        """
        wish = f"+{self.preference}" if self.preference else ""
        return f"{self.host}{'!' if self.is_first else ''}{wish}"


class WantedHost(Value):
    """
    Name a host to run on, and with how many tasks; None for one, or for all that are left where it
    is the only such host.
    """

    host: Name
    tasks: Tasks | None = None


class HostTasks(Value):
    """
    Say how many tasks of a job a host is to carry.
    """

    host: Name
    tasks: Tasks

    def text(self) -> str:
        """
        Return it as LSF writes it: "2*h1".
        """
        return f"{self.tasks}*{self.host}"


def hosts_text(hosts: Iterable[HostTasks]) -> str:
    """
    Return several as they stand side by side: "2*h1 1*h2".
    """
    return " ".join(each.text() for each in hosts)


class JobLimits(Value):
    """
    Hold what an attempt may use at most; None where nothing is limited. They kill, they don't
    reserve.

    Args:
        memory_kib: Memory of all its processes on a host.
        swap_kib: Swap space of them.
        cpu_us: Processor time of them.
        processes: How many there may be at a time.
        threads: How many threads they may have.
        file_kib: Size of each file that they write.
    """

    memory_kib: Count | None = None
    swap_kib: Count | None = None
    cpu_us: TimeUs | None = None
    processes: Count | None = None
    threads: Count | None = None
    file_kib: Count | None = None


ExitValue = Annotated[int, Field(ge=0, le=255)]


class ExitRules(Value):
    """
    Say what exit values mean.

    Args:
        requeue: The job goes back to pending.
        exclude: The same, and the host where it ended so is avoided, unless it had several tasks.
        success: The job is DONE.
        requeue_max: So often at most it goes back by its exit value, None for ever.
    """

    requeue: tuple[ExitValue, ...] = ()
    exclude: tuple[ExitValue, ...] = ()
    success: tuple[ExitValue, ...] = ()
    requeue_max: Count | None = None


class JobSpec(Value):
    """
    Hold a job as its user asked for it.

    Args:
        user: Who submitted it.
        queue: The queue it waits in.
        tasks_min: Fewest tasks it starts with.
        tasks_max: Most tasks it can use.
        names_tasks: Whether one task was asked for, as against nothing said of tasks; any other
            count says so by itself.
        resreq: Resource requirement as written, one text per option.
        requirement: The same parsed and checked, None without one; who makes a job without texts
            may give it alone.
        hosts: The hosts asked for, all when empty.
        submit_type: Type of the host it was submitted from, "" when unknown; so submit_model.
        is_exclusive: Whether its hosts may run nothing else.
        run_limit_us: Wall-clock run limit without suspended time, None without a limit.
        run_estimate_us: The user's guess of the run time, for planning only.
        array: What makes it an array, None for a single job.
        dependency_text: On which jobs it waits, as written.
        dependency: The same parsed, its parents bound when it was submitted.
        begin_us: It doesn't start before this moment.
        deadline_us: It is ended at this moment, and not started when it couldn't finish before.
        limits: What an attempt may use at most.
        exits: What its exit values mean; the queue's rules when None.
        rerunnable: Whether it starts anew when its host is lost; the queue's rule when None.
        ends_as_orphan: Whether it ends when its dependency can never become true; the cluster's
            rule when None.
    """

    user: Name
    group: MaybeName = ""
    queue: Name
    project: MaybePath = ""
    profile: MaybeName = ""
    name: Text = ""
    tasks_min: Tasks = 1
    tasks_max: Tasks = 1
    program: Program | None = None
    resreq: tuple[Text, ...] = ()
    requirement: Requirement | None = None
    hosts: tuple[HostChoice, ...] = ()
    submit_type: Line = ""
    submit_model: Line = ""
    is_exclusive: bool = False
    user_priority: Count = 0
    run_limit_us: TimeUs | None = None
    run_estimate_us: TimeUs | None = None
    hold: bool = False
    array: ArraySpec | None = None
    dependency_text: Text = ""
    dependency: Dependency | None = None
    begin_us: TimeUs | None = None
    deadline_us: TimeUs | None = None
    limits: JobLimits | None = None
    exits: ExitRules | None = None
    rerunnable: bool | None = None
    ends_as_orphan: bool | None = None
    names_tasks: bool = False

    @property
    def needs(self) -> tuple[Need, ...]:
        """
        Return the amounts that a simple requirement reserves, those of its first alternative.
        """
        if self.requirement is None or not self.requirement.is_simple:
            return ()
        usages = self.requirement.only.rusage
        return tuple(
            Need(resource=term.resource, milli=term.milli, per_task=term.per is Per.TASK)
            for term in (usages[0] if usages else ())
        )
