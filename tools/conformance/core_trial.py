"""
Try schedule, control and account vectors on our own core, through its commands, reports and
sessions.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from domain.allocations import Allocation, HostRun, SharedAmount
from domain.amounts import MEM, Amount
from domain.commands import (
    CloseWorker,
    ConfigureWorker,
    DefineCluster,
    DefineQueue,
    DefineResource,
    JobCouldNotStartReport,
    JobFinishedReport,
    JobResumedReport,
    JobSuspendedReport,
    KillJob,
    LeaveWorker,
    MarkUnreachable,
    ModifyJob,
    MoveJob,
    RequeueJob,
    ResumeJob,
    SetQueue,
    StartScheduler,
    StopJob,
    SubmitJob,
    SwitchJob,
    WorkerReport,
)
from domain.commands.policies import DefineLimit, DefineUser
from domain.errors import Denied, Refused
from domain.events.jobs import (
    PRE_EXEC_GIVES_UP,
    JobDispatched,
    JobResumeOrdered,
    JobSuspendOrdered,
)
from domain.events.workers import JobUsage
from domain.job_states import WAITING, JobState
from domain.resources import ResourceScope
from domain.units import MINUTE_US
from domain.workers import HostSettings
from projections.scheduling.plugins import Plugins
from projections.scheduling.preemption import SUSP_PREEMPT
from projections.scheduling.records import JobRecord
from tools.conformance.core_driver import ADMINISTRATOR, CoreDriver
from tools.conformance.core_policies import limit_of, queue_of, user_of
from tools.conformance.core_setup import (
    BEGIN_US,
    CONFIGURED,
    MB_MILLI,
    OVER_US,
    host_of,
    host_settings_of,
    job_of,
    load_of,
    resources_of,
    settings_of,
)
from tools.conformance.core_view import MemoryOfHost, memory_of, see_hosts, see_jobs, see_limits
from tools.conformance.observed import Observed
from tools.conformance.trial import NotYet
from tools.conformance.values import (
    Fields,
    mapping_of,
    mappings_of,
    text_of,
    texts_of,
    whole_of,
)

ONLY_OF_RUNNING: Final = (
    "alloc", "used", "reported_after", "started_min_ago", "times_preempted", "by"
)  # fmt: skip

NOBODY: Final = "999999999"
"""The id of a job that isn't there, for which others were once suspended."""


