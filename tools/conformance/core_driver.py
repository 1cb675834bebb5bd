"""
Drive our own core for a trial: commands and reports in, sessions held, orders carried out at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from domain.commands import (
    JobFinishedReport,
    JobResumedReport,
    JobStartedReport,
    JobSuspendedReport,
)
from domain.envelope import Stamped
from domain.event import Event
from domain.events.jobs import (
    JobDispatched,
    JobKillOrdered,
    JobResumeOrdered,
    JobSignalOrdered,
    JobSuspendOrdered,
)
from domain.ids import job_stream
from projections.scheduling.core import Core
from projections.scheduling.records import JobRecord
from tools.conformance.trial import NotYet
from tools.conformance.values import Malformed

STEPS_MAX: Final = 10_000
ADMINISTRATOR: Final = "admin"


class CoreDriver:
    """
    Play users and workers to a core.

    Args:
        now_us: When it begins.

    ``ids`` has the job id of each job by the vector's name for it; ``signals``, ``victims``,
    ``kill_signals`` and ``started`` tell of the last cycle; ``kill_whys`` tells why jobs were last
    killed.
    """

    def __init__(self, now_us: int) -> None:
        self.now_us = now_us
        self.core = Core()
        self.ids: dict[str, str] = {}
        self.signals: dict[str, str] = {}
        self.victims: dict[str, list[str]] = {}
        self.kill_signals: list[str] = []
        self.started: list[str] = []
        self.kill_whys: dict[str, str] = {}

    def cycle(self) -> None:
        """
        Hold sessions until nothing more is decided; what they order is carried out at once.

        What a session takes from a lost host waits for the next cycle.
        """
        self.signals, self.victims, self.kill_signals, self.started = {}, {}, [], []
        stopping: list[JobRecord] = []
        for _ in range(STEPS_MAX):
            is_idle = not self._step(stopping) and not self.core.is_cut_short
            if is_idle or self.core.state.put_back:
                # Whoever preempts starts in the cycle after the one that stops its victims.
                for record in stopping:
                    self._report(JobSuspendedReport, record)
                return
        raise NotYet("a cycle that doesn't come to an end")

    def _until(self, is_reached: Callable[[], bool]) -> None:
        """
        Hold sessions of one decision each until something is so, or nothing more is decided.
        """
        while not is_reached():
            if not self._step() and not self.core.is_cut_short:
                return

    def _step(self, stopping: list[JobRecord] | None = None) -> bool:
        made = self.core.session(self.now_us)
        for stamped in made:
            self._carry_out(stamped, stopping)
        return bool(made)

    def _carry_out(self, stamped: Stamped, stopping: list[JobRecord] | None) -> None:
        """
        Do at once what a worker would do about a decision; but victims of preemption are put among
        those that are stopping.
        """
        event = stamped.event
        record = self.core.state.stored.jobs.get(stamped.stream)
        if record is None:
            return
        if isinstance(event, JobDispatched):
            self.started.append(self._name(record))
            self._started(record)
        elif isinstance(event, JobKillOrdered):
            self.kill_signals = list(event.signals)
            self.kill_whys[self._name(record)] = event.why
            self._report(JobFinishedReport, record, signal=9)
        elif isinstance(event, JobSuspendOrdered):
            self.signals[self._name(record)] = event.signal
            if event.preemptor:
                preemptor = self.core.state.stored.jobs[job_stream(event.preemptor)]
                self.victims.setdefault(self._name(preemptor), []).append(self._name(record))
            if event.preemptor and stopping is not None:
                stopping.append(record)
            else:
                self._report(JobSuspendedReport, record)
        elif isinstance(event, JobSignalOrdered):
            self.signals[self._name(record)] = event.signal.value
        elif isinstance(event, JobResumeOrdered):
            self.signals[self._name(record)] = "SIGCONT"
            self._report(JobResumedReport, record)

    # -- one at a time

    def _command(self, command: Any, by: str = ADMINISTRATOR) -> list[Stamped]:
        found = self.core.handle(command, actor=by, now_us=self.now_us)
        return self.core.take(found, actor=by, cause="", now_us=self.now_us) if found else []

    def _decide(self, stream: str, event: Event) -> None:
        """
        Let an event happen as if a session had decided so.
        """
        self.core.take([(stream, event)], actor="", cause="", now_us=self.now_us)

    def _command_order(self, record: JobRecord, event: Callable[..., Event], **more: str) -> None:
        """
        Give a job's worker an order, by the same event as if a session had decided so.
        """
        assert record.allocation is not None, record.stream
        worker = self.core.state.hosts[record.allocation.runs[0].first]
        number = worker.last_order + 1
        order = event(attempt=record.attempt, worker=worker.name, order_number=number, **more)
        self._decide(record.stream, order)

    def _report(self, report: Callable[..., Any], record: JobRecord, **more: Any) -> None:
        if record.allocation is None:
            raise Malformed(f"{self._name(record)} doesn't run: no host can report of it")
        worker = self.core.state.hosts[record.allocation.runs[0].first]
        about = {
            "worker": worker.name,
            "incarnation": worker.incarnation,
            "job_id": record.job_id,
            "attempt": record.attempt,
        }
        self._command(report(**about, **more), "")

    def _started(self, record: JobRecord) -> None:
        self._report(JobStartedReport, record)

    def _name(self, record: JobRecord) -> str:
        return next(name for name, job_id in self.ids.items() if job_id == record.job_id)

    def _record(self, name: str) -> JobRecord:
        return self.core.state.stored.jobs[job_stream(self.ids[name])]
