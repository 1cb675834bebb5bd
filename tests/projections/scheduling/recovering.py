"""
One cluster several times: a core that never stopped, one restored from a snapshot of it, and one
replayed from its events. Whatever happens happens to all, and all must decide the same.

What happens is drawn as numbers: each step is a kind and some numbers, by which it picks.
"""

# long: one small function for each thing that may happen.

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from domain.amounts import MEM, Amount, Attribute
from domain.arrays import ArraySpec, IndexRange
from domain.cluster import ClusterSettings, DefaultHostType
from domain.commands import (
    CloseWorker,
    ConfigureWorker,
    DefineCluster,
    DefineLimit,
    DefineProfile,
    DefineQueue,
    DefineResource,
    DefineUser,
    DrainWorker,
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
    RemoveLimit,
    RequeueJob,
    ResumeJob,
    RunJob,
    SignalJob,
    StartScheduler,
    StopJob,
    SubmitJob,
    SwitchJob,
    WorkerReport,
)
from domain.envelope import Stamped
from domain.errors import InvariantBroken, XceError
from domain.events.workers import JobUsage
from domain.fairshare import Fairshare, ShareNode
from domain.job_states import LIVE
from domain.jobs import ExitRules, HostChoice, JobLimits, JobSpec, WantedHost
from domain.limits import Basis, LimitAmount, LimitSpec, Scope
from domain.name_lists import parse_names
from domain.preemption import JobType, OnPreempt, Preemption, Relation, Trigger
from domain.profiles import ProfileSpec
from domain.queues import QueueLimits, QueueSpec
from domain.resources import ResourceDescriptor, ResourceScope, SharedTotal
from domain.resreq.merge import Mark
from domain.signals import SignalName
from domain.thresholds import LoadThreshold
from domain.users import UserSpec
from domain.windows import parse_windows
from domain.workers import HostSettings
from projections.scheduling.core import Core
from projections.scheduling.state import State
from tests.builders import MB_MILLI, SECOND_US, a_host, beginning, some_settings
from tests.literal import literal_plugins

T = TypeVar("T")
Step = tuple[str, Sequence[int]]

PICKERS: Final = (
    "builtin_fcfs", "easy", "conservative", "fairshare", "strict_fcfs", "shortest_first",
)  # fmt: skip
EITHER: Final = Preemption(relation=Relation.EITHER)
PREEMPTIONS: Final = (
    Preemption(),
    EITHER,
    EITHER.model_copy(update={"resources": (MEM, "gpu")}),
    EITHER.model_copy(update={"job_types": tuple(JobType), "trigger": Trigger.SLOTS}),
    EITHER.model_copy(update={"delay_us": 100 * SECOND_US, "times_max": 1}),
)
RESREQS: Final = (
    "",
    "rusage[mem=50]",
    "rusage[mem=100/task]",
    "select[slots<2]",
    "select[mem!=100MB] rusage[mem=100]",
    "{select[slots<2]} || {span[hosts=1]}",
    "2*{select[slots<3]} + 1*{select[slots>0]}",
    "1*{rusage[gpu=1]} + 1*{rusage[gpu=1]}",
    "1*{rusage[gpu=2/task]} + 1*{rusage[mem=50]}",
    "rusage[gpu=0.4]",
    "rusage[lic=1]",
    "rusage[lic=2] || rusage[mem=200]",
    "order[-slots] select[slots<=1]",
    "span[hosts=1]",
    "span[ptile=1]",
    "select[!(slots>=2)]",
    "rusage[mem=100:threshold=200]",
    "same[rack]",
    "select[r1m<1]",
    "{rusage[mem=300]} || {rusage[mem=50]}@1",
    "1*{select[fast]} + 2*{rusage[mem=50/task]}",
)
SHARES: Final = Fairshare(
    shares=(ShareNode(name="alice", shares=1), ShareNode(name="bob", shares=3))
)


class Dice:
    """
    Pick by drawn numbers; none left count as 0.
    """

    def __init__(self, numbers: Sequence[int]) -> None:
        self._numbers = list(numbers)

    def pick(self, options: Sequence[T]) -> T:
        """
        Return one of some options, the first by 0.
        """
        number = self._numbers.pop(0) if self._numbers else 0
        return options[number % len(options)]

    def seldom(self, times: int = 4) -> bool:
        """
        Say yes once in so many times, never by 0.
        """
        return self.pick(range(times)) == times - 1


