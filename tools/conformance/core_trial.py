"""
Try schedule vectors on our own core, through its commands, reports and sessions.

Where a vector assumes LSF's defaults, the cluster gets the settings that the specification names
for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from domain.allocations import Allocation, HostRun
from domain.amounts import MEM, Amount, Attribute, HostResource
from domain.cluster import ClusterSettings
from domain.commands import (
    CloseWorker,
    DefineCluster,
    DefineQueue,
    JobFinishedReport,
    JobStartedReport,
    JoinWorker,
    MarkUnreachable,
    StartScheduler,
    SubmitJob,
    WorkerReport,
)
from domain.envelope import Stamped
from domain.errors import Refused
from domain.event import Event
from domain.events.jobs import JobDispatched
from domain.events.workers import JobUsage
from domain.ids import job_stream
from domain.job_states import LIVE, WAITING
from domain.jobs import JobSpec, Need
from domain.queues import QueueSpec
from domain.reasons import PendReason
from domain.resreq import Requirement, parse
from domain.resreq.syntax import Per
from domain.units import MILLI, MINUTE_US, MemoryUnit
from projections.scheduling.core import Core
from projections.scheduling.plugins import Plugins
from projections.scheduling.records import JobRecord
from projections.scheduling.status import why_waiting
from tools.conformance.observed import Observed, Waiting
from tools.conformance.trial import NotYet
from tools.conformance.values import (
    Fields,
    items_of,
    mapping_of,
    mappings_of,
    text_of,
    texts_of,
    whole_of,
)

BEGIN_US: Final = 1_700_000_000_000_000 // (24 * 60 * MINUTE_US) * (24 * 60 * MINUTE_US)
"""Minute 0 of every vector: midnight in UTC, so that a clock of 18:00 is minute 1080."""

MB_MILLI: Final = MemoryUnit.MB.kib * MILLI

KNOWN_HOST: Final = {"name", "slots", "mem", "maxmem", "type", "model", "status", "ncpus"}
KNOWN_JOB: Final = {"id", "n", "R", "q", "user", "sp", "project", "just_submitted", "submit"}
KNOWN_QUEUE: Final = {"name", "PRIORITY", "status"}
KNOWN_CASE: Final = {"params", "users", "limits", "suspended", "app", "actions", "causes"}
"""What isn't known is not yet carried out, and says so instead of giving a wrong answer."""


@dataclass(frozen=True, slots=True)
class MemoryOfHost:
    """
    Hold the memory of a host in MB: what a new job may take, what jobs reserved and don't use, what
    is charged.
    """

    available: int
    slack: int
    charged: int


