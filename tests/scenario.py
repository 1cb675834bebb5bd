"""
The small language of scheduling tests: hosts, jobs, sessions, and the decisions in words.
"""

from __future__ import annotations

from typing import Any

from domain.cluster import ClusterSettings
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
    LiftHold,
    OpenWorker,
    RunJob,
    SetQueue,
    SignalJob,
    SubmitJob,
)
from domain.envelope import Stamped
from domain.events.jobs import (
    JobDispatched,
    JobEnded,
    JobKillOrdered,
    JobPended,
    JobPreemptionEnded,
    JobPreemptionPlanned,
    JobRequeued,
    JobResumeOrdered,
    JobSignalOrdered,
    JobStartPromised,
    JobSuspendOrdered,
)
from domain.events.session import JobsForgotten, ListHeldBack, ReasonSetChanged, SessionHeld
from domain.ids import job_of_stream, job_stream, split_job_id
from domain.jobs import HostFault, JobSpec, WantedHost
from domain.queues import QueueSpec
from domain.reasons import PendReason, ReasonCode
from domain.signals import SignalName
from projections.scheduling.core import Core
from projections.scheduling.plugins import Plugins
from projections.scheduling.records import JobRecord
from projections.scheduling.state import State
from tests.builders import SECOND_US, a_host, a_job, beginning
from tests.literal import literal_plugins

Order = JobKillOrdered | JobSuspendOrdered | JobResumeOrdered | JobSignalOrdered


