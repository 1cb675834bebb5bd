"""
Event files of a Slurm simulator: options of sbatch, the true run time and the limit that cuts it.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from replay.workloads.details import UNKNOWN, Ask, TraceNeed
from replay.workloads.sim_events import read_sim_events
from replay.workloads.source import MalformedLine, Workload


def line(options: str, *, when: str = "10.25", run: str = "60.00") -> str:
    return f"-dt {when} -e submit_batch_job | -sim-walltime {run} {options} pseudo.job"


def read(folder: Path, *lines: str) -> Workload:
    path = folder / "events"
    path.write_text("\n".join(lines) + "\n")
    return read_sim_events(path)


def test_options_are_read_in_both_their_forms(tmp_path: Path) -> None:
    """
    Short ones take the next word, long ones stand with an equals sign; a repeated one counts once.
    """
    workload = read(
        tmp_path,
        line("--uid=user1 -J jobid_00042 -N 2 -n 80 -t 3-00:00:00 -p gc -A acc --gres=gpu:2"
             " --gres=gpu:2 --mem=180G --constraint=CPU-N --exclusive=user"),
    )  # fmt: skip

    job = workload.jobs.job(0)
    assert (42, 10, 60, 80, 259_200) == (
        job.trace_id, job.submit_s, job.run_s, job.tasks, job.requested_s,
    )  # fmt: skip
    assert Ask(
        user_name="user1", queue_name="gc", project_name="acc", hosts=2,
        needs=(TraceNeed("mem", 180 * 1024**2 * 1000), TraceNeed("gpu", 2000)),
        select=((("CPU_N", "true"),),), constraint="CPU-N", is_exclusive=True,
    ) == job.details.ask  # fmt: skip
    assert (("hosts for one user alone, modelled as for one job", 1),) == workload.notes


def test_moments_keep_their_fractions(tmp_path: Path) -> None:
    """
    Four submissions a second stay four moments, in their order.
    """
    workload = read(tmp_path, line("-n 1", when="3.50"), line("-n 1", when="3.25"))

    assert [3_500_000, 3_250_000] == list(workload.submits_us())
    assert [1, 0] == workload.arrival_order()


@pytest.mark.parametrize(
    ("run", "limit", "run_s", "status"),
    [("60.00", "00:02:00", 60, 1), ("600.00", "00:02:00", 120, 0), ("-1", "00:02:00", 120, 0),
     ("0", "00:02:00", 0, 1)],
)  # fmt: skip
def test_the_limit_cuts_the_run_time(
    tmp_path: Path, run: str, limit: str, run_s: int, status: int
) -> None:
    """
    -1 runs until then; 0 is a run time like any other.
    """
    job = read(tmp_path, line(f"-n 1 -t {limit}", run=run)).jobs.job(0)

    assert (run_s, status) == (job.run_s, job.status)


@pytest.mark.parametrize(
    ("options", "tasks", "hosts"),
    [("-n 24 --ntasks-per-node=12", 24, 2), ("-N 3 --ntasks-per-node 4", 12, 3), ("-N 3", 3, 3),
     ("-n 2 -c 4", 8, UNKNOWN)],
)  # fmt: skip
def test_the_size_is_in_processors(tmp_path: Path, options: str, tasks: int, hosts: int) -> None:
    """
    As sbatch works it out.
    """
    job = read(tmp_path, line(options)).jobs.job(0)

    assert (tasks, hosts) == (job.tasks, job.details.ask.hosts)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("-dt 1 -e cancel_job | -jid 4", "has an event other than submit_batch_job: 'cancel_job'"),
        ("-dt 1 submit_batch_job", "must begin with -dt SECONDS -e EVENT |"),
        (line("-n many"), "--ntasks is no whole number: 'many'"),
        (line("-n 1", when="soon"), "-dt is no number of seconds: 'soon'"),
        (line("-n 1", run="1.5"), "-sim-walltime is no whole number of seconds: '1.5'"),
        (line("-n 1 --mem=much"), "--mem is no memory such as 2Gc: 'much'"),
    ],
)
def test_a_malformed_line_is_named(tmp_path: Path, text: str, rule: str) -> None:
    """
    By its number and the option that is wrong.
    """
    workload = read(tmp_path, line("-n 1"), text)

    assert (MalformedLine(2, rule),) == workload.malformed_lines


def test_options_that_are_not_modelled_are_said(tmp_path: Path) -> None:
    """
    A dependency that is ignored in silence would change the schedule.
    """
    workload = read(tmp_path, line("-n 1 --dependency=afterok:3"))

    assert (("option --dependency, which isn't modelled", 1),) == workload.notes


@pytest.mark.slow
@pytest.mark.needs_traces
def test_a_real_week_gives_the_sums_of_an_independent_scan(trace_folder: Path) -> None:
    """
    153 of its jobs run past their limit; 149 submissions lie between whole seconds.
    """
    workload = read_sim_events(trace_folder / "ub-hpc-slurm" / "workload_week.events.gz")

    jobs = workload.jobs
    assert jobs.details is not None
    assert jobs.submit_part_us is not None
    asks = [jobs.details.asks[number] for number in jobs.details.ask_numbers]
    assert (391_928_326, 187_498, 20_116) == (
        sum(jobs.run_s), sum(jobs.tasks), sum(ask.hosts for ask in asks),
    )  # fmt: skip
    assert {"general-compute": 19_510, "debug": 69} == Counter(ask.queue_name for ask in asks)
    assert ("run time cut at the time limit", 153) in workload.notes
    assert 149 == sum(part > 0 for part in jobs.submit_part_us)
    assert 425 == sum(all(need.resource != "mem" for need in ask.needs) for ask in asks)


@pytest.mark.needs_traces
def test_a_small_synthetic_file_is_read(trace_folder: Path) -> None:
    """
    63 of its jobs run until their limit, 65 for no time.
    """
    workload = read_sim_events(trace_folder / "ub-hpc-slurm" / "micro" / "jobs500.events")

    assert (("job that runs until its time limit", 63),) == workload.notes
    assert 65 == workload.jobs.run_s.count(0)