class CoreTrial(CoreDriver):
    """
    Be our core, set up as one case says.
    """

    def __init__(self, case: Fields) -> None:
        super().__init__(BEGIN_US - _longest_run_us(case))
        self.case = case
        self.rejected: list[str] = []
        self.denied = False
        self.error = ""
        self._begin()

    # ---------------------------------------------------------------------------------- setting up

    def _begin(self) -> None:
        plugins = Plugins()
        start = StartScheduler(
            epoch=1,
            holder="conformance",
            code_version="",
            pickers=plugins.picker_versions(),
            allocators=plugins.allocator_versions(),
        )
        self._command(start)
        self._command(DefineCluster(settings=settings_of(self.case)))
        queues = mappings_of(self.case.get("queues"))
        if not any(queue.get("name") == "normal" for queue in queues):
            queues = [{"name": "normal"}, *queues]
        for queue in queues:
            defined = queue_of(queue, mapping_of(self.case.get("params")))
            self._command(DefineQueue(queue=text_of(queue.get("name")), spec=defined))
        for user in mappings_of(self.case.get("users")):
            self._command(DefineUser(user=text_of(user.get("name")), spec=user_of(user)))
        cluster = mapping_of(self.case.get("cluster"))
        for descriptor in resources_of(self.case):
            self._command(DefineResource(descriptor=descriptor))
        for host in mappings_of(cluster.get("hosts")):
            self._join(host)
        for limit in mappings_of(self.case.get("limits")):
            name, spec = limit_of(limit)
            self._command(DefineLimit(limit=name, spec=spec))
        running = mappings_of(self.case.get("running"))
        for job in sorted(running, key=_started_us):
            self.now_us = _started_us(job)
            self.run(job)
        self.now_us = max(BEGIN_US, self.now_us)
        for job in mappings_of(self.case.get("suspended")):
            self._run_and_suspend(job)
        for name, code in mapping_of(self.case.get("ended")).items():
            self.run({"id": name})
            self._end(name, exit_code=whole_of(code))

    def _join(self, host: Fields) -> None:
        join = host_of(host)
        self._command(join)
        load = load_of(host)
        if load:
            self._command(WorkerReport(worker=join.worker, incarnation=1, load=load))
        status = host.get("status", "ok")
        if status == "closed_Adm":
            self._command(CloseWorker(worker=join.worker))
        elif status == "unreach":
            self._command(MarkUnreachable(worker=join.worker, incarnation=1, silent_us=0))
        elif status == "unavail":
            self._command(LeaveWorker(worker=join.worker, incarnation=1))
        elif status == "closed_Excl":
            self.run({"id": f"_on {join.worker}", "alloc": {join.worker: 1}, "x": True})
        elif status not in ("ok", *CONFIGURED):
            raise NotYet(f"hosts that are {status}")
        settings = host_settings_of(host)
        if settings != HostSettings():
            self._command(ConfigureWorker(worker=join.worker, settings=settings))

    def run(self, job: Fields) -> None:
        """
        Let a job run where the vector says, by the same events as if a session had placed it there.
        """
        shares = {name: whole_of(tasks) for name, tasks in mapping_of(job.get("alloc")).items()}
        shares = shares or {self.core.state.hosts[0].name: 1}
        left_out = (*ONLY_OF_RUNNING, "x")
        told = {name: value for name, value in job.items() if name not in left_out}
        self.submit({**told, "n": sum(shares.values())})
        record = self._record(text_of(job["id"]))
        # It runs already: whether its queue takes exclusive jobs isn't asked.
        allocation = self._allocation(record, shares, is_exclusive=bool(job.get("x")))
        self._decide(record.stream, JobDispatched(attempt=1, allocation=allocation))
        self._started(record)
        if "used" in job:
            host = next(iter(shares))
            used_mb = {text_of(job["id"]): whole_of(job["used"])}
            self.report(host, free_mb=whole_of(job["reported_after"]), used_mb=used_mb)

        for _ in range(whole_of(job.get("times_preempted", 0))):
            self._preempt(record, NOBODY)
            self._command_order(record, JobResumeOrdered)
            self._report(JobResumedReport, record)

    def _run_and_suspend(self, job: Fields) -> None:
        """
        Let a job be one that was suspended for another which runs on its host, or by somebody.
        """
        others = list(self.core.state.live.values())
        self.run(job)
        record = self._record(text_of(job["id"]))
        if job.get("by") == "preemption":
            self._preempt(record, others[0].job_id if others else NOBODY)
        elif job.get("by", "user") in ("user", "admin"):
            by = ADMINISTRATOR if job.get("by") == "admin" else record.spec.user
            self._stop(text_of(job["id"]), None, by)
        else:
            raise NotYet(f"jobs suspended by {text_of(job.get('by'))}")

    def _preempt(self, record: JobRecord, preemptor: str) -> None:
        self._command_order(
            record, JobSuspendOrdered, why=SUSP_PREEMPT, signal="SIGSTOP", preemptor=preemptor
        )
        self._report(JobSuspendedReport, record)

    def _allocation(
        self, record: JobRecord, shares: dict[str, int], *, is_exclusive: bool
    ) -> Allocation:
        numbers = {worker.name: worker.number for worker in self.core.state.hosts}
        amounts, shared = [], []
        for need in record.spec.needs:
            descriptor = self.core.state.catalogue.get(need.resource)
            if descriptor is not None and descriptor.scope is ResourceScope.SHARED:
                shared.append(SharedAmount(resource=need.resource, milli=need.milli))
            else:
                amounts.append(Amount(resource=need.resource, milli=need.milli))
        runs = tuple(
            HostRun(first=numbers[host], tasks=count, amounts=tuple(amounts))
            for host, count in shares.items()
        )
        return Allocation(
            runs=runs,
            shared=tuple(shared),
            allocator="seqjob",
            is_exclusive=is_exclusive,
        )

    # ---------------------------------------------------------------------------- what a trial does

    def submit(self, job: Fields) -> None:
        """
        Submit a job; a refusal is noted.
        """
        name = text_of(job.get("id", "J"))
        if job.get("submitted_before_close"):
            self._before_close(job)
            return
        try:
            spec = job_of(job, name, self.case)
            made = self._command(SubmitJob(spec=spec))
        except Refused:
            self.rejected.append(name)
            return
        record = self.core.state.stored.jobs.get(made[0].stream)
        if record is not None:
            self.ids[name] = record.job_id
            return
        number = int(made[0].stream.removeprefix("job:"))
        for stream in self.core.state.stored.arrays[number].elements:
            element = self.core.state.stored.jobs[stream]
            self.ids[f"{name}[{element.index}]"] = element.job_id

    def _before_close(self, job: Fields) -> None:
        """
        Submit a job while its queue was still open.
        """
        queue = text_of(job.get("q", "normal"))
        self._command(SetQueue(queue=queue, to="open"))
        self.submit(
            {name: value for name, value in job.items() if name != "submitted_before_close"}
        )
        self._command(SetQueue(queue=queue, to="closed"))

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
        Let jobs finish, and hosts be lost or come back.
        """
        for name in texts_of(step.get("finish")):
            self.act("exit", name, 0, by="")
        if "host_ok" in step:
            self._command(WorkerReport(worker=text_of(step["host_ok"]), incarnation=1))

    def act(self, name: str, job: str, value: object, *, by: str) -> None:
        """
        Do to a job what a command does, or let something happen to it; a refusal is noted.
        """
        action = self._actions().get(name)
        if action is None:
            raise NotYet(f"the action {name}")
        self.denied, self.error = False, ""
        for each in self._elements(job):
            try:
                action(each, value, by)
            except Refused as refused:
                self.denied = isinstance(refused, Denied) or "administrator" in refused.rule
                self.error = f"{refused.field}: {refused.rule}"

    def _actions(self) -> dict[str, Callable[[str, object, str], object]]:
        return {
            "bstop": self._stop,
            "bresume": lambda job, _, by: self._command(ResumeJob(job_id=self.ids[job]), by),
            "bkill": self._kill,
            "brequeue": self._requeue,
            "bswitch": lambda job, value, by: self._command(
                SwitchJob(job_id=self.ids[job], queue=text_of(value)), by
            ),
            "bmod": self._modify,
            "btop": lambda job, _, by: self._move(job, "top", by),
            "bbot": lambda job, _, by: self._move(job, "bottom", by),
            "exit": self._exit,
            "pre_exec": self._fail_before,
            "killed": lambda job, value, _: self._end(job, signal=whole_of(value)),
            "host_unavail": self._lose,
            "over": self._exceed,
        }

    def _stop(self, job: str, value: object, by: str) -> None:
        del value
        self._command(StopJob(job_id=self.ids[job]), by)
        self._until(lambda: self._record(job).state in {JobState.USUSP, JobState.PSUSP})

    def _kill(self, job: str, value: object, by: str) -> None:
        del value
        self._command(KillJob(job_id=self.ids[job]), by)
        self._until(lambda: self._record(job).state is JobState.EXIT)

    def _requeue(self, job: str, value: object, by: str) -> None:
        self._command(RequeueJob(job_id=self.ids[job], hold=value == "-H"), by)
        self._until(lambda: self._record(job).state in WAITING)

    def _move(self, job: str, to: Literal["top", "bottom"], by: str) -> None:
        self._command(MoveJob(job_id=self.ids[job], to=to), by)

    def _modify(self, job: str, value: object, by: str) -> None:
        changes = mapping_of(value)
        record = self._record(job)
        if "q" in changes:
            raise Refused("queue", "is changed by a switch", text_of(changes["q"]))
        if "depn" in changes:
            spec = record.spec.model_copy(update={"dependency_text": "", "dependency": None})
        else:
            spec = job_of(changes, record.spec.name, self.case)
            given = {"n": ("tasks_min", "tasks_max"), "W": ("run_limit_us",)}
            given["R"] = ("resreq",)
            names = [name for change in changes for name in given[change]]
            changed = {name: getattr(spec, name) for name in names}
            spec = record.spec.model_copy(update=changed)
        self._command(ModifyJob(job_id=record.job_id, spec=spec), by)

    def _exit(self, job: str, value: object, by: str) -> None:
        del by
        self._end(job, exit_code=whole_of(value))

    def _end(self, job: str, *, exit_code: int | None = None, signal: int | None = None) -> None:
        """
        Report a job's end, and let the core put it back when its exit value says so.
        """
        record = self._record(job)
        self._report(JobFinishedReport, record, exit_code=exit_code, signal=signal)
        self._until(lambda: not record.requeue_why)

    def _fail_before(self, job: str, value: object, by: str) -> None:
        """
        Let a command before the job's own fail: the queue's, or the job's own with the value that
        says there is no use in trying again.
        """
        del by
        code = whole_of(value)
        owner = "job" if code == PRE_EXEC_GIVES_UP else "queue"
        record = self._record(job)
        self._report(
            JobCouldNotStartReport, record, why="pre_exec", pre_exec_of=owner, pre_exec_exit=code
        )
        self._until(lambda: not record.requeue_why)

    def _exceed(self, job: str, value: object, by: str) -> None:
        """
        Let a job go over the limit that it was submitted with.
        """
        del by
        record = self._record(job)
        amounts = tuple(Amount(resource=name, milli=9 * MB_MILLI) for name in (MEM, "swp"))
        usage = JobUsage(
            job_id=record.job_id,
            attempt=record.attempt,
            amounts=amounts,
            cpu_us=2 * OVER_US,
            processes=9,
            threads=9,
        )
        if value in {"runlimit", "termination_deadline"}:
            self.now_us += OVER_US
        else:
            worker = self.core.state.hosts[0].name
            self._command(WorkerReport(worker=worker, incarnation=1, jobs=(usage,)))
        self._until(lambda: record.state is JobState.EXIT)

    def _lose(self, host: str, value: object, by: str) -> None:
        del value, by
        self._command(MarkUnreachable(worker=host, incarnation=1, silent_us=0))

    def observe(self) -> Observed:
        """
        Return what can be seen now.
        """
        seen = Observed(
            rejected=list(self.rejected),
            signals=dict(self.signals),
            kill_signals=list(self.kill_signals),
            victims={name: list(victims) for name, victims in self.victims.items()},
            denied=self.denied,
            error=self.error,
        )
        names = [name for name in self.ids if not name.startswith("_")]
        see_hosts(self.core.state, seen)
        see_limits(self.core.state, seen)
        see_jobs(self.core.state, {name: self._record(name) for name in names}, seen)
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
        return memory_of(self.core.state, host)

    # -------------------------------------------------------------------------------------- helpers

    def _elements(self, name: str) -> list[str]:
        """
        Return the jobs that a name means: itself, or the elements in brackets.
        """
        if name in self.ids or "[" not in name:
            return [name]
        base, _, listed = name.rstrip("]").partition("[")
        return [f"{base}[{index}]" for index in listed.split(",")]


def _started_min_ago(job: Fields) -> int:
    return whole_of(job.get("started_min_ago", 0))


def _started_us(job: Fields) -> int:
    """
    Return when a job that runs already was submitted and started.
    """
    minute = whole_of(job.get("submit", 0)) - _started_min_ago(job)
    return BEGIN_US + minute * MINUTE_US


def _longest_run_us(case: Fields) -> int:
    """
    Return how long the job that was started first has run when the vector begins.
    """
    running = mappings_of(case.get("running"))
    return max(map(_started_min_ago, running), default=0) * MINUTE_US
