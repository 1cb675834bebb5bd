"""
The simulation driver: reference figures, reproducible bytes, and the same state as the live
driver's way in.
"""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest

from domain.event import sure, sure_of_all
from projections.figures import shown
from projections.scheduling.core import Core
from replay.cluster_file import cluster_of_size
from replay.engine import Engine
from replay.simulation import Simulation, SimulationResult
from replay.simulation_settings import log_id_of, simulation_settings
from replay.workloads.swf import read_swf
from store.log import EventLog
from tests.conftest import REPO

SMALL = """\
; UnixStartTime: 1000
; MaxNodes: 2
; MaxProcs: 4
1 0 -1 100 4 -1 -1 4 200 -1 1 1 1 -1 1 -1 -1 -1
2 5 -1 0 1 -1 -1 1 10 -1 1 2 1 -1 1 -1 -1 -1
3 5 -1 50 2 -1 -1 2 10 -1 0 2 1 -1 1 -1 -1 -1
4 3 -1 7 1 -1 -1 -1 10 -1 1 2 1 -1 1 -1 -1 -1
"""


def simulated(
    path: Path, hosts: int, slots: int, directory: Path, picker: str = "strict_fcfs"
) -> tuple[SimulationResult, Simulation]:
    """
    Simulate a trace into a log in a directory.
    """
    workload = read_swf(path)
    cluster = cluster_of_size(hosts, slots)
    workload = workload.fitting(cluster.slots)
    with EventLog.create(directory, log_id=log_id_of(workload, cluster, picker)) as log:
        simulation = Simulation(
            workload, cluster, log, settings=simulation_settings(picker, ("parjob", "fill"))
        )
        return simulation.run(), simulation


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """
    Return a trace of four jobs, out of order, with ties and a job of 0 s.
    """
    path = tmp_path / "small.swf"
    path.write_text(SMALL)
    return path


def test_ends_come_before_submits_and_sessions_go_on_while_jobs_of_0_s_end(
    small: Path, tmp_path: Path
) -> None:
    """
    Job 1 fills the cluster until 100; then 4, 2 and 3 start at 100, and 2, of 0 s, ends at 100 too.
    """
    result, simulation = simulated(small, 2, 2, tmp_path / "log")

    jobs = simulation.engine.core.state.stored.jobs.values()
    times = {
        job.spec.name: ((job.dispatch_us or 0) // 10**6, (job.finish_us or 0) // 10**6)
        for job in jobs
    }
    assert {"1": (1000, 1100), "4": (1100, 1107), "2": (1100, 1100), "3": (1100, 1150)} == times
    assert 0 + 3 * 100 == result.start_sum_s
    assert "EXIT" == next(job.state.value for job in jobs if job.spec.name == "3")


@pytest.mark.slow
@pytest.mark.needs_traces
@pytest.mark.parametrize(
    ("name", "hosts", "slots", "expected"),
    [
        ("KTH-SP2-1996-2.1-cln.swf.gz", 100, 1,
         (28_475, "389852.1671", "7518.7390", 28_779_758, 444_007_479_514)),
        ("KTH-SP2-1996-2.1-cln.swf.gz", 10, 10,
         (28_475, "389852.1671", "7518.7390", 28_779_758, 444_007_479_514)),
        ("NASA-iPSC-1993-3.1-cln.swf.gz", 128, 1,
         (18_239, "8.0047", "1.0260", 7_949_022, 72_500_278_608)),
    ],
)  # fmt: skip
def test_strict_fcfs_gives_the_only_starts_it_can(
    name: str, hosts: int, slots: int, expected: tuple[object, ...], trace_folder: Path,
    tmp_path: Path,
) -> None:  # fmt: skip
    """
    Under strict FCFS any correct simulator gives the same starts, however the slots are spread over
    hosts.
    """
    result, _ = simulated(trace_folder / "pwa-swf" / name, hosts, slots, tmp_path / "log")

    figures = result.figures
    assert expected == (
        figures.job_count,
        shown((figures.mean_wait_us or 0) / 1_000_000, 4),
        shown(figures.mean_bounded_slowdown or 0, 4),
        (figures.makespan_us or 0) // 1_000_000,
        result.start_sum_s,
    )


def test_the_log_is_a_function_of_the_input(small: Path, tmp_path: Path) -> None:
    """
    Log id and every byte are the same under any hash seed, locale and time zone.
    """
    heads = set()
    for number, (seed, zone, locale) in enumerate(
        [("0", "UTC", "C"), ("1", "Asia/Tokyo", "C.UTF-8"), ("random", "America/New_York", "C")]
    ):
        code = (
            "from pathlib import Path; from tests.replay.test_simulation import simulated;"
            f"_, s = simulated(Path({str(small)!r}), 2, 2, Path({str(tmp_path / str(number))!r}));"
            "print(s.engine.log.log_id, s.engine.core.snapshot().hex())"
        )
        environment = {**os.environ, "PYTHONHASHSEED": seed, "TZ": zone, "LC_ALL": locale}
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=REPO, env=environment, capture_output=True, check=True
        )
        with EventLog.open(tmp_path / str(number), writable=False) as log:
            heads.add((done.stdout, log.head_digest()))

    assert len(heads) == 1


def test_two_drivers_equal_states(small: Path, tmp_path: Path) -> None:
    """
    The events of a simulation, fed one by one as a live log is, give the same state.
    """
    _, simulation = simulated(small, 2, 2, tmp_path / "log")
    with EventLog.open(tmp_path / "log", writable=False) as log:
        live = Engine.recover(log)
        folded = Core()
        for envelope in log.read():
            folded.apply(envelope.stamped())

    assert simulation.engine.core.snapshot() == live.core.snapshot() == folded.snapshot()


def test_what_is_recorded_without_checks_would_pass_them(tmp_path, monkeypatch, trace_folder):
    """
    The core makes its events, and the driver its reports, unchecked: with checks the same log
    comes out.
    """
    file = trace_folder / "pwa-swf" / "NASA-iPSC-1993-3.1-cln.swf.gz"
    short = tmp_path / "short.swf"
    with gzip.open(file, "rt") as lines:
        short.write_text("".join(islice(lines, 200)))
    simulated(short, 8, 16, tmp_path / "fast")
    for module in list(sys.modules.values()):
        if getattr(module, "sure", None) is sure:
            monkeypatch.setattr(module, "sure", lambda cls, **fields: cls(**fields))
        if getattr(module, "sure_of_all", None) is sure_of_all:
            monkeypatch.setattr(module, "sure_of_all", lambda cls, fields: cls(**fields))
    simulated(short, 8, 16, tmp_path / "slow")

    digests = []
    for name in ("fast", "slow"):
        with EventLog.open(tmp_path / name, writable=False) as log:
            digests.append(log.digest_at(log.head()))
    assert digests[0] == digests[1]
