"""
Measure the simulation of a real trace with every event kept, what its events cost without its
decisions, and the recovery of its log.

The simulation runs in a process of its own, so that its peak memory is its alone, and so does what
writes its events again, which is compared with it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from replay.cluster_file import cluster_of
from replay.engine import Engine
from replay.simulation import Simulation
from replay.simulation_settings import log_id_of, simulation_settings
from replay.verify import verify
from replay.workloads.swf import read_swf
from store.log import EventLog
from store.snapshots import SnapshotStore
from tools.bench.bare_loop import bare_jobs_per_s
from tools.bench.bare_writing import write_again
from tools.bench.frame import REPO, Figure, Reading, trace_path
from tools.collecting import collect_rarely

TRACE = "pwa-swf/LANL-CM5-1994-4.1-cln.swf.gz"
PICKER = "strict_fcfs"
GOAL_JOBS_PER_S = 5_000
GOAL_BYTES_PER_JOB = 1_024
GOAL_VERIFY_EVENTS_PER_S = 50_000


def simulate(folder: Path) -> dict[str, float]:
    """
    Simulate the trace in this process; return counts and figures by name.
    """
    workload = read_swf(trace_path(TRACE))
    cluster = cluster_of(None, workload.header)
    workload = workload.fitting(cluster.slots)
    log_id = log_id_of(workload, cluster, PICKER)
    with EventLog.create(folder / "log", log_id=log_id) as log:
        settings = simulation_settings(PICKER, ("parjob", "fill"))
        snapshots = SnapshotStore(folder / "snapshots", log_id=log_id)
        simulation = Simulation(workload, cluster, log, settings=settings, snapshots=snapshots)
        collect_rarely()
        begin = time.perf_counter()
        result = simulation.run()
        spent_s = time.perf_counter() - begin
        simulation.engine.take_snapshot()
        log_bytes = log.info().bytes
    jobs = len(workload.jobs)
    return {
        "jobs_per_s": jobs / spent_s,
        "events_per_s": result.events / spent_s,
        "events_per_job": result.events / jobs,
        "bytes_per_job": log_bytes / jobs,
        "peak_mib": _peak_kib() / 1024,
    }


def write_its_events(folder: Path) -> dict[str, float]:
    """
    Write the events of the simulation's log again in this process; return the rates by name.
    """
    collect_rarely()
    with EventLog.open(folder / "log", writable=False) as log:
        return write_again(log, folder / "again")._asdict()


def _in_own_process(function: str, folder: Path) -> dict[str, float]:
    """
    Return what a function of this module gives for a folder in a process that did nothing before.
    """
    code = (
        "import json, sys; from pathlib import Path; from tools.bench import simulating;"
        f"print(json.dumps(simulating.{function}(Path(sys.argv[1]))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)],
        cwd=REPO,
        check=True,
        stdout=subprocess.PIPE,
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _peak_kib() -> int:
    """
    Return the most memory that this process has had. What getrusage tells begins with that of the
    process that started it, which has verified whole logs in earlier rounds.
    """
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def measure(folder: Path) -> list[Reading]:
    """
    Take one round.
    """
    found = _in_own_process("simulate", folder)
    workload = read_swf(trace_path(TRACE))
    bare = bare_jobs_per_s(workload, cluster_of(None, workload.header).slots)
    plain_s, with_snapshot_s, verify_per_s = _recovered(folder)
    written = _in_own_process("write_its_events", folder)
    return [
        Reading("bare heap loop, nothing kept", bare, "jobs/s"),
        Reading(
            "simulated, all kept",
            found["jobs_per_s"],
            "jobs/s",
            per="bare heap loop, nothing kept",
            goal=GOAL_JOBS_PER_S,
        ),
        Reading(
            "its events written again, least folded",
            written["least"],
            "jobs/s",
            per="simulated, all kept",
        ),
        Reading(
            "its events written again, all folded",
            written["folded"],
            "jobs/s",
            per="simulated, all kept",
        ),
        Reading("events", found["events_per_s"], "events/s"),
        Reading("events of a job", found["events_per_job"], "events"),
        Reading(
            "log of a job",
            found["bytes_per_job"],
            "B",
            goal=GOAL_BYTES_PER_JOB,
            is_lower_better=True,
        ),
        Reading("peak memory", found["peak_mib"], "MiB"),
        Reading("recovery, whole log", plain_s, "s"),
        Reading("recovery, snapshot at the head", with_snapshot_s, "s", per="recovery, whole log"),
        Reading("re-deciding", verify_per_s, "events/s", goal=GOAL_VERIFY_EVENTS_PER_S),
    ]


def _recovered(folder: Path) -> tuple[float, float, float]:
    """
    Return seconds of a recovery without and with snapshot, and events per second of verify.
    """
    with EventLog.open(folder / "log", writable=False) as log:
        begin = time.perf_counter()
        plain = Engine.recover(log)
        plain_s = time.perf_counter() - begin
        begin = time.perf_counter()
        snapshots = SnapshotStore(folder / "snapshots", log_id=log.log_id)
        quick = Engine.recover(log, snapshots=snapshots)
        quick_s = time.perf_counter() - begin
        assert plain.core.snapshot() == quick.core.snapshot()
        begin = time.perf_counter()
        result = verify(log)
        assert result.is_same, result.differences
        verify_per_s = result.events / (time.perf_counter() - begin)
    return plain_s, quick_s, verify_per_s


FIGURE = Figure(
    "simulating",
    "A real trace of 122,060 jobs under strict FCFS, every event kept and synced; its recovery.",
    measure,
)
