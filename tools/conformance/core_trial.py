"""
Try schedule, control and account vectors on our own core, through its commands, reports and
sessions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from domain.allocations import Allocation, HostRun, SharedAmount
from domain.amounts import MEM, Amount
from domain.commands import (
    CloseWorker,
    ConfigureWorker,
    DefineCluster,
    DefineQueue,
    DefineResource,
    JobResumedReport,
    JobSuspendedReport,
    LeaveWorker,
    MarkUnreachable,
    SetQueue,
    StartScheduler,
    SubmitJob,
    WorkerReport,
)
from domain.commands.policies import DefineGroup, DefineLimit, DefineProfile, DefineUser
from domain.errors import Refused
from domain.events.jobs import (
    JobDispatched,
    JobResumeOrdered,
    JobSuspendOrdered,
)
from domain.events.workers import JobUsage
from domain.job_states import WAITING
from domain.resources import ResourceScope
from domain.terminations import Termination
from domain.thresholds import parse_thresholds
from domain.units import DAY_US, MINUTE_US
from domain.workers import HostSettings
from projections.scheduling.loads import SUSP_LOAD
from projections.scheduling.orders import SUSP_QUEUE_WINDOW
from projections.scheduling.plugins import Plugins
from projections.scheduling.preemption import SUSP_PREEMPT
from projections.scheduling.records import JobRecord
from tools.conformance.actions import finished_in
from tools.conformance.core_acts import CoreActs
from tools.conformance.core_driver import ADMINISTRATOR
from tools.conformance.core_limits import (
    groups_of,
    host_groups_of,
    is_group,
    limits_of,
    user_of,
)
from tools.conformance.core_policies import queue_of
from tools.conformance.core_profiles import profiles_of, queues_of
from tools.conformance.core_resources import resources_of
from tools.conformance.core_setup import (
    BEGIN_US,
    CONFIGURED,
    asked_texts,
    host_of,
    host_settings_of,
    job_of,
    load_milli,
    load_of,
    only,
    settings_of,
)
from tools.conformance.core_view import MemoryOfHost, memory_of, see_hosts, see_jobs, see_limits
from tools.conformance.seen import Observed
from tools.conformance.trial import NotYet
from tools.conformance.values import (
    Fields,
    Malformed,
    mapping_of,
    mappings_of,
    text_of,
    texts_of,
    whole_of,
)
from tools.conformance.written import SAME_PARAMS, is_yes, named_alike

KNOWN_CLUSTER: Final = ("hosts", "shared", "host_groups", "hostgroups", "groups")

ONLY_OF_RUNNING: Final = (
    "alloc", "used", "reported_after", "started_min_ago", "times_preempted", "by", "backfill"
)  # fmt: skip

PREEMPTED: Final = ("preemption", "preempt", "system")

TOO_BUSY: Final = (Amount(resource="r1m", milli=2_000),)

NOBODY: Final = "999999999"
"""The id of a job that isn't there, for which others were once suspended or which they overtook."""


