"""
What the page says: sums over jobs, by queue and user, by the definitions of `projections.figures`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from domain.reasons import TEXTS
from projections.audit.reading import Reading, Row
from projections.audit.report.series import (
    Axis,
    ReasonSweep,
    axis_of,
    queue_lengths,
    slots,
    suspended,
)
from projections.figures import Figures

BUCKETS = 240
USERS_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Group:
    """
    Hold the figures of the jobs of one queue or user, and their longest wait.
    """

    name: str
    figures: Figures
    longest_wait_us: int


@dataclass(frozen=True, slots=True)
class Report:
    """
    Hold everything that the page shows.

    Args:
        cluster: Name of the cluster.
        log_id: Which log.
        position: Last position covered.
        axis: The time axis of the plots.
        counts: Jobs by state.
        overall: Figures of all jobs that ran and ended.
        queues: By queue.
        users: The users with the most slot time.
        used: Slots used over time.
        offered: Slots offered over time.
        lengths: Waiting jobs over time, by queue.
        reasons: Waiting jobs over time, by main reason.
        stopped: Suspended jobs over time, by state.
        preemptions: How often the scheduler suspended a job.
        refusals: What was refused, denied or ignored, by kind.
        outages: Hosts' times out of service, the longest first.
        texts: Code of a reason -> its words.
    """

    cluster: str
    log_id: str
    position: int
    axis: Axis
    counts: dict[str, int]
    overall: Figures
    queues: tuple[Group, ...]
    users: tuple[Group, ...]
    used: list[Fraction]
    offered: list[Fraction]
    lengths: dict[str, list[Fraction]]
    reasons: dict[str, list[Fraction]]
    stopped: dict[str, list[Fraction]]
    preemptions: int
    refusals: dict[str, int]
    outages: tuple[Row, ...]
    texts: dict[str, str]


def report_of(reading: Reading, buckets: int = BUCKETS) -> Report:
    """
    Return the report on everything in the tables.
    """
    axis = axis_of(reading, buckets)
    used, offered = slots(reading, axis)
    overall, queues, users = _groups(reading)
    return Report(
        cluster=_cluster(reading),
        log_id=str(reading.value("SELECT value FROM about WHERE key = 'log_id'")),
        position=reading.position(),
        axis=axis,
        counts=_counts(reading, "SELECT state, count(*) FROM jobs GROUP BY state ORDER BY state"),
        overall=overall,
        queues=queues,
        users=users,
        used=used,
        offered=offered,
        lengths=queue_lengths(reading, axis),
        reasons=ReasonSweep(reading, axis).means(),
        stopped=suspended(reading, axis),
        preemptions=int(
            reading.value("SELECT count(*) FROM job_states WHERE state = 'SSUSP'") or 0
        ),
        refusals=_counts(
            reading, "SELECT kind, count(*) FROM refusals GROUP BY kind ORDER BY kind"
        ),
        outages=tuple(_outages(reading)),
        texts=_texts(),
    )


def _counts(reading: Reading, query: str) -> dict[str, int]:
    return dict(reading.table(query)[1])


def _cluster(reading: Reading) -> str:
    query = "SELECT json_extract(content, '$.name') FROM definitions WHERE kind = 'cluster'"
    return str(reading.value(query) or "")


def _texts() -> dict[str, str]:
    """
    Return the words of each reason, whatever resource it names.
    """
    return {str(code): words.format(resource="of a resource") for code, words in TEXTS.items()}


def _outages(reading: Reading) -> list[Row]:
    return reading.rows(
        "SELECT host, status, why, count(*) AS times, "
        "sum(coalesce(to_us, ?) - from_us) AS total_us FROM host_states "
        "WHERE status <> 'ok' GROUP BY host, status, why ORDER BY total_us DESC, host LIMIT 20",
        (reading.last_time_us(),),
    )


# ------------------------------------------------------------------------------------------ groups


class _Sums:
    """
    Sum up jobs by name.
    """

    def __init__(self, slots_total: int) -> None:
        self._slots = slots_total
        self._groups: dict[str, Figures] = {}
        self._longest_us: dict[str, int] = {}

    def add(self, name: str, *, submit_us: int, start_us: int, finish_us: int, tasks: int) -> None:
        """
        Add a job to the group of a name.
        """
        figures = self._groups.get(name)
        if figures is None:
            figures = self._groups[name] = Figures(self._slots)
        figures.add(submit_us=submit_us, start_us=start_us, finish_us=finish_us, tasks=tasks)
        self._longest_us[name] = max(self._longest_us.get(name, 0), start_us - submit_us)

    def groups(self, key: Callable[[Group], tuple[int, str]]) -> tuple[Group, ...]:
        """
        Return the groups in an order.
        """
        made = [Group(name, one, self._longest_us[name]) for name, one in self._groups.items()]
        return tuple(sorted(made, key=key))


def _groups(reading: Reading) -> tuple[Figures, tuple[Group, ...], tuple[Group, ...]]:
    total = int(reading.value("SELECT sum(slots) FROM hosts") or 0)
    overall, queues, users = Figures(total), _Sums(total), _Sums(total)
    query = "SELECT queue, user, submit_us, dispatch_us, finish_us, tasks FROM job_figures"
    for queue, user, submit_us, start_us, finish_us, tasks in reading.table(query)[1]:
        job = {"submit_us": submit_us, "start_us": start_us, "finish_us": finish_us, "tasks": tasks}
        overall.add(**job)
        queues.add(queue, **job)
        users.add(user, **job)
    most_used = users.groups(lambda group: (-group.figures.used_slot_us, group.name))
    return overall, queues.groups(lambda group: (0, group.name)), most_used[:USERS_SHOWN]
