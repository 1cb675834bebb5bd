"""
The bare heap loop, which is the oracle of strict FCFS and the denominator of the benchmarks.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections.figures import SECOND_US, shown
from replay.cluster_file import cluster_of
from replay.workloads.source import Header, Jobs, LeftOut, Workload
from replay.workloads.swf import read_swf
from tools.bench.bare_loop import figures_of, strict_fcfs_starts

# Trace, jobs, mean wait (s), mean bounded slowdown, makespan (s), sum of starts (s).
KNOWN = [
    ("KTH-SP2-1996-2.1-cln", 28_475, "389852.1671", "7518.7390", 28_779_758, 444_007_479_514),
    ("NASA-iPSC-1993-3.1-cln", 18_239, "8.0047", "1.0260", 7_949_022, 72_500_278_608),
]


@pytest.mark.slow
@pytest.mark.needs_traces
@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known[0])
def test_strict_fcfs_gives_the_known_figures_on_real_traces(trace_folder: Path, known) -> None:
    """
    Any correct simulator gives these starts; they were computed by others first.
    """
    name, *figures_known = known
    workload = read_swf(trace_folder / "pwa-swf" / f"{name}.swf.gz")
    slots = cluster_of(None, workload.header).slots

    figures = figures_of(workload, strict_fcfs_starts(workload, slots), slots)

    assert figures_known == [
        figures.job_count,
        shown(figures.mean_wait_us / SECOND_US, 4),
        shown(figures.mean_bounded_slowdown, 4),
        figures.makespan_us // SECOND_US,
        figures.start_sum_us // SECOND_US,
    ]


def workload_of(jobs: list[tuple[int, int, int]]) -> Workload:
    """
    Return a workload of jobs given as submit, run (seconds) and tasks.
    """
    columns = Jobs.empty()
    rows = [
        (number, submit, run, tasks, *[-1] * 10)
        for number, (submit, run, tasks) in enumerate(jobs, 1)
    ]
    columns.extend(rows)
    return Workload("made", Header(), 0, columns, LeftOut())


def starts_second_by_second(jobs: list[tuple[int, int, int]], slots: int) -> list[int]:
    """
    Return the starts by trying every second: obvious, and far too slow for a trace.
    """
    order = sorted(range(len(jobs)), key=lambda index: jobs[index][0])
    starts = [-1] * len(jobs)
    second = 0
    while order:
        used = sum(jobs[i][2] for i, s in enumerate(starts) if 0 <= s <= second < s + jobs[i][1])
        first = order[0]
        submit, _, tasks = jobs[first]
        if submit <= second and used + tasks <= slots:
            starts[first] = second
            order.pop(0)
        else:
            second += 1
    return starts


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 9), st.integers(1, 4)), max_size=12))
def test_the_heap_agrees_with_trying_every_second_safety(jobs) -> None:
    """
    Jobs of 0 s, ties and full clusters are where a heap loop goes wrong.
    """
    assert starts_second_by_second(jobs, 4) == list(strict_fcfs_starts(workload_of(jobs), 4))