class Cores:
    """
    Hold the cores. ``log`` has all events so far; ``restores_always``: one is restored before each
    session, whatever is drawn.
    """

    restores_always = False

    def __init__(self, settings: ClusterSettings) -> None:
        self.kept = Core()
        self.others: dict[str, Core] = {}
        self.log: list[Stamped] = []
        self.now_us = SECOND_US
        for command in beginning(settings):
            self.tell(command)

    @property
    def state(self) -> State:
        """
        Return the state of the one that never stopped.
        """
        return self.kept.state

    def decide_literally_too(self) -> None:
        """
        Have a core that takes the specification literally go along from here.
        """
        core = self.others["literal"] = Core(literal_plugins(), plain=True)
        for stamped in self.log:
            core.apply(stamped)

    def restore(self) -> None:
        """
        Restore a core from a snapshot.
        """
        self.others["restored"] = Core.restore(self.kept.snapshot())

    def replay(self) -> None:
        """
        Fold the whole log into a new core.
        """
        core = self.others["replayed"] = Core()
        for stamped in self.log:
            core.apply(stamped)
        core.is_cut_short = self.kept.is_cut_short

    def tell(self, command: Any, actor: str = "root") -> None:
        """
        Have all handle a command; what one refuses all refuse.
        """
        found = self._handled(self.kept, command, actor)
        for name, core in self.others.items():
            other = self._handled(core, command, actor)
            assert found == other, f"{name}: {command}"
        if not found or isinstance(found, str):
            return
        made = self.kept.take(found, actor=actor, cause="", now_us=self.now_us)
        self.log += made
        for core in self.others.values():
            for stamped in made:
                core.apply(stamped)

    def _handled(self, core: Core, command: Any, actor: str) -> Any:
        try:
            return core.handle(command, actor=actor, now_us=self.now_us)
        except InvariantBroken:
            raise
        except XceError as error:
            return str(error)

    def session(self) -> list[Stamped]:
        """
        Hold a session everywhere; all decide the same, and wait for the same moment.
        """
        made = self.kept.session(self.now_us)
        self.log += made
        for name, core in self.others.items():
            assert _told(made) == _told(core.session(self.now_us)), name
            assert self.kept.snapshot() == core.snapshot(), name
            assert self.kept.is_cut_short == core.is_cut_short, name
            assert self.wakeup(self.kept) == self.wakeup(core), name
        return made

    def wakeup(self, core: Core) -> int | None:
        """
        Return when a core wants the next session.
        """
        return core.next_wakeup(self.now_us)

    def report_of(self, job: Any) -> dict[str, Any]:
        """
        Return what names a started job in a report of its worker.
        """
        worker = self.state.hosts[job.allocation.runs[0].first]
        return {
            "worker": worker.name,
            "incarnation": worker.incarnation,
            "job_id": job.job_id,
            "attempt": job.attempt,
        }

    def jobs(self, *states: str) -> list[Any]:
        """
        Return the jobs in some states, all when none is named.
        """
        jobs = self.state.stored.jobs.values()
        return [job for job in jobs if not states or job.state.value in states]


def _told(made: Sequence[Stamped]) -> list[tuple[str, object]]:
    return [(stamped.stream, stamped.event) for stamped in made]


