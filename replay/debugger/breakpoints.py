"""
Breakpoints: when to stop on the way.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final, Protocol, final

from domain.allocations import Allocation
from domain.envelope import Envelope
from domain.errors import Refused
from domain.event import event_classes
from domain.events.jobs import JobDispatched
from domain.events.session import SessionHeld
from domain.ids import check_name, job_stream, job_stream_of, worker_stream
from projections.scheduling.core import Core
from replay.conditions import Condition
from replay.debugger.cursor import Cursor, is_decision
from replay.moments import parse_moment, position_of, show_utc

KINDS: Final = ("job", "host", "event", "decision", "session", "position", "time", "when")
_array = re.compile(r"([1-9][0-9]{0,9})\[\*\]")


class Stop(Protocol):
    """
    Be what a breakpoint waits for.
    """

    def text(self) -> str:
        """
        Return it as it can be written again.
        """
        ...

    def is_hit(self, envelope: Envelope, core: Core, before_us: int) -> bool:
        """
        Say whether to stop right after an event; asked about every event in order.
        """
        ...


@final
@dataclass(slots=True)
class Breakpoint:
    """
    Hold one breakpoint.
    """

    number: int
    stop: Stop
    is_enabled: bool = True
    hits: int = 0


@final
@dataclass(frozen=True, slots=True)
class Streams:
    """
    Select one job, or with 12[*] every element of an array.
    """

    selector: str

    def has(self, stream: str) -> bool:
        """
        Say whether a stream is selected.
        """
        whole = _array.fullmatch(self.selector)
        if whole:
            return stream.startswith(f"{job_stream_of(int(whole[1]))}[")
        return stream == job_stream(self.selector)


def array_of(text: str) -> int | None:
    """
    Return the array that a selector such as 12[*] means as a whole, None for any other.
    """
    whole = _array.fullmatch(text)
    return int(whole[1]) if whole else None


def parse_selector(text: str) -> Streams:
    """
    Return the jobs that a text selects.

    Raises:
        Refused: It is no job id, and not an id with [*].
    """
    if not _array.fullmatch(text):
        job_stream(text)
    return Streams(text)


@final
@dataclass(frozen=True, slots=True)
class AtJob:
    """
    Stop at every event of some jobs.
    """

    jobs: Streams

    def text(self) -> str:
        """
        Return it as it can be written again.
        """
        return f"job {self.jobs.selector}"

    def is_hit(self, envelope: Envelope, core: Core, before_us: int) -> bool:  # noqa: ARG002
        """
        Say whether the event is one of theirs.
        """
        return envelope.stream.startswith("job:") and self.jobs.has(envelope.stream)


@final
@dataclass(frozen=True, slots=True)
class AtHost:
    """
    Stop at every event of a host, and at those of jobs that it holds, or is given or gives back.
    """

    name: str

    def text(self) -> str:
        """
        Return it as it can be written again.
        """
        return f"host {self.name}"

    def is_hit(self, envelope: Envelope, core: Core, before_us: int) -> bool:  # noqa: ARG002
        """
        Say whether the event concerns the host.
        """
        if envelope.stream == worker_stream(self.name):
            return True
        worker = core.state.stored.workers.get(self.name)
        if worker is None:
            return False
        if isinstance(envelope.event, JobDispatched):
            return _covers(envelope.event.allocation, worker.number)
        job = core.state.stored.jobs.get(envelope.stream)
        return job is not None and job.allocation is not None and _covers(
            job.allocation, worker.number
        )


def _covers(allocation: Allocation, number: int) -> bool:
    return any(run.first <= number < run.first + run.hosts for run in allocation.runs)


@final
@dataclass(frozen=True, slots=True)
class AtKind:
    """
    Stop at every event, or decision, of a kind; the kind may have * in it.
    """

    pattern: str
    only_decisions: bool

    def text(self) -> str:
        """
        Return it as it can be written again.
        """
        return f"{'decision' if self.only_decisions else 'event'} {self.pattern}"

    def is_hit(self, envelope: Envelope, core: Core, before_us: int) -> bool:  # noqa: ARG002
        """
        Say whether the event is of the kind.
        """
        if self.only_decisions and not is_decision(envelope):
            return False
        return fnmatchcase(envelope.event.TYPE_CODE, self.pattern)


@final
@dataclass(frozen=True, slots=True)
class AtSession:
    """
    Stop when a session begins.
    """

    def text(self) -> str:
        """
        Return it as it can be written again.
        """
        return "session"

    def is_hit(self, envelope: Envelope, core: Core, before_us: int) -> bool:  # noqa: ARG002
        """
        Say whether a session was held.
        """
        return isinstance(envelope.event, SessionHeld)


@final
@dataclass(frozen=True, slots=True)
class AtPosition:
    """
    Stop at a position.
    """

    position: int

    def text(self) -> str:
        """
        Return it as it can be written again.
        """
        return f"position {self.position}"

    def is_hit(self, envelope: Envelope, core: Core, before_us: int) -> bool:  # noqa: ARG002
        """
        Say whether this is it.
        """
        return envelope.position == self.position


@final
@dataclass(frozen=True, slots=True)
class AtTime:
    """
    Stop at the first event that isn't before a time.
    """

    time_us: int

    def text(self) -> str:
        """
        Return it as it can be written again.
        """
        return f"time {show_utc(self.time_us)}"

    def is_hit(self, envelope: Envelope, core: Core, before_us: int) -> bool:  # noqa: ARG002
        """
        Say whether the time was reached with this event.
        """
        return before_us < self.time_us <= envelope.time_us


@final
class When:
    """
    Stop when a condition becomes true; not again before it was false.
    """

    def __init__(self, text: str, cursor: Cursor) -> None:
        self._condition = Condition(text, is_truth=True)
        self._held = self._condition.holds(cursor.core, cursor.position)

    def text(self) -> str:
        """
        Return it as it can be written again.
        """
        return f"when {self._condition.text}"

    def is_hit(self, envelope: Envelope, core: Core, before_us: int) -> bool:  # noqa: ARG002
        """
        Say whether the condition became true with this event.
        """
        streams = self._condition.streams
        if streams is not None and envelope.stream not in streams:
            return False
        held, self._held = self._held, self._condition.holds(core, envelope.position)
        return self._held and not held

    def begin(self, cursor: Cursor) -> None:
        """
        Begin anew at another place.
        """
        self._held = self._condition.holds(cursor.core, cursor.position)


def parse_stop(kind: str, rest: str, cursor: Cursor) -> Stop:
    """
    Return what a breakpoint command asks for.

    Args:
        kind: Its first word.
        rest: Everything after it.
        cursor: Where the debugger stands.

    Raises:
        Refused: There is no such kind, or its argument is malformed.
    """
    if kind not in KINDS:
        raise Refused("break", f"must be one of {', '.join(KINDS)}", kind)
    if kind == "session":
        if rest:
            raise Refused("break session", "takes no argument", rest)
        return AtSession()
    if not rest:
        raise Refused(f"break {kind}", "needs an argument")
    if kind == "job":
        return AtJob(parse_selector(rest))
    if kind == "host":
        return AtHost(check_name("break host", rest))
    if kind in ("event", "decision"):
        return AtKind(_known_kind(kind, rest), kind == "decision")
    if kind == "when":
        return When(rest, cursor)
    return _moment(kind, rest, cursor)


def _moment(kind: str, text: str, cursor: Cursor) -> Stop:
    moment = parse_moment(f"break {kind}", text)
    if kind == "time":
        if moment.time_us is None:
            raise Refused("break time", "must be a time, not a position", text)
        return AtTime(moment.time_us)
    if moment.position is None:
        raise Refused("break position", "must be a position", text)
    return AtPosition(position_of(cursor.log, moment, field="break position"))


def _known_kind(kind: str, pattern: str) -> str:
    known = list(event_classes())
    if not any(fnmatchcase(code, pattern) for code in known):
        raise Refused(f"break {kind}", f"must match one of {', '.join(known)}", pattern)
    return pattern
