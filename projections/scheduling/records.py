"""
The rows of the core's state. Everything here is stored in snapshots, complete, by introspection.

Times are microseconds UTC, amounts thousandths of the base unit. Only ``apply`` changes a record.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from domain.allocations import Allocation
from domain.amounts import Attribute, HostResource
from domain.cluster import ClusterSettings
from domain.events.jobs import Beside
from domain.events.scheduler import PluginVersion
from domain.groups import GroupSpec
from domain.job_states import JobState
from domain.jobs import HostTasks, JobSpec
from domain.limits import LimitSpec
from domain.profiles import ProfileSpec
from domain.projects import ProjectSpec
from domain.queues import QueueSpec
from domain.reasons import PendReason
from domain.reservations import BackfillReservation, KeptRun
from domain.resources import ResourceDescriptor
from domain.signals import SignalName
from domain.users import UserSpec
from domain.workers import HostSettings

PRE_EXEC_FAILED: Final = {
    "queue": "queue pre-exec", "profile": "job pre-exec", "job": "job pre-exec",
}  # fmt: skip
"""Why a job is put back, by whose command before its own failed."""

FAULTS: Final[dict[str, str]] = {"memory": "host out of memory", "host": "host at fault"}
"""Why a job is put back, by what of its host kept it from starting."""

EXIT_VALUE: Final = "exit value"
"""Why a job is put back whose exit value asks for that."""

FRESH_AFTER: Final = {
    EXIT_VALUE: "SBD_JOB_REQUEUE",
    "queue pre-exec": "QUE_PRE_FAIL",
    "job pre-exec": "JOB_PRE_EXEC",
    "preempted": "JOB_PREEMPTED",
    "host out of memory": "SBD_NO_MEM",
    "host at fault": "JOB_START_FAIL",
}
"""Why a job was put back -> the reason code until it is considered again; else JOB_REQUEUED."""

ADMIN_COMMAND: Final = "command of an administrator"
"""Why a job is to be put back that somebody else than its user wanted back; told as ``command``."""

TO_TOP_AFTER: Final = frozenset({EXIT_VALUE, "queue pre-exec", "job pre-exec", *FAULTS.values()})
"""A job that was put back by its own doing, or its host's, goes in front of its equals."""


@dataclass(slots=True, frozen=True)
class WantedSignal:
    """
    Hold a signal that somebody wants sent to a job.
    """

    signal: SignalName
    by: str


