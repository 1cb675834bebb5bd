"""
In virtual time too, what waits for a moment happens at that moment.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from domain.cluster import QueueResreq
from domain.events.jobs import (
    JobDispatched,
    JobFinished,
    JobKillOrdered,
    JobResumed,
    JobSuspended,
)
from domain.ids import job_of_stream
from domain.queues import QueueSpec
from domain.windows import parse_windows
from replay.cluster_file import cluster_of
from replay.modelling import Modelling
from replay.simulation import Simulation
from replay.simulation_settings import simulation_settings
from replay.workloads.adjusting import Adjustments
from replay.workloads.reading import read_workload
from tests.replay.logs import ListLog

SECOND_US = 1_000_000
MINUTE_S = 60
TOLD = (JobDispatched, JobFinished, JobKillOrdered, JobResumed, JobSuspended)


def played(
    folder: Path, *jobs: tuple[int, int], hosts: str = "1x1", settings: Any = None, **queue: Any
) -> list[str]:
    """
    Simulate jobs of one task, each (submitted, run time) in seconds from midnight, in one queue;
    return what happened: "SECONDS JOB EVENT".
    """
    path = folder / "workload"
    lines = [
        f"-dt {when} -e submit_batch_job | -sim-walltime {run} -n 1 -p normal -u u1 pseudo.job"
        for when, run in jobs
    ]
    path.write_text("\n".join(lines) + "\n")
    read = read_workload(path, Adjustments())
    cluster = cluster_of(hosts, read.header)
    chosen = simulation_settings("builtin_fcfs", ("parjob", "fill"))
    log = ListLog([])
    simulation = Simulation(
        Modelling(cluster).fitting(read),
        cluster,
        log,
        settings=chosen.model_copy(update=settings or {}),
        queues={"normal": QueueSpec(priority=30, **queue)},
    )
    simulation.run()
    assert read.start_unix_s % (24 * 3600) == 0, "the times above count from midnight"
    return [
        f"{each.time_us // SECOND_US - read.start_unix_s} {job_of_stream(each.stream)} "
        f"{type(each.event).__name__}"
        for each in log.events
        if isinstance(each.event, TOLD)
    ]


def test_a_dispatch_window_lets_a_job_start_when_it_opens(tmp_path: Path) -> None:
    """
    Nothing arrives or ends then: the core's own wakeup is what holds the session.
    """
    windows = parse_windows("0:10-0:20")

    assert ["600 1 JobDispatched", "700 1 JobFinished"] == played(
        tmp_path, (5, 100), dispatch_windows=windows
    )


def test_a_run_window_stops_jobs_when_it_closes_and_lets_them_go_on_when_it_opens(
    tmp_path: Path,
) -> None:
    """
    The time between isn't run time.
    """
    windows = parse_windows("0:00-0:10 0:30-0:40", field="run_windows")

    assert [
        "300 1 JobDispatched",
        "600 1 JobSuspended",
        "1800 1 JobResumed",
        "2100 1 JobFinished",
    ] == played(tmp_path, (300, 600), run_windows=windows)


def test_a_run_limit_ends_a_job_when_it_is_reached(tmp_path: Path) -> None:
    """
    Not at the next arrival.
    """
    assert ["0 1 JobDispatched", "60 1 JobKillOrdered", "60 1 JobFinished"] == played(
        tmp_path, (0, 100), run_limit_default_us=MINUTE_S * SECOND_US
    )


def test_a_paced_host_takes_its_next_job_when_its_time_is_over(tmp_path: Path) -> None:
    """
    Two jobs at once on one host of two slots, a minute apart.
    """
    paced = {"accept_interval_us": MINUTE_S * SECOND_US}

    assert ["0 1 JobDispatched", "60 2 JobDispatched"] == [
        words
        for words in played(tmp_path, (0, 100), (0, 100), hosts="1x2", settings=paced)
        if words.endswith("JobDispatched")
    ]


def test_a_later_alternative_opens_at_its_time(tmp_path: Path) -> None:
    """
    ``@5``: five minutes after the submission.
    """
    resreq = ("{select[hname==nowhere]} || {select[hname!=nowhere]}@5",)
    merged = {"queue_resreq": QueueResreq.MERGE}

    assert ["310 1 JobDispatched", "320 1 JobFinished"] == played(
        tmp_path, (10, 10), settings=merged, resreq=resreq
    )


def test_a_simulation_ends_though_windows_open_for_ever(tmp_path: Path) -> None:
    """
    A job whose run limit fits no window never starts: at last nothing more is waited for.
    """
    windows = parse_windows("0:10-0:20")

    assert [] == played(
        tmp_path,
        (0, 100),
        run_windows=windows,
        run_limit_default_us=3600 * SECOND_US,
    )
