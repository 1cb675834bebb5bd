"""
Play the agents of a branch: start and end jobs as the parent's log says they did.

An attempt that begins at the parent's very moment does everything at the parent's moments and
places; any other one takes as long to start and to run as it did there. Where that isn't known the
user's estimate holds, or else the run limit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappush
from typing import Any, Final, final

from domain.commands import (
    JobCouldNotStartReport,
    JobFinishedReport,
    JobResumedReport,
    JobStartedReport,
    JobSuspendedReport,
    OrderDoneReport,
)
from domain.envelope import Stamped
from domain.events import jobs
from domain.events.jobs import JobResumeOrdered, JobSuspendOrdered
from domain.job_states import STOPPED
from projections.scheduling.core import Core
from projections.scheduling.records import JobRecord, WorkerRecord
from replay.branch_changes import AddedInput
from replay.engine import Engine
from replay.parent import Future

KILL_SIGNAL: Final = 9
# Before whatever the parent recorded at the same moment, as ends come before submissions.
FIRST: Final = -1


@final
@dataclass(slots=True, order=True)
class Plan:
    """
    Hold what will be done; the order is total by the count.

    Args:
        time_us: When.
        rank: The parent's position of the same, or FIRST.
        count: Rises with each plan.
        kind: start, end, killed, suspend, resume, or added.
        stream: The job.
        attempt: Its attempt.
        added: The input, of the last kind.
    """

    time_us: int
    rank: int
    count: int
    kind: str = field(compare=False)
    stream: str = field(compare=False, default="")
    attempt: int = field(compare=False, default=0)
    added: AddedInput | None = field(compare=False, default=None)


@final
class Agents:
    """
    Hold what jobs will do.

    Args:
        engine: Takes the reports.
        future: What the parent tells.

    ``plans`` is a heap. ``run_time_unknown`` counts attempts whose run time isn't known,
    ``without_end`` those among them without an estimate.
    """

    def __init__(self, engine: Engine, future: Future) -> None:
        self._engine = engine
        self._future = future
        self.plans: list[Plan] = []
        self.run_time_unknown = 0
        self.without_end = 0
        self._count = 0
        self._ends: dict[str, int] = {}
        self._stopped_before_us: dict[str, int] = {}

    @property
    def _core(self) -> Core:
        return self._engine.core

    def plan(self, time_us: int, rank: int, kind: str, **more: Any) -> int:
        """
        Plan something; return its count.
        """
        self._count += 1
        heappush(self.plans, Plan(time_us, rank, self._count, kind, **more))
        return self._count

    def plan_live(self, job: JobRecord) -> None:
        """
        Plan what a job that is live where the branch begins does next: what it did.
        """
        known = self._future.of(job.stream, job.attempt)
        known.dispatch_us = job.dispatch_us
        if job.start_us is None:
            self.plan_start(job.stream, job.attempt, job.dispatch_us or 0)
            return
        known.start_us = job.start_us
        known.suspended_us += _stopped_us(job)
        self._plan_open_orders(job)
        if job.kill_order:
            self._plan_killed(job, job.dispatch_us or 0)
        elif job.state in STOPPED:
            # Its resumption, if there was one, is known without the suspension before it.
            resumed = [one[0] for (kind, _), one in known.orders.items() if kind == "resume"]
            known.suspended_us += min(resumed, default=job.since_us) - job.since_us
        else:
            self._plan_end_of(job)

    def _plan_open_orders(self, job: JobRecord) -> None:
        """
        Plan what orders that stand where the branch begins will give: what they gave.
        """
        known = self._future.of(job.stream, job.attempt)
        for kind, order in (("suspend", job.suspend_order), ("resume", job.resume_order)):
            places = [place for (what, _), place in known.orders.items() if what == kind]
            if order:
                place = min(places, default=self._not_before_its_end(job.since_us))
                self.plan(*place, kind, stream=job.stream, attempt=job.attempt)

    def _plan_report(
        self, stream: str, attempt: int, kind: str, time_us: int, position: int
    ) -> int:
        now_us = self._core.state.stored.time_us
        return self.plan(
            max(time_us, now_us), position, kind, stream=stream, attempt=attempt
        )

    def plan_start(self, stream: str, attempt: int, now_us: int) -> None:
        """
        Plan the start of an attempt that was dispatched now.
        """
        known = self._future.of(stream, attempt)
        is_same = known.dispatch_us == now_us
        if known.start_us is not None:
            position = known.start_position if is_same else FIRST
            self._plan_report(stream, attempt, "start", now_us + known.start_delay_us, position)
        elif known.finish_us is not None and known.dispatch_us is not None:
            delay_us = known.finish_us - known.dispatch_us
            position = known.finish_position if is_same else FIRST
            self._plan_end(stream, attempt, now_us + delay_us, position)
        elif is_same:
            self._plan_report(stream, attempt, "start", *self._not_before_its_end(now_us))
        else:
            self._plan_report(stream, attempt, "start", now_us, FIRST)

    def _not_before_its_end(self, time_us: int) -> tuple[int, int]:
        """
        Return time and rank of what the parent would tell had it happened before its end.
        """
        now_us = self._core.state.stored.time_us
        return max(time_us, self._future.end_us, now_us), self._future.head + 1

    def _plan_end(self, stream: str, attempt: int, time_us: int, position: int) -> None:
        self._ends[stream] = self._plan_report(stream, attempt, "end", time_us, position)

    def _plan_end_of(self, job: JobRecord) -> None:
        """
        Plan the end of an attempt that runs: after as long a run as in the parent, which for one
        that does everything as there is the very moment and place.
        """
        known = self._future.of(job.stream, job.attempt)
        start_us = job.start_us or 0
        is_same = known.start_us == start_us
        suspended_us = _stopped_us(job) - self._stopped_before_us.get(job.stream, 0)
        if known.run_us is not None:
            end_us = start_us + known.run_us + suspended_us
            is_same = is_same and end_us == known.finish_us
            position = known.finish_position if is_same else FIRST
            self._plan_end(job.stream, job.attempt, end_us, position)
        else:
            self.run_time_unknown += not suspended_us
            self._plan_unknown_end(job, start_us + suspended_us, is_same=is_same)

    def _plan_unknown_end(self, job: JobRecord, start_us: int, *, is_same: bool) -> None:
        """
        Plan the end of a job whose run time the parent doesn't tell: its user's estimate or limit.
        """
        spec = job.spec
        run_us = spec.run_limit_us if spec.run_estimate_us is None else spec.run_estimate_us
        if run_us is None:
            # Once an attempt, not again after each stop.
            self.without_end += start_us == (job.start_us or 0)
        elif is_same:
            place = self._not_before_its_end(start_us + run_us)
            self._plan_end(job.stream, job.attempt, *place)
        else:
            self._plan_end(job.stream, job.attempt, start_us + run_us, FIRST)

    def plan_kill(self, stamped: Stamped, event: jobs.JobKillOrdered) -> None:
        """
        End a job at once when it is told to, unless the parent says when it did.
        """
        known = self._future.of(stamped.stream, event.attempt)
        job = self._core.state.live.get(stamped.stream)
        if (
            known.kill_us == stamped.time_us
            and job is not None and job.start_us == known.start_us
        ):  # fmt: skip
            self._plan_killed(job, stamped.time_us)
        else:
            self._ends[stamped.stream] = self.plan(
                stamped.time_us, FIRST, "killed", stream=stamped.stream, attempt=event.attempt
            )

    def _plan_killed(self, job: JobRecord, time_us: int) -> None:
        """
        Plan the end of a job that was told to end as it was in the parent: when it did.
        """
        known = self._future.of(job.stream, job.attempt)
        if known.finish_us is not None:
            self._plan_end(job.stream, job.attempt, known.finish_us, known.finish_position)
            return
        self._ends[job.stream] = self.plan(
            *self._not_before_its_end(time_us), "killed", stream=job.stream, attempt=job.attempt
        )

    def plan_order(self, stamped: Stamped, event: JobSuspendOrdered | JobResumeOrdered) -> None:
        """
        Have an order to suspend or resume carried out: when it was in the parent, or at once.
        """
        kind = "suspend" if isinstance(event, JobSuspendOrdered) else "resume"
        known = self._future.of(stamped.stream, event.attempt)
        place = known.orders.get((kind, stamped.time_us))
        if place is None and known.ordered.get(kind) == stamped.time_us:
            place = self._not_before_its_end(stamped.time_us)
        elif place is None:
            place = (stamped.time_us, FIRST)
        self.plan(*place, kind, stream=stamped.stream, attempt=event.attempt)

    def plan_signal(self, stamped: Stamped, event: jobs.JobSignalOrdered) -> None:
        """
        Have a signal sent at once, unless the parent says when it was: as there, it ends no job
        before its time.
        """
        known = self._future.of(stamped.stream, event.attempt)
        if stamped.time_us not in known.signalled_us:
            self.plan(
                stamped.time_us, FIRST, "signal", stream=stamped.stream, attempt=event.attempt
            )

    def carry_out(self, plan: Plan, now_us: int) -> None:
        """
        Do what was planned, if it still makes sense; added inputs aren't for the agents.
        """
        job = self._core.state.live.get(plan.stream)
        if job is None or job.attempt != plan.attempt:
            return
        if plan.kind == "start":
            self._start(job, now_us)
        elif plan.kind == "signal":
            self._signal(job, now_us)
        elif plan.kind in ("suspend", "resume"):
            self._suspend_or_resume(job, plan, now_us)
        elif self._ends.get(plan.stream) == plan.count:
            del self._ends[plan.stream]
            self._end(job, now_us, is_killed=plan.kind == "killed")

    def _worker(self, job: JobRecord) -> WorkerRecord:
        assert job.allocation is not None, "a live job has hosts"
        return self._core.state.hosts[job.allocation.runs[0].first]

    def _report(self, kind: Any, job: JobRecord, now_us: int, **fields: Any) -> None:
        worker = self._worker(job)
        command = kind(
            worker=worker.name, incarnation=worker.incarnation, job_id=job.job_id,
            attempt=job.attempt, **fields,
        )  # fmt: skip
        self._engine.accept(command, actor="", now_us=now_us)

    def _start(self, job: JobRecord, now_us: int) -> None:
        self._stopped_before_us[job.stream] = _stopped_us(job)
        known = self._future.of(job.stream, job.attempt)
        is_same = known.start_us == now_us and known.started is not None
        process = known.started if is_same and known.started is not None else None
        self._report(
            JobStartedReport, job, now_us,
            pid=process.pid if process else 0,
            process_group=process.process_group if process else 0,
        )  # fmt: skip
        if not job.kill_order:
            self._plan_end_of(job)

    def _signal(self, job: JobRecord, now_us: int) -> None:
        """
        Report that every signal ordered for a job was sent.
        """
        worker = self._worker(job)
        orders = worker.orders.items()
        sent = [no for no, each in orders if (each.kind, each.stream) == ("signal", job.stream)]
        if sent:
            self._order_done(worker, max(sent), now_us)

    def _suspend_or_resume(self, job: JobRecord, plan: Plan, now_us: int) -> None:
        """
        Report a suspension, which takes the end away, or a resumption, which plans it again.
        """
        order, worker = job.suspend_order or job.resume_order, self._worker(job)
        if plan.kind == "suspend" and job.suspend_order:
            self._report(JobSuspendedReport, job, now_us)
            self._ends.pop(job.stream, None)
        elif plan.kind == "resume" and job.resume_order:
            self._report(JobResumedReport, job, now_us)
            self._plan_end_of(job)
        else:
            return
        if plan.rank == FIRST or plan.rank > self._future.head:
            self._order_done(worker, order, now_us)

    def _order_done(self, worker: WorkerRecord, order: int, now_us: int) -> None:
        done = OrderDoneReport(
            worker=worker.name, incarnation=worker.incarnation, order_number=order
        )
        self._engine.accept(done, actor="", now_us=now_us)

    def _end(self, job: JobRecord, now_us: int, *, is_killed: bool) -> None:
        known = self._future.of(job.stream, job.attempt)
        order, worker = job.kill_order, self._worker(job)
        end = known.end
        if is_killed:
            self._report(JobFinishedReport, job, now_us, signal=KILL_SIGNAL)
            self._order_done(worker, order, now_us)
        elif isinstance(end, jobs.JobCouldNotStart):
            self._report(
                JobCouldNotStartReport, job, now_us, why=end.why, pre_exec_of=end.pre_exec_of,
                pre_exec_exit=end.pre_exec_exit, fault=end.fault,
            )  # fmt: skip
        elif isinstance(end, jobs.JobFinished):
            self._report(
                JobFinishedReport, job, now_us, exit_code=end.exit_code, signal=end.signal,
                cpu_us=end.cpu_us, max_rss_kib=end.max_rss_kib,
            )  # fmt: skip
        else:
            self._report(JobFinishedReport, job, now_us, exit_code=0)


def _stopped_us(job: JobRecord) -> int:
    """
    Return for how long a job was stopped or suspended in all its attempts.
    """
    return job.user_stopped_us + job.system_suspended_us
