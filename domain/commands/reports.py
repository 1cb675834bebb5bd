"""
What workers tell, and what the driver notices about them.

A report names its worker and incarnation, one about a job also the attempt: whatever is stale
changes nothing.
"""

from __future__ import annotations

from domain.amounts import Amount, Attribute, Count, HostResource, TimeUs
from domain.event import Value
from domain.events.jobs import AttemptNumber
from domain.events.workers import Incarnation, JobUsage
from domain.ids import JobId, Name
from domain.jobs import HostFault, PreExecOf
from domain.lines import Why


class JoinWorker(Value):
    """
    Ask to join the cluster, or to join it again in a new incarnation.
    """

    worker: Name
    slots: Count
    resources: tuple[HostResource, ...] = ()
    attributes: tuple[Attribute, ...] = ()


class LeaveWorker(Value):
    """
    Tell that the worker's agent ends in good order.
    """

    worker: Name
    incarnation: Incarnation


class MarkUnreachable(Value):
    """
    Tell that a worker has been silent for too long; from the driver.
    """

    worker: Name
    incarnation: Incarnation
    silent_us: TimeUs


class WorkerReport(Value):
    """
    Tell what the worker measured: load and its jobs' usage together.

    Args:
        is_blind: Whether it lives and can't measure its load.
    """

    worker: Name
    incarnation: Incarnation
    load: tuple[Amount, ...] = ()
    jobs: tuple[JobUsage, ...] = ()
    is_blind: bool = False


class JobStartedReport(Value):
    """
    Tell that an attempt was started.
    """

    worker: Name
    incarnation: Incarnation
    job_id: JobId
    attempt: AttemptNumber
    pid: Count = 0
    process_group: Count = 0


class JobCouldNotStartReport(Value):
    """
    Tell that an attempt couldn't be started, and why.

    Args:
        pre_exec_of: Whose command before the job's own failed, "" when none did.
        pre_exec_exit: What that returned.
        fault: What of the host kept it from starting, "" when that was the job's own doing.
    """

    worker: Name
    incarnation: Incarnation
    job_id: JobId
    attempt: AttemptNumber
    why: Why
    pre_exec_of: PreExecOf = ""
    pre_exec_exit: Count = 0
    fault: HostFault = ""


class JobFinishedReport(Value):
    """
    Tell that an attempt ended.
    """

    worker: Name
    incarnation: Incarnation
    job_id: JobId
    attempt: AttemptNumber
    exit_code: int | None = None
    signal: int | None = None
    cpu_us: TimeUs = 0
    max_rss_kib: TimeUs = 0


class JobSuspendedReport(Value):
    """
    Tell that an attempt was stopped as ordered.
    """

    worker: Name
    incarnation: Incarnation
    job_id: JobId
    attempt: AttemptNumber


class JobResumedReport(Value):
    """
    Tell that an attempt goes on as ordered.
    """

    worker: Name
    incarnation: Incarnation
    job_id: JobId
    attempt: AttemptNumber


class OrderDoneReport(Value):
    """
    Tell that an order was carried out.
    """

    worker: Name
    incarnation: Incarnation
    order_number: int
    outcome: Why = ""
