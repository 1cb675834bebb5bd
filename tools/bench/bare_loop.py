"""
Simulate strict FCFS by a bare heap of job ends: no log, no hosts, no events.

It is the denominator of the simulation's figures, and an oracle that is short enough to be checked
by eye: under strict FCFS on total slots every correct simulator gives the same starts.
"""

from __future__ import annotations

import time
from array import array
from heapq import heappop, heappush

from projections.figures import SECOND_US, Figures
from replay.workloads.source import Workload


def strict_fcfs_starts(workload: Workload, slots: int) -> array[int]:
    """
    Return the start of each job in the trace's own seconds, in file order.

    Args:
        workload: Jobs of which none asks for more tasks than there are slots.
        slots: Slots of the cluster in all.
    """
    jobs = workload.jobs
    starts = array("q", bytes(8 * len(jobs)))
    ends: list[tuple[int, int]] = []
    free, now_s = slots, 0
    for index in workload.arrival_order():
        tasks = jobs.tasks[index]
        # A job starts neither before it is submitted nor before the one ahead of it has started.
        now_s = max(now_s, jobs.submit_s[index])
        while ends and (ends[0][0] <= now_s or free < tasks):
            end_s, freed = heappop(ends)
            now_s = max(now_s, end_s)
            free += freed
        free -= tasks
        starts[index] = now_s
        heappush(ends, (now_s + jobs.run_s[index], tasks))
    return starts


def figures_of(workload: Workload, starts: array[int], slots: int) -> Figures:
    """
    Return the figures of a schedule, times in the trace's own seconds.
    """
    figures = Figures(slots)
    jobs = workload.jobs
    rows = zip(jobs.submit_s, starts, jobs.run_s, jobs.tasks, strict=True)
    for submit_s, start_s, run_s, tasks in rows:
        figures.add(
            submit_us=submit_s * SECOND_US,
            start_us=start_s * SECOND_US,
            finish_us=(start_s + run_s) * SECOND_US,
            tasks=tasks,
        )
    return figures


def bare_jobs_per_s(workload: Workload, slots: int) -> float:
    """
    Return how many jobs a second the bare loop simulates, figures included: the denominator.
    """
    begin = time.perf_counter()
    figures_of(workload, strict_fcfs_starts(workload, slots), slots)
    return len(workload.jobs) / (time.perf_counter() - begin)
