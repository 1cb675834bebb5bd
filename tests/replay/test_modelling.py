"""
What a job asks of a modelled cluster, and which jobs no cluster state could ever hold.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from domain.resreq.render import render
from replay.cluster_file import read_cluster_file
from replay.cluster_spec import ClusterSpec, HostSpec, PartitionSpec, ResourceSpec
from replay.modelling import ModelAsk, Modelling
from replay.workloads.details import UNKNOWN, Ask, Details, TraceNeed
from replay.workloads.reading import read_workload
from replay.workloads.source import TraceJob

PLAIN = ClusterSpec((HostSpec("a", 4), HostSpec("b", 4)))
RICH = ClusterSpec(
    (
        HostSpec("a", 4, 4096, (("IB", "true"), ("partition_p", "true"))),
        HostSpec("b", 8, 8192, (("gpu_model", "A10"), ("partition_q", "true")),
                 (ResourceSpec("gpu", 2000, "A10", has_units=True),)),
    ),
    (PartitionSpec("p", "partition_p", is_default=True, task_kib=512),
     PartitionSpec("q", "partition_q")),
)  # fmt: skip


def a_job(
    tasks: int = 4, *, kib: int = UNKNOWN, queue: str = "", hosts: int = UNKNOWN,
    needs: tuple[TraceNeed, ...] = (), select: tuple[tuple[tuple[str, str], ...], ...] = (),
) -> TraceJob:
    ask = Ask(queue_name=queue, hosts=hosts, needs=needs, select=select)
    return TraceJob(
        1, 0, 60, tasks, UNKNOWN, kib, 1, *[UNKNOWN] * 7, details=Details(ask)
    )


def test_nothing_counts_on_a_cluster_that_is_only_slots() -> None:
    """
    As with plain SWF: memory counts only where the cluster gives memory.
    """
    job = a_job(
        8, kib=99, queue="p", hosts=1, needs=(TraceNeed("gpu", 9000),), select=((("X", "true"),),)
    )

    modelling = Modelling(PLAIN)

    assert ModelAsk() == modelling.ask(job)
    assert modelling.requirement(job) is None
    assert modelling.fits(job)


def test_a_rich_cluster_makes_everything_count() -> None:
    """
    As a requirement that any user could have written.
    """
    job = a_job(
        4, queue="q", hosts=2, needs=(TraceNeed("gpu", 460), TraceNeed("mem", 1_024_000)),
        select=((("gpu_model", "A10"), ("gpu_model", "T4")),),
    )  # fmt: skip

    requirement = Modelling(RICH).requirement(job)

    assert requirement is not None
    assert (
        "select[(gpu_model == 'A10' || gpu_model == 'T4') && partition_q]"
        " rusage[gpu=0.46/host,mem=1MB/host] span[ptile=2]"
    ) == render(requirement)


def test_a_partition_gives_memory_to_tasks_that_ask_for_none() -> None:
    """
    The default partition's to jobs that name none.
    """
    modelling = Modelling(RICH)

    assert (TraceNeed("mem", 512_000, per_task=True),) == modelling.ask(a_job()).needs
    assert (TraceNeed("mem", 7_000, per_task=True),) == modelling.ask(a_job(kib=7)).needs
    assert () == modelling.ask(a_job(queue="q")).needs


@pytest.mark.parametrize(
    ("job", "fits"),
    [
        (a_job(4), True),
        (a_job(5), False),
        (a_job(5, queue="p,q"), True),
        (a_job(1, queue="nowhere"), False),
        (a_job(4, kib=1024), True),
        (a_job(4, kib=1025), False),
        (a_job(1, queue="q", needs=(TraceNeed("gpu", 2000),)), True),
        (a_job(1, queue="q", needs=(TraceNeed("gpu", 2001),)), False),
        (a_job(1, queue="p", needs=(TraceNeed("gpu", 1),)), False),
        (a_job(1, select=((("IB", "true"),),)), True),
        (a_job(1, queue="q", select=((("IB", "true"),),)), False),
        (a_job(8, queue="q", hosts=2), False),
        (a_job(8, queue="q", hosts=1), True),
    ],
)
def test_a_job_fits_when_the_empty_cluster_holds_it(job: TraceJob, fits: bool) -> None:
    """
    Everything it asks for at once, on hosts of its partitions.
    """
    assert fits is Modelling(RICH).fits(job)


@pytest.mark.slow
@pytest.mark.needs_traces
def test_one_pod_of_a_real_table_fits_on_no_node(trace_folder: Path) -> None:
    """
    Its publisher's table has one such: 120 CPUs and 8 GPUs of a model whose nodes have 96 CPUs.
    """
    folder = trace_folder / "alibaba-openb"
    modelling = Modelling(read_cluster_file(folder / "openb_node_list_all_node.csv"))
    workload = read_workload(folder / "openb_pod_list_gpuspec33.csv")

    kept = modelling.fitting(workload)

    gone = set(workload.jobs.trace_id) - set(kept.jobs.trace_id)
    assert ({1639}, 1, 0) == (gone, kept.left_out.fits_no_hosts, kept.left_out.larger_than_cluster)
    assert ("fits no hosts", 1) in kept.left_out.by_name()


@pytest.mark.slow
@pytest.mark.needs_traces
def test_every_job_of_a_real_week_fits_its_machine(trace_folder: Path) -> None:
    """
    As its publisher says.
    """
    folder = trace_folder / "ub-hpc-slurm"
    workload = read_workload(folder / "workload_week.events.gz")

    kept = Modelling(read_cluster_file(folder / "slurm.conf")).fitting(workload)

    assert workload is kept
