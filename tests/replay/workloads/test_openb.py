"""
Pods of openb: amounts of CPU, memory and GPU, models, and those that never ran.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from replay.workloads.details import Ask, TraceNeed
from replay.workloads.openb import read_openb_pods
from replay.workloads.reading import read_workload
from replay.workloads.source import MalformedLine, Workload

HEADER = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
    "deletion_time,scheduled_time"
)


def pod(
    *, number: int = 7, cpu: int = 4152, memory: int = 2, gpus: object = 0, share: int = 0,
    spec: str = "", phase: str = "Succeeded", created: int = 10, deleted: int = 90,
    scheduled: object = 20,
) -> str:
    return (
        f"openb-pod-{number:04},{cpu},{memory},{gpus},{share},{spec},LS,{phase},{created},"
        f"{deleted},{scheduled}"
    )


def read(folder: Path, *lines: str, header: str = HEADER) -> Workload:
    path = folder / "pods"
    path.write_text("\n".join((header, *lines)) + "\n")
    return read_openb_pods(path)


def test_a_pod_is_one_task_with_amounts(tmp_path: Path) -> None:
    """
    It ran from when it was scheduled to when it was deleted.
    """
    job = read(tmp_path, pod()).jobs.job(0)

    assert (7, 10, 70, 1, 1) == (job.trace_id, job.submit_s, job.run_s, job.tasks, job.status)
    assert Ask(
        queue_name="LS", hosts=1, needs=(TraceNeed("cpus", 4152), TraceNeed("mem", 2 * 1024 * 1000))
    ) == job.details.ask
    assert "openb-pod-0007" == job.details.trace_name


@pytest.mark.parametrize(
    ("gpus", "share", "milli"), [(1, 460, 460), (1, 1000, 1000), (8, 1000, 8000)]
)
def test_gpus_are_whole_ones_or_a_share_of_one(
    tmp_path: Path, gpus: int, share: int, milli: int
) -> None:
    """
    In thousandths of a GPU.
    """
    job = read(tmp_path, pod(gpus=gpus, share=share)).jobs.job(0)

    assert TraceNeed("gpu", milli) in job.details.ask.needs


def test_models_are_alternatives_each_once(tmp_path: Path) -> None:
    """
    Real lists repeat a model.
    """
    job = read(tmp_path, pod(spec="V100M16|V100M32|V100M32")).jobs.job(0)

    assert ((("gpu_model", "V100M16"), ("gpu_model", "V100M32")),) == job.details.ask.select


def test_a_pod_that_was_never_scheduled_is_left_out(tmp_path: Path) -> None:
    """
    How long it would have run isn't known.
    """
    workload = read(tmp_path, pod(phase="Pending", scheduled=""), pod())

    assert (1, 1) == (len(workload.jobs), workload.left_out.run_time_negative)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("openb-pod-1,1", "has 2 columns, not 11"),
        (pod(gpus="one"), "num_gpu is no whole number: 'one'"),
        (pod(gpus=1, share=1001), "gpu_milli must be 1000, or below it for one GPU: 1001"),
        (pod(gpus=2, share=500), "gpu_milli must be 1000, or below it for one GPU: 500"),
        (pod(spec="A10&T4"), "gpu_spec is no list such as V100M16|V100M32: 'A10&T4'"),
    ],
)
def test_a_malformed_line_is_named(tmp_path: Path, text: str, rule: str) -> None:
    """
    The header is line 1.
    """
    workload = read(tmp_path, pod(), text)

    assert (MalformedLine(3, rule),) == workload.malformed_lines


def test_a_table_without_times_needs_a_run_time(tmp_path: Path) -> None:
    """
    Without one nothing runs, and nothing is made up.
    """
    path = tmp_path / "pods"
    path.write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\nopenb-pod-0000,12000,1,1,460\n")

    assert 1 == read_workload(path).left_out.run_time_negative
    jobs = read_workload(path, unrecorded_run_s=300).jobs
    assert ([0], [300]) == (list(jobs.submit_s), list(jobs.run_s))


@pytest.mark.slow
@pytest.mark.needs_traces
@pytest.mark.parametrize(
    ("name", "run_sum", "gpu_sum", "cpu_sum", "with_model"),
    [
        ("default", 210_028_342, 5_484_930, 76_423_916, 0),
        ("gpuspec33", 210_028_342, 5_484_930, 76_423_916, 2_092),
        ("cpu050", 192_629_835, 5_484_930, 64_040_616, 0),
    ],
)
def test_a_real_table_gives_the_sums_of_an_independent_scan(
    trace_folder: Path, name: str, run_sum: int, gpu_sum: int, cpu_sum: int, with_model: int
) -> None:
    """
    Over the pods that ran, by the csv module.
    """
    path = trace_folder / "alibaba-openb" / f"openb_pod_list_{name}.csv"

    jobs = read_openb_pods(path).jobs

    assert jobs.details is not None
    asks = [jobs.details.asks[number] for number in jobs.details.ask_numbers]
    sums = {
        resource: sum(need.milli for ask in asks for need in ask.needs if need.resource == resource)
        for resource in ("gpu", "cpus")
    }
    assert (run_sum, gpu_sum, cpu_sum, with_model) == (
        sum(jobs.run_s), sums["gpu"], sums["cpus"], sum(bool(ask.select) for ask in asks),
    )  # fmt: skip
