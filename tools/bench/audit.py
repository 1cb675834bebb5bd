"""
Measure the audit tables: catching up with a real trace, their size, questions, lag behind a writer.
"""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from domain.envelope import Stamped
from domain.events.jobs import JobSubmitted
from domain.jobs import JobSpec
from projections.audit.history import story
from projections.audit.pending import why_at
from projections.audit.reading import Reading as Tables
from projections.audit.report.figures import report_of
from projections.audit.report.page import page
from replay.cluster_file import cluster_of
from replay.simulation import Simulation, log_id_of, simulation_settings
from replay.workloads.swf import read_swf
from store.log import EventLog
from tools.bench.frame import REPO, Figure, Reading, trace_path
from tools.follower.feed import make_anew
from tools.follower.place import place_of

TRACE = "pwa-swf/KTH-SP2-1996-2.1-cln.swf.gz"
PICKER = "strict_fcfs"
GOAL_EVENTS_PER_S = 25_000
GOAL_WHY_S = 1.0
GOAL_LAG_S = 1.0
SUBMISSIONS_PER_S = 200
FOLLOWED_S = 5.0
DEADLINE_S = 30.0


def simulate(folder: Path) -> int:
    """
    Simulate the trace into a log; return how many jobs it has.
    """
    workload = read_swf(trace_path(TRACE))
    cluster = cluster_of("100x1", workload.header)
    workload = workload.fitting(cluster.slots)
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
        taking_s = _timed(lambda: make_anew(log, place))
    size = place.link.resolve().stat().st_size
    with Tables(place.link) as tables:
        job_id = str(tables.value("SELECT job_id FROM job_figures ORDER BY wait_us DESC LIMIT 1"))
        middle = int(
            tables.value("SELECT max(from_position) FROM waits WHERE job_id = ?", (job_id,))
        )
        why_s = _timed(lambda: why_at(tables, job_id, middle))
        story_s = _timed(lambda: story(tables, job_id))
        report_s = _timed(lambda: page(report_of(tables)))
    return [
        Reading("reading the log", events / reading_s, "events/s"),
        Reading(
            "catching up",
            events / taking_s,
            "events/s",
            per="reading the log",
            goal=GOAL_EVENTS_PER_S,
        ),
        Reading("tables of a job", size / jobs, "B"),
        Reading("events of a job", events / jobs, "events"),
        Reading("why at a position", why_s, "s", goal=GOAL_WHY_S, is_lower_better=True),
        Reading("story of the longest wait", story_s, "s"),
        Reading("report page", report_s, "s"),
        Reading(
            f"longest lag at {SUBMISSIONS_PER_S} submissions/s",
            lag_s(folder / "live"),
            "s",
            goal=GOAL_LAG_S,
            is_lower_better=True,
        ),
    ]


def _timed(act: Callable[[], object]) -> float:
    begin = time.perf_counter()
    act()
    return time.perf_counter() - begin


def lag_s(folder: Path) -> float:
    """
    Return the longest time between a synced append and its rows, under steady submissions.
    """
    with EventLog.create(folder / "log") as log:
        log.append([_submission(1)])
        follower = subprocess.Popen([sys.executable, "-m", "tools.follower", str(folder)], cwd=REPO)
        try:
            return _longest_lag(log, folder)
        finally:
            follower.terminate()
            follower.wait(DEADLINE_S)


def _longest_lag(log: EventLog, folder: Path) -> float:
    link = place_of(folder).link
    deadline = time.perf_counter() + DEADLINE_S
    while not link.exists():
        assert time.perf_counter() < deadline, "the follower made no tables"
        time.sleep(0.01)
    tables = sqlite3.connect(f"file:{link}?mode=ro", uri=True)
    waiting: deque[tuple[int, float]] = deque()
    longest, begin = 0.0, time.perf_counter()
    count = int(SUBMISSIONS_PER_S * FOLLOWED_S)
    number = 1
    while number <= count or waiting:
        assert time.perf_counter() < begin + DEADLINE_S, "the follower fell behind"
        if number <= count and time.perf_counter() >= begin + number / SUBMISSIONS_PER_S:
            number += 1
            waiting.append((log.append([_submission(number)]), time.perf_counter()))
        (position,) = tables.execute("SELECT notification_id FROM tracking").fetchone()
        while waiting and waiting[0][0] <= position:
            longest = max(longest, time.perf_counter() - waiting.popleft()[1])
        time.sleep(0.001)
    tables.close()
    return longest


def _submission(number: int) -> Stamped:
    spec = JobSpec(user="ann", queue="normal", name=f"job {number}")
    stream = f"job:{number:010d}"
    event = JobSubmitted(spec=spec)
    return Stamped(stream, 1, number * 5_000, "ann", "", event, ends_step=True)


FIGURE = Figure(
    "audit",
    "The audit tables of a real trace of 28,475 jobs: catching up, size, questions, lag.",
    measure,
    rounds=1,
)