class CoreTrial:
    """
    Be our core, set up as one case says.
    """

    def __init__(self, case: Fields) -> None:
        self.now_us = BEGIN_US
        self.core = Core()
        self.ids: dict[str, str] = {}
        self.rejected: list[str] = []
        self.made: list[Stamped] = []
        for name in KNOWN_CASE:
            if case.get(name):
                raise NotYet(name)
        self._begin(case)

    # ---------------------------------------------------------------------------------- setting up

    def _begin(self, case: Fields) -> None:
        plugins = Plugins()
        start = StartScheduler(
            epoch=1,
            holder="conformance",
            code_version="",
            pickers=plugins.picker_versions(),
            allocators=plugins.allocator_versions(),
        )
        self._command(start)
        self._command(DefineCluster(settings=settings_of(case)))
        queues = mappings_of(case.get("queues"))
        if not any(queue.get("name") == "normal" for queue in queues):
            queues = [{"name": "normal"}, *queues]
        for queue in queues:
            _only(queue, KNOWN_QUEUE, "queue")
            spec = QueueSpec(priority=whole_of(queue.get("PRIORITY", 30)))
            self._command(DefineQueue(queue=text_of(queue.get("name")), spec=spec))
        cluster = mapping_of(case.get("cluster"))
        if cluster.get("shared"):
            raise NotYet("shared resources")
        for host in mappings_of(cluster.get("hosts")):
            self._join(host)
        for job in mappings_of(case.get("running")):
            self.run(job)

    def _join(self, host: Fields) -> None:
        _only(host, KNOWN_HOST, "host")
        name = text_of(host.get("name"))
        total = whole_of(host.get("maxmem", host.get("mem", 16000)))
        join = JoinWorker(
            worker=name,
            slots=whole_of(host.get("slots", 4)),
            resources=(HostResource(name=MEM, total_milli=total * MB_MILLI, is_real=True),),
            attributes=(
                Attribute(name="type", value=text_of(host.get("type", "LINUX"))),
                Attribute(name="model", value=text_of(host.get("model", "M1"))),
            ),
        )
        self._command(join)
        status = host.get("status", "ok")
        if status == "closed_Adm":
            self._command(CloseWorker(worker=name))
        elif status == "unreach":
            self._command(MarkUnreachable(worker=name, incarnation=1, silent_us=0))
        elif status != "ok":
            raise NotYet(f"hosts that are {status}")

    def run(self, job: Fields) -> None:
        """
        Let a job run where the vector says, by the same events as if a session had placed it there.
        """
        shares = {name: whole_of(tasks) for name, tasks in mapping_of(job.get("alloc")).items()}
        tasks = sum(shares.values()) or 1
        self.submit({**{name: value for name, value in job.items() if name != "alloc"}, "n": tasks})
        record = self._record(text_of(job["id"]))
        numbers = {worker.name: worker.number for worker in self.core.state.hosts}
        amounts = tuple(
            Amount(resource=need.resource, milli=need.milli) for need in record.spec.needs
        )
        runs = tuple(
            HostRun(first=numbers[host], tasks=count, amounts=amounts)
            for host, count in (shares or {self.core.state.hosts[0].name: 1}).items()
        )
        event = JobDispatched(attempt=1, allocation=Allocation(runs=runs, allocator="seqjob"))
        self._apply(record.stream, event, "")
        self._started(record)

    # ----------------------------------------------------------------------------- what a trial
    # does

    def submit(self, job: Fields) -> None:
        """
        Submit a job; a refusal is noted.
        """
        _only(job, KNOWN_JOB, "job")
        name = text_of(job.get("id", "J"))
        try:
            made = self._command(SubmitJob(spec=spec_of(job, name)))
        except Refused:
            self.rejected.append(name)
            return
        self.ids[name] = self.core.state.stored.jobs[made[0].stream].job_id

    def go_to(self, minute: int) -> None:
        """
        Let time go on; a time of day that is past is tomorrow's.
        """
        wanted_us = BEGIN_US + minute * MINUTE_US
        while wanted_us < self.now_us:
            wanted_us += 24 * 60 * MINUTE_US
        self.now_us = wanted_us

    def happen(self, step: Fields) -> None:
        """
        Let jobs finish.
        """
        for name in texts_of(step.get("finish")):
            record = self._record(name)
            self._command(JobFinishedReport(**self._report_of(record), exit_code=0))

    def cycle(self) -> None:
        """
        Hold sessions until nothing more is decided, and report what was dispatched as started.
        """
        self.made = list(self.core.session(self.now_us))
        while self.core.is_cut_short:
            self.made += self.core.session(self.now_us)
        for stamped in self.made:
            if isinstance(stamped.event, JobDispatched):
                self._started(self.core.state.stored.jobs[stamped.stream])

    def observe(self) -> Observed:
        """
        Return what can be seen now.
        """
        seen = Observed(rejected=list(self.rejected))
        for name, job_id in self.ids.items():
            record = self.core.state.stored.jobs[job_stream(job_id)]
            seen.states[name] = record.state.value
            if record.state in LIVE and record.allocation is not None:
                seen.shares[name] = dict(self.core.state.host_names(record.allocation))
            if record.state in WAITING:
                seen.waiting[name] = self._waiting(record)
        return seen

    def report(self, host: str, *, free_mb: int, used_mb: dict[str, int]) -> None:
        """
        Report a host's free memory, and what each of its jobs uses.
        """
        jobs = []
        for name, amount_mb in used_mb.items():
            record = self._record(name)
            use = Amount(resource=MEM, milli=amount_mb * MB_MILLI)
            jobs.append(JobUsage(job_id=record.job_id, attempt=record.attempt, amounts=(use,)))
        load = (Amount(resource=MEM, milli=free_mb * MB_MILLI),)
        self._command(WorkerReport(worker=host, incarnation=1, load=load, jobs=tuple(jobs)))

    def memory_mb(self, host: str) -> MemoryOfHost:
        """
        Return what the core makes of a host's memory.
        """
        number = next(each.number for each in self.core.state.hosts if each.name == host)
        column = self.core.state.capacity.resources[MEM]
        milli = (column.available[number], column.unused[number], column.charged[number])
        return MemoryOfHost(*(int(amount) // MB_MILLI for amount in milli))

    # -------------------------------------------------------------------------------------- helpers

    def _command(self, command: Any) -> list[Stamped]:
        found = self.core.handle(command, actor="u1", now_us=self.now_us)
        return [self._apply(stream, event, "u1") for stream, event in found]

    def _apply(self, stream: str, event: Event, actor: str) -> Stamped:
        version = self.core.state.next_version(stream)
        stamped = Stamped(stream, version, self.now_us, actor, "", event, ends_step=True)
        self.core.apply(stamped)
        return stamped

    def _record(self, name: str) -> JobRecord:
        return self.core.state.stored.jobs[job_stream(self.ids[name])]

    def _report_of(self, record: JobRecord) -> dict[str, Any]:
        assert record.allocation is not None, record.stream
        worker = self.core.state.hosts[record.allocation.runs[0].first]
        return {
            "worker": worker.name,
            "incarnation": worker.incarnation,
            "job_id": record.job_id,
            "attempt": record.attempt,
        }

    def _started(self, record: JobRecord) -> None:
        self._command(JobStartedReport(**self._report_of(record)))

    def _waiting(self, record: JobRecord) -> Waiting:
        _, reasons = why_waiting(self.core.state, record)
        waiting = Waiting(main=next((code_of(each) for each in reasons if not each.hosts), ""))
        for reason in reasons:
            for host in self._hosts_of(reason):
                waiting.hosts.setdefault(host, []).append(code_of(reason))
        return waiting

    def _hosts_of(self, reason: PendReason) -> Iterator[str]:
        for span in reason.hosts:
            for number in range(span.first, span.first + span.hosts):
                yield self.core.state.hosts[number].name


def code_of(reason: PendReason) -> str:
    """
    Return a reason's code as the vectors write it, with the resource or limit that it is about.
    """
    code = reason.code.value
    if code == "RES_LIMIT":
        return f"{code}({reason.detail},{reason.resource})"
    return f"{code}({reason.resource})" if reason.resource else code


def settings_of(case: Fields) -> ClusterSettings:
    """
    Return settings that give LSF's defaults, which the vectors assume.
    """
    del case
    values: dict[str, object] = {
        "name": "vectors",
        "default_queue": "normal",
        "picker": "builtin_fcfs",
        "allocators": ("fill",),
        "session_interval_us": 0,
        "session_max_decisions": 100_000,
        "clean_period_us": 3_600_000_000,
        "forget_batch": 1_000,
        "key_retention_us": 3_600_000_000,
        "snapshot_every_events": 1_000_000,
        "default_host_type": "local",
        "memory_unit": "MB",
        "reserve_per_task": False,
    }
    known = ClusterSettings.model_fields
    return ClusterSettings.model_validate(
        {name: values[name] for name in values if name in known}, strict=False
    )


def spec_of(job: Fields, name: str) -> JobSpec:
    """
    Return the job that a vector describes.
    """
    least, most = tasks_of(job.get("n", 1))
    return JobSpec(
        user=text_of(job.get("user", "u1")),
        queue=text_of(job.get("q", "normal")),
        name=name,
        tasks_min=least,
        tasks_max=most,
        resreq=texts_of(job.get("R")),
        needs=needs_of(parse(texts_of(job.get("R")))),
        user_priority=whole_of(job.get("sp", 0)),
    )


def tasks_of(value: object) -> Sequence[int]:
    """
    Return the fewest and the most tasks.
    """
    if isinstance(value, int):
        return (value, value)
    least, most = items_of(value)
    return whole_of(least), whole_of(most)


def needs_of(requirement: Requirement) -> tuple[Need, ...]:
    """
    Return what a requirement reserves, as far as jobs can say it.
    """
    primary = requirement.compounds[0].primaries[0]
    plain = requirement.is_simple and len(primary.rusage) < 2
    if not plain or primary.model_copy(update={"rusage": ()}) != type(primary)():
        raise NotYet("requirements beyond rusage")
    found = []
    for usage in primary.rusage:
        for term in usage:
            if (
                term.per is Per.JOB
                or term.duration_us is not None
                or term.threshold_milli is not None
            ):
                raise NotYet("rusage with more than an amount")
            is_per_task = term.per is Per.TASK
            found.append(Need(resource=term.resource, milli=term.milli, per_task=is_per_task))
    return tuple(found)


def _only(fields: Fields, known: set[str], what: str) -> None:
    unknown = sorted(set(fields) - known)
    if unknown:
        raise NotYet(f"{what} with {', '.join(unknown)}")
