"""
Measure how fast a trace is read, packed, beside the bare loop over the same trace.
"""

from __future__ import annotations

import time
from pathlib import Path

from replay.cluster_file import cluster_of
from replay.workloads.swf import read_swf
from tools.bench.bare_loop import bare_jobs_per_s
from tools.bench.frame import Figure, Reading, trace_path

TRACE = "pwa-swf/LANL-CM5-1994-4.1-cln.swf.gz"
GOAL_LINES_PER_S = 100_000


def measure(folder: Path) -> list[Reading]:  # noqa: ARG001 - the frame's protocol
    """
    Take one round.
    """
    path = trace_path(TRACE)
    begin = time.perf_counter()
    workload = read_swf(path)
    lines_per_s = (len(workload.jobs) + workload.left_out.total) / (time.perf_counter() - begin)
    bare = bare_jobs_per_s(workload, cluster_of(None, workload.header).slots)
    return [
        Reading("bare heap loop", bare, "jobs/s"),
        Reading("reading", lines_per_s, "lines/s", per="bare heap loop", goal=GOAL_LINES_PER_S),
    ]


FIGURE = Figure("reading", "Lines per second of a real SWF trace, unpacked on the way.", measure)