def cores_of(numbers: Sequence[int]) -> Cores:
    """
    Return a cluster by drawn numbers.
    """
    dice = Dice(numbers)
    settings = some_settings(
        picker=dice.pick(PICKERS),
        allocators=dice.pick((("parjob", "fill"), ("fill",), ("parjob",))),
        session_max_decisions=dice.pick((10_000, 10_000, 1, 2, 5)),
        preemption=dice.pick(PREEMPTIONS),
        accept_interval_us=dice.pick((0, 0, 0, 20 * SECOND_US)),
        end_orphans=dice.seldom(2),
        orphan_grace_us=dice.pick((0, 0, 30 * SECOND_US)),
        hung_after_us=dice.pick((None, 60 * SECOND_US)),
        lost_jobs=dice.pick(("requeue", "requeue", "keep")),
        lost_grace_us=100 * SECOND_US,
        clean_period_us=dice.pick((3_600, 3_600, 1)) * SECOND_US,
    )
    cores = Cores(settings)
    cores.tell(DefineResource(descriptor=ResourceDescriptor(name="foo")))
    cores.tell(DefineResource(descriptor=licence(2, is_released=dice.seldom(2))))
    other = QueueSpec(
        priority=40,
        preemptible_queues=dice.pick((None, parse_names("all"), parse_names("all"))),
        allows_exclusive=True,
        fairshare=SHARES if dice.seldom(2) else None,
    )
    cores.tell(DefineQueue(queue="other", spec=other))
    for _ in range(dice.pick((1, 2, 3, 4))):
        join(cores, dice)
    return cores


def licence(total: int, *, is_released: bool) -> ResourceDescriptor:
    """
    Return a resource that all hosts share.
    """
    return ResourceDescriptor(
        name="lic",
        scope=ResourceScope.SHARED,
        is_consumable=True,
        totals=(SharedTotal(total_milli=total * 1000),),
        release_on_suspend=is_released,
    )


# -- what happens


def join(cores: Cores, dice: Dice) -> None:
    """
    Let a host join, or one that is known join again.
    """
    number = dice.pick((len(cores.state.hosts), 0, 1)) if len(cores.state.hosts) > 1 else (
        len(cores.state.hosts)
    )
    gpus, rack = dice.pick((0, 0, 2)), dice.pick(("", "a", "b"))
    host = a_host(f"h{number}", dice.pick((2, 1, 4, 6)), dice.pick((None, 100, 250)), gpus=gpus)
    told = [Attribute(name="rack", value=rack)] if rack else []
    told += [Attribute(name="fast", value="true")] if dice.seldom(2) else []
    cores.tell(host.model_copy(update={"attributes": tuple(told)}), "")


def submit(cores: Cores, dice: Dice) -> None:
    """
    Submit a job.
    """
    spec = spec_of(cores, dice)
    cores.tell(SubmitJob(spec=spec), spec.user)


def spec_of(cores: Cores, dice: Dice) -> JobSpec:
    """
    Return a job by drawn numbers.
    """
    tasks, resreq = dice.pick((1, 1, 2, 2, 3, 6)), dice.pick(("", *RESREQS[:3] * 6, *RESREQS))
    values: dict[str, Any] = {
        "user": dice.pick(("alice", "bob")),
        "queue": dice.pick(("normal", "other")),
        "tasks_min": tasks,
        "tasks_max": tasks + dice.pick((0, 0, 2)),
        "resreq": (resreq,) if resreq else (),
        "run_limit_us": dice.pick((None, 1, 100, 1000)),
        "is_exclusive": dice.seldom(6),
        "user_priority": dice.pick((0, 0, 1, 2)),
    }
    if values["run_limit_us"] is not None:
        values["run_limit_us"] *= SECOND_US
    if "*" in resreq:
        values["tasks_min"] = values["tasks_max"] = 1
    more: tuple[dict[str, Any], ...] = (
        *[{}] * 8,
        {"dependency_text": "done(1)"},
        {"dependency_text": "ended(2) || exit(1)", "ends_as_orphan": True},
        {"array": ArraySpec(ranges=(IndexRange(start=1, end=3),), started_max=1)},
        {"begin_us": cores.now_us + 40 * SECOND_US},
        {"deadline_us": cores.now_us + 500 * SECOND_US},
        {"exits": ExitRules(requeue=(99,), exclude=(98,), success=(7,), requeue_max=2)},
        {"limits": JobLimits(memory_kib=100 * 1024)},
        {"hosts": (HostChoice(host="h1", is_first=True), HostChoice(host="h0"))},
        {"hosts": (HostChoice(host="h1", preference=2), HostChoice(host="h0"))},
        {"profile": "app"},
        {"rerunnable": True},
        {"run_estimate_us": 50 * SECOND_US},
    )
    found = JobSpec(**{**values, **dice.pick(more)})
    if found.profile and found.profile not in cores.state.stored.profiles:
        return found.model_copy(update={"profile": ""})
    return found


