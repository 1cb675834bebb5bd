"""
Policies that backfill, in simulations of recorded workloads, against the slow reference.

The first jobs of KTH, NASA and UB-HPC's week; `make proof` takes all of them (XCE_PROOF_JOBS=all).
"""

from __future__ import annotations

import gzip
import os
from fractions import Fraction
from itertools import islice
from pathlib import Path

import pytest

from domain.events.jobs import JobDispatched, JobStartPromised
from replay.cluster_file import cluster_of, cluster_of_size
from replay.modelling import Modelling
from replay.simulation import Simulation, SimulationResult
from replay.simulation_settings import log_id_of, simulation_settings
from replay.verify import verify
from replay.workloads.adjusting import Adjustments
from replay.workloads.reading import read_workload
from replay.workloads.source import Workload
from store.log import EventLog
from tests.replay import hosts_reference
from tests.replay.easy_reference import figures, jobs_of, schedule

KTH = "pwa-swf/KTH-SP2-1996-2.1-cln.swf.gz"
NASA = "pwa-swf/NASA-iPSC-1993-3.1-cln.swf.gz"
IS_PROOF = os.environ.get("XCE_PROOF_JOBS") == "all"
CUT = None if IS_PROOF else 3_000
WEEK_CUT = None if IS_PROOF else 500


def cut(path: Path, jobs: int | None, directory: Path) -> Path:
    """
    Return a copy of a trace with its first jobs alone, all of them when None.
    """
    found = directory / "cut.swf"
    with gzip.open(path, "rt", errors="replace") as lines:
        kept = (line for line in lines if line.strip() and not line.startswith(";"))
        found.write_text("".join(islice(kept, jobs)))
    return found


def simulated(
    path: Path, slots: int, picker: str, directory: Path
) -> tuple[SimulationResult, dict[str, int]]:
    """
    Simulate a trace on hosts of one slot; return the result and the start of each job.
    """
    workload = read_workload(path, Adjustments("at-least-run"))
    cluster = cluster_of_size(slots, 1)
    workload = workload.fitting(cluster.slots)
    settings = simulation_settings(picker, ("parjob", "fill"))
    with EventLog.create(directory, log_id=log_id_of(workload, cluster, picker)) as log:
        result = Simulation(workload, cluster, log, settings=settings).run()
        origin_s = workload.start_unix_s
        names, starts = {}, {}
        for envelope in log.read():
            event = envelope.event
            if envelope.stream.startswith("job:") and hasattr(event, "spec"):
                names[envelope.stream] = event.spec.name
            elif type(event) is JobDispatched:
                starts[names[envelope.stream]] = envelope.time_us // 10**6 - origin_s
    return result, starts


@pytest.mark.slow
@pytest.mark.needs_traces
@pytest.mark.parametrize(("trace", "slots"), [(KTH, 100), (NASA, 128)])
@pytest.mark.parametrize("picker", ["strict_fcfs", "easy"])
def test_every_job_of_a_cut_starts_when_the_reference_starts_it(
    trace_folder: Path, trace: str, slots: int, picker: str, tmp_path: Path
) -> None:
    """
    The same pass over the same queue leaves no freedom: starts are equal to the second.
    """
    path = cut(trace_folder / trace, CUT, tmp_path)
    result, starts = simulated(path, slots, picker, tmp_path / "log")
    jobs = jobs_of(trace_folder / trace, slots, CUT)
    schedule(jobs, slots, backfills=picker == "easy")

    assert {str(job.number): job.start for job in jobs} == starts
    wait, slowdown, makespan = figures(jobs)
    found = result.figures
    assert found.mean_wait_us is not None
    assert found.mean_bounded_slowdown is not None
    assert (wait * 10**6, makespan * 10**6) == (found.mean_wait_us, found.makespan_us)
    # Each job's is rounded in the figures.
    assert abs(slowdown - found.mean_bounded_slowdown) < Fraction(1, 10**6)


@pytest.mark.slow
@pytest.mark.needs_traces
def test_all_of_kth_gives_the_textbooks_figures(trace_folder: Path, tmp_path: Path) -> None:
    """
    Estimates are field 9 but never below the run time; one pass a second.
    """
    result, starts = simulated(trace_folder / KTH, 100, "easy", tmp_path / "log")
    jobs = jobs_of(trace_folder / KTH, 100)
    schedule(jobs, 100, backfills=True)

    assert {str(job.number): job.start for job in jobs} == starts
    found = result.figures
    assert 28_475 == found.job_count
    assert 28_763_776 * 10**6 == found.makespan_us
    assert found.mean_wait_us is not None
    assert found.mean_bounded_slowdown is not None
    assert abs(found.mean_wait_us - 6_805_200_000) < 100_000
    assert abs(found.mean_bounded_slowdown - Fraction("90.94")) < Fraction(1, 100)


