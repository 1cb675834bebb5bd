"""
Make real logs for the replay tools: small simulations, and a live one told by a scenario.
"""

from __future__ import annotations

from array import array
from dataclasses import replace

import pytest

from domain.amounts import Amount
from domain.commands import MarkUnreachable, WorkerReport
from domain.events.workers import JobUsage
from projections.scheduling.placement.runner import SERIAL
from projections.scheduling.plugins import Plugins
from replay.cluster_file import cluster_of
from replay.simulation import Simulation
from replay.simulation_settings import log_id_of, simulation_settings
from replay.workloads.source import Jobs
from replay.workloads.swf import read_swf
from store.log import EventLog
from tests.builders import MB_MILLI, a_host
from tests.replay.logs import ListLog
from tests.scenario import Scenario

# Five jobs on 2x2: the second waits for the first, the fourth for hosts, the last takes 0 s.
SMALL = """\
; MaxNodes: 2
; MaxProcs: 4
1 0 -1 100 4 -1 -1 4 120 -1 1 1 1 1 1 1 -1 -1
2 10 -1 20 3 -1 -1 3 60 -1 1 2 1 1 1 1 -1 -1
3 15 -1 50 1 -1 -1 1 60 -1 1 1 1 1 1 1 -1 -1
4 20 -1 30 4 -1 -1 4 60 -1 0 3 1 1 1 1 -1 -1
5 150 -1 0 1 -1 -1 1 60 -1 1 2 1 1 1 1 -1 -1
"""


def simulate_into(place, file, *, cluster=None, jobs=None, picker="builtin_fcfs"):
    """
    Simulate a workload file, or its first jobs, into a log at a place; return the place.
    """
    workload = read_swf(file)
    if jobs is not None:
        columns = (array("q", column[:jobs]) for column in workload.jobs.columns())
        workload = replace(workload, jobs=Jobs(*columns))
    hosts = cluster_of(cluster, workload.header)
    workload = workload.fitting(hosts.slots)
    plugins = Plugins()
    chain = tuple(name for name in plugins.allocators if name != SERIAL)
    settings = simulation_settings(picker, chain)
    with EventLog.create(place, log_id=log_id_of(workload, hosts, picker)) as log:
        Simulation(workload, hosts, log, settings=settings, plugins=plugins).run()
    return place


@pytest.fixture
def small_log(tmp_path):
    """
    Return the directory of the log of five jobs.
    """
    file = tmp_path / "small.swf"
    file.write_text(SMALL)
    return simulate_into(tmp_path / "small", file)


@pytest.fixture(scope="session")
def kth_log(trace_folder, tmp_path_factory):
    """
    Return the directory of the log of KTH's first 300 jobs on 100 hosts; about 2,000 events.
    """
    file = trace_folder / "pwa-swf" / "KTH-SP2-1996-2.1-cln.swf.gz"
    return simulate_into(tmp_path_factory.mktemp("kth") / "log", file, cluster="100x1", jobs=300)


@pytest.fixture
def live():
    """
    Return the log of a small live cluster: waiting, usage, a hold, a kill, a lost and changed host.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=4 mem_mb=1000", "h2 slots=2 mem_mb=500")
    scenario.jobs("A tasks=4 mem_mb=600", "B tasks=2", "C tasks=6", "D tasks=1 hold=1")
    scenario.session()
    scenario.start("A", "B")
    scenario.pass_time(10)
    usage = JobUsage(
        job_id=scenario.ids["A"], attempt=1,
        amounts=(Amount(resource="mem", milli=700 * MB_MILLI),),
    )  # fmt: skip
    load = (Amount(resource="mem", milli=900 * MB_MILLI),)
    report = WorkerReport(worker="h1", incarnation=1, load=load, jobs=(usage,))
    scenario.command(report, actor="")
    scenario.command(MarkUnreachable(worker="h2", incarnation=1, silent_us=9), actor="")
    scenario.session()
    scenario.command(WorkerReport(worker="h2", incarnation=1), actor="")
    scenario.lift("D")
    scenario.kill("C", "A")
    scenario.session()
    scenario.pass_time(10)
    scenario.finish("A")
    scenario.session()
    scenario.jobs("E tasks=2 mem_mb=700")
    scenario.session()
    scenario.command(a_host("h1", slots=1, mem_mb=600), actor="")
    scenario.jobs("F tasks=1")
    scenario.session()
    scenario.finish("B", "D")
    scenario.session()
    return ListLog(scenario.log)