def modify(cores: Cores, dice: Dice) -> None:
    """
    Change what a job asks for.
    """
    jobs = cores.jobs("PEND", "PSUSP", "RUN")
    if jobs:
        job = dice.pick(jobs)
        changes = {"user": job.spec.user, "queue": job.spec.queue, "array": job.spec.array}
        spec = spec_of(cores, dice).model_copy(update=changes)
        cores.tell(ModifyJob(job_id=job.job_id, spec=spec))


def on_job(cores: Cores, dice: Dice) -> None:
    """
    Do what users do to jobs.
    """
    jobs = cores.jobs("PEND", "PSUSP", *(state.value for state in LIVE))
    if not jobs:
        return
    job_id = dice.pick(jobs).job_id
    commands: tuple[Callable[[], Any], ...] = (
        lambda: StopJob(job_id=job_id),
        lambda: ResumeJob(job_id=job_id),
        lambda: KillJob(job_id=job_id),
        lambda: RequeueJob(job_id=job_id, hold=dice.seldom()),
        lambda: HoldJob(job_id=job_id),
        lambda: LiftHold(job_id=job_id),
        lambda: MoveJob(job_id=job_id, to=dice.pick(("top", "bottom"))),
        lambda: SwitchJob(job_id=job_id, queue=dice.pick(("normal", "other"))),
        lambda: KillJob(job_id=job_id, force=True),
        lambda: SignalJob(job_id=job_id, signal=SignalName.USR1),
        lambda: RunJob(job_id=job_id, hosts=_wanted(cores, dice)),
    )
    cores.tell(dice.pick(commands)(), dice.pick(("root", "alice")))


def _wanted(cores: Cores, dice: Dice) -> tuple[WantedHost, ...]:
    names = sorted({dice.pick(cores.state.hosts).name for _ in range(dice.pick((1, 2)))})
    return tuple(WantedHost(host=name) for name in names)


def reported(cores: Cores, dice: Dice) -> None:
    """
    Let workers report what they do with their jobs: one of them, or all.
    """
    jobs = [job for job in cores.jobs(*(state.value for state in LIVE)) if job.allocation]
    if not jobs:
        return
    for job in jobs if dice.seldom(2) else [dice.pick(jobs)]:
        _report(cores, job, dice)


def _report(cores: Cores, job: Any, dice: Dice) -> None:
    names = cores.report_of(job)
    if job.kill_order and not dice.seldom(3):
        cores.tell(JobFinishedReport(**names, signal=9), "")
    elif job.suspend_order and not dice.seldom(3):
        cores.tell(JobSuspendedReport(**names), "")
    elif job.resume_order and not dice.seldom(3):
        cores.tell(JobResumedReport(**names), "")
    elif not job.start_us or dice.seldom(2):
        cores.tell(JobStartedReport(**names, pid=1, process_group=1), "")
    elif dice.seldom(8):
        cores.tell(JobCouldNotStartReport(**names, why="no such directory"), "")
    else:
        code = dice.pick((0, 0, 1, 99, 98))
        cores.tell(JobFinishedReport(**names, exit_code=code, cpu_us=SECOND_US), "")


def load(cores: Cores, dice: Dice) -> None:
    """
    Let a worker report its load, and what its jobs use.
    """
    if not cores.state.hosts:
        return
    worker = dice.pick(cores.state.hosts)
    cores.now_us += SECOND_US
    amounts = {
        "r1m": dice.pick((0, 500, 1500, 3000)),
        "foo": dice.pick((0, 1000, 4000)),
        "it": dice.pick((0, 3000, 9000)),
        MEM: dice.pick((50, 150, 300)) * MB_MILLI,
    }
    told = tuple(
        Amount(resource=name, milli=milli) for name, milli in amounts.items() if not dice.seldom(5)
    )
    used = (Amount(resource=MEM, milli=dice.pick((10, 60, 120)) * MB_MILLI),)
    on_host = [
        JobUsage(job_id=job.job_id, attempt=job.attempt, amounts=used)
        for job in cores.jobs("RUN", "SSUSP")
        if job.allocation is not None
        and any(number == worker.number for number, _, _ in job.allocation.shares())
    ]
    cores.tell(
        WorkerReport(
            worker=worker.name,
            incarnation=worker.incarnation,
            load=told,
            jobs=tuple(on_host[: dice.pick((0, 1, 3))]),
            is_blind=dice.seldom(20),
        ),
        "",
    )


