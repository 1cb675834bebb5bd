"""
The node table of openb as modelled cluster.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from domain.errors import Refused
from replay.cluster_file import read_cluster_file
from replay.cluster_spec import HostSpec, ResourceSpec

HEADER = "sn,cpu_milli,memory_mib,gpu,model\n"


def test_a_node_has_slots_memory_cpu_and_gpus_with_a_model(tmp_path: Path) -> None:
    """
    GPUs are units; CPU is an amount in thousandths.
    """
    path = tmp_path / "nodes"
    path.write_text(HEADER + "n1,96000,2,8,G2\nn2,1500,1,0,\n")

    cluster = read_cluster_file(path)

    gpu = ResourceSpec("gpu", 8000, "G2", has_units=True)
    assert (
        HostSpec("n1", 96, 2048, (("gpu_model", "G2"),), (ResourceSpec("cpus", 96_000), gpu)),
        HostSpec("n2", 1, 1024, (), (ResourceSpec("cpus", 1500),)),
    ) == cluster.hosts


@pytest.mark.parametrize("line", ["n1,1,1", "n1,many,1,0,", "n1,999,1,0,"])
def test_a_bad_line_is_refused_by_number(tmp_path: Path, line: str) -> None:
    """
    Line 1 is the header.
    """
    path = tmp_path / "nodes"
    path.write_text(HEADER + line + "\n")

    with pytest.raises(Refused) as caught:
        read_cluster_file(path)

    assert caught.value.field.startswith("--cluster line 2")


@pytest.mark.needs_traces
def test_the_real_table_gives_the_machine_that_its_publisher_counts(trace_folder: Path) -> None:
    """
    1,523 nodes, 125,514 CPUs, 6,212 GPUs; 549 nodes with 8 of model G2.
    """
    hosts = read_cluster_file(
        trace_folder / "alibaba-openb" / "openb_node_list_all_node.csv"
    ).hosts

    totals = Counter[str]()
    for host in hosts:
        for resource in host.resources:
            totals[resource.name] += resource.total_milli
    assert (1_523, 125_514) == (len(hosts), sum(host.slots for host in hosts))
    assert {"cpus": 125_514_000, "gpu": 6_212_000} == totals
    assert 549 == sum(("gpu_model", "G2") in host.attributes for host in hosts)
