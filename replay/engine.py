"""
A core joined to a log: recover, accept, hold a session, commit.

Both drivers, live and simulation, feed the core through this engine and through nothing else. One
thread uses it. What is accepted and decided stands in memory until ``commit`` has synced it; nobody
may be told before. After a failed commit the engine must be dropped and recovered from the log:
there is no undo.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from domain.effective import Around, around
from domain.envelope import Envelope, Stamped
from domain.errors import Corrupt, Denied, XceError
from domain.event import Event
from domain.events.refusals import AccessDenied, CommandRefused
from domain.ids import REFUSALS, job_of_stream
from domain.jobs import Program
from projections.scheduling.core import SCHEMA, Core
from projections.scheduling.plugins import Plugins
from projections.scheduling.records import JobRecord

# A command about a job may name a queue too, so the order counts.
_SUBJECTS = (
    "subject", "job_id", "worker", "queue", "user", "group", "project", "limit", "profile",
)  # fmt: skip


class Log(Protocol):
    """
    Be the log as the engine needs it.
    """

    log_id: str

    def head(self) -> int:
        """
        Return the last position.
        """
        ...

    def append(self, events: list[Stamped]) -> int:
        """
        Append whole steps in one synced commit.
        """
        ...

    def read(self, after: int = 0, upto: int | None = None) -> Iterator[Envelope]:
        """
        Yield envelopes after a position.
        """
        ...

    def digest_at(self, position: int) -> bytes:
        """
        Return the chain's digest at a position.
        """
        ...


class SnapshotFile(Protocol):
    """
    Be a stored snapshot.
    """

    @property
    def position(self) -> int:
        """
        Return the last position that is in it.
        """
        ...

    @property
    def state(self) -> bytes:
        """
        Return the core's whole state.
        """
        ...


class Snapshots(Protocol):
    """
    Be where snapshots are kept.
    """

    def put(
        self, *, position: int, schema: str, state: bytes, chain_digest: bytes, time_us: int
    ) -> object:
        """
        Keep a snapshot; return where.
        """
        ...

    def newest_good(
        self, *, schema: str, head: int, digest_at: Any, upto: int | None = None
    ) -> SnapshotFile | None:
        """
        Return the newest snapshot that is sound and belongs to this log and schema.
        """
        ...


class Answer(NamedTuple):
    """
    Say what a command gave; valid once the commit is synced.

    Args:
        stream: Stream of the first event, or of the job that a repeated key named; "" when nothing
            changed.
        events: What was accepted, in order.
        job_id: The job concerned, None when the command isn't about one.
        replayed: Whether a key had been used before, and this is the first answer again.
    """

    stream: str
    events: tuple[Event, ...]
    job_id: str | None = None
    replayed: bool = False


@dataclass(slots=True, frozen=True)
class Assignment:
    """
    Say what one worker must run: the command of a job whose first host it is.

    ``hosts`` holds (name, tasks) in claim order. ``is_started`` says whether its start was
    reported; ``around`` what runs before and after the command, ``file_kib`` how large its files
    may become, None for any size.
    """

    job_id: str
    attempt: int
    program: Program | None
    hosts: tuple[tuple[str, int], ...]
    queue: str
    user: str
    name: str
    is_started: bool
    around: Around
    file_kib: int | None


@dataclass(slots=True, frozen=True)
class Order:
    """
    Say what one worker must do to a running attempt, once, in order of the numbers.
    """

    order_number: int
    kind: str
    job_id: str
    attempt: int
    why: str
    signal: str = ""
    signals: tuple[str, ...] = ()


@dataclass(slots=True, frozen=True)
class Work:
    """
    Hold all that a worker has to do now.
    """

    assignments: tuple[Assignment, ...]
    orders: tuple[Order, ...]


class Engine:
    """
    Join a core to a log.

    Args:
        log: Open for writing by this process, or only read.
        core: Folded up to ``position``.
        position: The last position that the core has seen.
        snapshots: Where snapshots go, None for nowhere.
    """

    def __init__(
        self, log: Log, core: Core, *, position: int = 0, snapshots: Snapshots | None = None
    ) -> None:
        self.log = log
        self.core = core
        self.position = position
        self._snapshots = snapshots
        self._pending: list[Stamped] = []
        self._snapshot_position = 0

    @classmethod
    def recover(
        cls,
        log: Log,
        *,
        plugins: Plugins | None = None,
        snapshots: Snapshots | None = None,
        upto: int | None = None,
    ) -> Engine:
        """
        Rebuild the core from the newest good snapshot and the events after it.

        Args:
            log: The log.
            plugins: Pickers and allocators; the built-in ones when None.
            snapshots: Where to look for snapshots; the whole log is folded when None.
            upto: Last position to fold; the head when None.

        Raises:
            Corrupt: The log doesn't check.
        """
        head = log.head() if upto is None else upto
        core, position = _newest(log, plugins, snapshots, head)
        engine = cls(log, core, position=position, snapshots=snapshots)
        engine._snapshot_position = position
        apply_all(core, log.read(position, head))
        engine.position = head
        return engine

    # -- taking in

    def accept(self, command: Any, *, actor: str, cause: str = "", now_us: int) -> Answer:
        """
        Handle one command or report, and apply its events: one step, pending until ``commit``.

        Raises:
            Refused: It can't be honoured; nothing was changed.
            Conflict: Somebody else was first; nothing was changed.
        """
        made = self.take_in(command, actor=actor, cause=cause, now_us=now_us)
        if not made:
            return self._nothing_changed(command)
        stream = made[-1].stream
        return Answer(stream, tuple(each.event for each in made), _job_id(self.core, stream))

    def take_in(self, command: Any, *, actor: str, cause: str = "", now_us: int) -> list[Stamped]:
        """
        Do the same for a driver that asks for no answer; return what was accepted, nothing when
        everything is so already.

        Raises:
            Refused, Conflict: As ``accept``.
        """
        core = self.core
        found = core.handle(command, actor=actor, now_us=now_us)
        if not found:
            return []
        # hot: as ``_take``, without its call.
        made = core.take(found, actor=actor, cause=cause, now_us=now_us)
        self._pending += made
        return made

    def refuse(self, command: Any, error: XceError, *, actor: str, now_us: int) -> None:
        """
        Record that a command was refused, or its caller denied it.
        """
        fields = error.fields()
        name = str(getattr(command, "what", type(command).__name__))
        said = {
            "subject": _subject(command),
            "field": str(fields.get("field", fields.get("what", "")))[:1024],
            "rule": str(fields.get("rule", ""))[:1024],
            "value": str(fields.get("value", ""))[:256],
        }
        event: Event = CommandRefused(command=name, **said)
        if isinstance(error, Denied):
            event = AccessDenied(action=name, **said)
        self._take([(REFUSALS, event)], actor=actor, cause="", now_us=now_us)

    def _nothing_changed(self, command: Any) -> Answer:
        known = self.core.state.stored.keys.get(getattr(command, "key", ""))
        if known is None:
            return Answer("", ())
        return Answer(known.stream, (), _job_id(self.core, known.stream), replayed=True)

    def _take(
        self, found: list[tuple[str, Event]], *, actor: str, cause: str, now_us: int
    ) -> list[Stamped]:
        made = self.core.take(found, actor=actor, cause=cause, now_us=now_us)
        self._pending += made
        return made

    def hold_session(self, now_us: int) -> list[Stamped]:
        """
        Hold a session; its decisions are one step, pending until ``commit``.

        Returns:
            The session event and its decisions; empty when it decided nothing.
        """
        made = self.core.session(now_us)
        self._pending += made
        return made

    # -- making it last

    @property
    def pending(self) -> int:
        """
        Return how many events wait for the commit.
        """
        return len(self._pending)

    def commit(self) -> int:
        """
        Append everything pending in one synced commit.

        Returns:
            The log's head after it.

        Raises:
            StoreUnavailable: Nothing was recorded; drop this engine and recover.
            OutcomeUnknown: It may or may not have been recorded; end the process.
        """
        if self._pending:
            self.position = self.log.append(self._pending)
            self._pending = []
        return self.position

    def snapshot_is_due(self) -> bool:
        """
        Say whether so many events were committed since the last snapshot that the next one is due.
        """
        if self._snapshots is None or self.core.state.stored.cluster is None:
            return False
        every = self.core.state.settings().snapshot_every_events
        return self.position - self._snapshot_position >= every

    def take_snapshot(self) -> object:
        """
        Keep the whole state as of the head, only between commits; return where it is kept.
        """
        assert self._snapshots is not None
        assert not self._pending, "a snapshot is taken at a commit"
        kept = self._snapshots.put(
            position=self.position,
            schema=SCHEMA,
            state=self.core.snapshot(),
            chain_digest=self.log.digest_at(self.position),
            time_us=self.core.state.stored.time_us,
        )
        self._snapshot_position = self.position
        return kept

    def note_snapshot(self) -> int:
        """
        Count from here to the next snapshot, since somebody else makes one as of the head; return
        this position.
        """
        self._snapshot_position = self.position
        return self.position

    # -- what workers have to do

    def work_of(self, worker: str) -> Work:
        """
        Return what a worker must run and do, from the state as it is; ask only after a commit.
        """
        record = self.core.state.worker(worker)
        led = [
            job
            for job in self.core.state.live.values()
            if job.allocation is not None and job.allocation.runs[0].first == record.number
        ]
        orders = [
            Order(
                number,
                order.kind,
                job_of_stream(order.stream),
                order.attempt,
                order.why,
                order.signal,
                order.signals,
            )
            for number, order in record.orders.items()
        ]
        return Work(
            tuple(self.assignment_of(job) for job in led),
            tuple(sorted(orders, key=lambda order: order.order_number)),
        )

    def assignment_of(self, job: JobRecord) -> Assignment:
        """
        Return what the first host of a live job must run.
        """
        assert job.allocation is not None
        values = self.core.state.values_of(job)
        return Assignment(
            job_id=job.job_id,
            attempt=job.attempt,
            program=values.program,
            hosts=tuple(self.core.state.host_names(job.allocation)),
            queue=job.spec.queue,
            user=job.spec.user,
            name=job.spec.name,
            is_started=job.start_us is not None,
            around=self._around(job),
            file_kib=None if values.limits is None else values.limits.file_kib,
        )

    def _around(self, job: JobRecord) -> Around:
        stored = self.core.state.stored
        profile = stored.profiles.get(job.spec.profile) if job.spec.profile else None
        return around(profile, stored.queues[job.spec.queue].spec, job.spec.program)


def apply_all(core: Core, envelopes: Iterable[Envelope]) -> None:
    """
    Apply recorded events to a state.

    Raises:
        Corrupt: One of them can't follow what came before it; the state is of no more use.
    """
    for envelope in envelopes:
        try:
            core.apply(envelope.stamped())
        except (KeyError, IndexError) as error:
            raise Corrupt(
                "order", envelope.position, "an event that can follow those before it",
                f"{envelope.event.TYPE_CODE} in {envelope.stream}, and nothing known of {error}",
                hint="xce replay check holds everything up to there.",
            ) from None  # fmt: skip


def _newest(
    log: Log, plugins: Plugins | None, snapshots: Snapshots | None, head: int
) -> tuple[Core, int]:
    """
    Return a core from the newest good snapshot and its position, or an empty one at 0.
    """
    found = (
        None
        if snapshots is None
        else snapshots.newest_good(schema=SCHEMA, head=head, digest_at=log.digest_at, upto=head)
    )
    if found is None:
        return Core(plugins), 0
    return Core.restore(found.state, plugins), found.position


def _subject(command: Any) -> str:
    """
    Return the job, host, queue or other thing that a command is about, "" when it is about none.
    """
    named = (getattr(command, field, "") for field in _SUBJECTS)
    found = next(filter(None, named), "")
    descriptor = getattr(command, "descriptor", None)
    return str(found or getattr(descriptor, "name", ""))[:1024]


def _job_id(core: Core, stream: str) -> str | None:
    job = core.state.stored.jobs.get(stream)
    return None if job is None else job.job_id