@dataclass(slots=True)
class JobRecord:
    """
    Hold one job, from its submission until it is forgotten.

    ``queue_us`` orders equals: it is the submission time until a requeue; ``place`` goes before it,
    and ``beside`` stands instead of it.
    ``actual`` holds what the job was seen to use (host number -> resource -> thousandths). Of
    ``kill_order``, ``suspend_order`` and ``resume_order`` each is the number of an order to the
    job's first host, 0 when none stands. ``requeue_why`` is not "" while the job must go back to
    pending; ``exit_requeues`` counts how often its exit value was why, of all ``requeues``.
    ``stop_actor`` is who stopped it, None when nobody did. ``fresh`` is the reason code of a job
    that hasn't been considered since it came in or was changed. ``excluded_hosts`` are those where
    it failed, until the scheduler starts anew or its hold is lifted; ``eased_hosts`` those that it
    had when it was put back for their load.

    ``is_aside`` says that it has stopped and given back what stopped jobs give back. A victim of
    preemption: ``preemptor`` is the id of the job that it was stopped for, until it goes on;
    ``spared_from`` are ids of jobs for which it isn't stopped again. Their preemptor:
    ``keeps`` is what is held for it until it starts; ``has_spared`` says that
    there are jobs which it may not stop again. ``promise`` is the backfill reservation of a pending
    job; ``gave_up_us`` is when it last gave back what it had gathered. ``ahead_of`` is the id of
    the job around whose promise this attempt was fitted, "" when it overtook nobody; ``borrows`` is
    what it has of hosts that that one had gathered.

    ``kill_forced`` says that it is to end without its worker. ``signals_wanted`` are signals that
    no worker was ordered yet to send to this attempt; ``signalled`` those that one was, each the
    last of its name. ``kill_us`` is when the standing kill was ordered. ``orphan_us`` is since when
    it waits because its dependency can never become true, None when it doesn't.
    ``forced_on`` is where an operator wants a pending job started, and ``is_forced`` says that one
    had this attempt started; with ``tells_never`` it is told when these hosts could never hold it.
    """

    number: int
    index: int
    stream: str
    spec: JobSpec
    submit_us: int
    queue_us: int
    since_us: int
    state: JobState = JobState.PEND
    attempt: int = 0
    allocation: Allocation | None = None
    session_number: int = 0
    session_index: int = 0
    reason_set: int = 0
    dispatch_us: int | None = None
    start_us: int | None = None
    finish_us: int | None = None
    pid: int = 0
    process_group: int = 0
    exit_code: int | None = None
    signal: int | None = None
    why: str = ""
    cpu_us: int = 0
    max_rss_kib: int = 0
    processes: int = 0
    actual: dict[int, dict[str, int]] = field(default_factory=dict)
    kill_actor: str | None = None
    kill_order: int = 0
    pend_us: int = 0
    held_us: int = 0
    run_us: int = 0
    unknown_us: int = 0
    key: str = ""
    place: int = 0
    beside: Beside | None = None
    requeues: int = 0
    exit_requeues: int = 0
    requeue_why: str = ""
    requeue_hold: bool = False
    excluded_hosts: tuple[int, ...] = ()
    stop_actor: str | None = None
    suspend_why: str = ""
    suspend_order: int = 0
    preemptor: str = ""
    is_aside: bool = False
    preemptions: int = 0
    spared_from: tuple[str, ...] = ()
    keeps: Allocation | None = None
    has_spared: bool = False
    resume_wanted: bool = False
    resume_order: int = 0
    fresh: str = "JOB_NEW"
    threads: int = 0
    user_stopped_us: int = 0
    system_suspended_us: int = 0
    promise: BackfillReservation | None = None
    ahead_of: str = ""
    borrows: tuple[KeptRun, ...] = ()
    gave_up_us: int | None = None
    kill_forced: bool = False
    signals_wanted: tuple[WantedSignal, ...] = ()
    signalled: tuple[WantedSignal, ...] = ()
    kill_us: int = 0
    orphan_us: int | None = None
    forced_on: tuple[HostTasks, ...] = ()
    is_forced: bool = False
    tells_never: bool = False
    eased_hosts: tuple[int, ...] = ()

    @property
    def position(self) -> tuple[int, ...]:
        """
        Return what orders it among jobs of its queue and priority; no two have the same, and which
        is less is told by what both have.
        """
        beside = self.beside
        if beside is None:
            return (self.place, self.queue_us, self.number, self.index, 0)
        stands = (beside.queue_us, beside.number, beside.index, beside.rank)
        return (self.place, *stands, self.number, self.index)

    @property
    def state_before_loss(self) -> JobState:
        """
        Return the state that it had when contact was lost, and has again when it is back: what its
        suspension says.
        """
        if not self.suspend_why or self.suspend_order:
            return JobState.RUN
        return JobState.USUSP if self.stop_actor is not None else JobState.SSUSP

    def ran_us(self, now_us: int) -> int:
        """
        Return how long its attempt has run by now; while nobody hears of it, it runs on.
        """
        is_unheard = self.state is JobState.UNKWN and self.state_before_loss is JobState.RUN
        runs = self.state is JobState.RUN or is_unheard
        return self.run_us + (now_us - self.since_us if runs else 0)

    @property
    def job_id(self) -> str:
        """
        Return the id that users see.
        """
        return f"{self.number}[{self.index}]" if self.index else str(self.number)


@dataclass(slots=True)
class ArrayRecord:
    """
    Hold an array: its elements' streams in order of index, and how many may be started at a time.
    """

    number: int
    elements: tuple[str, ...]
    started_max: int | None


@dataclass(slots=True)
class OrderRecord:
    """
    Hold an order to a worker that isn't known to be carried out.

    ``kind`` is kill, suspend, resume or signal.
    """

    kind: str
    stream: str
    attempt: int
    why: str
    signal: str = ""
    signals: tuple[str, ...] = ()


