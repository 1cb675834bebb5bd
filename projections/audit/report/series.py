"""
Levels over time, exactly: how many jobs waited, slots were used, and so on, as means of equal
buckets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from heapq import merge
from operator import itemgetter
from typing import Any

from projections.audit.reading import Reading

Delta = tuple[int, int]
BEHIND = "JOB_BEHIND"
HELD = {"held": "USER_STOP", "held by other": "ADMIN_STOP"}
CODES = {"new": "JOB_NEW", **HELD}


@dataclass(frozen=True, slots=True)
class Axis:
    """
    Hold the time axis: so many equal buckets from begin to end.
    """

    begin_us: int
    end_us: int
    buckets: int

    def edge(self, bucket: int) -> int:
        """
        Return where a bucket begins, rounded down.
        """
        return self.begin_us + (self.end_us - self.begin_us) * bucket // self.buckets

    def edges(self) -> list[int]:
        """
        Return where each bucket begins, and the end.
        """
        return [self.edge(bucket) for bucket in range(self.buckets + 1)]


def axis_of(reading: Reading, buckets: int) -> Axis:
    """
    Return the axis from the first event to the last.
    """
    begin_us = int(reading.value("SELECT time_us FROM events ORDER BY position LIMIT 1") or 0)
    return Axis(begin_us, max(reading.last_time_us(), begin_us + 1), buckets)


class Areas:
    """
    Add up level x time in each bucket, for several names.

    Args:
        axis: The buckets.
    """

    def __init__(self, axis: Axis) -> None:
        self.axis = axis
        self._edges = axis.edges()
        self._bucket = 0
        self._time_us = axis.begin_us
        self._areas: dict[str, list[int]] = {}

    def advance(self, to_us: int, levels: dict[str, int]) -> None:
        """
        Take levels as what held from the last moment to this one.
        """
        to_us = min(to_us, self.axis.end_us)
        while self._time_us < to_us:
            upto = min(to_us, self._edges[self._bucket + 1])
            span = upto - self._time_us
            for name, level in levels.items():
                if level:
                    self._area(name)[self._bucket] += level * span
            self._time_us = upto
            if upto == self._edges[self._bucket + 1] and self._bucket + 1 < self.axis.buckets:
                self._bucket += 1

    def _area(self, name: str) -> list[int]:
        if name not in self._areas:
            self._areas[name] = [0] * self.axis.buckets
        return self._areas[name]

    def means(self) -> dict[str, list[Fraction]]:
        """
        Return the mean level in each bucket, by name.
        """
        widths = [max(1, b - a) for a, b in zip(self._edges, self._edges[1:], strict=False)]
        return {
            name: [Fraction(area, width) for area, width in zip(areas, widths, strict=True)]
            for name, areas in self._areas.items()
        }


def mean_levels(axis: Axis, deltas: Iterable[tuple[int, str, int]]) -> dict[str, list[Fraction]]:
    """
    Return mean levels from changes (time, name, by how much) in any order.
    """
    areas, levels = Areas(axis), Counter[str]()
    for time_us, name, change in sorted(deltas, key=itemgetter(0)):
        areas.advance(time_us, levels)
        levels[name] += change
    areas.advance(axis.end_us, levels)
    return areas.means()


def _deltas(rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[int, str, int]]:
    """
    Yield the changes that intervals (name, from, to, level) make.
    """
    for name, from_us, to_us, level in rows:
        yield from_us, name, level
        if to_us is not None:
            yield to_us, name, -level


def queue_lengths(reading: Reading, axis: Axis) -> dict[str, list[Fraction]]:
    """
    Return how many jobs waited, by queue.
    """
    query = "SELECT queue, from_us, to_us, 1 FROM waits"
    return mean_levels(axis, _deltas(reading.table(query)[1]))


def slots(reading: Reading, axis: Axis) -> tuple[list[Fraction], list[Fraction]]:
    """
    Return the slots used and the slots offered (those of hosts whose agent hadn't left).
    """
    used = "SELECT 'used', from_us, to_us, tasks_per_host * host_count FROM allocations"
    offered = (
        "SELECT 'offered', s.from_us, s.to_us, h.slots FROM host_states s "
        "JOIN hosts h ON h.host = s.host WHERE s.status <> 'left'"
    )
    found = mean_levels(
        axis, [*_deltas(reading.table(used)[1]), *_deltas(reading.table(offered)[1])]
    )
    nothing = [Fraction(0)] * axis.buckets
    return found.get("used", nothing), found.get("offered", nothing)


def suspended(reading: Reading, axis: Axis) -> dict[str, list[Fraction]]:
    """
    Return how many jobs were suspended by the scheduler or a user.
    """
    query = "SELECT state, from_us, to_us, 1 FROM job_states WHERE state IN ('SSUSP', 'USUSP')"
    return mean_levels(axis, _deltas(reading.table(query)[1]))


# --------------------------------------------------------------------------------- pend reasons


@dataclass(slots=True)
class _List:
    """
    Hold the waiting jobs of one list: by code, how many in all but held ones, and who blocks it.
    """

    codes: Counter[str] = field(default_factory=Counter)
    count: int = 0
    blocker: str = ""


class ReasonSweep:
    """
    Go through everything that changed why jobs wait, in order, and count the jobs by main reason.

    The same as counting the intervals of the view pend_reasons, without making them: behind a
    blocked list there may be thousands for each job.
    """

    def __init__(self, reading: Reading, axis: Axis) -> None:
        self._reading = reading
        self._areas = Areas(axis)
        self._end_us = axis.end_us
        self._lists: dict[str, _List] = {}
        self._codes: dict[int, str] = {}
        self._in_set: Counter[tuple[int, str]] = Counter()
        self._sets: dict[str, int | None] = {}
        self._own = {
            row["list"].removeprefix("queue:")
            for row in reading.rows(
                "SELECT DISTINCT list FROM list_blockers WHERE list <> 'cluster'"
            )
        }

    def levels(self) -> dict[str, int]:
        """
        Return how many jobs wait now, by code.
        """
        total: Counter[str] = Counter()
        for one in self._lists.values():
            if not one.blocker:
                total.update(one.codes)
                continue
            for code in HELD.values():
                total[code] += one.codes[code]
            waits = one.blocker in self._sets
            total[BEHIND] += one.count - waits
            if waits:
                total[self._code(self._sets[one.blocker])] += 1
        return total

    def _code(self, number: int | None) -> str:
        return "JOB_NEW" if number is None else self._codes.get(number, "")

    def means(self) -> dict[str, list[Fraction]]:
        """
        Return the mean count of jobs in each bucket, by code.
        """
        time_us = -1
        for _, now_us, act, *what in self._changes():
            if now_us != time_us:
                self._areas.advance(now_us, self.levels())
                time_us = now_us
            act(self, *what)
        self._areas.advance(self._end_us, self.levels())
        return self._areas.means()

    def _changes(self) -> Iterator[tuple[Any, ...]]:
        """
        Yield position, time, what to do and with what, in order of position.
        """
        read, kind = self._reading.table, ReasonSweep
        begun = (
            "SELECT from_position, from_us, job_id, queue, kind, reason_set FROM waits ORDER BY 1"
        )
        ended = (
            "SELECT to_position, to_us, job_id, queue, kind, reason_set FROM waits "
            "WHERE to_position IS NOT NULL ORDER BY 1"
        )
        sets = "SELECT from_position, from_us, set_number, main_code FROM reason_sets ORDER BY 1"
        lists = "SELECT from_position, from_us, list, blocker FROM list_blockers ORDER BY 1"
        # An interval ends before the next one begins at the same position.
        return merge(
            ((p, t, kind.end, *rest) for p, t, *rest in read(ended)[1]),
            ((p, t, kind.change_set, *rest) for p, t, *rest in read(sets)[1]),
            ((p, t, kind.begin, *rest) for p, t, *rest in read(begun)[1]),
            ((p, t, kind.block, *rest) for p, t, *rest in read(lists)[1]),
            key=itemgetter(0),
        )

    def _list(self, queue: str) -> tuple[str, _List]:
        name = f"queue:{queue}" if queue in self._own else "cluster"
        return name, self._lists.setdefault(name, _List())

    def begin(self, job_id: str, queue: str, kind: str, number: int | None) -> None:
        """
        Count a job that begins to wait for something.
        """
        name, one = self._list(queue)
        one.codes[CODES.get(kind) or self._code(number)] += 1
        if number is not None:
            self._in_set[number, name] += 1
        if kind not in HELD:
            one.count += 1
            self._sets[job_id] = number

    def end(self, job_id: str, queue: str, kind: str, number: int | None) -> None:
        """
        Count it no longer.
        """
        name, one = self._list(queue)
        one.codes[CODES.get(kind) or self._code(number)] -= 1
        if number is not None:
            self._in_set[number, name] -= 1
        if kind not in HELD:
            one.count -= 1
            self._sets.pop(job_id, None)

    def change_set(self, number: int, code: str) -> None:
        """
        Count the jobs of a reason set for another reason.
        """
        before = self._codes.get(number, "")
        for name, one in self._lists.items():
            moved = self._in_set[number, name]
            one.codes[before] -= moved
            one.codes[code] += moved
        self._codes[number] = code

    def block(self, name: str, blocker: str) -> None:
        """
        Take another job, or none, as what holds back a list.
        """
        self._lists.setdefault(name, _List()).blocker = blocker
