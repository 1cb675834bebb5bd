"""
Measure the audit tables: catching up with a real trace, their size, questions, lag behind a
scheduler.
"""

from __future__ import annotations

import compileall
import os
import sqlite3
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import psutil

from projections.audit.history import story
from projections.audit.reading import Reading as Tables
from projections.audit.report.figures import report_of
from projections.audit.report.page import page
from replay.at import ladder_of
from replay.cluster_file import cluster_of
from replay.simulation import Simulation
from replay.simulation_settings import log_id_of, simulation_settings
from replay.workloads.swf import read_swf
from store.log import EventLog
from tools.bench import live
from tools.bench.frame import REPO, Figure, Reading, trace_path
from tools.follower.feed import make_anew
from tools.follower.place import place_of

TRACE = "pwa-swf/SDSC-BLUE-2000-4.2-cln.swf.gz"
CLUSTER = "144x8"
PICKER = "builtin_fcfs"
# So many of its jobs give a log of a million events.
JOBS = 175_000
GOAL_EVENTS_PER_S = 25_000
GOAL_WHY_S = 1.0
GOAL_LAG_S = 1.0
SUBMISSIONS_PER_S = 200
FOLLOWED_S = 5.0
DEADLINE_S = 60.0
QUESTIONS = 5


def simulate(folder: Path) -> int:
    """
    Simulate the trace into a log; return how many jobs it has.
    """
    workload = read_swf(trace_path(TRACE))
    cluster = cluster_of(CLUSTER, workload.header)
    workload = workload.fitting(cluster.slots)
    first = [place < JOBS for place in range(len(workload.jobs))]
    workload = replace(workload, jobs=workload.jobs.kept(first))
    log_id = log_id_of(workload, cluster, PICKER)
    with EventLog.create(folder / "log", log_id=log_id, durability="none") as log:
        settings = simulation_settings(PICKER, ("parjob", "fill"))
        Simulation(workload, cluster, log, settings=settings).run()
    return len(workload.jobs)


def measure(folder: Path) -> list[Reading]:
    """
    Take one round.
    """
    jobs = simulate(folder)
    place = place_of(folder)
    with EventLog.open(folder, writable=False) as log:
        events = log.head()
        reading_s = _timed(lambda: deque(log.read(), maxlen=0))
        begin_s = time.process_time()
        taking_s = _timed(lambda: make_anew(log, place))
        taking_cpu_s = time.process_time() - begin_s
        folding_s = _timed(lambda: ladder_of(log).at(events))
    size = place.link.resolve().stat().st_size
    with Tables(place.link) as tables:
        waited = "SELECT job_id FROM job_figures ORDER BY wait_us DESC LIMIT 1"
        job_id = str(tables.value(waited))
        asked = [partial(ask_why, folder, job_id, at) for at in _moments(tables, job_id)]
        story_s = _timed(lambda: story(tables, job_id))
        report_s = _timed(lambda: page(report_of(tables)))
    # As make setup and pip do: what is asked is a program that is installed.
    for name in ("domain", "store", "projections", "replay", "tools"):
        compileall.compile_dir(REPO / name, quiet=2)
    asking = [_timed(ask) for ask in asked]
    lag_s, cpu_s = lag_behind_scheduler(folder / "live")
    return [
        Reading("events", events, "events"),
        Reading("reading the log", events / reading_s, "events/s"),
        Reading(
            "catching up",
            events / taking_s,
            "events/s",
            per="reading the log",
            goal=GOAL_EVENTS_PER_S,
        ),
        Reading("the same, a second of processor time", events / taking_cpu_s, "events/s"),
        Reading("making the ladder", events / folding_s, "events/s"),
        Reading("tables of a job", size / jobs, "B"),
        Reading("events of a job", events / jobs, "events"),
        Reading(
            f"xce why --at, the slowest of {QUESTIONS}",
            max(asking),
            "s",
            goal=GOAL_WHY_S,
            is_lower_better=True,
        ),
        Reading("the same, processor time", max(map(_children_s, asked)), "s"),
        Reading("story of the longest wait", story_s, "s"),
        Reading("report page", report_s, "s"),
        Reading(
            f"longest lag at {SUBMISSIONS_PER_S} submissions/s",
            lag_s,
            "s",
            goal=GOAL_LAG_S,
            is_lower_better=True,
        ),
        Reading("follower's processor time of 1,000 events then", cpu_s, "s"),
    ]


