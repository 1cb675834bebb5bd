"""
Take the parent's inputs over into a branch, each at its time, as long as it still fits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, final

from domain.amounts import Amount
from domain.commands import (
    CloseWorker,
    DrainWorker,
    HoldJob,
    JoinWorker,
    KillJob,
    LeaveWorker,
    LiftHold,
    MarkUnreachable,
    ModifyJob,
    OpenWorker,
    OrderDoneReport,
    RequeueJob,
    ResumeJob,
    RunJob,
    SignalJob,
    StopJob,
    SubmitJob,
    SwitchJob,
    WorkerReport,
)
from domain.commands.policies import (
    DefineGroup,
    DefineLimit,
    DefineProfile,
    DefineProject,
    DefineUser,
    RemoveGroup,
    RemoveLimit,
    RemoveProfile,
    RemoveProject,
    RemoveQueue,
    RemoveUser,
)
from domain.envelope import Envelope
from domain.errors import Conflict, Refused
from domain.event import Event
from domain.events import (
    groups,
    jobs,
    limits,
    profiles,
    projects,
    queues,
    refusals,
    scheduler,
    users,
    workers,
)
from domain.ids import entity_of_stream, job_of_stream, job_stream_of
from domain.job_states import ENDED
from domain.jobs import WantedHost
from projections.scheduling.core import Core
from replay.branch_changes import AddedInput, Changes
from replay.engine import Engine
from replay.parent import JOB_REPORTS

NOT_TAKEN_KEPT: Final = 20


@final
@dataclass(frozen=True, slots=True)
class NotTaken:
    """
    Name an input that no longer fits, or that was told to be left out.

    Args:
        position: Of its event; 0 for an added command.
        what: Its type code, or the class of the command.
        why: Why it isn't in the branch.
        kind: What kind of entity it is about, "" for an added command.
        name: Which one.
    """

    position: int
    what: str
    why: str
    kind: str = ""
    name: str = ""


@final
class BranchEngine(Engine):
    """
    Be an engine that also takes inputs which were accepted in the parent.
    """

    def take(
        self, found: list[tuple[str, Event]], *, actor: str, cause: str, now_us: int
    ) -> None:
        """
        Take events in as they are.
        """
        self._take(found, actor=actor, cause=cause, now_us=now_us)


@final
class Inputs:
    """
    Take inputs over.

    Args:
        engine: Takes them.
        changes: What is different in the branch.
        job_number: The greatest number of a job in either past or future of the parent.

    ``is_dirty`` says that something was taken since it was last cleared; ``has_left`` that the
    branch need not be like the parent any more.
    """

    def __init__(self, engine: BranchEngine, changes: Changes, job_number: int) -> None:
        self._engine = engine
        self._changes = changes
        self._job_number = job_number
        self.is_dirty = bool(changes)
        self.has_left = bool(changes)
        self.not_taken: list[NotTaken] = []
        self.not_taken_count = 0

    @property
    def _core(self) -> Core:
        return self._engine.core

    def add(self, added: AddedInput, now_us: int) -> None:
        """
        Take in a command that isn't in the parent.
        """
        self.is_dirty = True
        try:
            if isinstance(added.command, SubmitJob):
                self._job_number += 1
                stream = job_stream_of(self._job_number)
                self._submit(stream, added.command, added.actor, "", now_us)
            else:
                self._engine.accept(added.command, actor=added.actor, now_us=now_us)
        except (Refused, Conflict) as error:
            self._note(NotTaken(0, type(added.command).__name__, error.text()))

    def _submit(
        self, stream: str, command: SubmitJob, actor: str, cause: str, now_us: int
    ) -> None:
        """
        Check a submission as ever, but keep its number: jobs are called the same in both futures.
        """
        found = self._core.handle(command, actor=actor, now_us=now_us)
        if found:
            events = [(stream, found[-1][1])]
            self._engine.take(events, actor=actor, cause=cause, now_us=now_us)

    def take_step(self, step: list[Envelope], now_us: int) -> None:
        """
        Take over one recorded input.
        """
        last = step[-1]
        if any(one.position in self._changes.dropped for one in step):
            self._leave_out(last, "it was to be dropped")
            return
        if isinstance(last.event, JOB_REPORTS):
            self._reach_again(step, now_us)
            return
        self.is_dirty = True
        try:
            self._take_input(step, now_us)
        except (Refused, Conflict) as error:
            self._leave_out(last, error.text())

    def _take_input(self, step: list[Envelope], now_us: int) -> None:
        last = step[-1]
        if isinstance(last.event, jobs.JobSubmitted) and len(step) == 1:
            event = last.event
            command = SubmitJob(spec=event.spec, key=event.key, digest=event.digest)
            self._submit(last.stream, command, last.actor, last.cause, now_us)
            return
        again = self._command_of(last)
        if again is None:
            self._take_as_it_is(step, now_us)
            return
        if isinstance(again, WorkerReport) and self.has_left:
            again = again.model_copy(update={"load": self._unloaded(again)})
        self._take_if_it_fits(again, last, now_us)

    def _take_if_it_fits(self, command: Any, last: Envelope, now_us: int) -> None:
        """
        Accept a command; one that would now only be ignored is left out.
        """
        found = self._core.handle(command, actor=last.actor, now_us=now_us)
        if found and isinstance(found[-1][1], refusals.ReportIgnored):
            self._leave_out(last, found[-1][1].why)
        elif found:
            self._engine.take(found, actor=last.actor, cause=last.cause, now_us=now_us)

    def _take_as_it_is(self, step: list[Envelope], now_us: int) -> None:
        """
        Take over events that no command stands for; settings with the branch's changes.
        """
        found: list[tuple[str, Event]] = []
        for envelope in step:
            event = envelope.event
            if envelope.stream.startswith("job:") and not isinstance(event, jobs.JobSubmitted):
                job = self._core.state.stored.jobs.get(envelope.stream)
                if job is None or job.state in ENDED:
                    raise Refused("job_id", "must not have ended", job_of_stream(envelope.stream))
            if isinstance(event, scheduler.ClusterDefined):
                event = event.model_copy(update={"settings": self._changes.cluster(event.settings)})
            elif isinstance(event, queues.QueueDefined):
                name = entity_of_stream(envelope.stream)[1]
                event = event.model_copy(update={"spec": self._changes.queue(name, event.spec)})
            found.append((envelope.stream, event))
        last = step[-1]
        self._engine.take(found, actor=last.actor, cause=last.cause, now_us=now_us)

    def _reach_again(self, step: list[Envelope], now_us: int) -> None:
        """
        Reach a silent host again where the parent did so by a job's report that isn't made here.
        """
        for envelope in step[:-1]:
            if not isinstance(envelope.event, workers.WorkerCameBack):
                continue
            name = entity_of_stream(envelope.stream)[1]
            worker = self._core.state.stored.workers.get(name)
            if worker is not None and worker.is_silent:
                report = WorkerReport(worker=name, incarnation=worker.incarnation)
                self._engine.accept(report, actor="", now_us=now_us)
                self.is_dirty = True

    def _unloaded(self, report: WorkerReport) -> tuple[Amount, ...]:
        """
        Return the load of a host on which only the branch's own jobs run: what was measured in the
        parent was measured beside other jobs.
        """
        worker = self._core.state.stored.workers.get(report.worker)
        totals = {one.name: one.total_milli for one in worker.resources} if worker else {}
        return tuple(
            Amount(resource=one.resource, milli=totals.get(one.resource, one.milli))
            for one in report.load
        )

    def _command_of(self, envelope: Envelope) -> Any:
        """
        Return the command that an input came from, None where its events say it all.
        """
        if not isinstance(envelope.event, workers.WorkerBecameUnreachable):
            return command_of(envelope)
        name = entity_of_stream(envelope.stream)[1]
        worker = self._core.state.worker(name)
        return MarkUnreachable(
            worker=name, incarnation=worker.incarnation, silent_us=envelope.event.silent_us
        )

    def _leave_out(self, last: Envelope, why: str) -> None:
        """
        Note that a recorded input wasn't taken.
        """
        kind, name = entity_of_stream(last.stream)
        self._note(NotTaken(last.position, last.event.TYPE_CODE, why, kind, name))

    def _note(self, one: NotTaken) -> None:
        self.not_taken_count += 1
        if len(self.not_taken) < NOT_TAKEN_KEPT:
            self.not_taken.append(one)


def command_of(envelope: Envelope) -> Any:
    """
    Return the command that an input came from, None where its events say it all.
    """
    make = _COMMANDS.get(type(envelope.event))
    return None if make is None else make(entity_of_stream(envelope.stream)[1], envelope.event)


_COMMANDS: Final[dict[type[Event], Callable[[str, Any], Any]]] = {
    jobs.JobHeld: lambda name, _: HoldJob(job_id=name),
    jobs.JobHoldLifted: lambda name, _: LiftHold(job_id=name),
    jobs.JobKillRequested: lambda name, event: KillJob(job_id=name, force=event.force),
    jobs.JobSignalRequested: lambda name, event: SignalJob(job_id=name, signal=event.signal),
    jobs.JobRunRequested: lambda name, event: RunJob(
        job_id=name,
        hosts=tuple(WantedHost(host=each.host, tasks=each.tasks) for each in event.hosts),
    ),
    jobs.JobStopRequested: lambda name, _: StopJob(job_id=name),
    jobs.JobResumeRequested: lambda name, _: ResumeJob(job_id=name),
    jobs.JobRequeueRequested: lambda name, event: RequeueJob(job_id=name, hold=event.hold),
    jobs.JobSwitched: lambda name, event: SwitchJob(job_id=name, queue=event.queue),
    jobs.JobModified: lambda name, event: ModifyJob(job_id=name, spec=event.spec),
    workers.WorkerJoined: lambda name, event: JoinWorker(
        worker=name, slots=event.slots, resources=event.resources, attributes=event.attributes
    ),
    workers.WorkerLeft: lambda name, event: LeaveWorker(
        worker=name, incarnation=event.incarnation
    ),
    workers.WorkerReported: lambda name, event: WorkerReport(
        worker=name, incarnation=event.incarnation, load=event.load, jobs=event.jobs
    ),
    workers.WorkerOrderDone: lambda name, event: OrderDoneReport(
        worker=name, incarnation=event.incarnation, order_number=event.order_number,
        outcome=event.outcome,
    ),
    workers.WorkerDrained: lambda name, event: DrainWorker(worker=name, why=event.why),
    workers.WorkerClosed: lambda name, event: CloseWorker(worker=name, why=event.why),
    workers.WorkerOpened: lambda name, _: OpenWorker(worker=name),
    queues.QueueRemoved: lambda name, _: RemoveQueue(queue=name),
    users.UserDefined: lambda name, event: DefineUser(user=name, spec=event.spec),
    users.UserRemoved: lambda name, _: RemoveUser(user=name),
    groups.GroupDefined: lambda name, event: DefineGroup(group=name, spec=event.spec),
    groups.GroupRemoved: lambda name, _: RemoveGroup(group=name),
    projects.ProjectDefined: lambda name, event: DefineProject(project=name, spec=event.spec),
    projects.ProjectRemoved: lambda name, _: RemoveProject(project=name),
    limits.LimitDefined: lambda name, event: DefineLimit(limit=name, spec=event.spec),
    limits.LimitRemoved: lambda name, _: RemoveLimit(limit=name),
    profiles.ProfileDefined: lambda name, event: DefineProfile(profile=name, spec=event.spec),
    profiles.ProfileRemoved: lambda name, _: RemoveProfile(profile=name),
}  # fmt: skip
"""By the entity's name and the event."""
