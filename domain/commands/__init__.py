"""
Requests to change something, and reports of workers; each can be refused.
"""

from domain.commands.jobs import HoldJob, KillJob, LiftHold, SubmitJob
from domain.commands.reports import (
    JobCouldNotStartReport,
    JobFinishedReport,
    JobStartedReport,
    JoinWorker,
    LeaveWorker,
    MarkUnreachable,
    OrderDoneReport,
    WorkerReport,
)
from domain.commands.settings import (
    CloseWorker,
    DefineCluster,
    DefineQueue,
    OpenWorker,
    SetQueue,
    StartScheduler,
    StopScheduler,
)

__all__ = [
    "CloseWorker",
    "DefineCluster",
    "DefineQueue",
    "HoldJob",
    "JobCouldNotStartReport",
    "JobFinishedReport",
    "JobStartedReport",
    "JoinWorker",
    "KillJob",
    "LeaveWorker",
    "LiftHold",
    "MarkUnreachable",
    "OpenWorker",
    "OrderDoneReport",
    "SetQueue",
    "StartScheduler",
    "StopScheduler",
    "SubmitJob",
    "WorkerReport",
]