def on_host(cores: Cores, dice: Dice) -> None:
    """
    Do what administrators do to hosts, or what befalls them.
    """
    if not cores.state.hosts:
        return
    worker = dice.pick(cores.state.hosts)
    name, incarnation = worker.name, worker.incarnation
    bounds = (
        (),
        (LoadThreshold(index="r1m", sched_milli=500, stop_milli=1000),),
        (LoadThreshold(index=MEM, sched_milli=100 * MB_MILLI),),
    )
    if worker.closed or worker.is_silent:
        cores.tell(OpenWorker(worker=name))
        cores.tell(WorkerReport(worker=name, incarnation=incarnation), "")
        return
    commands: tuple[Callable[[], Any], ...] = (
        lambda: CloseWorker(worker=name),
        lambda: OpenWorker(worker=name),
        lambda: DrainWorker(worker=name),
        lambda: MarkUnreachable(worker=name, incarnation=incarnation, silent_us=SECOND_US),
        lambda: LeaveWorker(worker=name, incarnation=incarnation),
        lambda: ConfigureWorker(
            worker=name,
            settings=HostSettings(
                thresholds=dice.pick(bounds),
                user_slots_max=dice.pick((None, 1)),
                is_locked=dice.seldom(),
                dispatch_windows=dice.pick((None, None, parse_windows("0:00-0:10"))),
            ),
        ),
    )
    cores.tell(dice.pick(commands)())


def queue(cores: Cores, dice: Dice) -> None:
    """
    Define a queue otherwise.
    """
    name = dice.pick(("normal", "other"))
    orders: tuple[Callable[[], dict[str, Any]], ...] = (
        lambda: {"is_active": dice.seldom(2)},
        lambda: {"priority": dice.pick((30, 40, 50))},
        lambda: {"picker": dice.pick(("", *PICKERS))},
        lambda: {
            "stop_condition": dice.pick(("", "r1m>2", "foo>0", "mem<200", "r1m>2 || foo>3")),
            "resume_condition": dice.pick(("", "it>5", "mem>1")),
        },
        lambda: {
            "thresholds": dice.pick(
                (
                    (),
                    (LoadThreshold(index="r1m", sched_milli=1000, stop_milli=2000),),
                    (LoadThreshold(index="foo", stop_milli=500),),
                )
            ),
            "on_load": dice.pick(tuple(OnPreempt)),
        },
        lambda: {
            "run_windows": dice.pick((None, parse_windows("0:00-0:30 0:40-2:00"))),
            "dispatch_windows": dice.pick((None, parse_windows("0:10-0:20 0:30-3:00"))),
            "on_window": dice.pick(tuple(OnPreempt)),
        },
        lambda: {
            "slot_reserve_us": dice.pick((None, 60 * SECOND_US)),
            "is_backfill": dice.seldom(2),
        },
        lambda: {"resource_reserve_us": dice.pick((None, 60 * SECOND_US))},
        lambda: {"limits": dice.pick((None, QueueLimits(slots=2), QueueLimits(user_slots=1)))},
        lambda: {"hosts": dice.pick((None, parse_names("h0! h1"), parse_names("h1+1 h0")))},
        lambda: {"new_job_delay_us": dice.pick((0, 5 * SECOND_US))},
        lambda: {"on_preempt": dice.pick(tuple(OnPreempt))},
        lambda: {"preemptible_queues": dice.pick((None, parse_names("all")))},
        lambda: {"run_limit_default_us": dice.pick((None, 200 * SECOND_US))},
        lambda: {"user_priority_max": dice.pick((None, 1))},
    )
    spec = cores.state.stored.queues[name].spec
    base = QueueSpec(priority=spec.priority, allows_exclusive=True)
    lasting = {"fairshare": spec.fairshare, "preemptible_queues": spec.preemptible_queues}
    kept = spec if dice.seldom(2) else base.model_copy(update=lasting)
    cores.tell(DefineQueue(queue=name, spec=kept.model_copy(update=dice.pick(orders)())))


