"""
What may be done to the jobs, hosts and queues of a trial, and what may happen to them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal

from domain.amounts import MEM, Amount
from domain.arrays import ArraySpec, parse_job_name, parse_started_max
from domain.commands import (
    CloseWorker,
    JobCouldNotStartReport,
    JobFinishedReport,
    KillJob,
    MarkUnreachable,
    ModifyJob,
    MoveJob,
    OpenWorker,
    RequeueJob,
    ResumeJob,
    RunJob,
    SetQueue,
    SignalJob,
    StopJob,
    SwitchJob,
    WorkerReport,
)
from domain.errors import Denied, Refused
from domain.events.jobs import PRE_EXEC_GIVES_UP
from domain.events.workers import JobUsage
from domain.job_states import WAITING, JobState
from domain.jobs import WantedHost
from domain.signals import parse_signal
from tools.conformance.actions import OF_OPERATORS
from tools.conformance.core_driver import ADMINISTRATOR, CoreDriver
from tools.conformance.core_setup import (
    JOB_LIMITS,
    MB_MILLI,
    OVER_LIMITS,
    OVER_TIMES,
    OVER_US,
    SAME_IN_JOB,
    job_of,
    load_milli,
)
from tools.conformance.trial import NotYet
from tools.conformance.values import Fields, Malformed, mapping_of, text_of, texts_of, whole_of
from tools.conformance.written import named_alike
from tools.daemon.access import ROOT, Caller, check_owner

OF_OWNERS: Final = frozenset(
    {"bstop", "bresume", "bkill", "brequeue", "bswitch", "bmod", "btop", "bbot"}
)
"""Commands about jobs: their owners give them, and administrators."""

OTHER_UID: Final = 65_534
"""The number of a user who isn't an administrator."""

OF_PLACES: Final = frozenset(
    {"host_unavail", "hclose", "hopen", "load", "qopen", "qclose", "qact", "qinact", "host_status"}
)
"""Actions that are about hosts and queues."""


CHANGED: Final[dict[str, tuple[str, ...]]] = {
    "n": ("tasks_min", "tasks_max"), "W": ("run_limit_us",), "We": ("run_estimate_us",),
    "R": ("resreq",), "sp": ("user_priority",), "b": ("begin_us",), "t": ("deadline_us",),
    "rerunnable": ("rerunnable",), "J": ("name", "array"), "m": ("hosts",), "x": ("is_exclusive",),
    "project": ("project",), "group": ("group",), "app": ("profile",), "user": ("user",),
    "Q": ("exits",), "ti": ("ends_as_orphan",), "w": ("dependency_text",),
    **dict.fromkeys("ioe", ("program",)), **dict.fromkeys(JOB_LIMITS, ("limits",)),
}  # fmt: skip
"""The fields of a job that each option is about."""


def _is_reset(name: str, value: object) -> bool:
    return value in (f"-{name}n", f"{name}n")


def _bound_of(words: dict[str, object], array: ArraySpec | None) -> dict[str, object]:
    """
    Take out how many elements of a job's array may be started at a time: ``-J %2``.
    """
    text = text_of(words.get("J"))
    if not text.startswith("%") or array is None:
        return {}
    del words["J"]
    most = parse_started_max(text, text)
    return {"array": array.model_copy(update={"started_max": most})}


