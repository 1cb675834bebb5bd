"""
The decision trace of one job, as plain data: how one session came to its outcome.

A trace is a list of lines, each at a depth below the one that it belongs to, as the code that
decides wrote them down; what renders them is elsewhere. Nothing of it is state: no decision reads
it, and no snapshot has it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

LINES_MAX: Final = 1_000
"""Lines of a trace unless settings say another count."""

HOSTS_SHOWN: Final = 50
"""Hosts of an outcome that are told one by one; the others are summed."""


class Level(StrEnum):
    """
    Name how much is written down: outcomes of levels and counts, or each plan, bucket and host too.
    """

    SUMMARY = "summary"
    FULL = "full"


class Kind(StrEnum):
    """
    Name what a line is about.
    """

    LIMIT = "limit"
    READINESS = "readiness"
    UNAVAILABLE = "unavailable"
    ALTERNATIVE = "alternative"
    COMPOUND = "compound"
    PRIMARY = "primary"
    GUARD = "guard"
    CANDIDATES = "candidates"
    SELECTED_OUT = "selected_out"
    USAGE = "usage"
    CHECK = "check"
    ALLOCATOR = "allocator"
    PLAN = "plan"
    BUCKET = "bucket"
    HOST = "host"
    MERGE = "merge"
    PREEMPTION = "preemption"
    VICTIM = "victim"


DEPTHS: Final = {
    Kind.LIMIT: 0,
    Kind.READINESS: 0,
    Kind.UNAVAILABLE: 0,
    Kind.ALTERNATIVE: 0,
    Kind.COMPOUND: 1,
    Kind.PRIMARY: 2,
    Kind.GUARD: 3,
    Kind.CANDIDATES: 3,
    Kind.SELECTED_OUT: 4,
    Kind.USAGE: 3,
    Kind.CHECK: 4,
    Kind.ALLOCATOR: 4,
    Kind.PLAN: 5,
    Kind.BUCKET: 6,
    Kind.HOST: 7,
    Kind.MERGE: 1,
    Kind.PREEMPTION: 0,
    Kind.VICTIM: 1,
}


@dataclass(slots=True, frozen=True)
class Key:
    """
    Hold one of the keys that gave the job its place in the order; the first ones decide.
    """

    name: str
    value: int | str


@dataclass(slots=True, frozen=True)
class Row:
    """
    Hold one amount that was checked, in thousandths.

    Args:
        name: The resource; of a limit what it bounds.
        flags: What it is: limit, shared, real (measured by the operating system), consumable,
            static, units, release_on_suspend; per_task, per_host or per_job; threshold or ceiling
            for what must be there without being taken, or may be there at most; each_host for a
            limit of each host by itself.
        type: number, string or boolean.
        total_milli: How much there is, or may be in use.
        in_use_milli: What jobs are charged: what they asked for, or use if that is more.
        reserved_milli: What of it they asked for.
        available_milli: What this job may take: also less what is held for others, what its own
            earlier members claimed, and what the operating system says is gone.
        is_met: Whether that suffices.
    """

    name: str
    flags: tuple[str, ...] = ()
    type: str = "number"
    total_milli: int = 0
    in_use_milli: int = 0
    reserved_milli: int = 0
    available_milli: int = 0
    requested_milli: int = 0
    is_met: bool = True

    @property
    def is_limit(self) -> bool:
        """
        Say whether it is about a limit; such a row is no shortfall.
        """
        return "limit" in self.flags

    @property
    def missing_milli(self) -> int:
        """
        Return by how much it isn't met.
        """
        return 0 if self.is_met else max(0, self.requested_milli - self.available_milli)


@dataclass(slots=True)
class Line:
    """
    Hold one thing that was looked at.

    Args:
        outcome: What came of it, in a word or some; "" for what never came to an end.
        name: What it is about: a limit, an allocator, a resource.
        number: Which one it is of its kind, from 1; 0 where there is only one.
        tasks: How many tasks, and of a range the most.
        count: How many: buckets, plans, victims.
        code: A pend reason's code.
        detail: More words.
        host: The first host of neighbours with the same verdict, "" for none.
        last_host: The last of them.
        hosts: How many they are.
    """

    kind: Kind
    outcome: str = ""
    name: str = ""
    number: int = 0
    tasks: int = 0
    tasks_max: int = 0
    count: int = 0
    code: str = ""
    detail: str = ""
    host: str = ""
    last_host: str = ""
    hosts: int = 0
    rows: tuple[Row, ...] = ()

    @property
    def depth(self) -> int:
        """
        Return how deep it lies below what it belongs to.
        """
        return DEPTHS[self.kind]


class Verdict(StrEnum):
    """
    Name what a session came to for a job.
    """

    DISPATCHED = "dispatched"
    PENDED = "pended"
    PREEMPTS = "preempts"
    SKIPPED = "skipped"
    NOT_TRIED = "not_tried"
    FAILED = "failed"
    REBUILT = "rebuilt"


@dataclass(slots=True, frozen=True)
class OutcomeHost:
    """
    Hold one host of an outcome: what the job got there, or what it was short of.

    Args:
        tasks: How many it got there; 0 where it got nothing.
        amounts: What it got beside slots, resource and thousandths.
    """

    host: str
    tasks: int = 0
    amounts: tuple[tuple[str, int], ...] = ()
    code: str = ""
    resource: str = ""
    detail: str = ""
    requested_milli: int = 0
    available_milli: int = 0


@dataclass(slots=True, frozen=True)
class Rest:
    """
    Sum hosts that aren't told one by one: those that got something, or those of one reason.
    """

    hosts: int
    tasks: int = 0
    code: str = ""
    resource: str = ""
    detail: str = ""


@dataclass(slots=True)
class Outcome:
    """
    Hold what a session came to.

    Args:
        why: In words, where there are any.
        because_of: The job that proved the request unsatisfiable, or holds this one back.
        reason_set: The set that the job is in afterwards, 0 for none.
        is_never: Whether it could never start as things are.
        shortfalls: How many hosts, and shared totals, had too little of something; limits don't
            count.
        limits_reached: How often a limit was what didn't suffice.
        reasons: (code, resource, detail) of reasons of the whole job.
        shared: What it got of shared resources, resource and thousandths.
        host_count: How many hosts it got, or how many have a reason, once for each reason.
        hosts: The first of them.
        rest: All others, summed.
    """

    verdict: Verdict
    why: str = ""
    because_of: str = ""
    reason_set: int = 0
    is_never: bool = False
    shortfalls: int = 0
    limits_reached: int = 0
    reasons: tuple[tuple[str, str, str], ...] = ()
    tasks: int = 0
    shared: tuple[tuple[str, int], ...] = ()
    host_count: int = 0
    hosts: tuple[OutcomeHost, ...] = ()
    rest: tuple[Rest, ...] = ()


@dataclass(slots=True)
class SessionMark:
    """
    Hold the session of a trace, one object for all its traces.

    Args:
        number: Its number; of one that decided nothing, the number that it would have had.
        is_recorded: Whether it decided something, so that the log has it.
    """

    number: int
    time_us: int
    is_recorded: bool = False


@dataclass(slots=True)
class Passed:
    """
    Say why a job that waits got no decision in a session.
    """

    session: SessionMark
    outcome: Outcome


@dataclass(slots=True)
class DecisionTrace:
    """
    Hold how one job was decided in one session.

    Args:
        picker: Which picker handed the job out.
        place: It was the place-th job that the session tried; 0 when it wasn't tried.
        keys: What gave it its place in the order.
        forced_on: The hosts where an operator wants it, with its tasks there; "" for a job that
            waits its turn. No picker handed it out then, and no keys gave it its place.
        request: What it asks for, in canonical words.
        left_out: How many lines there are beyond the bound.
        broken: Why writing it down failed, "" when it didn't.
        passed: The last later session that didn't try the job.
    """

    job_id: str
    session: SessionMark
    level: Level
    picker: str = ""
    place: int = 0
    keys: tuple[Key, ...] = ()
    forced_on: str = ""
    request: str = ""
    lines: list[Line] = field(default_factory=list)
    left_out: int = 0
    outcome: Outcome = field(default_factory=lambda: Outcome(Verdict.NOT_TRIED))
    broken: str = ""
    passed: Passed | None = None


@dataclass(slots=True, frozen=True)
class TraceSettings:
    """
    Say what is traced.

    Args:
        streams: Of which jobs, None for all.
        arrays: Numbers of arrays, all of whose elements are meant.
        lines_max: The most lines of a trace.
    """

    streams: frozenset[str] | None = None
    arrays: frozenset[int] = frozenset()
    level: Level = Level.FULL
    lines_max: int = LINES_MAX

    def has(self, stream: str, *, number: int, index: int) -> bool:
        """
        Say whether a job is traced.
        """
        if self.streams is None or stream in self.streams:
            return True
        return bool(index) and number in self.arrays
