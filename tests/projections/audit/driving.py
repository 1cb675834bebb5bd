"""
Histories for the audit tests: the real core is driven by numbers, whatever they mean to it.

Any list of numbers gives a history, so that Hypothesis can shrink it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

from domain.amounts import Amount
from domain.arrays import ArraySpec, IndexRange
from domain.commands import (
    CloseWorker,
    DefineQueue,
    HoldJob,
    JobCouldNotStartReport,
    JobFinishedReport,
    JobResumedReport,
    JobStartedReport,
    JobSuspendedReport,
    KillJob,
    LeaveWorker,
    LiftHold,
    MarkUnreachable,
    ModifyJob,
    MoveJob,
    OpenWorker,
    OrderDoneReport,
    RequeueJob,
    ResumeJob,
    SetQueue,
    StopJob,
    StopScheduler,
    SubmitJob,
    SwitchJob,
    WorkerReport,
)
from domain.envelope import Envelope, Stamped
from domain.errors import XceError
from domain.event import Event
from domain.events.refusals import AccessDenied, CommandRefused
from domain.events.scheduler import ClockCorrected
from domain.events.workers import JobUsage
from domain.ids import REFUSALS, SCHEDULER
from domain.jobs import ExitRules
from domain.name_lists import parse_names
from domain.queues import QueueSpec
from projections.scheduling.core import Core
from tests.builders import a_host, a_job, beginning, some_settings

USERS = ("ann", "ben", "=cmd", "zoe\u202e")
NAMES = ("", "render", "a\nb", "=1+1", "<b>x</b>", "naïve")


class Driven:
    """
    Hold a core and everything that happened to it.

    Args:
        picker: Name of the cluster's picker.
    """

    def __init__(self, picker: str = "builtin_fcfs") -> None:
        self.core = Core()
        self.stamped: list[Stamped] = []
        self.now_us = 1_000_000_000
        settings = some_settings(picker=picker, clean_period_us=40_000_000, forget_batch=2)
        for command in beginning(settings):
            self.command(command, actor="root")
        everybody = parse_names("all")
        for name, spec in (
            ("normal", QueueSpec(priority=30, preemptible_by=everybody)),
            ("urgent", QueueSpec(priority=60, preemptible_queues=everybody)),
        ):
            self.command(DefineQueue(queue=name, spec=spec), actor="root")
        self.command(a_host("h1", 4, 1000), actor="root")
        self.command(a_host("h2", 2), actor="root")

    @property
    def envelopes(self) -> list[Envelope]:
        """
        Return what happened, as a log would give it back.
        """
        return [Envelope(position, *one) for position, one in enumerate(self.stamped, 1)]

    def take(self, stream: str, event: Event, actor: str = "", *, ends_step: bool = True) -> None:
        version = self.core.state.next_version(stream)
        one = Stamped(stream, version, self.now_us, actor, "", event, ends_step)
        self.core.apply(one)
        self.stamped.append(one)

    def command(self, command: object, actor: str = "ann") -> None:
        """
        Give a command or report; a refused one is recorded as such.
        """
        try:
            found = self.core.handle(command, actor=actor, now_us=self.now_us)
        except XceError as error:
            fields = error.fields()
            subject = str(getattr(command, "job_id", "") or getattr(command, "worker", ""))
            refused = CommandRefused(
                command=type(command).__name__,
                subject=subject,
                field=str(fields.get("field", "")),
                rule=str(fields.get("rule", "")),
            )
            self.take(REFUSALS, refused, actor)
            return
        for place, (stream, event) in enumerate(found):
            self.take(stream, event, actor, ends_step=place == len(found) - 1)

    def session(self) -> None:
        self.stamped += self.core.session(self.now_us)

    # ------------------------------------------------------------------- what a number may mean

    def act(self, what: int, which: int, amount: int) -> None:
        """
        Do something: what, to which of the things there are, with an amount.
        """
        actions = (
            self._submit,
            self._submit,
            self._submit,
            self._session,
            self._session,
            self._start,
            self._start,
            self._finish,
            self._finish,
            self._fail,
            self._hold,
            self._lift,
            self._kill,
            self._host,
            self._queue,
            self._report,
            self._wait,
            self._wait,
            self._odd,
            self._stop,
            self._resume,
            self._confirm,
            self._confirm,
            self._change,
            self._requeue,
        )
        actions[what % len(actions)](which, amount)

    def _submit(self, which: int, amount: int) -> None:
        user = USERS[which % len(USERS)]
        array = ArraySpec(ranges=(IndexRange(start=1, end=3),)) if amount % 8 == 7 else None
        made = a_job(
            1 + amount % 5,
            mem_mb=None if which % 3 else 200 * (1 + amount % 6),
            user="u" + str(which % 3),
            name=NAMES[amount % len(NAMES)],
            hold=which % 11 == 0,
            queue=("night", "normal", "normal", "urgent")[which % 4],
        )
        changes = {"array": array, "exits": ExitRules(requeue=(3, 6), success=(9,))}
        spec = made.spec.model_copy(update=changes if amount % 4 == 3 else {})
        self.command(SubmitJob(spec=spec), actor=user)

    def _session(self, which: int, amount: int) -> None:
        self.session()

    def _of(self, states: Sequence[str], which: int):
        jobs = [one for one in self.core.state.stored.jobs.values() if one.state in states]
        return jobs[which % len(jobs)] if jobs else None

    def _worker(self, which: int):
        workers = list(self.core.state.stored.workers.values())
        return workers[which % len(workers)]

    def _at_worker(self, job):
        number = job.allocation.runs[0].first
        return next(w for w in self.core.state.stored.workers.values() if w.number == number)

    def _report_on(self, kind, which: int, **fields: object) -> None:
        job = self._of(("RUN", "UNKWN"), which)
        if job is not None:
            worker = self._at_worker(job)
            self.command(
                kind(
                    worker=worker.name,
                    incarnation=worker.incarnation,
                    job_id=job.job_id,
                    attempt=job.attempt,
                    **fields,
                ),
                actor="root",
            )

    def _start(self, which: int, amount: int) -> None:
        self._report_on(JobStartedReport, which, pid=100 + amount)

    def _finish(self, which: int, amount: int) -> None:
        code = 0 if amount % 3 else amount % 100
        self._report_on(JobFinishedReport, which, exit_code=code, cpu_us=amount, max_rss_kib=amount)

    def _fail(self, which: int, amount: int) -> None:
        if amount % 2:
            self._report_on(JobCouldNotStartReport, which, why="no such file\nor directory")
        else:
            self._report_on(JobFinishedReport, which, signal=9)

    def _hold(self, which: int, amount: int) -> None:
        job = self._of(("PEND",) if amount % 4 else ("DONE", "EXIT", "RUN"), which)
        if job is not None:
            self.command(HoldJob(job_id=job.job_id))

    def _lift(self, which: int, amount: int) -> None:
        job = self._of(("PSUSP",), which)
        if job is not None:
            self.command(LiftHold(job_id=job.job_id))

    def _kill(self, which: int, amount: int) -> None:
        job = self._of(("PEND", "PSUSP", "RUN", "UNKWN"), which)
        if job is not None:
            self.command(KillJob(job_id=job.job_id), actor=job.spec.user if amount % 2 else "root")

    def _host(self, which: int, amount: int) -> None:
        worker = self._worker(which)
        name, incarnation = worker.name, worker.incarnation
        commands = (
            CloseWorker(worker=name, why="disk\tfull" if amount % 2 else ""),
            OpenWorker(worker=name),
            MarkUnreachable(worker=name, incarnation=incarnation, silent_us=60_000_000),
            a_host(name, 2 + amount % 4, 1000),
            LeaveWorker(worker=name, incarnation=incarnation),
            a_host(f"h{3 + amount % 3}", 1 + amount % 8),
            OrderDoneReport(
                worker=name,
                incarnation=incarnation,
                order_number=max(1, worker.last_order),
                outcome="signalled",
            ),
        )
        self.command(commands[amount % len(commands)], actor="root")

    def _queue(self, which: int, amount: int) -> None:
        name = "normal" if which % 2 else "night"
        to = ("open", "closed", "active", "inactive")
        if amount % 3 == 0:
            spec = QueueSpec(priority=amount % 7, description=f"d{amount % 2}")
            self.command(DefineQueue(queue=name, spec=spec), actor="root")
        else:
            self.command(SetQueue(queue=name, to=to[amount % 4]), actor="root")

    def _report(self, which: int, amount: int) -> None:
        worker = self._worker(which)
        jobs = [one for one in self.core.state.stored.jobs.values() if one.state == "RUN"][:3]
        usage = tuple(
            JobUsage(
                job_id=one.job_id,
                attempt=one.attempt,
                processes=1,
                cpu_us=amount,
                amounts=(Amount(resource="mem", milli=amount * 1000),),
            )
            for one in jobs
        )
        self.command(
            WorkerReport(
                worker=worker.name,
                incarnation=worker.incarnation + (amount % 5 == 0),
                load=(Amount(resource="mem", milli=amount * 2000),),
                jobs=usage,
            ),
            actor="root",
        )

    def _wait(self, which: int, amount: int) -> None:
        self.now_us += amount * 1_000_000 + which

    def _stop(self, which: int, amount: int) -> None:
        job = self._of(("RUN", "PEND"), which)
        if job is not None:
            self.command(StopJob(job_id=job.job_id), actor=job.spec.user if amount % 2 else "root")

    def _resume(self, which: int, amount: int) -> None:
        job = self._of(("USUSP", "SSUSP", "PSUSP"), which)
        if job is not None:
            self.command(ResumeJob(job_id=job.job_id))

    def _confirm(self, which: int, amount: int) -> None:
        """
        Report an order as carried out, whichever the worker has.
        """
        workers = self.core.state.stored.workers.values()
        given = [(worker, *one) for worker in workers for one in sorted(worker.orders.items())]
        if not given:
            return
        worker, number, order = given[0]
        who = {"worker": worker.name, "incarnation": worker.incarnation}
        job = self.core.state.stored.jobs.get(order.stream)
        kinds = {"suspend": JobSuspendedReport, "resume": JobResumedReport}
        if job is not None and order.kind in kinds:
            report = kinds[order.kind](job_id=job.job_id, attempt=job.attempt, **who)
            self.command(report, actor="root")
        self.command(OrderDoneReport(order_number=number, **who), actor="root")

    def _change(self, which: int, amount: int) -> None:
        job = self._of(("PEND", "RUN"), which)
        if job is None:
            return
        spec = job.spec.model_copy(
            update={"name": NAMES[amount % len(NAMES)], "user_priority": amount}
        )
        commands = (
            SwitchJob(job_id=job.job_id, queue="night" if amount % 2 else "normal"),
            MoveJob(job_id=job.job_id, to="top" if amount % 2 else "bottom"),
            ModifyJob(job_id=job.job_id, spec=spec),
        )
        self.command(commands[amount % 3])

    def _requeue(self, which: int, amount: int) -> None:
        job = self._of(("RUN", "USUSP", "SSUSP"), which)
        if job is not None:
            self.command(RequeueJob(job_id=job.job_id, hold=amount % 3 == 0))

    def _odd(self, which: int, amount: int) -> None:
        if amount % 3 == 0:
            self.take(REFUSALS, AccessDenied(action="kill job", subject=str(which)), "ben")
        elif amount % 3 == 1:
            self.take(SCHEDULER, ClockCorrected(forward_us=amount))
        else:
            self.command(StopScheduler(why="maintenance"), actor="root")
            self.command(beginning()[0], actor="root")


def some_actions(seed: int, count: int) -> list[tuple[int, int, int]]:
    """
    Return so many actions, the same for the same seed.
    """
    chance = Random(seed)
    return [
        (chance.randrange(25), chance.randrange(13), chance.randrange(100)) for _ in range(count)
    ]


def driven(actions: Iterable[tuple[int, int, int]], picker: str = "builtin_fcfs") -> Driven:
    """
    Return what a list of numbers makes happen, ending with a session.
    """
    result = Driven(picker)
    for action in actions:
        result.act(*action)
    result.session()
    return result
