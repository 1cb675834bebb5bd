"""
Simulate what richer workloads say: precedence, queues, users, amounts, moments, estimates.
"""

from __future__ import annotations

from pathlib import Path

from domain.events.jobs import JobDispatched, JobSubmitted
from domain.events.workers import WorkerJoined
from domain.ids import job_of_stream
from domain.resreq.render import render
from projections.scheduling.placement.runner import SERIAL
from projections.scheduling.plugins import Plugins
from replay.cluster_file import cluster_of
from replay.modelling import Modelling
from replay.simulation import Simulation
from replay.simulation_settings import log_id_of, simulation_settings
from replay.workloads.adjusting import Adjustments
from replay.workloads.reading import read_workload
from replay.workloads.source import Workload
from tests.replay.logs import ListLog

SECOND = 1_000_000
CLUSTER = """
NodeName=DEFAULT CPUs=4 RealMemory=100
NodeName=n1 Feature=CPU-N
NodeName=g1 Feature=CPU-G Gres=gpu:v100:2
PartitionName=p-1 Nodes=ALL Default=YES
PartitionName=p-2 Nodes=g1
"""


def task(number: int, preceding: str, run: int, submit: int = 5) -> str:
    """
    Return a task of a workflow of one processor.
    """
    return f"{number} {submit} 0 {run} 1 -1 -1 1 900 -1 1 3 1 1 1 1 {preceding} 0 DAG {number}"


def event(options: str, when: str = "0", run: int = 60) -> str:
    return f"-dt {when} -e submit_batch_job | -sim-walltime {run} {options} pseudo.job"


class Simulated:
    """
    Hold what a workload gave on a cluster.
    """

    def __init__(self, folder: Path, lines: list[str], cluster: str, **changes: object) -> None:
        path = folder / "workload"
        path.write_text("\n".join(lines) + "\n")
        if cluster == "slurm":
            (folder / "cluster").write_text(CLUSTER)
            cluster = str(folder / "cluster")
        read = read_workload(path, Adjustments(**changes))
        self.hosts = cluster_of(cluster, read.header)
        self.workload: Workload = Modelling(self.hosts).fitting(read)
        self.log = ListLog([])
        plugins = Plugins()
        chain = tuple(name for name in plugins.allocators if name != SERIAL)
        settings = simulation_settings("builtin_fcfs", chain)
        Simulation(
            self.workload, self.hosts, self.log, settings=settings, plugins=plugins
        ).run()

    def of(self, kind: type) -> dict[str, object]:
        """
        Return the envelopes of a class of event by the job's name in the trace, or the stream.
        """
        names = {one.stream: one.event.spec.name for one in self.log.read()
                 if isinstance(one.event, JobSubmitted)}  # fmt: skip
        return {names.get(one.stream, one.stream): one for one in self.log.read()
                if isinstance(one.event, kind)}  # fmt: skip

    def moments(self, kind: type) -> dict[str, float]:
        return {name: one.time_us / SECOND for name, one in self.of(kind).items()}


def test_a_task_is_submitted_when_all_it_waits_for_has_ended(tmp_path: Path) -> None:
    """
    At that moment and not later, also behind tasks of 0 s; its wait counts from there.
    """
    lines = [
        task(1, "-1", 10), task(2, "-1", 30), task(3, "1&2", 0), task(4, "3", 7),
        task(5, "1", 1, submit=100), task(6, "99", 1),
    ]  # fmt: skip

    simulated = Simulated(tmp_path, lines, "1x4")

    expected = {"1": 5, "2": 5, "6": 5, "3": 35, "4": 35, "5": 100}
    assert expected == simulated.moments(JobSubmitted)
    assert expected == simulated.moments(JobDispatched)
    assert 6 == sum(isinstance(one.event, JobSubmitted) for one in simulated.log.read())


def test_jobs_keep_their_users_queues_and_what_they_ask_for(tmp_path: Path) -> None:
    """
    Names that the log can't hold are changed, requirements are those of the modelled cluster.
    """
    lines = [event("--uid=ann/b -J jobid_7 -N 1 -n 2 -p p-1 --mem=50M --constraint=CPU-N"),
             event("--uid=bob -J jobid_8 -n 1 -p p-2 --gres=gpu:1")]  # fmt: skip

    submitted = Simulated(tmp_path, lines, "slurm").of(JobSubmitted)
    specs = {name: one.event.spec for name, one in submitted.items()}

    assert ("ann_b", "p-1") == (specs["7"].user, specs["7"].queue)
    assert (
        "select[CPU_N && partition_p_1] rusage[mem=50MB/host] span[ptile=2]"
    ) == render(specs["7"].requirement)
    assert "select[partition_p_2] rusage[gpu=1/host]" == render(specs["8"].requirement)


