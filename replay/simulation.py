"""
The simulation driver: a recorded workload on a modelled cluster, in virtual time.

It plays the agents: a job starts when it is dispatched and ends after its recorded run time; orders
are confirmed at once, and suspended time extends the end. Ends at a moment come before submissions
at it, then a session, and again while ends at that moment remain (jobs of 0 s). A session is held
too at each moment that the core waits for. Log id and all bytes are a function of the input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final, cast, final

from domain.cluster import ClusterSettings
from domain.commands.jobs import SubmitJob
from domain.commands.reports import (
    JobFinishedReport,
    JobResumedReport,
    JobStartedReport,
    JobSuspendedReport,
)
from domain.commands.settings import DefineCluster, DefineQueue
from domain.envelope import Stamped
from domain.event import sure_of_all
from domain.events.jobs import (
    JobDispatched,
    JobKillOrdered,
    JobResumeOrdered,
    JobSuspendOrdered,
)
from domain.jobs import JobSpec
from domain.queues import QueueSpec
from domain.units import SECOND_US
from projections.figures import Figures
from projections.scheduling.core import Core
from projections.scheduling.plugins import Plugins
from replay.branch_changes import Changes
from replay.cluster_spec import ClusterSpec
from replay.engine import Engine, Log, Snapshots
from replay.joining import joining
from replay.modelling import Modelling
from replay.precedence import Precedence
from replay.simulation_settings import QUEUE_SPEC, start_of
from replay.waking import Waking
from replay.workloads.details import UNKNOWN, id_word
from replay.workloads.source import TraceJob, Workload

COMMIT_EVENTS: Final = 8_192
STATUS_FAILED: Final = 0
STATUS_CANCELLED: Final = 5
SIGKILL: Final = 9

ORDERS: Final = frozenset({JobSuspendOrdered, JobResumeOrdered, JobKillOrdered})
UNCHANGED: Final = Changes()
Order = JobSuspendOrdered | JobResumeOrdered | JobKillOrdered


@dataclass(slots=True, frozen=True)
class Progress:
    """
    Say how far a simulation has come.
    """

    jobs_done: int
    jobs: int
    now_us: int
    events: int


@dataclass(slots=True)
class SimulationResult:
    """
    Hold what a simulation gave.

    Args:
        figures: Waits and the like, of every job simulated.
        events: Events in the log.
        sessions: Sessions that decided something.
        start_sum_s: Sum of the starts, in the trace's own seconds.
    """

    figures: Figures
    events: int
    sessions: int
    start_sum_s: int


@final
@dataclass(slots=True, eq=False)
class _Course:
    """
    Hold what the driver knows of a job that has been submitted and hasn't ended.

    Args:
        index: Its place in the workload.
        worker: Name of its first host; incarnation, attempt and start_us too are those of its last
            start.
        end_us: When it will have ended.
        end_number: Which entry of the heap of ends says so, 0 for none: it doesn't run.
        left_us: How long it will still run once it goes on.
    """

    index: int
    submit_us: int
    stream: str
    job_id: str
    worker: str = ""
    incarnation: int = 0
    attempt: int = 0
    start_us: int = 0
    end_us: int = 0
    end_number: int = 0
    left_us: int = 0


class Simulation:
    """
    Simulate one workload.

    Args:
        workload: Jobs that can run on the cluster, as ``Modelling.fitting`` leaves them.
        cluster: The hosts.
        log: An empty log, open for writing.
        settings: The cluster's settings, the picker's name among them.
        plugins: Pickers and allocators; the built-in ones when None.
        queues: Definitions of queues by name; those that jobs name beside are all alike.
        changes: Settings of queues that are changed.
        snapshots: Where snapshots go, None for nowhere.
        on_progress: Called now and then.
    """

    def __init__(
        self,
        workload: Workload,
        cluster: ClusterSpec,
        log: Log,
        *,
        settings: ClusterSettings,
        plugins: Plugins | None = None,
        queues: Mapping[str, QueueSpec] | None = None,
        changes: Changes = UNCHANGED,
        snapshots: Snapshots | None = None,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> None:
        self._workload = workload
        self._cluster = cluster
        self._settings = settings
        self._engine = Engine(log, Core(plugins), snapshots=snapshots)
        self._waking = Waking(self._engine)
        self._on_progress = on_progress
        self._origin_us = workload.start_unix_s * SECOND_US
        self._now_us = self._origin_us + workload.begins_s * SECOND_US
        self._modelling = Modelling(cluster)
        self._precedence = Precedence.of(workload.jobs)
        self._figures = Figures(cluster.slots)
        self._queue_specs = dict(queues or {})
        self._changes = changes
        self._ends: list[tuple[int, int, _Course]] = []
        self._end_count = 0
        self._templates: dict[tuple[int, int], JobSpec] = {}
        self._owners: dict[tuple[int, int], tuple[str, str]] = {}
        self._courses: dict[str, _Course] = {}
        jobs = workload.jobs
        self._guesses = jobs.requested_s if jobs.estimate_s is None else jobs.estimate_s

    @property
    def engine(self) -> Engine:
        """
        Return the engine, for whoever wants to look at the state.
        """
        return self._engine

    def run(self) -> SimulationResult:
        """
        Simulate to the last end.
        """
        self._set_up()
        order = self._workload.arrival_order()
        submits_us = self._workload.submits_us()
        next_arrival, arrivals = 0, len(order)
        precedence = self._precedence
        while True:
            coming_us = submits_us[order[next_arrival]] if next_arrival < arrivals else None
            if self._ends and (coming_us is None or self._ends[0][0] < coming_us):
                coming_us = self._ends[0][0]
            now_us = self._waking.next_us(self._now_us, coming_us)
            if now_us is None:
                return self._finish()
            self._now_us = now_us
            if self._ends and self._ends[0][0] == now_us:
                self._report_ends(now_us)
            if precedence is not None:
                self._submit_freed(precedence, now_us)
            while next_arrival < arrivals and submits_us[order[next_arrival]] == now_us:
                if precedence is None or precedence.arrive(order[next_arrival]):
                    self._submit(order[next_arrival], now_us)
                next_arrival += 1
            self._decide(now_us)
            while self._ends and self._ends[0][0] == now_us:
                self._report_ends(now_us)
                if precedence is not None:
                    self._submit_freed(precedence, now_us)
                self._decide(now_us)
            if self._engine.pending >= COMMIT_EVENTS:
                self._commit()

    # -- beginning and end

    def _set_up(self) -> None:
        """
        Write the configuration, and let every host join.
        """
        self._accept(start_of(self._engine.core.plugins))
        self._accept(DefineCluster(settings=self._settings))
        for queue in self._queues():
            spec = self._queue_specs.get(queue) or QUEUE_SPEC
            self._accept(DefineQueue(queue=queue, spec=self._changes.queue(queue, spec)))
        for host in self._cluster.hosts:
            self._accept(joining(host, host.name))
        self._engine.commit()

    def _queues(self) -> list[str]:
        """
        Return the queues that jobs name, the one for all others first; they are alike.
        """
        details = self._workload.jobs.details
        asks = details.asks if details is not None else []
        names = (id_word(ask.queue_name) for ask in asks if ask.queue_name)
        named = (one.name for one in self._changes.settings if one.kind == "queue" and one.name)
        every = (self._settings.default_queue, *names, *self._queue_specs, *named)
        return list(dict.fromkeys(every))

    def _finish(self) -> SimulationResult:
        self._commit()
        stored = self._engine.core.state.stored
        figures = self._figures
        origin_s = self._workload.start_unix_s
        return SimulationResult(
            figures=figures,
            events=self._engine.position,
            sessions=stored.session_number,
            start_sum_s=figures.start_sum_us // SECOND_US - origin_s * figures.job_count,
        )

    def _commit(self) -> None:
        self._engine.commit()
        if self._engine.snapshot_is_due():
            self._engine.take_snapshot()
        if self._on_progress is not None:
            self._on_progress(
                Progress(
                    self._figures.job_count,
                    len(self._workload.jobs),
                    self._now_us,
                    self._engine.position,
                )
            )

    def _accept(self, command: object) -> None:
        self._engine.take_in(command, actor="", now_us=self._now_us)

    # -- playing users and agents

    def _submit(self, index: int, now_us: int) -> None:
        spec = self._spec(index)
        engine = self._engine
        command = sure_of_all(SubmitJob, {"spec": spec, "key": "", "digest": ""})
        made = engine.take_in(command, actor=spec.user, now_us=now_us)
        stream = made[-1].stream
        job_id = engine.core.state.stored.jobs[stream].job_id
        self._courses[stream] = _Course(index, now_us, stream, job_id)

    # hot: once a job.
    def _spec(self, index: int) -> JobSpec:
        """
        Return the job as its user asked for it, as far as the cluster describes what it asks for.

        The run time asked for is an estimate, no limit: recorded run times hold even beyond it.
        Jobs without names of queues and the like are worked out once for all that ask for the same.
        """
        jobs = self._workload.jobs
        guess = self._guesses[index]
        estimate_us = guess * SECOND_US if guess > 0 else None
        if jobs.details is not None:
            return self._spec_of(jobs.job(index), estimate_us)
        asked = (jobs.tasks[index], jobs.requested_kib[index])
        owner = (jobs.user[index], jobs.group[index])
        alike = self._templates.get(asked)
        if alike is None:
            alike = self._templates[asked] = self._spec_of(jobs.job(index), estimate_us)
        names = self._owners.get(owner)
        if names is None:
            names = self._owners[owner] = _owner(jobs.job(index))
        return alike.but(
            user=names[0],
            group=names[1],
            name=str(jobs.trace_id[index]),
            run_estimate_us=estimate_us,
        )

    def _spec_of(self, job: TraceJob, estimate_us: int | None) -> JobSpec:
        ask = job.details.ask
        user, group = _owner(job)
        return JobSpec(
            user=user,
            group=group,
            queue=id_word(ask.queue_name) if ask.queue_name else self._settings.default_queue,
            name=job.details.trace_name or str(job.trace_id),
            tasks_min=job.tasks,
            tasks_max=job.tasks,
            requirement=self._modelling.requirement(job),
            is_exclusive=ask.is_exclusive and self._modelling.is_described,
            run_estimate_us=estimate_us,
        )

    def _decide(self, now_us: int) -> None:
        """
        Hold sessions until one decides nothing more, start what was dispatched, and carry out what
        was ordered.
        """
        engine = self._engine
        is_over = False
        while not is_over:
            is_confirmed = False
            for stamped in engine.hold_session(now_us):
                event = stamped.event
                if type(event) is JobDispatched:
                    self._start(stamped, event, now_us)
                elif type(event) in ORDERS:
                    self._carry_out(stamped.stream, cast("Order", event), now_us)
                    is_confirmed = True
            is_over = not (engine.core.is_cut_short or is_confirmed)

    # hot: once a job.
    def _start(self, stamped: Stamped, event: JobDispatched, now_us: int) -> None:
        course = self._courses[stamped.stream]
        worker = self._engine.core.state.hosts[event.allocation.runs[0].first]
        course.worker, course.incarnation = worker.name, worker.incarnation
        course.attempt, course.start_us = event.attempt, now_us
        report = sure_of_all(
            JobStartedReport,
            {
                "worker": worker.name,
                "incarnation": worker.incarnation,
                "job_id": course.job_id,
                "attempt": event.attempt,
                "pid": 0,
                "process_group": 0,
            },
        )
        self._engine.take_in(report, actor="", now_us=now_us)
        self._end_at(course, now_us + self._workload.jobs.run_us(course.index))

    def _end_at(self, course: _Course, end_us: int) -> None:
        self._end_count += 1
        course.end_us, course.end_number = end_us, self._end_count
        heappush(self._ends, (end_us, self._end_count, course))

    def _no_end(self, course: _Course) -> None:
        """
        Forget when a job would end; no entry that is out of date may stay the first.
        """
        course.end_number = 0
        ends = self._ends
        while ends and ends[0][1] != ends[0][2].end_number:
            heappop(ends)

    def _carry_out(self, stream: str, event: Order, now_us: int) -> None:
        """
        Do at once what a worker was ordered, and report it.
        """
        course = self._courses[stream]
        about = {
            "worker": event.worker,
            "incarnation": self._engine.core.state.worker(event.worker).incarnation,
            "job_id": course.job_id,
            "attempt": event.attempt,
        }
        report: object
        if isinstance(event, JobSuspendOrdered):
            course.left_us = course.end_us - now_us
            self._no_end(course)
            report = JobSuspendedReport.model_validate(about)
        elif isinstance(event, JobResumeOrdered):
            self._end_at(course, now_us + course.left_us)
            report = JobResumedReport.model_validate(about)
        else:
            self._no_end(course)
            report = JobFinishedReport.model_validate({**about, "signal": SIGKILL})
        self._engine.take_in(report, actor="", now_us=now_us)
        if isinstance(event, JobKillOrdered):
            job = self._engine.core.state.stored.jobs[stream]
            if not job.requeue_why:
                self._ended(course, now_us)

    def _ended(self, course: _Course, now_us: int) -> None:
        """
        Take the figures of a job that has ended.
        """
        del self._courses[course.stream]
        self._figures.add(
            submit_us=course.submit_us,
            start_us=course.start_us,
            finish_us=now_us,
            tasks=self._workload.jobs.tasks[course.index],
        )
        if self._precedence is not None:
            self._precedence.end(course.index)

    # hot: once a job.
    def _report_ends(self, now_us: int) -> None:
        """
        Report every end of this moment, in order of the starts.
        """
        ends, statuses, take_in = self._ends, self._workload.jobs.status, self._engine.take_in
        while ends and ends[0][0] == now_us:
            _, number, course = heappop(ends)
            if number != course.end_number:
                continue
            self._ended(course, now_us)
            has_failed = statuses[course.index] in (STATUS_FAILED, STATUS_CANCELLED)
            report = sure_of_all(
                JobFinishedReport,
                {
                    "worker": course.worker,
                    "incarnation": course.incarnation,
                    "job_id": course.job_id,
                    "attempt": course.attempt,
                    "exit_code": 1 if has_failed else 0,
                    "signal": None,
                    "cpu_us": 0,
                    "max_rss_kib": 0,
                },
            )
            take_in(report, actor="", now_us=now_us)

    def _submit_freed(self, precedence: Precedence, now_us: int) -> None:
        """
        Submit the jobs that no longer wait for others.
        """
        for index in precedence.take_free():
            self._submit(index, now_us)


def _owner(job: TraceJob) -> tuple[str, str]:
    """
    Return the names of a job's user and group.
    """
    ask = job.details.ask
    user = "unknown" if job.user == UNKNOWN else f"u{job.user}"
    group = "" if job.group == UNKNOWN else f"g{job.group}"
    return id_word(ask.user_name) if ask.user_name else user, ask.group_name or group
