"""
Read a log or a recording as a workload: who submitted what when, and how long it really ran.

A job's run time is the time from the start of its last attempt to its end, without the time that it
was suspended. Jobs that never ran are left out, as in every trace; so are those that still waited
or ran at the end, and a note counts them. The hosts are those that joined, all of them from the
beginning. Holds, priorities and limits are not part of a workload.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, final

from domain.amounts import MEM
from domain.dependency.syntax import conditions_of
from domain.envelope import Envelope
from domain.events.jobs import (
    JobCouldNotStart,
    JobDispatched,
    JobEnded,
    JobFinished,
    JobModified,
    JobRequeued,
    JobResumed,
    JobStarted,
    JobSubmitted,
    JobSuspended,
    JobSwitched,
)
from domain.events.workers import WorkerJoined
from domain.ids import job_of_stream, job_stream_of, split_job_id
from domain.job_states import ENDED
from domain.jobs import JobSpec
from projections.scheduling.core import SCHEMA
from projections.scheduling.records import JobRecord, StoredState, WorkerRecord
from projections.scheduling.snapshot import load_state
from replay.cluster_spec import ClusterSpec, HostSpec, ResourceSpec
from replay.recordings import History, Recording, is_recording, open_history
from replay.workloads.details import UNKNOWN, Ask, Details, TraceNeed
from replay.workloads.gathering import CANCELLED, COMPLETED, FAILED, FoundJob, Gathering
from replay.workloads.source import SECOND_US, Header, Workload
from store.info import is_log, log_directory

NOT_ENDED: Final = "jobs that hadn't ended"
KIB_MILLI: Final = 1000


def is_history(path: Path) -> bool:
    """
    Say whether a path is a log's or cluster's directory, or a recording.
    """
    return is_log(log_directory(path)) if path.is_dir() else is_recording(path)


def read_history(path: Path) -> Workload:
    """
    Return the workload in a log or a recording, with its cluster.

    Raises:
        NotFound: There is none.
        Corrupt: It doesn't check.
    """
    with open_history(path) as history:
        return _Reader(history).workload(path)


@final
@dataclass(slots=True)
class _Job:
    """
    Hold what is known of a job so far; ``tasks`` is 0 before it was dispatched.
    """

    spec: JobSpec
    submit_us: int
    tasks: int = 0
    start_us: int | None = None
    since_us: int | None = None
    suspended_us: int = 0
    run_us: int | None = None
    has_ended: bool = False
    status: int = CANCELLED

    def end(self, now_us: int, status: int) -> None:
        self.has_ended, self.status = True, status
        if self.start_us is None:
            return
        if self.since_us is not None:
            self.suspended_us += now_us - self.since_us
        self.run_us = now_us - self.start_us - self.suspended_us

    def begin_anew(self) -> None:
        self.start_us = self.since_us = None
        self.suspended_us = 0


@final
@dataclass(slots=True)
class _Host:
    number: int
    spec: HostSpec


@final
@dataclass(slots=True)
class _Reader:
    """
    Fold a history into jobs by stream, in order of submission, and hosts by name.
    """

    history: History
    jobs: dict[str, _Job] = field(default_factory=dict)
    hosts: dict[str, _Host] = field(default_factory=dict)
    begins_us: int | None = None
    gathering: Gathering = field(default_factory=Gathering)

    def workload(self, path: Path) -> Workload:
        if isinstance(self.history, Recording) and self.history.first_position > 1:
            self._begin_with(self.history)
        for envelope in self.history.read(self._first() - 1):
            if self.begins_us is None:
                self.begins_us = envelope.time_us
            self._take(envelope)
        return self._made(path)

    def _first(self) -> int:
        return self.history.first_position if isinstance(self.history, Recording) else 1

    # -- the state that a window begins with

    def _begin_with(self, window: Recording) -> None:
        """
        Take over what was there before a window; a state of another version is passed over.
        """
        kept = window.snapshots.newest_good(
            schema=SCHEMA, head=0, digest_at=window.digest_at, upto=window.first_position - 1
        )
        if kept is None:
            self.gathering.note("state of another version at the beginning, passed over")
            return
        stored: StoredState = load_state(kept.state)
        for worker in stored.workers.values():
            self.hosts[worker.name] = _Host(worker.number, _host(worker.name, worker))
        for job in stored.jobs.values():
            if job.state not in ENDED:
                self.jobs[job.stream] = _before(job)
        begins = [job.submit_us for job in self.jobs.values()]
        self.begins_us = min(begins, default=kept.time_us)

    # -- events

    def _take(self, envelope: Envelope) -> None:
        event, stream = envelope.event, envelope.stream
        if isinstance(event, JobSubmitted):
            self._submitted(envelope, event)
        elif isinstance(event, WorkerJoined):
            name = stream.partition(":")[2]
            self.hosts[name] = _Host(event.host_number, _host(name, event))
        elif stream in self.jobs:
            self._change(self.jobs[stream], envelope)

    def _submitted(self, envelope: Envelope, event: JobSubmitted) -> None:
        spec, stream, now_us = event.spec, envelope.stream, envelope.time_us
        if spec.array is None:
            self.jobs[stream] = _Job(spec, now_us)
            return
        number, _ = split_job_id(job_of_stream(stream))
        for index in spec.array.indices():
            self.jobs[job_stream_of(number, index)] = _Job(spec, now_us)

    @staticmethod
    def _change(job: _Job, envelope: Envelope) -> None:
        """
        Take an event of a job that is known.
        """
        now_us = envelope.time_us
        match envelope.event:
            case JobDispatched() as event:
                job.begin_anew()
                job.tasks = event.allocation.tasks()
            case JobStarted():
                job.start_us = now_us
            case JobSuspended():
                job.since_us = now_us
            case JobResumed() if job.since_us is not None:
                job.suspended_us += now_us - job.since_us
                job.since_us = None
            case JobRequeued():
                job.begin_anew()
            case JobModified() as event:
                job.spec = event.spec
            case JobSwitched() as event:
                job.spec = job.spec.model_copy(update={"queue": event.queue})
            case JobFinished() as event:
                status = COMPLETED if event.exit_code == 0 else FAILED
                job.end(now_us, CANCELLED if event.why else status)
            case JobEnded() | JobCouldNotStart():
                job.end(now_us, CANCELLED)

    # -- the workload

    def _made(self, path: Path) -> Workload:
        gathering = self.gathering
        ids = {stream: number for number, stream in enumerate(self.jobs, 1)}
        numbers: dict[int, list[int]] = {}
        for stream, number in ids.items():
            numbers.setdefault(split_job_id(job_of_stream(stream))[0], []).append(number)
        for stream, job in self.jobs.items():
            if not job.has_ended:
                gathering.note(NOT_ENDED)
            gathering.add(_found(job, stream, ids[stream], numbers))
        begins_s = None if self.begins_us is None else self.begins_us // SECOND_US
        hosts = sorted(self.hosts.values(), key=lambda host: host.number)
        workload = gathering.workload(path, Header(), begins_s=begins_s)
        return workload.on(ClusterSpec(tuple(host.spec for host in hosts), is_recorded=True))


def _before(job: JobRecord) -> _Job:
    """
    Return a job of the state that a window begins with.

    Of its suspended time only that is known which is over.
    """
    suspended_us = job.user_stopped_us + job.system_suspended_us
    tasks = 0 if job.allocation is None else job.allocation.tasks()
    return _Job(job.spec, job.submit_us, tasks, job.start_us, suspended_us=suspended_us)


def _found(job: _Job, stream: str, number: int, numbers: dict[int, list[int]]) -> FoundJob:
    """
    Return a job as every reader finds one.
    """
    spec, run_us = job.spec, -SECOND_US if job.run_us is None else job.run_us
    told_us = spec.run_estimate_us or spec.run_limit_us
    parents = () if spec.dependency is None else conditions_of(spec.dependency)
    preceding = {
        each for condition in parents for parent in condition.parents
        for each in numbers.get(parent, ())
    }  # fmt: skip
    ask = Ask(
        user_name=spec.user,
        group_name=spec.group,
        queue_name=spec.queue,
        project_name=spec.project,
        needs=tuple(TraceNeed(each.resource, each.milli, each.per_task) for each in spec.needs),
        is_exclusive=spec.is_exclusive,
        own=spec.requirement,
    )
    return FoundJob(
        trace_id=number,
        submit_s=job.submit_us // SECOND_US,
        submit_part_us=job.submit_us % SECOND_US,
        run_s=run_us // SECOND_US,
        run_part_us=run_us % SECOND_US,
        tasks=job.tasks or spec.tasks_min,
        requested_s=UNKNOWN if told_us is None else -(-told_us // SECOND_US),
        status=job.status,
        details=Details(ask, spec.name or job_of_stream(stream), "", tuple(sorted(preceding))),
    )


def _host(name: str, joined: WorkerJoined | WorkerRecord) -> HostSpec:
    """
    Return a host as it joined.
    """
    memory = [each.total_milli for each in joined.resources if each.name == MEM]
    return HostSpec(
        name,
        joined.slots,
        memory[0] // KIB_MILLI if memory else None,
        tuple((each.name, each.value) for each in joined.attributes),
        tuple(
            ResourceSpec(
                each.name, each.total_milli, each.units[0].model if each.units else "",
                has_units=bool(each.units),
            )
            for each in joined.resources if each.name != MEM
        ),
    )  # fmt: skip