def test_jobs_run_where_their_features_and_gpus_are(tmp_path: Path) -> None:
    """
    Units of a GPU have names; each is held by one job.
    """
    lines = [event("--uid=u -n 1 -J jobid_1 --constraint=CPU-G"),
             event("--uid=u -n 1 -J jobid_2 --gres=gpu:1"),
             event("--uid=u -n 1 -J jobid_3 --gres=gpu:1"),
             event("--uid=u -n 1 -J jobid_4 --gres=gpu:1")]  # fmt: skip

    simulated = Simulated(tmp_path, lines, "slurm")

    runs = {name: one.event.allocation.runs[0]
            for name, one in simulated.of(JobDispatched).items()}  # fmt: skip
    g1 = next(index for index, host in enumerate(simulated.hosts.hosts) if host.name == "g1")
    assert {g1} == {run.first for run in runs.values()}
    assert [("0",), ("1",), ("0",)] == [runs[name].instances[0].units for name in "234"]
    assert {"1": 0, "2": 0, "3": 0, "4": 60} == simulated.moments(JobDispatched)


def test_a_job_that_wants_its_hosts_alone_has_them_alone(tmp_path: Path) -> None:
    """
    The next one waits though slots are free; on a cluster that is only slots it doesn't count.
    """
    lines = [event("--uid=u -n 1 -p p-2 -J jobid_1 --exclusive"),
             event("--uid=u -n 1 -p p-2 -J jobid_2")]  # fmt: skip

    rich, plain = (Simulated(tmp_path, lines, name) for name in ("slurm", "1x4"))

    assert {"1": 0, "2": 60} == rich.moments(JobDispatched)
    assert {"1": 0, "2": 0} == plain.moments(JobDispatched)


def test_shares_of_gpus_stay_within_each_gpu(tmp_path: Path) -> None:
    """
    Two jobs of 0.46 run on one GPU at once, the third on the second; of 0.6 only one runs on each,
    though a third would fit their sum.
    """
    header = ("name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
              "deletion_time,scheduled_time")  # fmt: skip
    path = tmp_path / "nodes"
    path.write_text("sn,cpu_milli,memory_mib,gpu,model\nn1,4000,100,2,T4\n")
    for share, expected in ((460, [0, 0, 0]), (600, [0, 0, 10])):
        pods = (f"openb-pod-{n},1000,1,1,{share},,LS,Running,0,10,0" for n in range(1, 4))

        starts = Simulated(tmp_path, [header, *pods], str(path)).moments(JobDispatched)

        assert expected == [starts[f"openb-pod-{number}"] for number in range(1, 4)]


def test_moments_between_seconds_are_kept(tmp_path: Path) -> None:
    """
    And the order of submissions with them.
    """
    lines = [event("--uid=u -n 1 -J jobid_1", when="3.50"),
             event("--uid=u -n 1 -J jobid_2", when="3.25")]  # fmt: skip

    assert {"2": 3.25, "1": 3.5} == Simulated(tmp_path, lines, "1x1").moments(JobSubmitted)


def test_the_cluster_is_set_up_when_a_trace_in_unix_seconds_begins(tmp_path: Path) -> None:
    """
    Not in 1970: utilisation and history would begin there.
    """
    lines = [task(1, "-1", 10, submit=1_356_996_147)]

    joined = Simulated(tmp_path, lines, "1x1").of(WorkerJoined)

    assert {1_356_996_147 * SECOND} == {one.time_us for one in joined.values()}


def test_estimates_are_told_and_no_limit(tmp_path: Path) -> None:
    """
    They are for planning; nothing is ended by them.
    """
    lines = [task(1, "-1", 600)]

    [submitted] = Simulated(tmp_path, lines, "1x1", estimates="times:1.5").of(JobSubmitted).values()

    spec = submitted.event.spec
    assert (900 * SECOND, None) == (spec.run_estimate_us, spec.run_limit_us)
    assert "1" == job_of_stream(submitted.stream)


def test_the_logs_id_depends_on_everything_that_is_simulated(tmp_path: Path) -> None:
    """
    Two logs of one id must hold the same bytes.
    """
    ids = set()
    for number, lines in enumerate((
        [event("--uid=u -n 1")], [event("--uid=v -n 1")], [event("--uid=u -n 1", when="0.5")],
        [event("--uid=u -n 1 --mem=5M")],
    )):  # fmt: skip
        path = tmp_path / str(number)
        path.mkdir()
        one = Simulated(path, lines, "1x1")
        ids.add(log_id_of(one.workload, one.hosts, "builtin_fcfs"))
    told = Simulated(tmp_path, [event("--uid=u -n 1")], "1x1", estimates="exact")
    ids.add(log_id_of(told.workload, told.hosts, "builtin_fcfs"))

    assert 5 == len(ids)