class CoreActs(CoreDriver):
    """
    Play users, administrators and workers to a core by the names of actions.

    Args:
        case: The case of a vector, for what jobs are changed into.
        now_us: When it begins.

    ``denied`` and ``error`` tell how the last action was refused, ``silent`` which hosts went down.
    """

    def __init__(self, case: Fields, now_us: int) -> None:
        super().__init__(now_us)
        self.case = case
        self.denied = False
        self.error = ""
        self.silent: set[str] = set()

    def act(self, name: str, job: str, value: object, *, by: str) -> None:
        """
        Do to a job what a command does, or let something happen to it; a refusal is noted.
        """
        action = self._actions().get(name)
        if action is None:
            raise NotYet(f"the action {name}")
        self.denied, self.error = False, ""
        for each in self._elements(job):
            if name not in OF_PLACES and each not in self.ids:
                raise Malformed(f"there is no job {each}, or it was refused")
            try:
                if name in OF_OPERATORS and by != ADMINISTRATOR:
                    raise Denied("action", "is for those alone who run the cluster", name)
                if name in OF_OWNERS:
                    check_owner(_caller(by), self._record(each).spec.user)
                action(each, value, by)
            except Refused as refused:
                self.denied = True
                self.error = f"{refused.field}: {refused.rule}"

    def _actions(self) -> dict[str, Callable[[str, object, str], object]]:
        return {
            "bstop": self._stop,
            "bresume": lambda job, _, by: self._command(ResumeJob(job_id=self.ids[job]), by),
            "bkill": self._kill,
            "brequeue": self._requeue,
            "brun": self._run_now,
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
            "host_status": self._set_host,
            "over": self._exceed,
            "hclose": lambda host, _, by: self._command(CloseWorker(worker=host), by),
            "hopen": lambda host, _, by: self._command(OpenWorker(worker=host), by),
            "load": self._report_load,
            "qopen": lambda queue, _, by: self._set_queue(queue, "open", by),
            "qclose": lambda queue, _, by: self._set_queue(queue, "closed", by),
            "qact": lambda queue, _, by: self._set_queue(queue, "active", by),
            "qinact": lambda queue, _, by: self._set_queue(queue, "inactive", by),
        }

    def _set_queue(
        self, queue: str, to: Literal["open", "closed", "active", "inactive"], by: str
    ) -> None:
        self._command(SetQueue(queue=queue, to=to), by)

    def _stop(self, job: str, value: object, by: str) -> None:
        _without_option("bstop", value)
        self._command(StopJob(job_id=self.ids[job]), by)
        self._until(lambda: self._record(job).state in {JobState.USUSP, JobState.PSUSP})

    def _kill(self, job: str, value: object, by: str) -> None:
        option, _, signal = text_of(value).partition(" ")
        if option == "-s":
            wanted = SignalJob(job_id=self.ids[job], signal=parse_signal(signal))
            self._command(wanted, by)
            self._until(lambda: not self._record(job).signals_wanted)
            return
        if option not in ("", "-r"):
            raise NotYet(f"bkill {option}")
        self._command(KillJob(job_id=self.ids[job], force=option == "-r"), by)
        self._until(lambda: self._record(job).state is JobState.EXIT)

    def _run_now(self, job: str, value: object, by: str) -> None:
        """
        Start a job where an administrator says: ``h1``, some hosts, or tasks by host.
        """
        if isinstance(value, Mapping):
            hosts = [WantedHost(host=name, tasks=whole_of(each)) for name, each in value.items()]
        else:
            hosts = [WantedHost(host=name) for name in " ".join(texts_of(value)).split()]
        self._command(RunJob(job_id=self.ids[job], hosts=tuple(hosts)), by)
        self._until(lambda: self._record(job).state not in WAITING)

    def _requeue(self, job: str, value: object, by: str) -> None:
        if value not in (None, "-H"):
            raise NotYet(f"brequeue {text_of(value)}")
        self._command(RequeueJob(job_id=self.ids[job], hold=value == "-H"), by)
        self._until(lambda: self._record(job).state in WAITING)

    def _move(self, job: str, to: Literal["top", "bottom"], by: str) -> None:
        among: Literal["all", "own"] = "own" if by == self._record(job).spec.user else "all"
        self._command(MoveJob(job_id=self.ids[job], to=to, among=among), by)

    def _modify(self, job: str, value: object, by: str) -> None:
        changes = mapping_of(value)
        for name in named_alike(changes, SAME_IN_JOB):
            if name not in {*CHANGED, "q", "depn"}:
                raise NotYet(f"bmod of {name}")
        record = self._record(job)
        if "q" in changes:
            if record.state not in WAITING:
                raise Refused("queue", "is changed by a switch", text_of(changes["q"]))
            switch = SwitchJob(job_id=record.job_id, queue=text_of(changes["q"]))
            self._command(switch, by)
            changes = {name: value for name, value in changes.items() if name != "q"}
        if "depn" in changes:
            spec = record.spec.model_copy(update={"dependency_text": "", "dependency": None})
        else:
            spec = record.spec.model_copy(update=self._changes(changes, record.spec.array))
        self._command(ModifyJob(job_id=record.job_id, spec=spec), by)

    def _changes(self, changes: Fields, array: ArraySpec | None) -> dict[str, object]:
        """
        Return the fields of a job that a change gives another value; ``-Wn`` takes one away.
        """
        words = dict(named_alike(changes, SAME_IN_JOB))
        bound = _bound_of(words, array)
        told = {name: value for name, value in words.items() if not _is_reset(name, value)}
        spec = job_of(told, "", self.case)
        found: dict[str, object] = {}
        for name in words:
            found |= {field: getattr(spec, field) for field in CHANGED[name]}
        return found | bound

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
        if value not in {*OVER_LIMITS, *OVER_TIMES}:
            raise Malformed(f"nothing is known of being over {text_of(value)!r}")
        if value in OVER_TIMES:
            self.now_us += OVER_US
        else:
            worker = self.core.state.hosts[0].name
            self._command(WorkerReport(worker=worker, incarnation=1, jobs=(usage,)))
        self._until(lambda: record.state is JobState.EXIT)

    def _report_load(self, host: str, value: object, by: str) -> None:
        """
        Report load indices of a host; what a vector doesn't say is as it was.
        """
        del by
        for name in mapping_of(value):
            if self.core.state.catalogue.get(name) is None:
                raise Malformed(f"nothing is known of {name} in a load")
        load = tuple(
            Amount(resource=name, milli=load_milli(name, each))
            for name, each in mapping_of(value).items()
        )
        self._command(WorkerReport(worker=host, incarnation=1, load=load))

    def _lose(self, host: str, value: object, by: str) -> None:
        del by
        if value != "unreach":
            self.silent.add(host)
        self._command(MarkUnreachable(worker=host, incarnation=1, silent_us=0))

    def _set_host(self, host: str, value: object, by: str) -> None:
        """
        Let a host be closed, lost, or well again.
        """
        if value == "closed_Adm":
            self._command(CloseWorker(worker=host), by)
        elif value in ("unavail", "unreach"):
            self._lose(host, value, by)
        elif value == "ok":
            self._command(WorkerReport(worker=host, incarnation=1))
            self._command(OpenWorker(worker=host), by)
        else:
            raise NotYet(f"hosts that become {text_of(value)}")

    def _elements(self, name: str) -> list[str]:
        """
        Return the jobs that a name means: itself, or the elements in brackets.
        """
        if name in self.ids:
            return [name]
        if "[" not in name:
            return [each for each in self.ids if each.startswith(f"{name}[")] or [name]
        base, _, listed = name.rstrip("]").partition("[")
        _, array = parse_job_name(f"{base}[{listed}]")
        assert array is not None, name
        return [f"{base}[{index}]" for index in array.indices()]


def _caller(by: str) -> Caller:
    return Caller(uid=ROOT if by == ADMINISTRATOR else OTHER_UID, user=by)


def _without_option(verb: str, value: object) -> None:
    if value is not None:
        raise NotYet(f"{verb} {text_of(value)}")