class CoreTrial(CoreActs):
    """
    Be our core, set up as one case says.
    """

    def __init__(self, case: Fields) -> None:
        super().__init__(case, BEGIN_US - _longest_run_us(case))
        self.rejected: list[str] = []
        self._rejections_seen = 0
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
        cluster = mapping_of(self.case.get("cluster"))
        only(cluster, KNOWN_CLUSTER, "cluster")
        self._define_policies()
        for host in mappings_of(cluster.get("hosts")):
            self._join(host)
        for limit in mappings_of(self.case.get("limits")):
            for name, spec in limits_of(limit, groups=host_groups_of(self.case)):
                self._command(DefineLimit(limit=name, spec=spec))
        running = mappings_of(self.case.get("running"))
        suspended = mappings_of(self.case.get("suspended"))
        for job in sorted([*running, *suspended], key=_started_us):
            self.now_us = _started_us(job)
            self.run(job)
        self.now_us = max(BEGIN_US, self.now_us)
        for job in suspended:
            self._suspend(job, [text_of(each["id"]) for each in running])
        for name, code in ended_in(self.case):
            self.run({"id": name})
            self._end(name, exit_code=code)

    def _define_policies(self) -> None:
        """
        Define what jobs are bound by, and the resources that requirements name.
        """
        case = self.case
        for descriptor in resources_of(case):
            self._command(DefineResource(descriptor=descriptor))
        for group, members in groups_of(case).items():
            self._command(DefineGroup(group=group, spec=members))
        params = named_alike(mapping_of(case.get("params")), SAME_PARAMS)
        for queue in queues_of(case):
            defined = queue_of(queue, params, groups=host_groups_of(case))
            name = text_of(queue.get("name"))
            self._command(DefineQueue(queue=name, spec=defined))
        for profile, needed in profiles_of(case).items():
            self._command(DefineProfile(profile=profile, spec=needed))
        for user in mappings_of(case.get("users")):
            if not is_group(user):
                self._command(DefineUser(user=text_of(user.get("name")), spec=user_of(user)))

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
        elif status == "closed_Full":
            self.run({"id": f"_on {join.worker}", "alloc": {join.worker: join.slots}})
        elif status == "closed_LIM":
            self._command(WorkerReport(worker=join.worker, incarnation=1, is_blind=True))
        elif status not in ("ok", "closed_Busy", *CONFIGURED):
            raise NotYet(f"hosts that are {status}")
        settings = host_settings_of(host)
        if status == "closed_Busy" and not settings.thresholds:
            # The vector doesn't say by which index.
            self._command(WorkerReport(worker=join.worker, incarnation=1, load=TOO_BUSY))
            settings = settings.model_copy(update={"thresholds": parse_thresholds("r1m=1")})
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
        ahead_of = NOBODY if is_yes(job.get("backfill")) else ""
        started = JobDispatched(attempt=1, allocation=allocation, ahead_of=ahead_of)
        self._decide(record.stream, started)
        self._started(record)
        if "used" in job:
            host = next(iter(shares))
            used_milli = {text_of(job["id"]): load_milli(MEM, job["used"])}
            free = job.get("reported_after")
            free_milli = None if free is None else load_milli(MEM, free)
            self.report(host, free_milli=free_milli, used_milli=used_milli)

        for _ in range(whole_of(job.get("times_preempted", 0))):
            self._preempt(record, NOBODY)
            self._command_order(record, JobResumeOrdered)
            self._report(JobResumedReport, record)

    def _suspend(self, job: Fields, running: list[str]) -> None:
        """
        Let a job be one that was suspended for another which runs, or by somebody.
        """
        record = self._record(text_of(job["id"]))
        by = text_of(job.get("by") or "user")
        if by in PREEMPTED:
            self._preempt(record, self.ids[running[0]] if running else NOBODY)
        elif by in ("user", "admin"):
            who = ADMINISTRATOR if by == "admin" else record.spec.user
            self._stop(text_of(job["id"]), None, who)
        elif by == "window" or (by == "load" and self._is_bound_by_load(record)):
            why = SUSP_QUEUE_WINDOW if by == "window" else f"{SUSP_LOAD}(r1m)"
            self._command_order(record, JobSuspendOrdered, why=why)
            self._report(JobSuspendedReport, record)
        else:
            raise NotYet(f"jobs suspended by {by}")

    def _is_bound_by_load(self, record: JobRecord) -> bool:
        """
        Say whether a load threshold decides when a job may go on.
        """
        spec = self.core.state.queue_of(record).spec
        return bool(spec.thresholds or spec.stop_condition)

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
            told = {**job, **self._with_numbers(job), **self._with_members(job)}
            spec = job_of(told, name, self.case)
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

    def _with_numbers(self, job: Fields) -> Fields:
        """
        Return a job's condition with the numbers of arrays that the vector calls by an id of its
        own.
        """
        if not job.get("w"):
            return {}
        text = text_of(job["w"])
        for name, job_id in self.ids.items():
            base, is_element, _ = name.partition("[")
            if is_element:
                number = job_id.partition("[")[0]
                text = re.sub(rf"(?<![\w\"]){re.escape(base)}(?![\w\"(])", number, text)
        return {"w": text}

    def _with_members(self, job: Fields) -> Fields:
        """
        Return the hosts that a job asks for, groups of hosts by their members.
        """
        groups = host_groups_of(self.case)
        if not groups or not job.get("m"):
            return {}
        found: list[str] = []
        for text in asked_texts(job["m"]):
            name, plus, preference = text.partition("+")
            members = " ".join(texts_of(groups.get(name.rstrip("!")))).split()
            found += [f"{each}{plus}{preference}" for each in members] or [text]
        return {"m": found}

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
        days = -(-max(0, self.now_us - wanted_us) // DAY_US)
        self.now_us = wanted_us + days * DAY_US

    def happen(self, step: Fields) -> None:
        """
        Let jobs finish, and hosts be lost or come back.
        """
        for host in texts_of(step.get("host_ok")):
            self._command(WorkerReport(worker=host, incarnation=1))
        for name in texts_of(step.get("job_alive")):
            if name not in self.ids:
                raise Malformed(f"there is no job {name} to be alive")
        for name, code in finished_in(step):
            self.act("exit", name, code, by="")

    def observe(self) -> Observed:
        """
        Return what can be seen now.
        """
        seen = Observed(
            rejected=list(self.rejected),
            rejected_lately=self.rejected[self._rejections_seen :],
            signals=dict(self.signals),
            kill_signals=list(self.kill_signals),
            started=list(self.started),
            victims={name: list(victims) for name, victims in self.victims.items()},
            denied=self.denied,
            error=self.error,
        )
        self._rejections_seen = len(self.rejected)
        names = [name for name in self.ids if not name.startswith("_")]
        see_hosts(self.core.state, seen, self.silent)
        see_limits(self.core.state, seen)
        see_jobs(self.core.state, {name: self._record(name) for name in names}, seen)
        for name, why in self.kill_whys.items():
            # The state forgets why the last attempt of a job ended that was put back.
            if seen.states.get(name) in WAITING:
                seen.terms[name] = why
                seen.term_numbers[name] = Termination(why).number
        return seen

    def report(self, host: str, *, free_milli: int | None, used_milli: dict[str, int]) -> None:
        """
        Report a host's free memory, None for no word of it, and what each of its jobs uses.
        """
        jobs = []
        for name, milli in used_milli.items():
            record = self._record(name)
            use = Amount(resource=MEM, milli=milli)
            jobs.append(JobUsage(job_id=record.job_id, attempt=record.attempt, amounts=(use,)))
        load = () if free_milli is None else (Amount(resource=MEM, milli=free_milli),)
        self._command(WorkerReport(worker=host, incarnation=1, load=load, jobs=tuple(jobs)))

    def memory(self, host: str) -> MemoryOfHost:
        """
        Return what the core makes of a host's memory.
        """
        return memory_of(self.core.state, host)


def ended_in(case: Fields) -> list[tuple[str, int]]:
    """
    Return the jobs that have ended before the vector begins, with their exit codes.
    """
    ended = case.get("ended")
    if isinstance(ended, Mapping):
        return [(text_of(name), whole_of(code)) for name, code in ended.items()]
    found = []
    for job in mappings_of(ended):
        only(job, {"id", "state", "code", "exit_code"}, "ended job")
        failed = 1 if job.get("state") == "EXIT" else 0
        code = whole_of(job.get("exit_code", job.get("code", failed)))
        found.append((text_of(job["id"]), code))
    return found


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
    running = mappings_of(case.get("running")) + mappings_of(case.get("suspended"))
    return max(map(_started_min_ago, running), default=0) * MINUTE_US
