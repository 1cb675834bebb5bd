"""
The object of sacct --json: old plain numbers, new ones in objects, what is wrong in it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from domain.errors import Refused
from replay.workloads.details import UNKNOWN, TraceNeed
from replay.workloads.sacct_json import read_sacct_json
from replay.workloads.source import MalformedLine, Workload


def a_job(**fields: object) -> dict[str, object]:
    """
    Return a job as version 22.05 prints it.
    """
    return {
        "job_id": 12, "name": "n", "user": "u", "partition": "p", "account": "a",
        "allocation_nodes": 2, "nodes": "c[1-2]", "constraints": "", "array": {"task_id": None},
        "time": {"submission": 100, "start": 110, "elapsed": 30, "limit": 5},
        "required": {"CPUs": 4, "memory": 7168}, "state": {"current": "COMPLETED"}, **fields,
    }  # fmt: skip


def read(folder: Path, content: object) -> Workload:
    path = folder / "rows.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return read_sacct_json(path)


def test_a_job_of_an_older_version_is_read(tmp_path: Path) -> None:
    """
    Numbers are plain, the limit is in minutes, memory in MiB of a node.
    """
    job = read(tmp_path, {"jobs": [a_job()]}).jobs.job(0)

    assert (12, 100, 30, 4, 300, 1) == (
        job.trace_id, job.submit_s, job.run_s, job.tasks, job.requested_s, job.status,
    )  # fmt: skip
    assert (TraceNeed("mem", 7168 * 1024 * 1000),) == job.details.ask.needs


def test_a_job_of_a_newer_version_is_read(tmp_path: Path) -> None:
    """
    Numbers stand in objects that say whether they are set, states in lists.
    """
    job = read(tmp_path, {"jobs": [a_job(
        time={"submission": 100, "start": 110, "elapsed": 30,
              "limit": {"set": False, "infinite": True, "number": 0}},
        required={"CPUs": 4, "memory_per_cpu": {"set": True, "number": 512},
                  "memory_per_node": {"set": False, "number": 0}},
        state={"current": ["FAILED"]}, array={"task_id": {"set": True, "number": 3}},
        tres={"allocated": [{"type": "gres", "name": "gpu:v100", "count": 4}]},
    )]}).jobs.job(0)  # fmt: skip

    assert (UNKNOWN, 512 * 1024, 0, "12_3") == (
        job.requested_s, job.requested_kib, job.status, job.details.trace_name,
    )  # fmt: skip
    assert (TraceNeed("gpu", 2000),) == job.details.ask.needs


def test_a_job_that_never_started_is_left_out(tmp_path: Path) -> None:
    """
    Its start is 0.
    """
    time = {"submission": 100, "start": 0, "elapsed": 0, "limit": 5}

    workload = read(tmp_path, {"jobs": [a_job(time=time), a_job(state={"current": "RUNNING"})]})

    assert (0, 2) == (len(workload.jobs), workload.left_out.run_time_negative)


def test_a_malformed_job_is_named_by_its_place(tmp_path: Path) -> None:
    """
    JSON has no lines that matter.
    """
    workload = read(tmp_path, {"jobs": [a_job(), 7, a_job(job_id="x")]})

    assert (
        MalformedLine(2, "is no object"), MalformedLine(3, "job_id is no whole number: 'x'"),
    ) == workload.malformed_lines  # fmt: skip


@pytest.mark.parametrize("content", ["{", {"job": []}, [], {"jobs": {}}])
def test_what_is_no_object_with_jobs_is_refused(tmp_path: Path, content: object) -> None:
    """
    The rule says what sacct would have printed.
    """
    with pytest.raises(Refused) as caught:
        read(tmp_path, content)

    assert caught.value.field == "workload"


@pytest.mark.needs_traces
def test_a_real_object_is_read(trace_folder: Path) -> None:
    """
    Its one job ran for 238 of 18,000 seconds on one CPU with 7,168 MiB.
    """
    job = read_sacct_json(trace_folder / "batcheuphoria" / "slurm-sacct.json").jobs.job(0)

    assert (267854, 1687222030, 238, 1, 18_000) == (
        job.trace_id, job.submit_s, job.run_s, job.tasks, job.requested_s,
    )  # fmt: skip
    assert (TraceNeed("mem", 7168 * 1024 * 1000),) == job.details.ask.needs
