"""
Measure how long a scheduler with 100,000 jobs keeps a client waiting while a snapshot of them is
made, and while it is recorded with their whole state at the beginning and twice more, beside the
longest wait while neither is.

One client submits, one job after the other: each answer waits for a session over everything that
pends, and for the disk. Nothing runs: there is no host. The scheduler's processor time between two
answers tells the same on a machine that has other work.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import NamedTuple

from tools.bench import live
from tools.bench.frame import Figure, Reading

JOBS = 100_000
ELEMENTS = 1_000
WARM, ORDINARY = 200, 1_000
STATES_EVERY, STATES = 1_000, 3
LONGEST = "the longest, ordinarily"
MOST = "most processor time for one, ordinarily"


class Waits(NamedTuple):
    """
    Hold how long answers took, and the scheduler's processor time meanwhile: milliseconds.
    """

    wall: list[float]
    processor: list[float]


def measure(folder: Path) -> list[Reading]:
    """
    Take one round.
    """
    with live.cluster(folder / "cluster") as directory:
        connection = live.connect(directory)
        pid = live.ask(connection, live.request("GET", "/v1/status"))["pid"]
        ranges = {"ranges": [{"start": 1, "end": ELEMENTS}]}
        many = {"program": {"argv": ["true"], "cwd": "/"}, "name": "many", "array": ranges}
        for _ in range(JOBS // ELEMENTS):
            live.ask(connection, live.request("POST", "/v1/jobs", many))
        one = live.submission("true")

        def waits(goes_on: Callable[[int], bool]) -> Waits:
            found = Waits([], [])
            while not found.wall or goes_on(len(found.wall)):
                used_ns, begin_ns = _processor_ns(pid), time.perf_counter_ns()
                live.ask(connection, one)
                found.wall.append((time.perf_counter_ns() - begin_ns) / 1e6)
                found.processor.append((_processor_ns(pid) - used_ns) / 1e6)
            return found

        waits(lambda count: count < WARM)
        ordinary = waits(lambda count: count < ORDINARY)
        snapshot = threading.Thread(target=_ask, args=(directory, "/v1/snapshot", {}))
        begin = time.perf_counter()
        snapshot.start()
        meanwhile = waits(lambda _: snapshot.is_alive())
        took_s = time.perf_counter() - begin
        told = {"file": str((folder / "recorded.jsonl").resolve()), "states_every": STATES_EVERY}
        start = threading.Thread(target=_ask, args=(directory, "/v1/recording/start", told))
        start.start()
        recorded = waits(lambda count: start.is_alive() or count < STATES * STATES_EVERY // 2)
        _ask(directory, "/v1/recording/stop", {})
    return [
        Reading("an answer, ordinarily", median(ordinary.wall), "ms"),
        Reading(LONGEST, max(ordinary.wall), "ms"),
        Reading(MOST, max(ordinary.processor), "ms"),
        Reading("an answer while a snapshot is made", median(meanwhile.wall), "ms",
                per="an answer, ordinarily", is_lower_better=True),
        Reading("the longest while a snapshot is made", max(meanwhile.wall), "ms",
                per=LONGEST, is_lower_better=True),
        Reading("most processor time for one meanwhile", max(meanwhile.processor), "ms",
                per=MOST, is_lower_better=True),
        Reading("the longest while it is recorded", max(recorded.wall), "ms",
                per=LONGEST, is_lower_better=True),
        Reading("most processor time for one then", max(recorded.processor), "ms",
                per=MOST, is_lower_better=True),
        Reading("making the snapshot", took_s, "s"),
        Reading("answers meanwhile", len(meanwhile.wall), ""),
    ]  # fmt: skip


def _processor_ns(pid: int) -> int:
    """
    Return the processor time of all threads of a process.
    """
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks)


def _ask(directory: Path, path: str, told: dict[str, object]) -> None:
    """
    Ask over a connection of its own, for as long as it takes.
    """
    connection = live.connect(directory)
    connection.settimeout(None)
    live.ask(connection, live.request("POST", path, told))


FIGURE = Figure("pausing", "The longest pause while 100,000 jobs are written.", measure)
