"""
The parent of a branch: what its log tells about the future that really was.

Inputs (submissions, requests, hosts that come and go) are taken over. What jobs did, how long they
took to start and to run and how they ended, is kept by attempt, so that a simulation can play it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Protocol, final

from domain.envelope import Envelope
from domain.errors import Refused
from domain.events.jobs import (
    JobCouldNotStart,
    JobDispatched,
    JobFinished,
    JobKillOrdered,
    JobResumed,
    JobResumeOrdered,
    JobSignalOrdered,
    JobStarted,
    JobSubmitted,
    JobSuspended,
    JobSuspendOrdered,
)
from domain.events.session import SessionHeld
from domain.ids import job_of_stream, split_job_id
from replay.at import whole_steps
from replay.moments import ReadableLog
from store.recordings import Recording

JOB_REPORTS: Final = (JobStarted, JobFinished, JobCouldNotStart, JobSuspended, JobResumed)
"""What the simulation plays itself, instead of taking it over."""


class ParentLog(ReadableLog, Protocol):
    """
    Be a log, or a recording of a whole one.
    """

    log_id: str

    def digest_at(self, position: int) -> bytes:
        """
        Return the digest of the history up to a position.
        """
        ...


def check_is_whole(parent: ParentLog) -> None:
    """
    Let a parent through that has its whole past: a branch begins with a copy of it.

    Raises:
        Refused: It is a window.
    """
    if isinstance(parent, Recording) and parent.first_position != 1:
        raise Refused(
            "LOG",
            "must have its whole past, which a branch begins with; this recording is a window from "
            f"position {parent.first_position} on",
            str(parent.file),
            "Branch from the log itself, or from the export of all of it.",
        )


def parent_digest(parent: ParentLog, position: int) -> str:
    """
    Return the digest of the parent up to a position in hexadecimal, "" where a recording doesn't
    tell it.
    """
    if not isinstance(parent, Recording):
        return parent.digest_at(position).hex()
    return parent.header.head_digest if position == parent.head() else ""


@final
@dataclass(slots=True)
class Attempt:
    """
    Hold what became of one attempt in the parent: stamps and positions, None where it isn't known.

    ``suspended_us`` is how long it was suspended in all, ``since_us`` since when it still is.
    ``kill_us`` is the stamp of the order to end it, ``signalled_us`` those of signals sent to it.
    ``orders`` gives for an order to suspend or resume, by kind and stamp, when and where its report
    came, ``ordered`` the last stamp by kind.
    """

    dispatch_us: int | None = None
    start_us: int | None = None
    start_position: int = 0
    finish_us: int | None = None
    finish_position: int = 0
    suspended_us: int = 0
    since_us: int | None = None
    kill_us: int | None = None
    signalled_us: set[int] = field(default_factory=set)
    ordered: dict[str, int] = field(default_factory=dict)
    orders: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    started: JobStarted | None = None
    end: JobFinished | JobCouldNotStart | None = None

    @property
    def run_us(self) -> int | None:
        """
        Return how long it ran by itself, suspended time left out; None when that isn't known, as it
        was ended by a kill.
        """
        if self.start_us is None or self.finish_us is None or self.was_killed:
            return None
        return self.finish_us - self.start_us - self.suspended_us

    @property
    def was_killed(self) -> bool:
        """
        Say whether a worker was told to end it; a signal that came from elsewhere, or that somebody
        had sent, is taken for its own end.
        """
        return self.kill_us is not None and isinstance(self.end, JobFinished)

    @property
    def start_delay_us(self) -> int:
        """
        Return how long it took from the dispatch to the start, 0 when that isn't known.
        """
        if self.dispatch_us is None or self.start_us is None:
            return 0
        return self.start_us - self.dispatch_us


@final
class Future:
    """
    Hold the attempts of a log after a position, by stream and number, its last job number, its last
    position and its last stamp.
    """

    def __init__(self, log: ReadableLog, position: int) -> None:
        self.attempts: dict[tuple[str, int], Attempt] = {}
        self.highest_job = 0
        self.head = position
        self.end_us = 0
        for envelope in log.read(position):
            event, stream = envelope.event, envelope.stream
            self.head, self.end_us = envelope.position, envelope.time_us
            if isinstance(event, JobSubmitted):
                number, _ = split_job_id(job_of_stream(stream))
                self.highest_job = max(self.highest_job, number)
            elif isinstance(event, JobDispatched):
                self.of(stream, event.attempt).dispatch_us = envelope.time_us
            elif isinstance(event, JOB_REPORTS):
                self._note(envelope, self.of(stream, event.attempt))
            elif isinstance(event, JobKillOrdered):
                self.of(stream, event.attempt).kill_us = envelope.time_us
            elif isinstance(event, JobSignalOrdered):
                self.of(stream, event.attempt).signalled_us.add(envelope.time_us)
            elif isinstance(event, JobSuspendOrdered | JobResumeOrdered):
                kind = "suspend" if isinstance(event, JobSuspendOrdered) else "resume"
                self.of(stream, event.attempt).ordered[kind] = envelope.time_us

    def of(self, stream: str, attempt: int) -> Attempt:
        """
        Return what is known of an attempt, empty when nothing is.
        """
        return self.attempts.setdefault((stream, attempt), Attempt())

    def _note(self, envelope: Envelope, attempt: Attempt) -> None:
        event, now_us = envelope.event, envelope.time_us
        if isinstance(event, JobSuspended | JobResumed):
            is_stop = isinstance(event, JobSuspended)
            kind = "suspend" if is_stop else "resume"
            order_us = attempt.ordered.get(kind, now_us)
            attempt.orders[kind, order_us] = (now_us, envelope.position)
            if attempt.since_us is not None and not is_stop:
                attempt.suspended_us += now_us - attempt.since_us
            attempt.since_us = now_us if is_stop else None
            return
        if isinstance(event, JobStarted):
            attempt.started = event
            attempt.start_us, attempt.start_position = envelope.time_us, envelope.position
            return
        assert isinstance(event, JobFinished | JobCouldNotStart)
        attempt.end = event
        attempt.finish_us, attempt.finish_position = envelope.time_us, envelope.position


@final
class Recorded:
    """
    Give the steps of the parent after a position, one at a time, and show the next one before.
    """

    def __init__(self, log: ReadableLog, position: int) -> None:
        self._steps: Iterator[list[Envelope]] = whole_steps(log.read(position))
        self.next: list[Envelope] | None = next(self._steps, None)

    def take(self) -> list[Envelope]:
        """
        Return the next step, and look at the one after it.
        """
        step = self.next
        assert step is not None, "there is a next step"
        self.next = next(self._steps, None)
        return step

    @property
    def time_us(self) -> int | None:
        """
        Return the stamp of the next step, None at the end.
        """
        return None if self.next is None else self.next[0].time_us


def is_session(step: list[Envelope]) -> bool:
    """
    Say whether a step is a session with its decisions.
    """
    return type(step[0].event) is SessionHeld
