"""
A slurm.conf as modelled cluster: defaults that accumulate, ranges, features, partitions, GPUs.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from domain.errors import Refused
from replay.cluster_file import read_cluster_file
from replay.cluster_spec import ClusterSpec, HostSpec, PartitionSpec, ResourceSpec


def read(folder: Path, text: str) -> ClusterSpec:
    path = folder / "cluster"
    path.write_text(text)
    return read_cluster_file(path)


def test_defaults_accumulate_and_a_node_overrides_them(tmp_path: Path) -> None:
    """
    A later DEFAULT changes only the keys that it names; keys are written in any case.
    """
    cluster = read(tmp_path, """
ClusterName=c          # a comment
NodeName=DEFAULT RealMemory=100 Sockets=2 CoresPerSocket=4 Weight=60
NodeName=a[08-09]
nodename=default realmemory=200
NodeName=b Procs=6 \\
    Weight=5
NodeName=c
""")

    assert (
        HostSpec("b", 6, 200 * 1024), HostSpec("a08", 8, 100 * 1024),
        HostSpec("a09", 8, 100 * 1024), HostSpec("c", 8, 200 * 1024),
    ) == cluster.hosts  # fmt: skip


def test_nodes_of_lower_weight_come_first_and_ties_in_file_order(tmp_path: Path) -> None:
    """
    Slurm takes them first, and host order is what placement follows.
    """
    cluster = read(tmp_path, "NodeName=c,a Weight=2\nNodeName=b\nNodeName=d Weight=2\n")

    assert ["b", "c", "a", "d"] == [host.name for host in cluster.hosts]


def test_features_gpus_and_partitions_are_what_jobs_can_ask_for(tmp_path: Path) -> None:
    """
    Names that a requirement couldn't hold are changed as the jobs' are.
    """
    cluster = read(tmp_path, """
NodeName=g1 CPUs=4 Feature=CPU-G,IB Gres=gpu:v100:2,fast:1
PartitionName=DEFAULT DefMemPerCPU=10
PartitionName=p-1 Nodes=ALL Default=YES
PartitionName=q Nodes=g1 DefMemPerCPU=20
""")

    assert (
        HostSpec(
            "g1", 4, None,
            (("CPU_G", "true"), ("IB", "true"), ("gpu_model", "v100"), ("partition_p_1", "true"),
             ("partition_q", "true")),
            (ResourceSpec("gpu", 2000, "v100", has_units=True),),
        ),
    ) == cluster.hosts  # fmt: skip
    assert (
        PartitionSpec("p-1", "partition_p_1", is_default=True, task_kib=10_240),
        PartitionSpec("q", "partition_q", task_kib=20_480),
    ) == cluster.partitions


def test_memory_counts_unless_selection_leaves_it_out(tmp_path: Path) -> None:
    """
    CR_Core hands out cores only.
    """
    with_memory = read(tmp_path, "SelectTypeParameters=CR_Core_Memory\nNodeName=a RealMemory=9\n")
    without = read(tmp_path, "SelectTypeParameters=CR_Core\nNodeName=a RealMemory=9\n")

    assert (True, False) == (with_memory.has_memory, without.has_memory)


def test_nodes_that_take_no_jobs_are_not_there(tmp_path: Path) -> None:
    """
    A future node isn't bought yet.
    """
    cluster = read(tmp_path, "NodeName=a\nNodeName=b State=FUTURE\nNodeName=c State=DOWN\n")

    assert ["a"] == [host.name for host in cluster.hosts]


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("NodeName=a[3-1]", "--cluster line 1"),
        ("NodeName=a CPUs=0", "--cluster line 1 CPUs"),
        ("NodeName=a RealMemory=2G", "--cluster line 1 realmemory"),
        ("NodeName=a\nNodeName=a", "--cluster name"),
        ("NodeName=a\nPartitionName=p Nodes=a,b", "--cluster line 2 Nodes"),
        ("NodeName=a RealMemory=1\nNodeName=b", "--cluster mem_kib"),
        ("Include nodes.conf\nNodeName=a", "--cluster"),
        ("NodeName=DEFAULT CPUs=4", "--cluster"),
    ],
)
def test_a_bad_file_is_refused_by_line(tmp_path: Path, text: str, field: str) -> None:
    """
    Passing over a line would model another cluster.
    """
    with pytest.raises(Refused) as caught:
        read(tmp_path, text)

    assert field == caught.value.field


@pytest.mark.needs_traces
@pytest.mark.parametrize(
    ("name", "hosts", "slots", "gpus", "mib"),
    [
        ("slurm.conf", 217, 7_968, 20, 193 * 187_000 + 24 * 754_000),
        ("micro/slurm.conf", 10, 120, 2, 9 * 48_000 + 512_000),
    ],
)
def test_a_real_file_gives_the_machine_that_its_publisher_counts(
    trace_folder: Path, name: str, hosts: int, slots: int, gpus: int, mib: int
) -> None:
    """
    217 nodes, 7,968 cores and 20 GPUs; memory was added up by hand.
    """
    cluster = read_cluster_file(trace_folder / "ub-hpc-slurm" / name)

    total = sum(resource.total_milli for host in cluster.hosts for resource in host.resources)
    assert (hosts, slots, gpus * 1000, mib * 1024) == (
        len(cluster.hosts), cluster.slots, total, sum(host.mem_kib or 0 for host in cluster.hosts),
    )  # fmt: skip