class Scenario:
    """
    Drive a core by words. ``decisions`` holds what the last session decided, in words.

    Args:
        settings: The cluster's settings; a small cluster's when None.
        plain: Use the literal, slow core.
    """

    def __init__(
        self,
        settings: ClusterSettings | None = None,
        *,
        plugins: Plugins | None = None,
        plain: bool = False,
    ) -> None:
        plugins = literal_plugins() if plain and plugins is None else plugins
        self.core = Core(plugins, plain=plain)
        self.now_us = SECOND_US
        self.log: list[Stamped] = []
        self.decisions: list[str] = []
        self.ids: dict[str, str] = {}
        for command in beginning(settings, plugins):
            self.command(command)

    @property
    def state(self) -> State:
        """
        Return the core's state.
        """
        return self.core.state

    def command(self, command: Any, actor: str = "alice") -> list[Stamped]:
        """
        Handle a command and apply its events, as one step.
        """
        found = self.core.handle(command, actor=actor, now_us=self.now_us)
        made = []
        for place, (stream, event) in enumerate(found):
            version = self.state.next_version(stream)
            last = place == len(found) - 1
            stamped = Stamped(stream, version, self.now_us, actor, "", event, last)
            self.core.apply(stamped)
            made.append(stamped)
        self.log += made
        return made

    def hosts(self, *texts: str) -> None:
        """
        Let hosts join: "h1 slots=4 mem_mb=1000".
        """
        for text in texts:
            name, values = _parsed(text)
            self.command(a_host(name, **values), actor="")

    def jobs(self, *texts: str) -> None:
        """
        Submit jobs: "A tasks=8 mem_mb=100 per_task=1 priority=5 queue=high".
        """
        for text in texts:
            name, values = _parsed(text)
            made = self.command(a_job(name=name, **values))
            self.ids[name] = self.state.stored.jobs[made[0].stream].job_id

    def queue(self, name: str, priority: int = 30) -> None:
        """
        Define a queue.
        """
        self.command(DefineQueue(queue=name, spec=QueueSpec(priority=priority)))

    def set_queue(self, name: str, to: str) -> None:
        """
        Turn a switch of a queue.
        """
        self.command(SetQueue.model_validate({"queue": name, "to": to}))

    def close(self, host: str) -> None:
        """
        Close a host.
        """
        self.command(CloseWorker(worker=host))

    def open(self, host: str) -> None:
        """
        Open a host.
        """
        self.command(OpenWorker(worker=host))

    def kill(self, *names: str, actor: str = "alice", force: bool = False) -> None:
        """
        Ask to kill jobs.
        """
        for name in names:
            self.command(KillJob(job_id=self.ids[name], force=force), actor)

    def run(self, name: str, *hosts: str, actor: str = "root") -> None:
        """
        Ask to start a job on hosts: "h1", "h1*2".
        """
        wanted = []
        for text in hosts:
            host, _, tasks = text.partition("*")
            wanted.append(WantedHost(host=host, tasks=int(tasks) if tasks else None))
        self.command(RunJob(job_id=self.ids[name], hosts=tuple(wanted)), actor)

    def signal(self, name: str, signal: SignalName, actor: str = "alice") -> None:
        """
        Ask to send a signal to a job.
        """
        self.command(SignalJob(job_id=self.ids[name], signal=signal), actor)

    def hold(self, name: str) -> None:
        """
        Hold a job.
        """
        self.command(HoldJob(job_id=self.ids[name]))

    def lift(self, name: str) -> None:
        """
        Lift a job's hold.
        """
        self.command(LiftHold(job_id=self.ids[name]))

    def start(self, *names: str) -> None:
        """
        Report jobs as started, by the worker that leads them.
        """
        for name in names:
            self.command(JobStartedReport(**self._report(name)), actor="")

    def finish(self, *names: str, exit_code: int = 0) -> None:
        """
        Report jobs as finished.
        """
        for name in names:
            self.command(JobFinishedReport(**self._report(name), exit_code=exit_code), actor="")

    def end_by(self, name: str, signal: int) -> None:
        """
        Report a job as ended by a signal.
        """
        self.command(JobFinishedReport(**self._report(name), signal=signal), actor="")

    def could_not_start(self, name: str, *, fault: HostFault = "") -> None:
        """
        Report that a job couldn't be started.
        """
        report = JobCouldNotStartReport(**self._report(name), why="it failed", fault=fault)
        self.command(report, actor="")

    def suspended(self, *names: str) -> None:
        """
        Report jobs as stopped, as they were ordered.
        """
        for name in names:
            self.command(JobSuspendedReport(**self._report(name)), actor="")

    def resumed(self, *names: str) -> None:
        """
        Report jobs as going on, as they were ordered.
        """
        for name in names:
            self.command(JobResumedReport(**self._report(name)), actor="")

    def submit(self, name: str, **changes: Any) -> None:
        """
        Submit a job whose specification has these fields; an array's elements are NAME[1], ...
        """
        command = a_job(name=name)
        spec = JobSpec(**{**dict(command.spec), **changes})
        made = self.command(SubmitJob(spec=spec), actor=spec.user)
        number = split_job_id(job_of_stream(made[0].stream))[0]
        self.ids[name] = str(number)
        for stream in self.state.streams_of(number):
            job = self.state.stored.jobs[stream]
            if job.index:
                self.ids[f"{name}[{job.index}]"] = job.job_id

    def _report(self, name: str) -> dict[str, Any]:
        job = self.job(name)
        assert job.allocation is not None, f"{name} has no hosts"
        worker = self.state.hosts[job.allocation.runs[0].first]
        return {
            "worker": worker.name,
            "incarnation": worker.incarnation,
            "job_id": job.job_id,
            "attempt": job.attempt,
        }

    def job(self, name: str) -> JobRecord:
        """
        Return a job's record.
        """
        return self.state.stored.jobs[job_stream(self.ids[name])]

    def states(self) -> dict[str, str]:
        """
        Return the state of every job that is known.
        """
        known = self.state.stored.jobs
        return {
            name: known[job_stream(job_id)].state.value
            for name, job_id in self.ids.items()
            if job_stream(job_id) in known
        }

    def pass_time(self, seconds: int) -> None:
        """
        Let time go by.
        """
        self.now_us += seconds * SECOND_US

    def session(self) -> list[str]:
        """
        Hold a session, and keep its decisions in words.
        """
        made = self.core.session(self.now_us)
        self.log += made
        self.decisions = [words for stamped in made if (words := self._words(stamped))]
        return self.decisions

    # -- words

    def _name(self, stream: str) -> str:
        job = self.state.stored.jobs.get(stream)
        if job is None:
            return stream
        element = f"[{job.index}]" if job.index else ""
        return f"{job.spec.name}{element}" if job.spec.name else job.job_id

    def _words(self, stamped: Stamped) -> str:
        event = stamped.event
        name = self._name(stamped.stream)
        if isinstance(event, JobDispatched):
            shares = self.state.host_names(event.allocation)
            return f"{name} dispatched: " + " ".join(f"{host}*{tasks}" for host, tasks in shares)
        if isinstance(event, JobPended):
            return f"{name} pended: {self.reasons(name, event.reason_set)}"
        if isinstance(event, ListHeldBack):
            return f"{self._name(job_stream(event.blocker))} holds back its list"
        if isinstance(event, Order):
            return f"{name} {_order_words(event)} on {event.worker}{_told(event)}"
        if isinstance(event, JobEnded):
            return f"{name} ended: {event.why}"
        if isinstance(event, JobPreemptionPlanned | JobPreemptionEnded):
            return f"{name} {self._preemption_words(event)}"
        if isinstance(event, JobStartPromised):
            return f"{name} {self._promise_words(event)}"
        if isinstance(event, JobRequeued):
            return f"{name} requeued: {event.why}"
        if isinstance(event, JobsForgotten):
            return f"forgotten: {[(ids.first, ids.last) for ids in event.ranges]}"
        assert isinstance(event, SessionHeld | ReasonSetChanged), event
        return ""

    def _preemption_words(self, event: JobPreemptionPlanned | JobPreemptionEnded) -> str:
        if isinstance(event, JobPreemptionEnded):
            return "gives up preempting"
        shares = self.state.host_names(event.allocation)
        on = " ".join(f"{host}*{tasks}" for host, tasks in shares)
        victims = ", ".join(self._name(job_stream(each)) for each in event.victims)
        return f"preempts {victims}: {on}"

    def _promise_words(self, event: JobStartPromised) -> str:
        """
        Return what is promised, times in seconds: "promised 40: h1*2", "gathers h1*2 till 500: 40".
        """
        reservation = event.reservation
        if reservation is None:
            return "no longer promised"
        on = " ".join(
            f"{self.state.hosts[number].name}*{run.slots}"
            + "".join(f" {each.resource}={each.milli}" for each in run.amounts)
            for run in reservation.runs
            for number in range(run.first, run.first + run.hosts)
        )
        start_us, until_us = reservation.start_us, reservation.until_us
        start = "unknown" if start_us is None else str(start_us // SECOND_US)
        if not reservation.is_held:
            return f"promised {start}: {on}"
        return f"gathers {on} till {(until_us or 0) // SECOND_US}: {start}"

    def reasons(self, name: str, number: int = 0) -> str:
        """
        Return a job's recorded reasons, or those of a set, in words: "slots short on h1, h2; mem
        short on h1".
        """
        kept = self.state.stored.reason_sets[number or self.job(name).reason_set]
        words = "; ".join(_merged(self._reason(reason) for reason in kept.reasons))
        return f"never: {words}" if kept.never else words

    def _reason(self, reason: PendReason) -> tuple[str, list[str]]:
        hosts = [
            self.state.hosts[number].name
            for span in reason.hosts
            for number in range(span.first, span.first + span.hosts)
        ]
        level = f"alternative {reason.alternative} " if reason.alternative else ""
        level += f"member {reason.member} " if reason.member else ""
        if reason.detail and reason.resource:
            on = " on" if hosts else ""
            return f"{level}{reason.code.value}({reason.detail},{reason.resource}){on}", hosts
        if reason.resource and hosts:
            span = "JOB_NO_SPAN " if reason.code is ReasonCode.JOB_NO_SPAN else ""
            return f"{level}{span}{reason.resource} short on", hosts
        words = f"{level}{reason.code.value}"
        words += f" {reason.resource}" if reason.resource else ""
        is_told = reason.detail and (hosts or reason.alternative)
        words += f" ({reason.detail})" if is_told else ""
        return words if not hosts else f"{words} on", hosts


def _order_words(event: Order) -> str:
    if isinstance(event, JobSignalOrdered):
        return f"to get {event.signal.value}"
    if isinstance(event, JobResumeOrdered):
        return "resume ordered"
    return "kill ordered" if isinstance(event, JobKillOrdered) else "stop ordered"


def _told(event: Order) -> str:
    return f": {event.why}" if isinstance(event, JobKillOrdered | JobSuspendOrdered) else ""


def _merged(parts: Any) -> list[str]:
    """
    Join reasons that differ in the amount alone, hosts in host order of their first mention.
    """
    hosts_of: dict[str, list[str]] = {}
    for words, hosts in parts:
        hosts_of.setdefault(words, []).extend(hosts)
    return [f"{words} {', '.join(sorted(hosts))}".strip() for words, hosts in hosts_of.items()]


def _parsed(text: str) -> tuple[str, dict[str, Any]]:
    name, *pairs = text.split()
    values: dict[str, Any] = {}
    for pair in pairs:
        key, _, value = pair.partition("=")
        values[key] = int(value) if value.isdigit() else value
    if "per_task" in values:
        values["per_task"] = bool(values["per_task"])
    if "hold" in values:
        values["hold"] = bool(values["hold"])
    return name, values
