"""
Why a job waits, or waited at some moment, from what was recorded: nothing is worked out again or
guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace

from domain.errors import NotFound, Refused
from domain.ids import split_job_id
from domain.units import MEMORY_NAMES, show_memory_rounded, show_milli
from projections.audit.reading import Reading, Row

# So many of the jobs that ran instead are named.
NAMED_MAX = 10


@dataclass(frozen=True, slots=True)
class Shortage:
    """
    Say one reason with amounts, and the host that has most of what is short.

    Args:
        code: Code of the reason.
        text: The reason in words.
        resource: What is short, "" when nothing is.
        requested_milli: Smallest amount that was tried and didn't fit.
        host_count: Hosts that it holds for, 0 for a reason of the whole job.
        nearest_host: Host with the most available, None for a reason of the whole job.
        available_milli: What that host had.
        missing_milli: What is missing there.
    """

    code: str
    text: str
    resource: str
    requested_milli: int
    host_count: int
    nearest_host: str | None
    available_milli: int | None
    missing_milli: int | None

    def words(self) -> str:
        """
        Return the reason with every number's unit.
        """
        if self.nearest_host is None:
            return self.text
        hosts = f"{self.host_count} host{'' if self.host_count == 1 else 's'}"
        if not self.resource or self.missing_milli is None or self.available_milli is None:
            return f"{self.text}: {hosts}"
        if self.code in ("HOST_SLOTS", "JOB_NO_SPAN") and not self.missing_milli:
            return f"{self.text}: {hosts}"
        show = show_memory_rounded if self.resource in MEMORY_NAMES else show_milli
        if self.code == "HOST_LOAD":
            # A load isn't given away: whether more of it is better depends on the index.
            return (
                f"{self.text}: {hosts}; it is highest on {self.nearest_host} with "
                f"{show(self.available_milli)}, and the lowest threshold is "
                f"{show(self.requested_milli)}"
            )
        # A job of many tasks is tried in parts: what it asks for in all is another number.
        free = "left by it" if "LIMIT" in self.code else "free"
        return (
            f"{self.text}: {hosts}; {with_unit(self.requested_milli, self.resource)} asked for "
            f"there at least, {show(self.available_milli)} {free} on {self.nearest_host}, which "
            f"has most: {show(self.missing_milli)} short"
        )

    @property
    def is_of_what_is_free(self) -> bool:
        """
        Say whether its amounts are of what the nearest host has free; not of a limit, or a load.
        """
        is_other = "LIMIT" in self.code or self.code == "HOST_LOAD"
        return self.missing_milli is not None and not is_other


def with_unit(milli: int, resource: str) -> str:
    """
    Return an amount of a resource for people.
    """
    if resource in MEMORY_NAMES:
        return show_memory_rounded(milli)
    unit = "slot" if resource == "slots" and milli == 1000 else resource
    return f"{show_milli(milli)} {unit}"


@dataclass(frozen=True, slots=True)
class Why:
    """
    Say why a job waits or waited at a position.

    Args:
        job_id: Which job.
        position: At which position of the log.
        time_us: Time of that position.
        state: Its state then.
        verdict: waits, never (can't start on any host as the cluster is), held, runs, ended or
            unknown.
        code: Code of the main reason, "" when it doesn't wait.
        reasons: All reasons in words, grouped.
        shortages: Each reason with amounts.
        figures_position: Of which position these amounts are, None when there are none: a job that
            nothing made worth a try isn't tried in every session.
        blocker: Job that holds it back, "" when none does.
        since_us: When that became so.
        since_position: Position of the event that made it so.
        dispatched_instead: How many jobs were dispatched since it was submitted.
        instead: The latest of them.
    """

    job_id: str
    position: int
    time_us: int
    state: str
    verdict: str
    code: str
    reasons: str
    shortages: tuple[Shortage, ...]
    figures_position: int | None
    blocker: str
    since_us: int
    since_position: int
    dispatched_instead: int
    instead: tuple[str, ...]

    def plain(self) -> dict[str, object]:
        """
        Return it as plain data, with "satisfiable" told as never, later or now.
        """
        satisfiable = {"never": "never", "waits": "later", "held": "later"}.get(self.verdict, "now")
        return {**asdict(self), "satisfiable": satisfiable}


def job_row(reading: Reading, job_id: str) -> Row:
    """
    Return the row of a job.

    Raises:
        NotFound: The log knows no such job.
        Refused: It is no job id, or that of an array.
    """
    row = reading.one("SELECT * FROM jobs WHERE job_id = ?", (job_id,))
    if row is None:
        number, index = split_job_id(job_id)
        first = reading.value(
            "SELECT job_id FROM jobs WHERE number = ? ORDER BY job_key", (number,)
        )
        if first and not index:
            rule = "is an array: name one of its elements"
            raise Refused("job_id", rule, job_id, f"The first is {first}.")
        raise NotFound("job_id", "must name a job of this log", job_id, "List them: xce jobs -a.")
    return row


def why_at(reading: Reading, job_id: str, position: int | None = None) -> Why:
    """
    Return why a job waits, or waited at a position.

    Args:
        reading: The tables.
        job_id: Which job.
        position: Where in the log, None for its end.

    Raises:
        NotFound: The log knows no such job, or not yet at that position.
    """
    job = job_row(reading, job_id)
    at = reading.position() if position is None else min(position, reading.position())
    if at < job["submit_position"]:
        raise NotFound(
            "job_id",
            f"is not yet submitted at position {at}",
            job_id,
            f"It was submitted at position {job['submit_position']}.",
        )
    where = "job_id = ? AND from_position <= ? AND (to_position IS NULL OR to_position > ?)"
    state = reading.one(f"SELECT * FROM job_states WHERE {where}", (job_id, at, at))
    wait = reading.one(f"SELECT * FROM pend_reasons WHERE {where}", (job_id, at, at))
    assert state is not None
    found = wait if wait is not None else state
    ran, instead = _instead(reading, job, at)
    return Why(
        job_id,
        at,
        _time_at(reading, at),
        state["state"],
        _verdict(state["state"], wait),
        wait["code"] if wait is not None else "",
        wait["reasons"] if wait is not None else "",
        shortages(reading, wait),
        wait["set_position"] if wait is not None else None,
        wait["blocker"] if wait is not None else "",
        found["from_us"],
        found["from_position"],
        ran,
        instead,
    )


def _verdict(state: str, wait: Row | None) -> str:
    if wait is not None:
        if wait["code"] in ("USER_STOP", "ADMIN_STOP"):
            return "held"
        return "never" if wait["never"] else "waits"
    if state in ("DONE", "EXIT"):
        return "ended"
    return "unknown" if state == "UNKWN" else "runs"


def _time_at(reading: Reading, position: int) -> int:
    query = "SELECT time_us FROM events WHERE position <= ? ORDER BY position DESC LIMIT 1"
    return int(reading.value(query, (position,)) or 0)


def shortages(reading: Reading, wait: Row | None) -> tuple[Shortage, ...]:
    """
    Return the reasons of an interval of waiting, with amounts, in recorded order.
    """
    if wait is None or wait["set_position"] is None:
        return ()
    rows = reading.rows(
        "SELECT d.*, h.host FROM reason_details d LEFT JOIN hosts h ON h.host_number = "
        "d.nearest_number "
        "WHERE set_number = ? AND from_position = ? ORDER BY ordinal",
        (wait["reason_set"], wait["set_position"]),
    )
    return tuple(_shortage(row) for row in rows)


def _shortage(row: Row) -> Shortage:
    most = row["most_available_milli"]
    is_short = row["resource"] != "" and most is not None
    return Shortage(
        row["code"],
        row["text"],
        row["resource"],
        row["requested_milli"],
        row["host_count"],
        row["host"] if row["host_count"] else None,
        most,
        max(0, row["requested_milli"] - most) if is_short else None,
    )


def _instead(reading: Reading, job: Row, at: int) -> tuple[int, tuple[str, ...]]:
    """
    Return how many jobs were dispatched between a job's submission and a position while it waited,
    and the latest.
    """
    until = reading.value(
        "SELECT min(dispatch_position) FROM attempts WHERE job_id = ?", (job["job_id"],)
    ) or reading.value(
        "SELECT from_position FROM job_states WHERE job_id = ? AND state IN ('DONE', 'EXIT')",
        (job["job_id"],),
    )
    last = at if until is None else min(at, until - 1)
    values = (job["submit_position"], last, job["job_id"])
    where = "dispatch_position > ? AND dispatch_position <= ? AND job_id <> ?"
    # A job that started again and again is still one job.
    count = reading.value(f"SELECT count(DISTINCT job_id) FROM attempts WHERE {where}", values)
    rows = reading.rows(
        f"SELECT job_id FROM attempts WHERE {where} GROUP BY job_id "
        f"ORDER BY max(dispatch_position) DESC LIMIT {NAMED_MAX}",
        values,
    )
    return int(count or 0), tuple(row["job_id"] for row in rows)


@dataclass(frozen=True, slots=True)
class Interval:
    """
    Hold one interval of waiting for the same reasons; to_us is None while it lasts.
    """

    from_position: int
    from_us: int
    to_position: int | None
    to_us: int | None
    code: str
    reasons: str
    never: bool
    blocker: str

    def says(self, other: Interval) -> bool:
        """
        Say whether another interval has the same reasons.
        """
        return (self.code, self.reasons, self.never, self.blocker) == (
            other.code,
            other.reasons,
            other.never,
            other.blocker,
        )


def reason_history(reading: Reading, job_id: str) -> tuple[Interval, ...]:
    """
    Return why a job waited over time: intervals without gap or overlap that sum to its whole
    waiting time.

    Raises:
        NotFound: The log knows no such job.
    """
    job_row(reading, job_id)
    rows = reading.rows(
        "SELECT * FROM pend_reasons WHERE job_id = ? ORDER BY from_position", (job_id,)
    )
    return tuple(
        _merged(
            Interval(
                row["from_position"],
                row["from_us"],
                row["to_position"],
                row["to_us"],
                row["code"],
                row["reasons"],
                bool(row["never"]),
                row["blocker"],
            )
            for row in rows
        )
    )


def _merged(intervals: Iterable[Interval]) -> Iterator[Interval]:
    """
    Yield intervals, those that follow each other with the same reasons as one.
    """
    kept: Interval | None = None
    for one in intervals:
        if kept is not None and kept.to_position == one.from_position and kept.says(one):
            kept = replace(kept, to_position=one.to_position, to_us=one.to_us)
            continue
        if kept is not None:
            yield kept
        kept = one
    if kept is not None:
        yield kept


def hosts_short(reading: Reading, why: Why) -> list[Row]:
    """
    Return host by host what a waiting job was short of.
    """
    wait = reading.one(
        "SELECT reason_set, set_position FROM pend_reasons WHERE job_id = ? AND from_position <= ? "
        "AND (to_position IS NULL OR to_position > ?)",
        (why.job_id, why.position, why.position),
    )
    if wait is None or wait["set_position"] is None:
        return []
    return reading.rows(
        "SELECT host, code, text, resource, requested_milli, available_milli FROM reason_hosts "
        "WHERE set_number = ? AND from_position = ? ORDER BY host_number, code",
        (wait["reason_set"], wait["set_position"]),
    )
