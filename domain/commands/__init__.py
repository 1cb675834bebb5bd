"""
Requests to change something, and reports of workers; each can be refused.
"""

from domain.commands.jobs import (
    HoldJob,
    KillJob,
    LiftHold,
    ModifyJob,
    MoveJob,
    RequeueJob,
    ResumeJob,
    StopJob,
    SubmitJob,
    SwitchJob,
)
from domain.commands.reports import (
    JobCouldNotStartReport,
    JobFinishedReport,
    JobResumedReport,
    JobStartedReport,
    JobSuspendedReport,
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
    DefineResource,
    OpenWorker,
    SetQueue,
    StartScheduler,
    StopScheduler,
)

__all__ = [
    "CloseWorker",
    "DefineCluster",
    "DefineQueue",
    "DefineResource",
    "HoldJob",
    "JobCouldNotStartReport",
    "JobFinishedReport",
    "JobResumedReport",
    "JobStartedReport",
    "JobSuspendedReport",
    "JoinWorker",
    "KillJob",
    "LeaveWorker",
    "LiftHold",
    "MarkUnreachable",
    "ModifyJob",
    "MoveJob",
    "OpenWorker",
    "OrderDoneReport",
    "RequeueJob",
    "ResumeJob",
    "SetQueue",
    "StartScheduler",
    "StopJob",
    "StopScheduler",
    "SubmitJob",
    "SwitchJob",
    "WorkerReport",
]
