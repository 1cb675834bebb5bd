"""
The figures of the jobs in the tables, whole and by queue, user and project, by the definitions of
`projections.figures`.
"""

from __future__ import annotations

from dataclasses import dataclass

from projections.audit.reading import Reading
from projections.figures import Figures, Group, Grouped

FOREVER_US = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Accounts:
    """
    Hold the figures of jobs that ran and ended.

    Args:
        overall: Of all of them.
        queues: By queue.
        users: By user.
        projects: By the project that the job named; "" for those that named none.
    """

    overall: Figures
    queues: tuple[Group, ...]
    users: tuple[Group, ...]
    projects: tuple[Group, ...]


def figures_of(
    reading: Reading, *, from_us: int | None = None, to_us: int | None = None
) -> Accounts:
    """
    Return the figures of the jobs that ended in a period, of all when it has no bounds.
    """
    slots = int(reading.value("SELECT sum(slots) FROM hosts") or 0)
    overall, by = Figures(slots), (Grouped(slots), Grouped(slots), Grouped(slots))
    _, rows = reading.table(
        "SELECT queue, user, project, submit_us, dispatch_us, finish_us, tasks FROM job_figures "
        "WHERE finish_us BETWEEN ? AND ?",
        (from_us or 0, FOREVER_US if to_us is None else to_us),
    )
    for *names, submit_us, start_us, finish_us, tasks in rows:
        job = {"submit_us": submit_us, "start_us": start_us, "finish_us": finish_us, "tasks": tasks}
        overall.add(**job)
        for grouped, name in zip(by, names, strict=True):
            grouped.add(name, **job)
    queues, users, projects = (grouped.groups() for grouped in by)
    return Accounts(overall, queues, users, projects)
