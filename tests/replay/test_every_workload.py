"""
The proof over every recorded workload: simulate, export, import, decide again; a window by itself;
a branch; and the jobs of the log simulated once more.

Each workload's first jobs; `make proof` takes all of them (XCE_PROOF_JOBS=all).
"""

from __future__ import annotations

import os

import pytest

from projections.scheduling.placement.runner import SERIAL
from projections.scheduling.plugins import Plugins
from replay.at import ladder_of
from replay.branch import Branch
from replay.cluster_file import cluster_for
from replay.modelling import Modelling
from replay.recordings import record
from replay.simulation import Simulation
from replay.simulation_settings import log_id_of, simulation_settings
from replay.verify import verify
from replay.workloads.reading import read_workload
from store.log import EventLog
from store.recordings import Recording
from store.transfer import export_log, import_log
from tests.replay.test_backfilling import first_jobs

pytestmark = [pytest.mark.needs_traces, pytest.mark.slow]
JOBS = os.environ.get("XCE_PROOF_JOBS", "80")

# File, cluster (None for the header's own; a name of a file beside it), options of the reader.
WORKLOADS = [
    ("pwa-swf/KTH-SP2-1996-2.1-cln.swf.gz", "100x1", {}),
    ("pwa-swf/NASA-iPSC-1993-3.1-cln.swf.gz", None, {}),
    ("pwa-swf/LANL-CM5-1994-4.1-cln.swf.gz", None, {}),
    ("pwa-swf/LLNL-Thunder-2007-1.1-cln.swf.gz", None, {}),
    ("pwa-swf/RICC-2010-2.swf.gz", "pwa-swf/ricc.swf.machines", {}),
    ("pwa-swf/SDSC-BLUE-2000-4.2-cln.swf.gz", None, {}),
    ("pwa-swf/UniLu-Gaia-2014-1.swf.gz", None, {}),
    ("alea/wagap-2013.swf.gz", "alea/wagap-2013.swf.machines", {}),
    ("alea/jaros1.swf", "alea/jaros1.swf.machines", {}),
    ("lublin-model/lublin_256.swf", "256x1", {}),
    ("alibaba-openb/openb_pod_list_default.csv", "alibaba-openb/openb_node_list_all_node.csv", {}),
    ("alibaba-openb/openb_pod_list_multigpu20.csv",
     "alibaba-openb/openb_node_list_all_node.csv", {"unrecorded_run_s": 60}),
    ("ub-hpc-slurm/workload_week.events.gz", "ub-hpc-slurm/slurm.conf", {}),
    ("ub-hpc-slurm/micro/jobs500.events", "ub-hpc-slurm/micro/slurm.conf", {}),
    ("xdmod/phillips.log", "100x64", {}),
    ("xdmod/slurm-accounting-logs-with-job-arrays.log", "100x64", {}),
    ("xdmod/pbs-accounting-logs.log", "100x64", {}),
    ("kabre-slurm/sacct.csv.gz", "60x64", {}),
    ("aws-slurm/sacct-output-v2.txt", "60x64", {}),
    ("batcheuphoria/slurm-sacct.json", "60x64", {}),
    ("aws-lsf/lsb.events", "20x8", {}),
    ("aws-lsf/lsb.acct", "20x8", {}),
]  # fmt: skip


def simulated(workload, hosts, place):
    workload = Modelling(hosts).fitting(workload)
    plugins = Plugins()
    chain = tuple(name for name in plugins.allocators if name != SERIAL)
    settings = simulation_settings("builtin_fcfs", chain)
    log_id = log_id_of(workload, hosts, "builtin_fcfs")
    with EventLog.create(place, log_id=log_id) as log:
        Simulation(workload, hosts, log, settings=settings, plugins=plugins).run()
    return place


def starts(place):
    """
    Return when and where each dispatch was, in order.
    """
    with EventLog.open(place, writable=False) as log:
        return [
            (one.time_us, one.event.allocation)
            for one in log.read() if one.event.TYPE_CODE == "job.dispatched"
        ]  # fmt: skip


def verified(file):
    with Recording(file) as window:
        after = window.first_position - 1
        return verify(
            window, after=after, start=ladder_of(window).start, states=window.snapshots
        )


@pytest.mark.parametrize(("name", "cluster", "options"), WORKLOADS, ids=str)
def test_every_workload_holds_through_export_import_and_verify(
    trace_folder, tmp_path, name, cluster, options
):
    """
    Export and import are inverses, and every decision is made again: in the imported log, and in a
    window of it with states; a branch from the middle of the export, with no change, is the log
    again; the jobs of the log give the same schedule once more.
    """
    workload = read_workload(trace_folder / name, **options)
    if JOBS != "all":
        workload = first_jobs(workload, int(JOBS))
    given = str(trace_folder / cluster) if cluster and "/" in cluster else cluster
    log = simulated(workload, cluster_for(given, workload), tmp_path / "log")

    export_log(log, tmp_path / "one.jsonl")
    import_log(tmp_path / "one.jsonl", tmp_path / "again")
    export_log(tmp_path / "again", tmp_path / "two.jsonl")
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()
    with EventLog.open(tmp_path / "again", writable=False) as again:
        result = verify(again)
        head = again.head()
        record(again, tmp_path / "w.jsonl", after=head // 3, every=max(5, head // 6))
    assert result.is_same, result.differences
    assert head == result.events
    assert result.decisions > 0
    window = verified(tmp_path / "w.jsonl")
    assert window.is_same, window.differences
    assert window.states > 0
    with Recording(tmp_path / "one.jsonl") as parent:
        branch = Branch(parent, head // 2, ladder=ladder_of(parent))
        with EventLog.create(tmp_path / "branch", log_id=branch.log_id) as child:
            assert branch.run(child).differs_at is None
    assert starts(log) == starts(tmp_path / "branch")
    recorded = read_workload(log)
    simulated(recorded, cluster_for(None, recorded), tmp_path / "once-more")
    assert starts(log) == starts(tmp_path / "once-more")