def _moments(tables: Tables, job_id: str) -> list[int]:
    """
    Return positions of the longest wait, evenly over it.
    """
    row = tables.one("SELECT submit_position FROM jobs WHERE job_id = ?", (job_id,))
    last = tables.value("SELECT max(to_position) FROM waits WHERE job_id = ?", (job_id,))
    assert row is not None
    first = int(row["submit_position"])
    return [first + (int(last) - 1 - first) * part // QUESTIONS for part in range(1, QUESTIONS + 1)]


def ask_why(folder: Path, job_id: str, position: int) -> None:
    """
    Ask by the real command, from its start to its end.
    """
    asking = ["why", job_id, "--at", str(position), "--dir", str(folder)]
    subprocess.run(
        [sys.executable, "-m", "tools.cli", *asking],
        cwd=REPO, check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip


def _timed(act: Callable[[], object]) -> float:
    begin = time.perf_counter()
    act()
    return time.perf_counter() - begin


def _children_s(act: Callable[[], object]) -> float:
    """
    Return the processor time that the processes need which something starts and waits for.
    """
    before = sum(os.times()[2:4])
    act()
    return sum(os.times()[2:4]) - before


def lag_behind_scheduler(directory: Path) -> tuple[float, float]:
    """
    Return the longest time between the scheduler's answer to a submission and its rows, while it
    gets so many a second and a worker runs them; and what the follower needed of a processor for
    1,000 events.
    """
    with live.cluster(directory, workers=1):
        follower = subprocess.Popen(
            [sys.executable, "-m", "tools.follower", str(directory)], cwd=REPO
        )
        try:
            longest_s, used_s, events = _longest_lag(directory, psutil.Process(follower.pid))
        finally:
            follower.terminate()
            follower.wait(DEADLINE_S)
    return longest_s, used_s * 1000 / events


def _longest_lag(directory: Path, follower: psutil.Process) -> tuple[float, float, int]:
    link = place_of(directory).link
    deadline = time.perf_counter() + DEADLINE_S
    while not link.exists():
        assert time.perf_counter() < deadline, "the follower made no tables"
        time.sleep(0.01)
    connection, asked = live.connect(directory), live.submission("/bin/true")
    waiting: deque[tuple[int, float]] = deque()
    before_s = sum(follower.cpu_times()[:2])
    longest, begin, number, head = 0.0, time.perf_counter(), 0, 0
    count = int(SUBMISSIONS_PER_S * FOLLOWED_S)
    with closing(sqlite3.connect(f"file:{link}?mode=ro", uri=True)) as tables:
        while number < count or waiting:
            assert time.perf_counter() < begin + DEADLINE_S, "the follower fell behind"
            if number < count and time.perf_counter() >= begin + number / SUBMISSIONS_PER_S:
                number += 1
                head = int(live.ask(connection, asked)["position"])
                waiting.append((head, time.perf_counter()))
            (position,) = tables.execute("SELECT notification_id FROM tracking").fetchone()
            while waiting and waiting[0][0] <= position:
                longest = max(longest, time.perf_counter() - waiting.popleft()[1])
            time.sleep(0.0005)
    connection.close()
    return longest, sum(follower.cpu_times()[:2]) - before_s, head


FIGURE = Figure(
    "audit",
    "The audit tables of a log of a million events: catching up, size, questions; lag.",
    measure,
    rounds=1,
)
