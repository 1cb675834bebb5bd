"""
The reader of the Standard Workload Format: the rules on small files, the counts on the real ones.
"""

from __future__ import annotations

import gzip
import time
from pathlib import Path

import pytest

from domain.errors import Refused
from replay.workloads.source import Header, MalformedLine, TraceJob, Workload
from replay.workloads.swf import read_swf

# The unknown value in every field but those that a test sets.
BLANK = [-1] * 18


def line(**fields: object) -> str:
    """
    Return a job line with fields by their number in the format, as in f2=100.
    """
    values: list[object] = list(BLANK)
    for name, value in {"f1": 1, "f2": 0, "f4": 60, "f5": 1, **fields}.items():
        values[int(name[1:]) - 1] = value
    return " ".join(str(value) for value in values)


def read(folder: Path, *lines: str, packed: bool = False) -> Workload:
    """
    Return the workload of the lines, written to a file first.
    """
    path = folder / "trace.swf"
    content = ("\n".join(lines) + "\n").encode()
    path.write_bytes(gzip.compress(content) if packed else content)
    return read_swf(path)


def test_every_field_lands_in_its_column(tmp_path: Path) -> None:
    """
    A column taken from the field beside it would look right on most traces.
    """
    numbers = " ".join(str(number) for number in range(101, 119))

    workload = read(tmp_path, numbers)

    expected = TraceJob(
        trace_id=101, submit_s=102, run_s=104, tasks=108, requested_s=109, requested_kib=110,
        status=111, user=112, group=113, executable=114, queue=115, partition=116,
        preceding_id=117, think_s=118,
    )  # fmt: skip
    assert [expected] == list(workload.jobs)
    assert expected == workload.jobs.job(0)


def test_a_packed_file_is_recognised_by_its_content_not_its_name(tmp_path: Path) -> None:
    """
    Mirrors rename files.
    """
    assert len(read(tmp_path, line(), packed=True).jobs) == 1


@pytest.mark.parametrize(
    ("allocated", "requested", "tasks"), [(4, 8, 8), (4, -1, 4), (-1, 8, 8), (4, 0, 4)]
)
def test_tasks_are_the_requested_processors_else_the_allocated(
    tmp_path: Path, allocated: int, requested: int, tasks: int
) -> None:
    """
    What a user asked for is what a scheduler has to place.
    """
    workload = read(tmp_path, line(f5=allocated, f8=requested))

    assert [tasks] == list(workload.jobs.tasks)


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"f5": -1, "f8": -1, "f2": -1, "f4": -1}, "no size"),
        ({"f2": -1, "f4": -1}, "submit < 0"),
        ({"f4": -1}, "run time < 0"),
    ],
)
def test_a_job_is_left_out_under_the_first_rule_it_breaks(
    tmp_path: Path, fields: dict[str, int], name: str
) -> None:
    """
    Counts are only comparable between simulators when the order of the rules is fixed.
    """
    workload = read(tmp_path, line(**fields), line())

    assert [(name, 1)] == [pair for pair in workload.left_out.by_name() if pair[1]]
    assert len(workload.jobs) == 1


def test_a_job_larger_than_the_cluster_is_left_out_once_the_cluster_is_known(
    tmp_path: Path,
) -> None:
    """
    It would wait for ever, and under strict order so would all behind it.
    """
    workload = read(tmp_path, line(f1=1, f5=8), line(f1=2, f5=9), line(f1=3, f5=1))

    fitting = workload.fitting(8)

    assert [1, 3] == list(fitting.jobs.trace_id)
    assert fitting.left_out.larger_than_cluster == 1
    assert fitting.left_out.total == 1


def test_a_run_time_of_zero_and_one_beyond_the_request_stay(tmp_path: Path) -> None:
    """
    They were recorded, and recorded run times hold.
    """
    workload = read(tmp_path, line(f4=0), line(f4=900, f9=60))

    assert [0, 900] == list(workload.jobs.run_s)


def test_arrivals_are_by_submit_time_and_ties_in_file_order(tmp_path: Path) -> None:
    """
    Some traces are not sorted, and thousands of jobs share a second.
    """
    workload = read(tmp_path, line(f2=9), line(f2=5), line(f2=9), line(f2=5))

    assert [1, 3, 0, 2] == workload.arrival_order()


def test_whole_numbers_written_as_decimals_are_read(tmp_path: Path) -> None:
    """
    Archives write "489.00"; the processor time used (field 6) may have any fraction.
    """
    workload = read(tmp_path, line(f4="489.00", f6="2.12"))

    assert [489] == list(workload.jobs.run_s)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (line(f4="1.5"), "field 4 (run time) is no whole number: '1.5'"),
        (line(f2="x"), "field 2 (submit time) is no whole number: 'x'"),
        (line(f2="1_0"), "field 2 (submit time) is no whole number: '1_0'"),
        (line(f2="9" * 15), "field 2 (submit time) is beyond 1000000000000"),
        (line(f2="9" * 30), "field 2 (submit time) is beyond 1000000000000"),
        (line(f2="9" * 9999), "field 2 (submit time) is beyond 1000000000000"),
        ("1 2 3", "has 3 fields, not 18"),
        (line() + " 7", "has 19 fields, not 18"),
    ],
)
def test_a_malformed_line_is_counted_and_named(tmp_path: Path, text: str, rule: str) -> None:
    """
    A line that can't be understood is neither dropped in silence nor half taken.
    """
    workload = read(tmp_path, "; Version: 2", line(), text, line())

    assert (MalformedLine(3, rule),) == workload.malformed_lines
    assert (2, 1) == (len(workload.jobs), workload.left_out.malformed)


