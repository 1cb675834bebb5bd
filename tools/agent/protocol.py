"""
What a worker's agent and the scheduler say to each other over HTTP.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from domain.amounts import Amount, Count, TimeUs
from domain.event import Value
from domain.events.jobs import AttemptNumber
from domain.events.workers import Incarnation, JobUsage
from domain.ids import JobId, Name
from domain.jobs import HostFault, PreExecOf, Program


class JoinAnswer(Value):
    """
    Say that the worker has joined, and in which incarnation.
    """

    worker: Name
    incarnation: Incarnation
    host_number: int
    log_id: str
    position: int


class HostShare(Value):
    """
    Say how many tasks of a job a host carries.
    """

    host: Name
    tasks: int


class Assignment(Value):
    """
    Say what the worker must start once, and the capability that its reports about it carry.

    Args:
        pre_exec: Shell texts that must succeed before it, each with who says so.
        post_exec: Shell texts to run after it.
        nice: How much lower than the worker's the priority of its processes is.
        file_kib: How large a file of it may become, None for any size.
    """

    job_id: JobId
    attempt: AttemptNumber
    capability: str
    program: Program | None
    hosts: tuple[HostShare, ...]
    queue: Name
    user: Name
    name: str = ""
    pre_exec: tuple[tuple[PreExecOf, str], ...] = ()
    post_exec: tuple[str, ...] = ()
    nice: int = 0
    file_kib: Count | None = None


class Order(Value):
    """
    Say what the worker must do to an attempt, once.
    """

    order_number: int
    kind: Literal["kill", "suspend", "resume", "signal"]
    job_id: JobId
    attempt: AttemptNumber
    why: str
    signal: str = ""
    signals: tuple[str, ...] = ()


class WorkAnswer(Value):
    """
    Hold what there is to do.

    Args:
        revision: When it last changed; to be given with the next question.
        is_full: Whether *assignments* are all there are; otherwise only those since the revision
            asked from.
    """

    revision: int
    position: int
    is_full: bool
    assignments: tuple[Assignment, ...]
    orders: tuple[Order, ...]


class AttemptReport(Value):
    """
    Be the base of what is told about one attempt.
    """

    job_id: JobId
    attempt: AttemptNumber
    capability: str


class Started(AttemptReport):
    """
    Tell that an attempt was started.
    """

    kind: Literal["started"] = "started"
    pid: Count = 0
    process_group: Count = 0


class CouldNotStart(AttemptReport):
    """
    Tell that an attempt couldn't be started, and why; *fault* tells what of the host kept it from
    starting.
    """

    kind: Literal["could_not_start"] = "could_not_start"
    why: Annotated[str, Field(max_length=1024)]
    pre_exec_of: PreExecOf = ""
    pre_exec_exit: Count = 0
    fault: HostFault = ""


class Finished(AttemptReport):
    """
    Tell that an attempt ended; neither code nor signal means that nobody knows how.
    """

    kind: Literal["finished"] = "finished"
    exit_code: int | None = None
    signal: int | None = None
    cpu_us: TimeUs = 0
    max_rss_kib: TimeUs = 0


class Suspended(AttemptReport):
    """
    Tell that an attempt was stopped as ordered.
    """

    kind: Literal["suspended"] = "suspended"


class Resumed(AttemptReport):
    """
    Tell that an attempt goes on as ordered.
    """

    kind: Literal["resumed"] = "resumed"


class Usage(Value):
    """
    Tell what was measured: the host's load and its jobs' use together.

    Args:
        is_blind: Whether nothing could be measured.
    """

    kind: Literal["usage"] = "usage"
    load: tuple[Amount, ...] = ()
    jobs: tuple[JobUsage, ...] = ()
    is_blind: bool = False


class OrderDone(Value):
    """
    Tell that an order was carried out.
    """

    kind: Literal["order_done"] = "order_done"
    order_number: int
    outcome: Annotated[str, Field(max_length=1024)] = ""


Report = Annotated[
    Started | CouldNotStart | Finished | Suspended | Resumed | Usage | OrderDone,
    Field(discriminator="kind"),
]


class ReportsRequest(Value):
    """
    Hold what a worker tells in one go, in order.
    """

    incarnation: Incarnation
    reports: tuple[Report, ...]


class ReportResult(Value):
    """
    Say what became of one report: taken, or ignored for good.
    """

    ok: bool
    ignored: str = ""


class ReportsAnswer(Value):
    """
    Answer reports, in their order, after they are synced.
    """

    position: int
    results: tuple[ReportResult, ...]


class LeaveRequest(Value):
    """
    Tell that the agent ends in good order.
    """

    incarnation: Incarnation
