"""
Make real logs for the replay tools: small simulations, and a live one told by a scenario.
"""

from __future__ import annotations

from array import array
from dataclasses import replace

import pytest

from projections.scheduling.placement.runner import SERIAL
from projections.scheduling.plugins import Plugins
from replay.cluster_file import cluster_of
from replay.simulation import Simulation, log_id_of, simulation_settings
from replay.workloads.source import Jobs
from replay.workloads.swf import read_swf
from store.log import EventLog

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