def start(cores: Cores, *, awaits_workers: bool) -> StartScheduler:
    """
    Return that the scheduler starts anew.
    """
    plugins = cores.kept.plugins
    return StartScheduler(
        epoch=cores.state.stored.epoch + 1,
        holder="test",
        code_version="test",
        pickers=plugins.picker_versions(),
        allocators=plugins.allocator_versions(),
        awaits_workers=awaits_workers,
    )


def policy(cores: Cores, dice: Dice) -> None:
    """
    Define what bounds jobs, or what fills them in.
    """
    amount = dice.pick((("jobs", 1), ("slots", 2), ("lic", 1), (MEM, 100 * 1024)))
    scopes: tuple[dict[str, Any], ...] = (
        {},
        {"users": Scope(names=parse_names("alice bob"), is_each=True)},
        {"hosts": Scope(names=parse_names("h0 h1"), is_each=True)},
        {"queues": Scope(names=parse_names("normal"))},
    )
    percent = LimitAmount(resource=MEM, milli=50_000, basis=Basis.PERCENT)
    each_host = Scope(names=parse_names("all"), is_each=True)
    limit = LimitSpec(
        amounts=(LimitAmount(resource=amount[0], milli=amount[1] * 1000),), **dice.pick(scopes)
    )
    profiles = (
        ProfileSpec(run_limit_us=60 * SECOND_US),
        ProfileSpec(resreq=("rusage[mem=50]",)),
        ProfileSpec(resreq=("select[slots<3]",), resreq_mark=Mark.SELECT),
        ProfileSpec(tasks_min=2, tasks_max=3),
    )
    settings = cores.state.settings()
    changes: tuple[dict[str, Any], ...] = (
        {"picker": dice.pick(PICKERS)},
        {"preemption": dice.pick(PREEMPTIONS)},
        {"session_max_decisions": 3},
        {"default_host_type": DefaultHostType.LOCAL},
        {"accept_interval_us": dice.pick((0, 10 * SECOND_US))},
        {"orphan_grace_us": 10 * SECOND_US},
    )
    commands: tuple[Callable[[], Any], ...] = (
        lambda: DefineCluster(settings=settings.model_copy(update=dice.pick(changes))),
        lambda: start(cores, awaits_workers=dice.seldom()),
        lambda: DefineLimit(limit="l1", spec=limit),
        lambda: DefineLimit(limit="l2", spec=LimitSpec(hosts=each_host, amounts=(percent,))),
        lambda: RemoveLimit(limit="l1"),
        lambda: DefineUser(user="alice", spec=UserSpec(slots_max=dice.pick((None, 1, 2)))),
        lambda: DefineProfile(profile="app", spec=dice.pick(profiles)),
        lambda: DefineResource(descriptor=licence(dice.pick((1, 3)), is_released=dice.seldom(2))),
    )
    cores.tell(dice.pick(commands)())


def time(cores: Cores, dice: Dice) -> None:
    """
    Let time go by: some, or as far as the next moment that is waited for.
    """
    wakeup = cores.wakeup(cores.kept)
    seconds = dice.pick((1, 0, 30, 700, 2000))
    cores.now_us = wakeup if wakeup and not seconds else cores.now_us + seconds * SECOND_US


def session(cores: Cores, dice: Dice) -> None:
    """
    Hold a session, behind a restart or not.
    """
    if dice.seldom(2) or cores.restores_always:
        cores.restore()
    if dice.seldom(8):
        cores.replay()
    cores.session()


HAPPENINGS: Final[dict[str, Callable[[Cores, Dice], None]]] = {
    "session": session,
    "submit": submit,
    "reported": reported,
    "load": load,
    "time": time,
    "on_job": on_job,
    "on_host": on_host,
    "queue": queue,
    "join": join,
    "modify": modify,
    "policy": policy,
}
OFTEN: Final = (
    *("session", "submit", "reported") * 7,
    *("time", "on_job") * 3,
    *("load", "on_host"),
)
