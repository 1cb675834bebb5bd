"""
What the page says: sums over jobs, by queue and user, by the definitions of `projections.figures`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from domain.reasons import TEXTS
from domain.terminations import exit_words, termination_words
from projections.audit.accounting import figures_of
from projections.audit.reading import Reading, Row
from projections.audit.report.series import (
    Axis,
    ReasonSweep,
    axis_of,
    queue_lengths,
    slots,
    suspended,
)
from projections.figures import Figures, Group

BUCKETS = 240
USERS_SHOWN = 20
ENDS_SHOWN = 20
# A job that its user lets go on is SSUSP for a moment too, and one whose host was away again.
_SUSPENSIONS = """SELECT count(*) FROM job_states AS s WHERE state = 'SSUSP' AND EXISTS (
    SELECT 1 FROM job_states WHERE job_id = s.job_id AND to_position = s.from_position
    AND state = 'RUN')"""


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
        projects: By project.
        used: Slots used over time.
        offered: Slots offered over time.
        lengths: Waiting jobs over time, by queue.
        reasons: Waiting jobs over time, by main reason.
        stopped: Suspended jobs over time, by state.
        preemptions: How often the scheduler suspended a job.
        ends: How jobs ended that didn't end well, in words, most first.
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
    projects: tuple[Group, ...]
    used: list[Fraction]
    offered: list[Fraction]
    lengths: dict[str, list[Fraction]]
    reasons: dict[str, list[Fraction]]
    stopped: dict[str, list[Fraction]]
    preemptions: int
    ends: dict[str, int]
    refusals: dict[str, int]
    outages: tuple[Row, ...]
    texts: dict[str, str]


def report_of(reading: Reading, buckets: int = BUCKETS) -> Report:
    """
    Return the report on everything in the tables.
    """
    axis = axis_of(reading, buckets)
    used, offered = slots(reading, axis)
    figures = figures_of(reading)
    most_used = sorted(figures.users, key=lambda group: -group.figures.used_slot_us)
    return Report(
        cluster=_cluster(reading),
        log_id=str(reading.value("SELECT value FROM about WHERE key = 'log_id'")),
        position=reading.position(),
        axis=axis,
        counts=_counts(reading, "SELECT state, count(*) FROM jobs GROUP BY state ORDER BY state"),
        overall=figures.overall,
        queues=figures.queues,
        users=tuple(most_used[:USERS_SHOWN]),
        projects=figures.projects,
        used=used,
        offered=offered,
        lengths=queue_lengths(reading, axis),
        reasons=ReasonSweep(reading, axis).means(),
        stopped=suspended(reading, axis),
        preemptions=int(reading.value(_SUSPENSIONS) or 0),
        ends=_ends(reading),
        refusals=_counts(
            reading, "SELECT kind, count(*) FROM refusals GROUP BY kind ORDER BY kind"
        ),
        outages=tuple(_outages(reading)),
        texts=_texts(),
    )


def _counts(reading: Reading, query: str) -> dict[str, int]:
    return dict(reading.table(query)[1])


def _ends(reading: Reading) -> dict[str, int]:
    """
    Return how many jobs ended how, of those that didn't end well, most first.
    """
    rows = reading.rows(
        "SELECT j.end_reason AS why, a.exit_code, a.signal, count(*) AS jobs FROM jobs j "
        "LEFT JOIN (SELECT job_id, max(attempt), exit_code, signal FROM attempts GROUP BY job_id) "
        "a USING (job_id) "
        "WHERE j.state = 'EXIT' GROUP BY 1, 2, 3 ORDER BY jobs DESC, 1, 2, 3 LIMIT 100"
    )
    told: dict[str, int] = {}
    for row in rows:
        how = exit_words(row["exit_code"], row["signal"])
        words = termination_words(row["why"]) if row["why"] else how or "nobody knows how"
        told[words] = told.get(words, 0) + int(row["jobs"])
    return dict(sorted(told.items(), key=lambda item: (-item[1], item[0]))[:ENDS_SHOWN])


def _cluster(reading: Reading) -> str:
    query = "SELECT json_extract(content, '$.name') FROM definitions WHERE kind = 'cluster'"
    return str(reading.value(query) or "")


def _texts() -> dict[str, str]:
    """
    Return the words of each reason, whatever resource it names.
    """
    return {
        str(code): words.format(resource="a resource" if " of {" in words else "of a resource")
        for code, words in TEXTS.items()
    }


def _outages(reading: Reading) -> list[Row]:
    return reading.rows(
        "SELECT host, status, why, count(*) AS times, "
        "sum(coalesce(to_us, ?) - from_us) AS total_us FROM host_states "
        "WHERE status <> 'ok' GROUP BY host, status, why ORDER BY total_us DESC, host LIMIT 20",
        (reading.last_time_us(),),
    )
