"""
Find jobs that wait for each other in a circle: they could never be submitted.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import replace

from replay.workloads.source import Jobs, Workload


def without_circles(workload: Workload) -> Workload:
    """
    Return the workload without jobs in a circle, and without those that wait for one, counted.

    A job that isn't there (left out, or never in the trace) is waited for by nobody.
    """
    details = workload.jobs.details
    if details is None or not any(details.preceding_ids):
        return workload
    can_run = _can_run(workload.jobs, details.preceding_ids)
    in_a_circle = can_run.count(False)
    if not in_a_circle:
        return workload
    counted = replace(workload.left_out, in_a_circle=in_a_circle)
    return replace(workload, jobs=workload.jobs.kept(can_run), left_out=counted)


def _can_run(jobs: Jobs, preceding_ids: list[tuple[int, ...]]) -> list[bool]:
    """
    Tell for each job whether all it waits for can run: take away what waits for nothing, again.
    """
    index_of = {trace_id: index for index, trace_id in enumerate(jobs.trace_id)}
    followers: dict[int, list[int]] = defaultdict(list)
    waiting = [0] * len(jobs)
    for index, ids in enumerate(preceding_ids):
        for trace_id in ids:
            if trace_id in index_of:
                followers[index_of[trace_id]].append(index)
                waiting[index] += 1
    free = deque(index for index, count in enumerate(waiting) if not count)
    can_run = [False] * len(jobs)
    while free:
        index = free.popleft()
        can_run[index] = True
        for follower in followers[index]:
            waiting[follower] -= 1
            if not waiting[follower]:
                free.append(follower)
    return can_run
