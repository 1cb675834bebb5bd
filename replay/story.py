"""
Tell the story of one job from the streams of the log that concern it, where no tables are at hand.

The events are folded into tables in memory, by the same fold as the audit tables, and the story is
told from them by the same function: so there is one story, whoever tells it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

from domain.arrays import ArraySpec, IndexRange
from domain.envelope import Envelope
from domain.errors import NotFound, Refused
from domain.event import Event
from domain.events import jobs, refusals, session, workers
from domain.ids import (
    CLUSTER,
    REASONS,
    REFUSALS,
    job_stream,
    job_stream_of,
    queue_stream,
    split_job_id,
    worker_stream,
)
from projections.audit.history import story
from projections.audit.privacy import EVERYTHING, Viewer
from projections.audit.projection import AuditProjection
from projections.audit.read_model import ReadModel
from projections.audit.reading import Reading
from projections.audit.told import Story

IN_MEMORY = ":memory:"
NOWHERE = 2**63 - 1
ORDERED = (
    jobs.JobKillOrdered, jobs.JobSuspendOrdered, jobs.JobResumeOrdered, jobs.JobSignalOrdered,
)  # fmt: skip
ENDINGS = (jobs.JobFinished, jobs.JobCouldNotStart, jobs.JobEnded, jobs.JobRequeued)


class Log(Protocol):
    """
    What a story needs of a log.
    """

    def read_stream(self, stream: str, after_version: int = 0) -> Iterator[Envelope]:
        """
        Yield the events of one stream, in order.
        """
        ...


def job_story(
    log: Log,
    job_id: str,
    host_name: Callable[[int], str],
    *,
    viewer: Viewer = EVERYTHING,
    now_us: int | None = None,
) -> Story:
    """
    Return the story of a job.

    Args:
        log: Where it happened.
        job_id: Which job.
        host_name: Returns the name of a host of a number.
        viewer: Who looks.
        now_us: Up to when a state counts that lasts; the time of its last event when None.

    Raises:
        NotFound: The log knows no such job.
        Refused: It is an array.
    """
    told = sorted(_Concerning(log, job_id, host_name).events(), key=lambda one: one.position)
    model = ReadModel.create(IN_MEMORY, log_id="")
    try:
        AuditProjection(model).take(told)
        with Reading.of(model) as reading:
            # The first event of the tables isn't the log's.
            return replace(
                story(reading, job_id, viewer=viewer, now_us=now_us), first_position=1
            )
    finally:
        model.close()


class _Concerning:
    """
    Find what happened to one job, also in other streams than its own.
    """

    def __init__(self, log: Log, job_id: str, host_name: Callable[[int], str]) -> None:
        self._log = log
        self._job_id = job_id
        self._host_name = host_name
        self._first = self._submission()
        self._own = [self._first, *self._after_submission(job_id)]

    def _submission(self) -> Envelope:
        number, index = split_job_id(self._job_id)
        first = next(self._log.read_stream(job_stream_of(number)), None)
        array = None if first is None else _array_of(first)
        if array is not None and not index:
            raise Refused(
                "job_id", "is an array: name one of its elements", self._job_id,
                f"The first is {number}[{array.indices()[0]}].",
            )  # fmt: skip
        if first is None or bool(index) != bool(array) or (array and index not in array.indices()):
            raise NotFound(
                "job_id", "must name a job of this log", self._job_id, "List them: xce jobs -a."
            )
        return first

    def _after_submission(self, job_id: str) -> list[Envelope]:
        own = list(self._log.read_stream(job_stream(job_id)))
        return own if split_job_id(job_id)[1] else own[1:]

    def events(self) -> Iterator[Envelope]:
        """
        Yield everything that the story needs, each once, in no order.
        """
        blockers: set[str] = set()
        yield from self._own[1:]
        yield from self._definitions(blockers)
        yield from self._submissions({self._job_id, *blockers})
        for blocker in sorted(blockers - {self._job_id}):
            yield from self._after_submission(blocker)
        yield from self._reason_sets()
        yield from self._hosts()
        yield from self._refusals()

    def _submissions(self, job_ids: set[str]) -> Iterator[Envelope]:
        """
        Yield how jobs were submitted; of an array only the elements that are asked for.
        """
        wanted: dict[int, list[int]] = {}
        for number, index in sorted(map(split_job_id, job_ids)):
            wanted.setdefault(number, []).append(index)
        for number, indices in wanted.items():
            yield _only(next(self._log.read_stream(job_stream_of(number))), indices)

    def _all(self, kind: type[Event]) -> list[Event]:
        return [one.event for one in self._own if isinstance(one.event, kind)]

    def _definitions(self, blockers: set[str]) -> Iterator[Envelope]:
        """
        Yield what the cluster and the job's queues were told, and who held their lists back;
        collect those.
        """
        queues = {e.spec.queue for e in self._all(jobs.JobSubmitted)}  # type: ignore[attr-defined]
        queues |= {e.queue for e in self._all(jobs.JobSwitched)}  # type: ignore[attr-defined]
        for stream in (CLUSTER, *map(queue_stream, sorted(queues))):
            for one in self._log.read_stream(stream):
                if isinstance(one.event, session.ListHeldBack) and one.event.blocker:
                    blockers.add(one.event.blocker)
                yield one

    def _reason_sets(self) -> Iterator[Envelope]:
        numbers = {e.reason_set for e in self._all(jobs.JobPended)}  # type: ignore[attr-defined]
        if numbers:
            for one in self._log.read_stream(REASONS):
                if (
                    isinstance(one.event, session.ReasonSetChanged)
                    and one.event.set_number in numbers
                ):
                    yield one

    def _hosts(self) -> Iterator[Envelope]:
        """
        Yield the beginning of every host that is named, and what the workers that had to do with
        the job said meanwhile.
        """
        joined: dict[str, Envelope] = {}
        busy: dict[str, _Busy] = {}
        for index, one in enumerate(self._own):
            event = one.event
            if isinstance(event, jobs.JobDispatched):
                runs = event.allocation.runs
                for number in {n for run in runs for n in (run.first, run.first + run.hosts - 1)}:
                    self._join(joined, self._host_name(number))
                leader = self._host_name(runs[0].first)
                busy.setdefault(leader, _Busy(one.position)).widen(self._own[index:])
            elif isinstance(event, ORDERED):
                self._join(joined, event.worker)
                told = busy.setdefault(event.worker, _Busy(one.position))
                told.orders.add(event.order_number)
                told.widen(self._own[index:])
        yield from joined.values()
        for name, told in busy.items():
            for one in _while_busy(self._log, worker_stream(name), told):
                if one.position != joined[name].position:
                    yield one

    def _join(self, joined: dict[str, Envelope], name: str) -> None:
        """
        Note how a host began: that gives its number a name.
        """
        if name not in joined:
            for one in self._log.read_stream(worker_stream(name)):
                if isinstance(one.event, workers.WorkerJoined):
                    joined[name] = one
                    return

    def _refusals(self) -> Iterator[Envelope]:
        for one in self._log.read_stream(REFUSALS):
            event = one.event
            about = event.job_id if isinstance(event, refusals.ReportIgnored) else ""
            if self._job_id in (about, getattr(event, "subject", "")):
                yield one


def _array_of(first: Envelope) -> ArraySpec | None:
    assert isinstance(first.event, jobs.JobSubmitted)
    return first.event.spec.array


def _only(first: Envelope, indices: list[int]) -> Envelope:
    """
    Return a submission, that of an array as if it had had some of its elements alone.
    """
    array, event = _array_of(first), first.event
    if array is None:
        return first
    assert isinstance(event, jobs.JobSubmitted)
    ranges = tuple(IndexRange(start=one, end=one) for one in indices)
    few = event.spec.model_copy(update={"array": array.model_copy(update={"ranges": ranges})})
    return first._replace(event=event.model_copy(update={"spec": few}))


@dataclass(slots=True)
class _Busy:
    """
    Hold from where to where a worker had to do with the job, None for still, and which orders it
    got for it: they may be carried out later.
    """

    begin: int
    end: int | None = 0
    orders: set[int] = field(default_factory=set)

    def widen(self, rest: Iterable[Envelope]) -> None:
        """
        Reach to the end of the attempt that lasts when the rest of the job's events begins.
        """
        end = next((one.position for one in rest if isinstance(one.event, ENDINGS)), None)
        self.end = None if end is None or self.end is None else max(end, self.end)


def _while_busy(log: Log, stream: str, busy: _Busy) -> Iterator[Envelope]:
    """
    Yield what a worker said while it had to do with the job, but no reports of load.
    """
    for one in log.read_stream(stream, _version_before(log, stream, busy.begin)):
        if isinstance(one.event, workers.WorkerOrderDone):
            busy.orders.discard(one.event.order_number)
        elif busy.end is not None and one.position > busy.end:
            if not busy.orders:
                return
            continue
        if not isinstance(one.event, workers.WorkerReported):
            yield one


def _version_before(log: Log, stream: str, position: int) -> int:
    """
    Return the last version of a stream before a position, also of a long one: found by halving.
    """
    low, high = 0, 1
    while _position_after(log, stream, high) < position:
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        if _position_after(log, stream, middle) < position:
            low = middle + 1
        else:
            high = middle
    return low


def _position_after(log: Log, stream: str, version: int) -> int:
    found = next(log.read_stream(stream, version), None)
    return NOWHERE if found is None else found.position
