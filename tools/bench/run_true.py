"""
Measure whole jobs: `true` submitted, dispatched, started by an agent, ended and recorded, 300 times
through two local agents, from the first submission to the last end.
"""

from __future__ import annotations

import time
from pathlib import Path

from tools.bench import live
from tools.bench.frame import Figure, NotMeasured, Reading
from tools.bench.spawn import spawns_per_s

JOBS = 300
LIMIT_S = 120.0


def measure(folder: Path) -> list[Reading]:
    """
    Take one round.
    """
    bare = spawns_per_s(JOBS)
    with live.cluster(folder / "cluster", workers=2) as directory:
        completed = completed_per_s(directory, JOBS)
    return [
        Reading("bare posix_spawn, one at a time", bare, "1/s"),
        Reading(
            "jobs run to the end", completed, "1/s", per="bare posix_spawn, one at a time", goal=200
        ),
    ]


def completed_per_s(directory: Path, count: int) -> float:
    """
    Return how many jobs a second go from submission to their recorded end.
    """
    asked = live.submission("true")
    connection = live.connect(directory)
    begin = time.perf_counter()
    for _ in range(count):
        live.ask(connection, asked)
    while True:
        jobs = live.ask(connection, live.request("GET", "/v1/status"))["jobs"]
        if jobs.get("DONE", 0) >= count:
            break
        if time.perf_counter() - begin > LIMIT_S or jobs.get("EXIT"):
            raise NotMeasured(f"the jobs don't all end well: {jobs}")
        time.sleep(0.01)
    elapsed_s = time.perf_counter() - begin
    connection.close()
    return count / elapsed_s


FIGURE = Figure("run_true", "Jobs `true` run to the end per second, two local agents.", measure)
