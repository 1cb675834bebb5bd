"""
Accounting records of Torque and PBS Pro: the places where they say a job's size.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from replay.workloads.details import TraceNeed
from replay.workloads.pbs_acct import read_pbs_acct
from replay.workloads.source import MalformedLine, TraceJob, Workload


def record(values: str, kind: str = "E", name: str = "12.head") -> str:
    return (
        f"12/21/2009 15:27:00;{kind};{name};user=ann queue=q ctime=100 start=120 end=180 "
        f"Exit_status=0 Resource_List.walltime=01:00:00 {values}"
    )


def read(folder: Path, *lines: str) -> Workload:
    path = folder / "acct"
    path.write_text("\n".join(lines) + "\n")
    return read_pbs_acct(path)


def one(folder: Path, values: str) -> TraceJob:
    return read(folder, record(values)).jobs.job(0)


@pytest.mark.parametrize(
    ("values", "tasks", "hosts"),
    [
        ("Resource_List.nodes=4:ppn=8 Resource_List.ncpus=1", 32, 4),
        ("Resource_List.nodes=2:ppn=8+node7:ppn=4:avx", 20, 3),
        ("Resource_List.select=5:ncpus=13 Resource_List.ncpus=65", 65, 5),
        ("Resource_List.ncpus=12 Resource_List.nodect=2", 12, 2),
        ("Resource_List.nodect=1:ppn=24:gpu=4 exec_host=n/0-27", 24, 1),
        ("Resource_List.nodect=2 exec_host=c1/0*13+c2/0-3+c3/7", 18, 2),
    ],
)
def test_the_size_is_what_was_asked_for_wherever_it_is_said(
    tmp_path: Path, values: str, tasks: int, hosts: int
) -> None:
    """
    The request for nodes wins over a count of processors, which some dialects leave at 1.
    """
    job = one(tmp_path, values)

    assert (tasks, hosts) == (job.tasks, job.details.ask.hosts)


def test_times_and_names_are_read(tmp_path: Path) -> None:
    """
    Created, started, ended; seconds are Unix seconds.
    """
    job = one(tmp_path, "Resource_List.nodes=1:ppn=1")

    assert (12, 100, 60, 3600, 1, "12.head") == (
        job.trace_id, job.submit_s, job.run_s, job.requested_s, job.status,
        job.details.trace_name,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("values", "needs"),
    [
        ("Resource_List.nodes=2:ppn=1:gpus=3 Resource_List.mem=1gb",
         (TraceNeed("mem", 524_288_000), TraceNeed("gpu", 3_000))),
        ("Resource_List.select=1:ncpus=4:ngpus=4:mem=2mb Resource_List.mem=1025b",
         (TraceNeed("mem", 2_000), TraceNeed("gpu", 4_000))),
        ("Resource_List.nodes=2:ppn=1 Resource_List.gpu=4", (TraceNeed("gpu", 2_000),)),
        ("Resource_List.ncpus=4 Resource_List.mem=1kw", (TraceNeed("mem", 8_000),)),
    ],
)
def test_memory_and_gpus_are_those_of_each_host(
    tmp_path: Path, values: str, needs: tuple[TraceNeed, ...]
) -> None:
    """
    The job's memory is shared evenly among its hosts, rounded up; a chunk's GPUs are per host.
    """
    assert needs == one(tmp_path, values).details.ask.needs


def test_records_that_end_no_job_are_counted(tmp_path: Path) -> None:
    """
    Queued and started ones tell of a job that another record ends.
    """
    workload = read(tmp_path, record("", "Q"), record("", "S"), record("Resource_List.ncpus=1"))

    assert 1 == len(workload.jobs)
    assert dict(workload.notes) == {
        "record of kind Q, which ends no job": 1, "record of kind S, which ends no job": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("12/21/2009;E;1;", "must begin with MM/DD/YYYY HH:MM:SS;KIND;JOB;"),
        (record("Resource_List.nodes=1:ppn=x"), "the request for nodes can't be read: '1:ppn=x'"),
        (record("exec_host=n1"), "exec_host can't be read: 'n1'"),
        (record("Resource_List.ncpus=1 Resource_List.mem=lots"),
         "mem is no size such as 1993mb: 'lots'"),
        (record("Resource_List.ncpus=many"), "Resource_List.ncpus is no whole number: 'many'"),
    ],
)
def test_a_malformed_record_is_named(tmp_path: Path, text: str, rule: str) -> None:
    """
    By its line and the value that is wrong.
    """
    workload = read(tmp_path, record("Resource_List.ncpus=1"), text)

    assert (MalformedLine(2, rule),) == workload.malformed_lines


@pytest.mark.needs_traces
def test_records_of_both_dialects_are_read(trace_folder: Path) -> None:
    """
    Sizes were read off the nine lines by eye.
    """
    jobs = read_pbs_acct(trace_folder / "xdmod" / "pbs-accounting-logs.log").jobs

    assert [32, 32, 4, 65, 12, 28, 24, 28, 48] == list(jobs.tasks)
    assert [2197, 2197, 9350, 156, 156, 8407, 100_000, 100_000, 36_072] == list(jobs.run_s)
    gpus = [need.milli for job in jobs for need in job.details.ask.needs if need.resource == "gpu"]
    assert [1000, 4000, 2000, 4000] == gpus
