"""
Rows of sacct: which columns, what free text has broken, what a row means as a job.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from domain.errors import Refused
from replay.workloads.details import UNKNOWN, TraceNeed
from replay.workloads.sacct import read_sacct
from replay.workloads.source import MalformedLine, TraceJob, Workload

HEADER = "JobID|Partition|Account|User|Submit|Start|End|Elapsed|State|NNodes|ReqCPUS|ReqMem|ReqTRES"
NAMES = HEADER.lower().split("|")


def row(**cells: str) -> str:
    """
    Return a row of these columns; what isn't given has a plain value.
    """
    values = {
        "jobid": "7", "partition": "p", "account": "a", "user": "u",
        "submit": "2024-01-01T00:00:00", "start": "2024-01-01T00:00:10",
        "end": "2024-01-01T00:01:10", "elapsed": "00:01:00", "state": "COMPLETED", "nnodes": "2",
        "reqcpus": "4", "reqmem": "", "reqtres": "", **cells,
    }  # fmt: skip
    return "|".join(values[name] for name in NAMES)


def read(folder: Path, *lines: str) -> Workload:
    path = folder / "rows"
    path.write_text("\n".join(lines) + "\n")
    return read_sacct(path)


def one(folder: Path, **cells: str) -> TraceJob:
    return read(folder, HEADER, row(**cells)).jobs.job(0)


def test_a_row_gives_size_times_and_names(tmp_path: Path) -> None:
    """
    A slot is a CPU; seconds are Unix seconds.
    """
    job = one(tmp_path)

    ask = job.details.ask
    assert (7, 1_704_067_200, 60, 4, 1) == (
        job.trace_id, job.submit_s, job.run_s, job.tasks, job.status,
    )  # fmt: skip
    assert ("u", "p", "a", 2) == (ask.user_name, ask.queue_name, ask.project_name, ask.hosts)


@pytest.mark.parametrize(
    ("memory", "per_task", "per_host"),
    [("100Mc", 102_400, None), ("4000Mn", UNKNOWN, 4_096_000), ("500G", UNKNOWN, 262_144_000),
     ("2147486648Mn", 3_072_000, None), ("0n", UNKNOWN, None)],
)  # fmt: skip
def test_memory_is_per_cpu_per_node_or_of_the_whole_job(
    tmp_path: Path, memory: str, per_task: int, per_host: int | None
) -> None:
    """
    Newer versions print the whole job's memory, here on two nodes.
    """
    job = one(tmp_path, reqmem=memory)

    needs = () if per_host is None else (TraceNeed("mem", per_host * 1000),)
    assert (per_task, needs) == (job.requested_kib, job.details.ask.needs)


def test_gpus_are_those_of_each_node(tmp_path: Path) -> None:
    """
    TRES are totals of the job.
    """
    job = one(tmp_path, reqtres="cpu=4,gres/gpu=4,node=2")

    assert (TraceNeed("gpu", 2000),) == job.details.ask.needs


@pytest.mark.parametrize(
    ("state", "status"),
    [("COMPLETED", 1), ("FAILED", 0), ("TIMEOUT", 0), ("OUT_OF_MEMORY", 0), ("CANCELLED by 12", 5)],
)
def test_states_become_swf_statuses(tmp_path: Path, state: str, status: int) -> None:
    """
    Who cancelled it stands behind the word.
    """
    assert status == one(tmp_path, state=state).status


@pytest.mark.parametrize(
    "cells",
    [
        {"state": "PENDING", "start": "Unknown", "end": "Unknown"},
        {"state": "RUNNING", "end": "Unknown"},
        {"state": "CANCELLED by 1", "start": "None"},
    ],
)
def test_what_never_ran_or_has_not_ended_is_left_out_as_such(
    tmp_path: Path, cells: dict[str, str]
) -> None:
    """
    Its run time isn't known, and no guess is made.
    """
    workload = read(tmp_path, HEADER, row(**cells), row())

    assert (1, 1) == (len(workload.jobs), workload.left_out.run_time_negative)


def test_rows_of_steps_are_counted_and_no_jobs(tmp_path: Path) -> None:
    """
    They are parts of the job in another row.
    """
    workload = read(tmp_path, HEADER, row(), row(jobid="7.batch"), row(jobid="7.0"))

    assert 1 == len(workload.jobs)
    assert (("row of a job's step", 2),) == workload.notes


def test_a_row_of_several_array_elements_is_as_many_jobs(tmp_path: Path) -> None:
    """
    Sacct prints elements that aren't told apart yet in one row.
    """
    workload = read(tmp_path, HEADER, row(jobid="9_[1-2,7]"), row(jobid="9_4"))

    names = [job.details.trace_name for job in workload.jobs]
    assert ["9_1", "9_2", "9_7", "9_4"] == names
    assert dict(workload.notes)["array element of such a row"] == 3


def test_a_separator_in_free_text_is_put_right(tmp_path: Path) -> None:
    """
    Sacct escapes nothing; every column that can be checked must come out sound.
    """
    header = f"{HEADER}|Constraints|JobName|NTasks"

    workload = read(
        tmp_path, header, f"{row()}|a|b|x||y|", f"{row()}||plain|", f"{row()}|c|z||"
    )

    jobs = list(workload.jobs)
    assert ["a|b|x||y", "plain", "z|"] == [
        f"{job.details.ask.constraint}|{job.details.job_name}".lstrip("|") if index == 0
        else job.details.job_name for index, job in enumerate(jobs)
    ]
    assert ("row put right after '|' or a line break in free text", 2) in workload.notes


def test_a_line_break_in_free_text_is_put_right(tmp_path: Path) -> None:
    """
    The row goes on in the next line, which alone fits no row.
    """
    header = f"{HEADER}|JobName|NTasks"

    workload = read(tmp_path, header, f"{row()}|two", "lines|1", f"{row()}|one|")

    assert ["two\nlines", "one"] == [job.details.job_name for job in workload.jobs]
    assert 0 == workload.left_out.malformed


def test_a_broken_row_costs_no_other_row(tmp_path: Path) -> None:
    """
    Each line that makes no row is named by its number.
    """
    workload = read(tmp_path, HEADER, row(), "7|p|a", "", "# remark", row(state="12"), row())

    assert 2 == len(workload.jobs)
    assert (
        MalformedLine(3, "has 3 cells between '|', which fit no row of sacct"),
        MalformedLine(6, "has 13 cells between '|', which fit no row of sacct"),
    ) == workload.malformed_lines


def test_rows_of_parsable_end_in_a_separator_as_their_header_does(tmp_path: Path) -> None:
    """
    The other of the two forms, told by its header.
    """
    workload = read(tmp_path, f"{HEADER}|", f"{row()}|", row())

    assert (1, 1) == (len(workload.jobs), workload.left_out.malformed)


def test_without_times_the_run_time_is_that_of_the_processors(tmp_path: Path) -> None:
    """
    A job may have got more CPUs than it asked for: Slurm ended it at its limit at the latest.
    """
    header = "CPUTimeRAW|ReqCPUS|Submit|Timelimit|State"
    stamp = "2024-01-01T00:00:00"

    workload = read(
        tmp_path, header, f"600|2|{stamp}|00:10:00|COMPLETED", f"6000|2|{stamp}|00:10:00|TIMEOUT"
    )

    assert [300, 600] == list(workload.jobs.run_s)
    assert (
        ("run time taken from CPUTimeRAW / ReqCPUS", 2),
        ("such a run time cut at the time limit", 1),
    ) == workload.notes


def test_a_file_without_rows_is_refused(tmp_path: Path) -> None:
    """
    Comments alone are no workload.
    """
    with pytest.raises(Refused):
        read(tmp_path, "# nothing")


@pytest.mark.slow
@pytest.mark.needs_traces
def test_a_portals_rows_give_the_sums_of_an_independent_scan(trace_folder: Path) -> None:
    """
    Run times were summed as End - Start of the rows with nodes; 4,238 rows carry the per-CPU flag.
    """
    workload = read_sacct(trace_folder / "xdmod" / "phillips.log")

    jobs = workload.jobs
    assert (4_046, 1_579_753) == (len(jobs), sum(jobs.run_s))
    assert {UNKNOWN} < set(jobs.requested_kib)


@pytest.mark.slow
@pytest.mark.needs_traces
def test_a_clusters_half_year_gives_the_states_of_an_independent_scan(trace_folder: Path) -> None:
    """
    18,156 of its jobs failed; 86 limits are the word Partition_Limit.
    """
    jobs = read_sacct(trace_folder / "kabre-slurm" / "sacct.csv.gz").jobs

    assert {0: 18_156 + 872, 1: 9_237, 5: 2_111} == Counter(jobs.status)
    assert (491_525, 86) == (sum(jobs.tasks), jobs.requested_s.count(UNKNOWN))


@pytest.mark.needs_traces
def test_a_dump_with_broken_rows_loses_only_the_row_without_a_head(trace_folder: Path) -> None:
    """
    15 lines: 6 held jobs that never ran, 2 steps, 6 jobs (4 put right), and a tail whose head is
    missing.
    """
    workload = read_sacct(trace_folder / "ub-hpc-slurm" / "sacct" / "sacct_dump2101.log")

    found = {job.trace_id: (job.details.job_name, job.details.ask.constraint)
             for job in workload.jobs}  # fmt: skip
    assert [16] == [line.line_number for line in workload.malformed_lines]
    assert ("JobName003", "cpu-a|cpu-b") == found[4830974]
    assert ("Job| Name |003", "cpu-a|cpu-b|gpu") == found[4830976]
    assert ("Jo| bNa| me003", "") == found[4830977]
