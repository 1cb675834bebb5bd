"""
Two futures side by side: figures by queue, user and size, which jobs moved, and displaced by whom.

Jobs are matched by their ids: a branch calls them as its parent does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from heapq import nlargest
from typing import Final, final

from domain.envelope import Envelope
from domain.events.jobs import (
    JobCouldNotStart,
    JobDispatched,
    JobEnded,
    JobFinished,
    JobModified,
    JobRequeued,
    JobSubmitted,
    JobSwitched,
)
from domain.events.workers import WorkerJoined
from domain.ids import job_of_stream, job_stream_of, split_job_id
from domain.jobs import JobSpec
from projections.figures import Figures
from replay.moments import ReadableLog
from store.recordings import Recording

MOVED_KEPT: Final = 10
DISPLACERS_KEPT: Final = 3


@final
@dataclass(slots=True)
class Course:
    """
    Hold the course of one job; its last dispatch counts. None for what hasn't happened.
    """

    stream: str
    submit_us: int
    queue: str
    user: str
    tasks: int
    start_us: int | None = None
    finish_us: int | None = None

    def overlap_us(self, begin_us: int, end_us: int) -> int:
        """
        Return for how long the job ran within a span; one without an end runs on.
        """
        if self.start_us is None:
            return 0
        last_us = end_us if self.finish_us is None else min(end_us, self.finish_us)
        return max(0, last_us - max(begin_us, self.start_us))


@final
@dataclass(slots=True)
class Schedule:
    """
    Hold the courses of all jobs of a log, by stream, and the slots of its hosts.
    """

    log_id: str = ""
    jobs: dict[str, Course] = field(default_factory=dict)
    slots: int = 0
    end_us: int = 0


def schedule_of(log: ReadableLog, log_id: str = "") -> Schedule:
    """
    Read the courses of all jobs from a log; elements of arrays are jobs of their own.

    Of a recording that begins later, those jobs and hosts count that come in within it.
    """
    found, slots = Schedule(log_id), {}
    first = log.first_position if isinstance(log, Recording) else 1
    for envelope in log.read(first - 1):
        event, stream = envelope.event, envelope.stream
        found.end_us = envelope.time_us
        if isinstance(event, JobSubmitted):
            found.jobs |= {job.stream: job for job in _courses(envelope, event.spec)}
        elif isinstance(event, WorkerJoined):
            slots[stream] = event.slots
        elif stream in found.jobs:
            _go_on(found.jobs[stream], envelope)
    found.slots = sum(slots.values())
    return found


def _courses(envelope: Envelope, spec: JobSpec) -> Iterator[Course]:
    """
    Yield the courses of what was submitted.
    """
    streams = [envelope.stream]
    if spec.array is not None:
        number, _ = split_job_id(job_of_stream(envelope.stream))
        streams = [job_stream_of(number, index) for index in spec.array.indices()]
    for stream in streams:
        yield Course(stream, envelope.time_us, spec.queue, spec.user, spec.tasks_min)


def _go_on(job: Course, envelope: Envelope) -> None:
    """
    Take an event of a job: its last attempt counts, and the queue that it is in at last.
    """
    match envelope.event:
        case JobDispatched() as event:
            job.start_us, job.finish_us = envelope.time_us, None
            job.tasks = event.allocation.tasks()
        case JobRequeued():
            job.start_us = job.finish_us = None
        case JobFinished() | JobCouldNotStart() | JobEnded():
            job.finish_us = envelope.time_us
        case JobSwitched() as event:
            job.queue = event.queue
        case JobModified() as event:
            job.queue = event.spec.queue


# ----------------------------------------------------------------------------------------- figures


@final
@dataclass(frozen=True, slots=True)
class Side:
    """
    Hold the figures of a group of jobs in one log; means are None without a finished job.

    Args:
        jobs: Jobs that ran and ended.
        open: Jobs that haven't, or were ended before they ran.
        utilisation: Their slot-time over what all hosts offered in the log's makespan.
    """

    jobs: int
    open: int
    mean_wait_us: Fraction | None
    mean_bounded_slowdown: Fraction | None
    utilisation: Fraction | None


@final
@dataclass(frozen=True, slots=True)
class Group:
    """
    Set the figures of a group of jobs side by side.
    """

    kind: str
    name: str
    before: Side
    after: Side


@final
@dataclass(frozen=True, slots=True)
class Displacer:
    """
    Name a job that ran in the span in which another one waited longer, and how much slot-time more
    than in the other log it had then.
    """

    job_id: str
    gained_slot_us: int


@final
@dataclass(frozen=True, slots=True)
class Moved:
    """
    Name a job that starts at another time: later by ``later_us`` (negative for earlier), with those
    who had its place meanwhile, or who left it.
    """

    job_id: str
    queue: str
    user: str
    tasks: int
    before_us: int
    after_us: int
    later_us: int
    by: tuple[Displacer, ...]


@final
@dataclass(frozen=True, slots=True)
class Comparison:
    """
    Hold two logs side by side.

    Args:
        groups: All jobs, then by queue, user and size.
        moved_count: Jobs that start at another time.
        later_count: Those among them that start later.
        moved: Those that moved most.
        only_before: Jobs that only the first log has, and that started only there.
        only_after: The same of the second.
    """

    before_log_id: str
    after_log_id: str
    groups: tuple[Group, ...]
    moved_count: int
    later_count: int
    moved: tuple[Moved, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    started_only_before: tuple[str, ...]
    started_only_after: tuple[str, ...]

    @property
    def is_same(self) -> bool:
        """
        Say whether every job starts at the same time in both, or in neither.
        """
        return not (
            self.moved_count
            or self.only_before or self.only_after
            or self.started_only_before or self.started_only_after
        )  # fmt: skip


def compare(before: Schedule, after: Schedule, *, moved_kept: int = MOVED_KEPT) -> Comparison:
    """
    Set two schedules side by side.
    """
    pairs = [(job, after.jobs[stream]) for stream, job in before.jobs.items()
             if stream in after.jobs]  # fmt: skip
    moved = [pair for pair in pairs if _later_us(*pair)]
    most = nlargest(moved_kept, moved, key=lambda pair: abs(_later_us(*pair)))
    return Comparison(
        before.log_id,
        after.log_id,
        tuple(_groups(before, after)),
        len(moved),
        sum(_later_us(*pair) > 0 for pair in moved),
        tuple(_moved(pair, before, after) for pair in most),
        _ids(stream for stream in before.jobs if stream not in after.jobs),
        _ids(stream for stream in after.jobs if stream not in before.jobs),
        _ids(a.stream for a, b in pairs if a.start_us is not None and b.start_us is None),
        _ids(a.stream for a, b in pairs if a.start_us is None and b.start_us is not None),
    )


def _ids(streams: Iterable[str]) -> tuple[str, ...]:
    return tuple(job_of_stream(stream) for stream in streams)


def _later_us(before: Course, after: Course) -> int:
    if before.start_us is None or after.start_us is None:
        return 0
    return after.start_us - before.start_us


def _groups(before: Schedule, after: Schedule) -> Iterator[Group]:
    yield Group("all", "", _side(before, before.jobs.values()), _side(after, after.jobs.values()))
    for kind in ("queue", "user", "size"):
        old, new = _grouped(before, kind), _grouped(after, kind)
        for key in sorted({*old, *new}):
            yield Group(
                kind, key[1], _side(before, old.get(key, ())), _side(after, new.get(key, ()))
            )


def _grouped(schedule: Schedule, kind: str) -> dict[tuple[int, str], list[Course]]:
    found: dict[tuple[int, str], list[Course]] = {}
    for job in schedule.jobs.values():
        found.setdefault(_key(job, kind), []).append(job)
    return found


def _key(job: Course, kind: str) -> tuple[int, str]:
    """
    Return what sorts and names the group of a job; sizes are powers of two.
    """
    if kind == "queue":
        return 0, job.queue
    if kind == "user":
        return 0, job.user
    most = 1 << (job.tasks - 1).bit_length()
    least = most // 2 + 1
    if least >= most:
        return most, "1 task" if most == 1 else f"{most} tasks"
    return most, f"{least}-{most} tasks"


def _side(schedule: Schedule, jobs: Iterable[Course]) -> Side:
    figures, still_open = Figures(schedule.slots), 0
    for job in jobs:
        if job.start_us is None or job.finish_us is None:
            still_open += 1
            continue
        figures.add(
            submit_us=job.submit_us, start_us=job.start_us, finish_us=job.finish_us,
            tasks=job.tasks,
        )  # fmt: skip
    offered = schedule.slots * _makespan_us(schedule)
    return Side(
        figures.job_count,
        still_open,
        figures.mean_wait_us,
        figures.mean_bounded_slowdown,
        Fraction(figures.used_slot_us, offered) if offered else None,
    )


def _makespan_us(schedule: Schedule) -> int:
    """
    Return last finish - first submit of all jobs, so that the groups' utilisations add up.
    """
    ends = [job.finish_us for job in schedule.jobs.values() if job.finish_us is not None]
    return max(ends) - min(job.submit_us for job in schedule.jobs.values()) if ends else 0


def _moved(pair: tuple[Course, Course], before: Schedule, after: Schedule) -> Moved:
    old, new = pair
    assert old.start_us is not None
    assert new.start_us is not None
    later_us = new.start_us - old.start_us
    first, last = sorted((old.start_us, new.start_us))
    sides = (before, after) if later_us > 0 else (after, before)
    gained = (
        (gain, job) for job in sides[1].jobs.values()
        if job.stream != new.stream
        and (gain := _gained(sides[0].jobs.get(job.stream), job, first, last)) > 0
    )  # fmt: skip
    by = nlargest(DISPLACERS_KEPT, gained, key=lambda one: one[0])
    return Moved(
        job_of_stream(new.stream), new.queue, new.user, new.tasks, old.start_us, new.start_us,
        later_us, tuple(Displacer(job_of_stream(job.stream), gain) for gain, job in by),
    )  # fmt: skip


def _gained(old: Course | None, new: Course, first: int, last: int) -> int:
    """
    Return how much more slot-time a job had in a span than in the other log.
    """
    had = 0 if old is None else old.tasks * old.overlap_us(first, last)
    return new.tasks * new.overlap_us(first, last) - had
