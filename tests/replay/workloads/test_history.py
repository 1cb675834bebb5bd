"""
A log of ours is a workload: the same jobs at the same times with their real run times.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from replay.cluster_file import cluster_for, cluster_of
from replay.modelling import Modelling
from replay.recordings import open_history, record
from replay.simulation import Simulation
from replay.simulation_settings import log_id_of, simulation_settings
from replay.workloads.adjusting import Adjustments
from replay.workloads.history import is_history
from replay.workloads.reading import read_workload
from store.log import EventLog
from tests.scenario import Scenario


def simulated(workload, hosts, place, picker="builtin_fcfs"):
    """
    Simulate a workload into a log; return the figures.
    """
    workload = Modelling(hosts).fitting(workload)
    settings = simulation_settings(picker, ("parjob", "fill"))
    with EventLog.create(place, log_id=log_id_of(workload, hosts, picker)) as log:
        return Simulation(workload, hosts, log, settings=settings).run().figures


def again(place, target, **options):
    """
    Simulate what is in a log or recording; return the figures.
    """
    workload = read_workload(place, **options)
    return simulated(workload, cluster_for(None, workload), target)


def starts(place):
    """
    Return when and where each dispatch was, in order.
    """
    with EventLog.open(place, writable=False) as log:
        return [
            (one.time_us, one.event.allocation)
            for one in log.read() if one.event.TYPE_CODE == "job.dispatched"
        ]  # fmt: skip


def written(scenario, tmp_path):
    """
    Write what a scenario recorded; return the log's directory.
    """
    with EventLog.create(tmp_path / "live") as log:
        log.append(scenario.log)
    return tmp_path / "live"


def test_the_log_of_a_simulation_gives_the_same_schedule(small_log, tmp_path):
    """
    Nothing of what decides is lost on the way: submissions, estimates, sizes, run times, hosts.
    """
    again(small_log, tmp_path / "again")

    assert starts(small_log) == starts(tmp_path / "again")


@pytest.mark.needs_traces
@pytest.mark.slow
def test_requests_hold_on_the_hosts_of_the_log(trace_folder, tmp_path):
    """
    Memory, GPUs, features and partitions of a Slurm cluster come back from its log.
    """
    folder = trace_folder / "ub-hpc-slurm" / "micro"
    whole = read_workload(folder / "jobs500.events")
    hosts = cluster_of(str(folder / "slurm.conf"), whole.header)
    first = replace(whole, jobs=whole.jobs.kept([index < 120 for index in range(len(whole.jobs))]))
    expected = simulated(first, hosts, tmp_path / "first")
    found = again(tmp_path / "first", tmp_path / "second")

    assert starts(tmp_path / "first") == starts(tmp_path / "second")
    assert expected.mean_wait_us == found.mean_wait_us > 0


def test_run_times_are_those_of_the_log_to_the_microsecond(tmp_path):
    """
    From the start, not from the dispatch, and without the time that a job was suspended.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=4")
    scenario.jobs("A tasks=3", "B tasks=1")
    scenario.session()
    scenario.now_us += 123_456
    scenario.start("A", "B")
    scenario.now_us += 7_654_321
    scenario.finish("A")
    scenario.now_us += 1
    scenario.finish("B")
    workload = read_workload(written(scenario, tmp_path))

    assert [7_654_321, 7_654_322] == [workload.jobs.run_us(0), workload.jobs.run_us(1)]
    assert ["h1"] == [host.name for host in workload.cluster.hosts]


def test_what_never_ran_or_has_not_ended_is_counted(tmp_path):
    """
    A job killed while it waited, one that waits and one that runs.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=2")
    scenario.jobs("A tasks=2", "B tasks=2", "C tasks=1")
    scenario.session()
    scenario.start("A")
    scenario.kill("B")
    scenario.session()
    workload = read_workload(written(scenario, tmp_path))

    assert 0 == len(workload.jobs)
    assert 3 == workload.left_out.run_time_negative
    assert (("jobs that hadn't ended", 2),) == workload.notes


def test_a_window_brings_the_jobs_that_were_there_before(small_log, tmp_path):
    """
    Those that waited or ran at its beginning, with their hosts.
    """
    with open_history(small_log) as log:
        middle = next(
            one.position for one in log.read() if one.event.TYPE_CODE == "job.finished"
        )
        record(log, tmp_path / "w.jsonl", after=middle - 1)
    workload, whole = read_workload(tmp_path / "w.jsonl"), read_workload(small_log)

    assert 5 == len(whole.jobs)
    assert whole.jobs.run_s == workload.jobs.run_s
    assert whole.submits_us() == workload.submits_us()
    assert whole.cluster == workload.cluster


def test_a_history_is_told_by_its_content_and_takes_options(small_log, tmp_path):
    """
    As every other workload; a cluster that is given goes before the log's own.
    """
    (tmp_path / "empty").mkdir()
    halved = read_workload(small_log, Adjustments(load=2))
    workload = read_workload(small_log)

    assert is_history(small_log)
    assert not is_history(tmp_path / "empty")
    assert (workload.submits_us()[4] - workload.submits_us()[0]) == 2 * (
        halved.submits_us()[4] - halved.submits_us()[0]
    )
    assert 7 == len(cluster_for("7x1", workload).hosts)
