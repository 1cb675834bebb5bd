"""
Whole runs of a recorded workload with the trace on: the same bytes as without.
"""

from __future__ import annotations

from array import array
from dataclasses import replace

import pytest

from domain.job_states import WAITING
from projections.scheduling.trace import Level, TraceSettings
from projections.scheduling.trace_session import Tracing
from projections.scheduling.trace_store import TraceStore
from replay.cluster_file import cluster_of
from replay.recordings import record
from replay.simulation import Simulation
from replay.simulation_settings import log_id_of, simulation_settings
from replay.workloads.source import Jobs
from replay.workloads.swf import read_swf
from store.log import EventLog

OFF = None
ALL = TraceSettings()
ONE = TraceSettings(streams=frozenset({"job:0000000040"}), level=Level.SUMMARY)
JOBS = 250


def run_of(file, place, picker, chosen):
    """
    Simulate the first jobs of a trace on 60 hosts; return digest, recording, state and traces.
    """
    workload = read_swf(file)
    columns = (array("q", column[:JOBS]) for column in workload.jobs.columns())
    workload = replace(workload, jobs=Jobs(*columns))
    hosts = cluster_of("60x1", workload.header)
    workload = workload.fitting(hosts.slots)
    settings = simulation_settings(picker, ("parjob", "fill"))
    place.mkdir()
    store = TraceStore()
    with EventLog.create(place / "log", log_id=log_id_of(workload, hosts, picker)) as log:
        simulation = Simulation(workload, hosts, log, settings=settings)
        core = simulation._engine.core
        core.tracing = None if chosen is OFF else Tracing(chosen, store)
        simulation.run()
        record(log, place / "run.jsonl", every=500)
        digest = log.digest_at(log.head())
    return digest, (place / "run.jsonl").read_bytes(), core, store


@pytest.mark.needs_traces
@pytest.mark.slow
@pytest.mark.parametrize("picker", ["builtin_fcfs", "easy"])
def test_log_recording_and_state_are_the_same_bytes_traced_or_not(trace_folder, tmp_path, picker):
    """
    Off, on for all, on for one; and every job that isn't forgotten has its trace, whole.
    """
    file = trace_folder / "pwa-swf" / "KTH-SP2-1996-2.1-cln.swf.gz"
    runs = {
        name: run_of(file, tmp_path / name, picker, chosen)
        for name, chosen in (("off", OFF), ("all", ALL), ("one", ONE))
    }

    digest, recording, core, _ = runs["off"]
    for name in ("all", "one"):
        assert digest == runs[name][0]
        assert recording == runs[name][1]
        assert core.snapshot() == runs[name][2].snapshot()
    assert ["40"] == list(runs["one"][3].job_ids())
    store = runs["all"][3]
    jobs = core.state.stored.jobs.values()
    assert not any(job.state in WAITING for job in jobs)
    assert {str(number) for number in range(1, core.state.stored.highest_job + 1)} == set(
        store.job_ids()
    )
    assert not any(store.get(job_id).broken for job_id in store.job_ids())
