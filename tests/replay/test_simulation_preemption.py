"""
Simulated agents carry out what is ordered, at once.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from domain.events.jobs import (
    JobDispatched,
    JobFinished,
    JobResumed,
    JobSuspended,
)
from domain.ids import job_of_stream
from domain.name_lists import parse_names
from domain.preemption import OnPreempt
from domain.queues import QueueSpec
from replay.cluster_file import cluster_of
from replay.modelling import Modelling
from replay.simulation import Simulation
from replay.simulation_settings import simulation_settings
from replay.workloads.adjusting import Adjustments
from replay.workloads.reading import read_workload
from tests.replay.logs import ListLog

SECOND_US = 1_000_000


def line(when: int, run: int, queue: str) -> str:
    """
    Return a job of one task that runs for so many seconds.
    """
    return f"-dt {when} -e submit_batch_job | -sim-walltime {run} -n 1 -p {queue} -u u1 pseudo.job"


def played(folder: Path, on_preempt: OnPreempt) -> tuple[list[str], Simulation]:
    """
    Simulate a job of 100 s that another of 30 s preempts after 40 s, on one slot.
    """
    path = folder / "workload"
    path.write_text("\n".join([line(0, 100, "low"), line(40, 30, "high")]) + "\n")
    read = read_workload(path, Adjustments())
    cluster = cluster_of("1x1", read.header)
    every = parse_names("all")
    log = ListLog([])
    simulation = Simulation(
        Modelling(cluster).fitting(read),
        cluster,
        log,
        settings=simulation_settings("builtin_fcfs", ("parjob", "fill")),
        queues={
            "low": QueueSpec(priority=10, preemptible_by=every, on_preempt=on_preempt),
            "high": QueueSpec(priority=90, preemptible_queues=every),
        },
    )
    simulation.run()
    kinds = (JobDispatched, JobFinished, JobResumed, JobSuspended)
    origin = min(each.time_us for each in log.events)
    told = [
        f"{(each.time_us - origin) // SECOND_US} {job_of_stream(each.stream)} "
        f"{type(each.event).__name__}"
        for each in log.events
        if isinstance(each.event, kinds)
    ]
    return told, simulation


def test_suspended_time_extends_the_end(tmp_path: Path) -> None:
    """
    100 s of work, 30 s of them suspended, end after 130 s.
    """
    told, simulation = played(tmp_path, OnPreempt.SUSPEND)

    assert [
        "0 1 JobDispatched",
        "40 1 JobSuspended",
        "40 2 JobDispatched",
        "70 2 JobFinished",
        "70 1 JobResumed",
        "130 1 JobFinished",
    ] == told
    assert {} == simulation.engine.core.state.live


@pytest.mark.parametrize("on_preempt", [OnPreempt.KILL, OnPreempt.REQUEUE])
def test_a_victim_that_is_ended_ends_at_once(tmp_path: Path, on_preempt: OnPreempt) -> None:
    """
    Put back, it runs from its beginning.
    """
    told, _ = played(tmp_path, on_preempt)

    expected = ["0 1 JobDispatched", "40 1 JobFinished", "40 2 JobDispatched", "70 2 JobFinished"]
    if on_preempt is OnPreempt.REQUEUE:
        expected += ["70 1 JobDispatched", "170 1 JobFinished"]
    assert expected == told