@dataclass(slots=True)
class WorkerRecord:
    """
    Hold one worker. ``number`` is its place in host order, given at its first join.

    ``load`` is the last report: resource -> thousandths free by the operating system's figures.
    ``is_draining`` says that it is closed to run dry.
    ``accepted_us`` is when a job was last started there, kept while starts are paced.
    ``is_awaited`` says that the scheduler hasn't heard of it since its own start.
    ``is_blind`` says that it can't measure its load.
    ``eased_us`` is when a job of it was last stopped because of its load.
    """

    name: str
    number: int
    incarnation: int
    slots: int
    resources: tuple[HostResource, ...]
    attributes: tuple[Attribute, ...]
    joined_us: int
    report_us: int
    closed: bool = False
    closed_why: str = ""
    is_draining: bool = False
    unreachable_us: int | None = None
    left: bool = False
    load: dict[str, int] = field(default_factory=dict)
    last_order: int = 0
    last_order_done: int = 0
    orders: dict[int, OrderRecord] = field(default_factory=dict)
    settings: HostSettings = field(default_factory=HostSettings)
    accepted_us: int | None = None
    is_awaited: bool = False
    eased_us: int | None = None
    is_blind: bool = False

    @property
    def is_silent(self) -> bool:
        """
        Say whether nobody knows if its agent lives.
        """
        return self.is_awaited or self.unreachable_us is not None

    @property
    def takes_jobs(self) -> bool:
        """
        Say whether new tasks may be placed on it.
        """
        is_shut = self.closed or self.settings.is_locked or self.is_blind
        return not (is_shut or self.left or self.is_silent)


@dataclass(slots=True)
class QueueRecord:
    """
    Hold one queue.
    """

    name: str
    spec: QueueSpec


@dataclass(slots=True)
class ReasonSet:
    """
    Hold why the jobs of one request wait; ``empty_since_us`` is None while jobs are in it.

    ``proved_by`` is the id of the job whose placement found these reasons, "" when none was tried.
    """

    number: int
    fingerprint: str
    never: bool
    reasons: tuple[PendReason, ...]
    since_us: int
    empty_since_us: int | None = None
    proved_by: str = ""


@dataclass(slots=True)
class KeyRecord:
    """
    Hold the answer to a keyed submission.
    """

    stream: str
    digest: str
    time_us: int


@dataclass(slots=True)
class Document:
    """
    Hold what a plug-in must remember, as canonical JSON; changed only while events are applied.
    """

    version: int
    text: str


@dataclass(slots=True)
class StoredState:
    """
    Hold the whole state of the core: a function of the events applied, and nothing else.

    Args:
        time_us: Stamp of the last event.
        versions: Version of every live stream.
        jobs: By stream, in order of submission; ended ones until they are forgotten.
        workers: By name, in order of joining.
        resources: The site's own descriptors, by name in order of definition; so users, groups,
            limits and profiles, and projects by path.
        keys: Key of a submission -> its answer, in order of arrival.
        blocker: Stream of the job that holds back its list, "" when none does.
        blockers: Stream of a queue with a picker of its own -> the same of its list.
    """

    time_us: int = 0
    events: int = 0
    cluster: ClusterSettings | None = None
    epoch: int = 0
    pickers: tuple[PluginVersion, ...] = ()
    allocators: tuple[PluginVersion, ...] = ()
    versions: dict[str, int] = field(default_factory=dict)
    jobs: dict[str, JobRecord] = field(default_factory=dict)
    arrays: dict[int, ArrayRecord] = field(default_factory=dict)
    workers: dict[str, WorkerRecord] = field(default_factory=dict)
    queues: dict[str, QueueRecord] = field(default_factory=dict)
    resources: dict[str, ResourceDescriptor] = field(default_factory=dict)
    users: dict[str, UserSpec] = field(default_factory=dict)
    groups: dict[str, GroupSpec] = field(default_factory=dict)
    projects: dict[str, ProjectSpec] = field(default_factory=dict)
    limits: dict[str, LimitSpec] = field(default_factory=dict)
    profiles: dict[str, ProfileSpec] = field(default_factory=dict)
    reason_sets: dict[int, ReasonSet] = field(default_factory=dict)
    keys: dict[str, KeyRecord] = field(default_factory=dict)
    documents: dict[str, Document] = field(default_factory=dict)
    highest_job: int = 0
    highest_reason_set: int = 0
    session_number: int = 0
    blocker: str = ""
    blockers: dict[str, str] = field(default_factory=dict)
    running: bool = False
    started_us: int = 0
