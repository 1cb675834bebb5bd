"""
SWF with the fields that Alea adds: workflows, requests for hosts, precedence, circles.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from replay.workloads.details import Ask, TraceNeed
from replay.workloads.extended_swf import read_extended_swf
from replay.workloads.reading import read_workload
from replay.workloads.source import MalformedLine, Workload

HEAD = "id\tsubmit\twait\truntime\tcpus\tcputimeused\tusedmem\tcpusreq"


def task(number: int, preceding: str = "-1", **fields: object) -> str:
    """
    Return a line of 20 fields with a task of a workflow.
    """
    values = {
        "submit": 20, "run": 900, "cpus": 2, "requested": 2, "limit": 1000, "memory": 4001,
        "name": "DAG-1", **fields,
    }  # fmt: skip
    return (
        f"{number} {values['submit']} 0 {values['run']} {values['cpus']} -1 5 {values['requested']}"
        f" {values['limit']} {values['memory']} 1 2 3 4 5 6 {preceding} 0 {values['name']} 1"
    )


def requested(
    request: str, *, processors: str = "{7,7}", memory: int = 2_000_001, preceding: int = 1
) -> str:
    """
    Return a line of 21 fields with a request for hosts.
    """
    return (
        f"4 1356996147 0 60 2 1 9 2 120 {memory} 1 62 1 1 -1 1 {preceding} 1 {processors} q_1d "
        f"{request}"
    )


def read(folder: Path, *lines: str) -> Workload:
    path = folder / "trace"
    path.write_text("\n".join(lines) + "\n")
    return read_extended_swf(path)


def test_a_task_of_a_workflow_waits_for_all_it_names(tmp_path: Path) -> None:
    """
    Several preceding jobs are joined by `&`; memory is the whole job's, in KiB.
    """
    workload = read(tmp_path, HEAD, task(1), task(2), task(3, "1&2&1"))

    job = workload.jobs.job(2)
    assert [(), (), (1, 2)] == [each.details.preceding_ids for each in workload.jobs]
    assert (3, 20, 900, 2, 1000, 2001) == (
        job.trace_id, job.submit_s, job.run_s, job.tasks, job.requested_s, job.requested_kib,
    )  # fmt: skip
    assert (HEAD.replace("\t", "\t"),) == workload.header.remarks
    assert job.details.ask.project_name == "DAG-1"


def test_a_request_for_hosts_is_read_and_its_preceding_job_is_a_filler(tmp_path: Path) -> None:
    """
    Field 17 is 1 on every line of the published trace: believing it would chain all jobs.
    """
    workload = read(tmp_path, requested("2:ppn=1:x86_64+node7:ppn=1#excl"))

    job = workload.jobs.job(0)
    assert Ask(
        queue_name="q_1d", hosts=3, needs=(TraceNeed("mem", 1954 * 1000),),
        constraint="2:ppn=1:x86_64+node7:ppn=1#excl", is_exclusive=True,
    ) == job.details.ask  # fmt: skip
    assert () == job.details.preceding_ids
    assert 1356996147 == workload.begins_s
    assert (("property of a host asked for, which isn't modelled", 1),) == workload.notes


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (requested("1", processors="{7,7,7}"), "field 19 has 3 processors, field 5 says 2"),
        (requested("1", processors="7,7"), "field 19 is no list in braces: '7,7'"),
        (requested("#excl"), "field 21 is no request such as 1:ppn=8: '#excl'"),
        (task(1, "1&x"), "field 17 (preceding job) is no list such as 1&2: '1&x'"),
        (task(1, run="1.5"), "field 4 is no whole number: '1.5'"),
        (task(1, run="9" * 15), "holds a number beyond 1000000000000, or more than 1000000 tasks"),
        ("1 2 3", "has 3 fields, not 20 or 21"),
    ],
)
def test_a_malformed_line_is_named(tmp_path: Path, text: str, rule: str) -> None:
    """
    By its number in the file and the field that is wrong.
    """
    workload = read(tmp_path, task(1), text)

    assert (MalformedLine(2, rule),) == workload.malformed_lines
    assert (1, 1) == (len(workload.jobs), workload.left_out.malformed)


def test_jobs_in_a_circle_and_those_behind_it_are_left_out(tmp_path: Path) -> None:
    """
    They could never be submitted; a job that isn't in the trace is waited for by nobody.
    """
    path = tmp_path / "trace"
    lines = (task(1, "3"), task(2), task(3, "1&2"), task(4, "3"), task(5, "77"), task(6, "6"))
    path.write_text("\n".join(lines) + "\n")

    workload = read_workload(path)

    assert [2, 5] == list(workload.jobs.trace_id)
    assert ("in a circle", 4) in workload.left_out.by_name()


@pytest.mark.slow
@pytest.mark.needs_traces
def test_a_real_trace_gives_the_sums_of_an_independent_scan(trace_folder: Path) -> None:
    """
    Run times and processors of the jobs that ran, and how many wanted whole hosts.
    """
    workload = read_extended_swf(trace_folder / "alea" / "wagap-2013.swf.gz")

    jobs = workload.jobs
    assert jobs.details is not None
    exclusive = sum(jobs.details.asks[number].is_exclusive for number in jobs.details.ask_numbers)
    assert (897_261_525, 149_384, 231) == (sum(jobs.run_s), sum(jobs.tasks), exclusive)
    assert not any(jobs.details.preceding_ids)
