"""
Measure a recovery from a long log and one of a tenth of it: only what came after the snapshot may
count.

The logs are simulated: small jobs for ever, forgotten as they end. Both recoveries take the newest
snapshot that leaves as many events as a live scheduler has between two, and fold those. Takes the
better part of an hour, most of it for the long log, and so is only run when asked for by name.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from replay.cluster_file import cluster_of_size
from replay.engine import Engine
from replay.simulation import Simulation
from replay.simulation_settings import log_id_of, simulation_settings
from replay.workloads.source import Header, Jobs, LeftOut, Workload
from store.log import EventLog
from store.snapshots import SnapshotStore
from tools.bench.frame import REPO, Figure, Reading
from tools.collecting import collect_rarely

SHORT_EVENTS, LONG_EVENTS = 1_000_000, 10_000_000
JOB_EVENTS = 5
EVENTS_AFTER_SNAPSHOT = 100_000
"""A live scheduler takes a snapshot so often, so this is the longest it folds."""
HOSTS, HOST_SLOTS = 256, 8
USERS = 100
PICKER = "strict_fcfs"
UNKNOWN = -1
GOAL_S = 2.0
GOAL_RATIO = 1.2


def workload_of(jobs: int) -> Workload:
    """
    Return so many small jobs, one every three seconds, of a minute to an hour.

    They take three quarters of the cluster: no backlog grows with the log.
    """
    columns = Jobs.empty()
    columns.extend(
        [
            (number, 3 * number, 60 + number * 7919 % 3540, 1 + number % 4, 3600, UNKNOWN, 1,
             number % USERS, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN)
            for number in range(1, jobs + 1)
        ]
    )  # fmt: skip
    return Workload("jobs without end", Header(), 1_000_000_000, columns, LeftOut())


def build(folder: Path, events: int) -> None:
    """
    Simulate until the log has about so many events; a snapshot is kept every so often.
    """
    workload = workload_of(events // JOB_EVENTS)
    cluster = cluster_of_size(HOSTS, HOST_SLOTS)
    log_id = log_id_of(workload, cluster, PICKER)
    settings = simulation_settings(PICKER, ("parjob", "fill")).model_copy(
        update={"snapshot_every_events": EVENTS_AFTER_SNAPSHOT}
    )
    collect_rarely()
    with EventLog.create(folder / "log", log_id=log_id, durability="none") as log:
        snapshots = SnapshotStore(folder / "snapshots", log_id=log_id)
        Simulation(workload, cluster, log, settings=settings, snapshots=snapshots).run()


def recover(folder: Path) -> dict[str, float]:
    """
    Recover in this process as a scheduler does at its start; return seconds and counts.
    """
    with EventLog.open(folder / "log", writable=False) as log:
        head = log.head()
        snapshots = SnapshotStore(folder / "snapshots", log_id=log.log_id)
        positions = sorted(entry.position for entry in snapshots.entries())
    # Jobs still run at the end of what is folded: the last events of a simulation end them all.
    begin = max(at for at in positions if at <= head - 2 * EVENTS_AFTER_SNAPSHOT)
    upto = begin + EVENTS_AFTER_SNAPSHOT
    collect_rarely()
    wall_s, cpu_s = time.perf_counter(), time.process_time()
    with EventLog.open(folder / "log", writable=True) as log:
        snapshots = SnapshotStore(folder / "snapshots", log_id=log.log_id)
        upto = min(upto, *(at - 1 for at in positions if at > begin), upto)
        engine = Engine.recover(log, snapshots=snapshots, upto=upto)
    wall_s, cpu_s = time.perf_counter() - wall_s, time.process_time() - cpu_s
    live = len(engine.core.state.live)
    return {"wall_s": wall_s, "cpu_s": cpu_s, "events": head, "folded": upto - begin, "live": live}


def measure(folder: Path) -> list[Reading]:
    """
    Take one round.
    """
    readings: list[Reading] = []
    for name, events in (("short", SHORT_EVENTS), ("long", LONG_EVENTS)):
        place = folder / name
        place.mkdir()
        _in_process("build", place, events)
        found = [json.loads(_in_process("recover", place, events)) for _ in range(3)]
        median_s = sorted(each["wall_s"] for each in found)[1]
        cpu_s = sorted(each["cpu_s"] for each in found)[1]
        label = f"{found[0]['events'] / 1e6:.1f} million events"
        per = readings[0].name if readings else ""
        readings.append(
            Reading(f"recovery, {label}", median_s, "s", goal=GOAL_S, is_lower_better=True, per=per)
        )
        readings.append(Reading(f"its processor time, {label}", cpu_s, "s"))
        readings.append(Reading(f"folded of {label}", found[0]["folded"], "events"))
    return readings


def _in_process(what: str, place: Path, events: int) -> str:
    """
    Build or recover in a process of its own; return what it prints.
    """
    command = [sys.executable, "-m", "tools.bench.recovering", what, str(place), str(events)]
    return subprocess.run(command, cwd=REPO, check=True, stdout=subprocess.PIPE, text=True).stdout


FIGURE = Figure(
    "recovering",
    "Recovery from a log of 10 million events with a snapshot, beside one of 1 million.",
    measure,
    rounds=1,
    is_long=True,
)

if __name__ == "__main__":
    if sys.argv[1] == "build":
        build(Path(sys.argv[2]), int(sys.argv[3]))
    else:
        print(json.dumps(recover(Path(sys.argv[2]))))