UB_HPC = "ub-hpc-slurm"


def first_jobs(workload: Workload, most: int | None) -> Workload:
    """
    Return the jobs that come first, all of them when None.
    """
    if most is None:
        return workload
    first = set(workload.arrival_order()[:most])
    return workload.with_jobs(workload.jobs.kept([index in first for index in
                                                  range(len(workload.jobs))]))  # fmt: skip


def host_jobs(workload: Workload, modelling: Modelling) -> list[hosts_reference.HostJob]:
    """
    Return the jobs of a workload as the reference has them, times in microseconds.
    """
    found, submits_us = [], workload.submits_us()
    for index, job in enumerate(workload.jobs):
        ask = modelling.ask(job)
        needs = {True: {}, False: {}}
        for need in ask.needs:
            needs[need.per_task][need.resource] = need.milli
        found.append(
            hosts_reference.HostJob(
                index + 1,
                submits_us[index],
                workload.jobs.run_us(index),
                max(job.requested_s, job.run_s) * 10**6,
                job.tasks,
                needs[True],
                needs[False],
                tuple(frozenset(name for name, _ in one_of) for one_of in ask.select),
                ask.task_most,
                job.details.ask.is_exclusive and modelling.is_described,
            )
        )
    return found


@pytest.mark.slow
@pytest.mark.needs_traces
@pytest.mark.parametrize("picker", ["strict_fcfs", "easy"])
@pytest.mark.parametrize(
    ("file", "conf", "most"),
    [("micro/jobs500.events", "micro/slurm.conf", None),
     ("workload_week.events.gz", "slurm.conf", WEEK_CUT)],
)  # fmt: skip
def test_a_slurm_cluster_is_scheduled_as_the_reference_does(
    trace_folder: Path, file: str, conf: str, most: int | None, picker: str, tmp_path: Path
) -> None:
    """
    Nodes that differ, features, memory and GPUs: the jobs of UB-HPC's small cluster and of its
    week, each at the same microsecond, and so the same figures.
    """
    folder = trace_folder / UB_HPC
    read = read_workload(folder / file, Adjustments("at-least-run"))
    cluster = cluster_of(str(folder / conf), read.header)
    modelling = Modelling(cluster)
    workload = first_jobs(modelling.fitting(read), most)
    has = {
        host.name: {
            "slots": host.slots,
            "mem": (host.mem_kib or 0) * 1000,
            **{each.name: each.total_milli for each in host.resources},
        }
        for host in cluster.hosts
    }
    kinds = {host.name: frozenset(name for name, _ in host.attributes) for host in cluster.hosts}
    jobs = host_jobs(workload, modelling)
    hosts = hosts_reference.Hosts(has, kinds)
    # Of the whole week the reference would take hours without that; small cuts go without.
    hosts_reference.schedule(jobs, hosts, backfills=picker == "easy", remembers=IS_PROOF)

    settings = simulation_settings(picker, ("parjob", "fill"))
    with EventLog.create(tmp_path / "log", log_id="x") as log:
        result = Simulation(workload, cluster, log, settings=settings).run()
        starts = {
            int(envelope.stream.partition(":")[2]): envelope.time_us
            for envelope in log.read()
            if type(envelope.event) is JobDispatched
        }
    in_order = sorted(jobs, key=lambda job: (job.submit, job.number))
    assert {place: job.start for place, job in enumerate(in_order, 1)} == starts
    wait, slowdown, makespan = figures(jobs, second=10**6)
    found = result.figures
    assert found.mean_wait_us is not None
    assert found.mean_bounded_slowdown is not None
    assert (wait, makespan) == (found.mean_wait_us, found.makespan_us)
    assert abs(slowdown - found.mean_bounded_slowdown) < Fraction(1, 10**6)


@pytest.mark.slow
@pytest.mark.needs_traces
def test_a_log_of_easy_is_decided_again_alike(trace_folder: Path, tmp_path: Path) -> None:
    """
    Promises and what overtakes them are decisions like any other.
    """
    simulated(cut(trace_folder / KTH, 1_000, tmp_path), 100, "easy", tmp_path / "log")
    with EventLog.open(tmp_path / "log", writable=False) as log:
        events = [envelope.event for envelope in log.read()]
        assert any(type(event) is JobStartPromised for event in events)
        assert any(type(event) is JobDispatched and event.ahead_of for event in events)

        assert verify(log).is_same
