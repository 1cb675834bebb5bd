"""
What a worker's agent tells: joining, reports about its attempts, leaving.
"""

from __future__ import annotations

from pydantic_core import to_json

from domain.commands import (
    JobCouldNotStartReport,
    JobFinishedReport,
    JobResumedReport,
    JobStartedReport,
    JobSuspendedReport,
    JoinWorker,
    LeaveWorker,
    OrderDoneReport,
    WorkerReport,
)
from domain.errors import Conflict, Denied, Refused
from domain.event import Value
from domain.events.refusals import ReportIgnored
from replay.engine import Engine
from tools.agent.protocol import (
    AttemptReport,
    CouldNotStart,
    Finished,
    OrderDone,
    Report,
    ReportsRequest,
    Resumed,
    Started,
    Suspended,
    Usage,
)
from tools.daemon.access import Caller
from tools.daemon.capability import is_capability
from tools.daemon.requests import Reply, Request


class WorkerRequest(Request):
    """
    Be a request of a worker's agent.

    Args:
        worker: The worker's name.
    """

    __slots__ = ("worker",)

    changes = True

    def __init__(self, worker: str) -> None:
        super().__init__()
        self.worker = worker


class Join(WorkerRequest):
    """
    Ask to join.
    """

    __slots__ = ("caller", "command")

    def __init__(self, command: JoinWorker, caller: Caller) -> None:
        super().__init__(command.worker)
        self.command = command
        self.caller = caller

    def take(self, engine: Engine, now_us: int) -> None:
        """
        Begin the worker's next incarnation.
        """
        engine.accept(self.command, actor=self.caller.user, now_us=now_us)

    def answer(self, engine: Engine) -> Reply:
        """
        Tell the incarnation, which every report names, and which log this is.
        """
        worker = engine.core.state.worker(self.worker)
        return Reply(
            200,
            to_json(
                {
                    "worker": worker.name,
                    "incarnation": worker.incarnation,
                    "host_number": worker.number,
                    "log_id": engine.log.log_id,
                    "position": engine.position,
                }
            ),
        )


class Reports(WorkerRequest):
    """
    Tell several things at once, in order.

    Args:
        key: The cluster's secret key: a report about an attempt carries its capability.
    """

    __slots__ = ("_key", "_results", "asked", "caller")

    def __init__(self, worker: str, asked: ReportsRequest, caller: Caller, key: bytes) -> None:
        super().__init__(worker)
        self.asked = asked
        self.caller = caller
        self._key = key
        self._results: list[str] = []

    def take(self, engine: Engine, now_us: int) -> None:
        """
        Accept each report; a stale one is recorded as ignored and changes nothing.

        Raises:
            Conflict: The worker has joined again since: nothing of its former life counts.
        """
        current = engine.core.state.worker(self.worker).incarnation
        for report in self.asked.reports:
            self._results.append(self._take_one(engine, report, now_us))
            if current != self.asked.incarnation:
                raise Conflict(
                    "incarnation of the worker",
                    self.asked.incarnation,
                    current,
                    "Another agent has joined under this name.",
                )

    def _take_one(self, engine: Engine, report: Report, now_us: int) -> str:
        """
        Return why the report was ignored, "" when it was taken.
        """
        command = command_of(report, self.worker, self.asked.incarnation)
        if isinstance(report, AttemptReport) and not is_capability(
            self._key, report.capability, report.job_id, report.attempt, self.worker
        ):
            wrong = Denied("capability", "must be the attempt's own", hint="It came with the work.")
            engine.refuse(command, wrong, actor=self.caller.user, now_us=now_us)
            return "capability: must be the attempt's own"
        try:
            found = engine.accept(command, actor="", now_us=now_us)
        except Refused as error:
            # Told for this report alone: the agent would otherwise repeat all of them for ever.
            engine.refuse(command, error, actor=self.caller.user, now_us=now_us)
            return error.text()
        ignored = [event.why for event in found.events if isinstance(event, ReportIgnored)]
        return ignored[0] if ignored else ""

    def answer(self, engine: Engine) -> Reply:
        """
        Tell what became of each report.
        """
        results = [{"ok": not why, "ignored": why} for why in self._results]
        return Reply(200, to_json({"position": engine.position, "results": results}))


class Leave(WorkerRequest):
    """
    Tell that the agent ends in good order.
    """

    __slots__ = ("incarnation",)

    def __init__(self, worker: str, incarnation: int) -> None:
        super().__init__(worker)
        self.incarnation = incarnation

    def take(self, engine: Engine, now_us: int) -> None:
        """
        Let it go.
        """
        command = LeaveWorker(worker=self.worker, incarnation=self.incarnation)
        engine.accept(command, actor="", now_us=now_us)

    def answer(self, engine: Engine) -> Reply:
        """
        Tell where that is recorded.
        """
        return Reply(200, to_json({"position": engine.position}))


def command_of(report: Report, worker: str, incarnation: int) -> Value:
    """
    Return the report as the core takes it.
    """
    if isinstance(report, Usage):
        return WorkerReport(
            worker=worker,
            incarnation=incarnation,
            load=report.load,
            jobs=report.jobs,
            is_blind=report.is_blind,
        )
    if isinstance(report, OrderDone):
        return OrderDoneReport(
            worker=worker,
            incarnation=incarnation,
            order_number=report.order_number,
            outcome=report.outcome,
        )
    return _about_attempt(report, worker, incarnation)


def _about_attempt(
    report: Started | CouldNotStart | Finished | Suspended | Resumed, worker: str, incarnation: int
) -> Value:
    job_id, attempt = report.job_id, report.attempt
    if isinstance(report, Suspended | Resumed):
        moved = JobSuspendedReport if isinstance(report, Suspended) else JobResumedReport
        return moved(worker=worker, incarnation=incarnation, job_id=job_id, attempt=attempt)
    if isinstance(report, Started):
        return JobStartedReport(
            worker=worker,
            incarnation=incarnation,
            job_id=job_id,
            attempt=attempt,
            pid=report.pid,
            process_group=report.process_group,
        )
    if isinstance(report, CouldNotStart):
        return JobCouldNotStartReport(
            worker=worker,
            incarnation=incarnation,
            job_id=job_id,
            attempt=attempt,
            why=report.why,
            pre_exec_of=report.pre_exec_of,
            pre_exec_exit=report.pre_exec_exit,
            fault=report.fault,
        )
    return JobFinishedReport(
        worker=worker,
        incarnation=incarnation,
        job_id=job_id,
        attempt=attempt,
        exit_code=report.exit_code,
        signal=report.signal,
        cpu_us=report.cpu_us,
        max_rss_kib=report.max_rss_kib,
    )
