"""
The obvious, slow scheduler of a machine whose slots are all alike: first come, first served, with
EASY backfilling or without. It is written from the textbook and shares nothing with the core.

One pass for each second in which something happens, after all ends and submissions of it, and
again while jobs of 0 s end in it.
"""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from pathlib import Path

from tests.replay.hosts_reference import HostJob

NUMBER, SUBMIT, RUN, SIZE, ASKED_SIZE, ASKED_TIME = 0, 1, 3, 4, 7, 8


@dataclass
class Job:
    """
    Hold a job of a trace; the estimate is never below the run time.
    """

    number: int
    submit: int
    run: int
    size: int
    estimate: int
    start: int = -1

    @property
    def end(self) -> int:
        return self.start + self.run

    @property
    def planned_end(self) -> int:
        return self.start + self.estimate


def jobs_of(path: Path, slots: int, most: int | None = None) -> list[Job]:
    """
    Return the first jobs of a trace in SWF that fit, in order of submission, ties as in the file.
    """
    found = []
    with gzip.open(path, "rt", errors="replace") as lines:
        rows = (line.split() for line in lines if line.strip() and not line.startswith(";"))
        for row in islice(rows, most):
            submit, run, size = int(row[SUBMIT]), int(row[RUN]), int(row[ASKED_SIZE])
            size = size if size > 0 else int(row[SIZE])
            if 0 < size <= slots and submit >= 0 and run >= 0:
                estimate = max(run, int(row[ASKED_TIME]))
                found.append(Job(int(row[NUMBER]), submit, run, size, estimate))
    return sorted(found, key=lambda job: job.submit)


def schedule(jobs: list[Job], slots: int, *, backfills: bool) -> None:
    """
    Give every job its start.
    """
    to_come, waiting, running = list(jobs), [], []
    while to_come or running:
        now = min([*(job.submit for job in to_come[:1]), *(job.end for job in running)])
        is_first = True
        while is_first or any(job.end == now for job in running):
            running = [job for job in running if job.end > now]
            while is_first and to_come and to_come[0].submit == now:
                waiting.append(to_come.pop(0))
            is_first = False
            one_pass(waiting, running, slots, now, backfills=backfills)


def one_pass(
    waiting: list[Job], running: list[Job], slots: int, now: int, *, backfills: bool
) -> None:
    """
    Start what can start.
    """

    def start(job: Job) -> None:
        job.start = now
        waiting.remove(job)
        running.append(job)

    def free() -> int:
        return slots - sum(job.size for job in running)

    while waiting and waiting[0].size <= free():
        start(waiting[0])
    if not waiting or not backfills:
        return
    first = waiting[0]
    for moment in sorted({job.planned_end for job in running}):
        extra = free() - first.size
        extra += sum(job.size for job in running if job.planned_end <= moment)
        if extra >= 0:
            shadow = moment
            break
    for job in waiting[1:]:
        if job.size > free():
            continue
        if now + job.estimate <= shadow:
            start(job)
        elif job.size <= extra:
            extra -= job.size
            start(job)


def figures(
    jobs: Sequence[Job] | Sequence[HostJob], second: int = 1
) -> tuple[Fraction, Fraction, int]:
    """
    Return mean wait, mean bounded slowdown and makespan, in the unit of the jobs' times.
    """
    waits = [job.start - job.submit for job in jobs]
    slowdowns = [
        max(Fraction(1), Fraction(wait + job.run, max(job.run, 10 * second)))
        for wait, job in zip(waits, jobs, strict=True)
    ]
    makespan = max(job.end for job in jobs) - min(job.submit for job in jobs)
    return Fraction(sum(waits), len(jobs)), sum(slowdowns, Fraction(0)) / len(jobs), makespan