def test_only_the_first_malformed_lines_are_named_but_all_are_counted(tmp_path: Path) -> None:
    """
    A million bad lines must not fill memory with their story.
    """
    workload = read(tmp_path, line(), *["bad"] * 1000)

    assert (20, 1000) == (len(workload.malformed_lines), workload.left_out.malformed)


def test_a_file_without_any_job_line_is_refused(tmp_path: Path) -> None:
    """
    It is some other file, and no schedule of nothing should be shown for it.
    """
    with pytest.raises(Refused) as caught:
        read(tmp_path, "# a README", "of some kind")

    assert caught.value.field == "workload"
    assert "line 1 has 3 fields, not 18" in caught.value.rule


def test_a_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    """
    The operating system's reason and the path are what its user needs.
    """
    with pytest.raises(Refused) as caught:
        read_swf(tmp_path / "none.swf")

    assert ("workload", str(tmp_path / "none.swf")) == (caught.value.field, caught.value.value)


def test_a_cut_off_packed_file_is_refused(tmp_path: Path) -> None:
    """
    Half a trace would give figures that look like those of a whole one.
    """
    path = tmp_path / "cut.swf.gz"
    path.write_bytes(gzip.compress((line() + "\n").encode() * 5000)[:-20])

    with pytest.raises(Refused) as caught:
        read_swf(path)

    assert caught.value.field == "workload"


def test_the_header_keeps_repeated_keys_continuations_and_remarks(tmp_path: Path) -> None:
    """
    Real headers repeat keys, indent them, go on in the next line, hold addresses and drawings.
    """
    header = read(
        tmp_path,
        ";   --- converted ---",
        ";       Version: 2.2",
        "; Information: http://a.example/",
        ";              http://b.example/",
        "; Note: first",
        ";       user=50 and (job>=1)",
        ";",
        "; 1|   2|  3",
        "; Note: second: with colons",
        line(),
        "; Late: yes",
    ).header

    assert header == Header(
        entries=(
            ("Version", "2.2"),
            ("Information", "http://a.example/ http://b.example/"),
            ("Note", "first user=50 and (job>=1)"),
            ("Note", "second: with colons"),
            ("Late", "yes"),
        ),
        remarks=("--- converted ---", "1|   2|  3"),
    )
    assert header.values("Note") == ("first user=50 and (job>=1)", "second: with colons")


def test_the_start_of_the_trace_is_read_and_zero_when_unknown(tmp_path: Path) -> None:
    """
    Stamps are this start plus the trace's seconds.
    """
    assert read(tmp_path, "; UnixStartTime: 843480031", line()).start_unix_s == 843480031
    assert read(tmp_path, line()).start_unix_s == 0


# Name, jobs that stay, no size, submit < 0, run time < 0, hosts' slots as the header says.
REAL_TRACES = [
    ("KTH-SP2-1996-2.1-cln", 28_475, 1, 0, 0, 843480031),
    ("NASA-iPSC-1993-3.1-cln", 18_239, 0, 0, 0, 749458803),
    ("LANL-CM5-1994-4.1-cln", 122_057, 3, 0, 0, 781275672),
    ("SDSC-BLUE-2000-4.2-cln", 232_562, 0, 0, 10_744, 956700003),
    ("LLNL-Thunder-2007-1.1-cln", 118_791, 2_248, 0, 0, 1170175078),
    ("RICC-2010-2", 447_794, 0, 0, 0, 0),
    ("UniLu-Gaia-2014-1", 51_860, 0, 0, 127, 1400749079),
]


@pytest.mark.slow
@pytest.mark.needs_traces
@pytest.mark.parametrize(
    ("name", "jobs", "no_size", "submit", "run", "start"), REAL_TRACES, ids=str
)
def test_a_real_trace_gives_the_counts_of_an_independent_scan(
    trace_folder: Path, name: str, jobs: int, no_size: int, submit: int, run: int, start: int
) -> None:
    """
    The counts were found by awk over the same files; nothing in them is malformed.
    """
    workload = read_swf(trace_folder / "pwa-swf" / f"{name}.swf.gz")

    left_out = workload.left_out
    assert (jobs, no_size, submit, run, 0, start) == (
        len(workload.jobs), left_out.no_size, left_out.submit_negative,
        left_out.run_time_negative, left_out.malformed, workload.start_unix_s,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.needs_traces
def test_reading_speed_is_no_part_of_a_simulations_time(trace_folder: Path) -> None:
    """
    A tenth of the goal still passes: this catches a reader that has become quadratic, no more.
    """
    begin = time.perf_counter()

    workload = read_swf(trace_folder / "pwa-swf" / "LANL-CM5-1994-4.1-cln.swf.gz")

    assert len(workload.jobs) / (time.perf_counter() - begin) > 10_000
