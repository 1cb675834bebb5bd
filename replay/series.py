"""
Curves of a schedule: jobs that wait and slots in use over time, and waits by rank.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from replay.diff import Schedule


@final
@dataclass(frozen=True, slots=True)
class Curve:
    """
    Hold the mean of a count over each of equally long spans of time.

    Args:
        begin_us: Where the first span begins.
        span_us: How long each is, at least 1.
        means: One for each span.
    """

    begin_us: int
    span_us: int
    means: tuple[Fraction, ...]


def span_of(schedules: Iterable[Schedule]) -> tuple[int, int]:
    """
    Return the first submission and the last end of some schedules together; (0, 1) without jobs.
    """
    jobs = [job for schedule in schedules for job in schedule.jobs.values()]
    if not jobs:
        return 0, 1
    begin_us = min(job.submit_us for job in jobs)
    ends = [job.finish_us or job.start_us or job.submit_us for job in jobs]
    return begin_us, max(*ends, begin_us + 1)


def waiting(schedule: Schedule, begin_us: int, end_us: int, spans: int) -> Curve:
    """
    Return how many jobs wait.
    """
    steps = []
    for job in schedule.jobs.values():
        steps.append((job.submit_us, 1))
        until_us = job.finish_us if job.start_us is None else job.start_us
        if until_us is not None:
            steps.append((until_us, -1))
    return _means(steps, begin_us, end_us, spans)


def used(schedule: Schedule, begin_us: int, end_us: int, spans: int) -> Curve:
    """
    Return how many slots are in use.
    """
    steps = []
    for job in schedule.jobs.values():
        if job.start_us is not None:
            steps.append((job.start_us, job.tasks))
            if job.finish_us is not None:
                steps.append((job.finish_us, -job.tasks))
    return _means(steps, begin_us, end_us, spans)


def waits(schedule: Schedule, points: int) -> tuple[int, ...]:
    """
    Return the waits at equally distant ranks, from the shortest to the longest; empty without one.
    """
    found = sorted(
        job.start_us - job.submit_us for job in schedule.jobs.values() if job.start_us is not None
    )
    if not found:
        return ()
    last = len(found) - 1
    return tuple(found[place * last // max(1, points - 1)] for place in range(points))


def _means(steps: list[tuple[int, int]], begin_us: int, end_us: int, spans: int) -> Curve:
    """
    Return the mean of a step function over each span; what changes within one counts in proportion.
    """
    span_us = max(1, -(-(end_us - begin_us) // spans))
    sums = [0] * spans
    level, now_us, at = 0, begin_us, 0
    for time_us, change in [*sorted(steps), (begin_us + span_us * spans, 0)]:
        while now_us < time_us and at < spans:
            until_us = min(time_us, begin_us + (at + 1) * span_us)
            sums[at] += level * (until_us - now_us)
            now_us = until_us
            if now_us == begin_us + (at + 1) * span_us:
                at += 1
        level += change
    return Curve(begin_us, span_us, tuple(Fraction(one, span_us) for one in sums))
