"""
Jobs from LSF's lsb.acct and lsb.events: positions, lists, damage, and the fold.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from replay.workloads.details import UNKNOWN
from replay.workloads.lsf_acct import read_lsf_acct
from replay.workloads.lsf_events import read_lsf_events
from replay.workloads.source import MalformedLine, Workload

DESCRIPTION = '0 0 "" "" "" "" 0 "" 0 "" -1 "" "" "" "" -1 "" "" 5136 "" 150 "" ""'


def finish(
    *, job: int = 7, start: int = 150, asked: str = "0 ", hosts: str = '2 "h" "h"',
    status: int = 64, index: int = 0, tail: str = "", command: str = '"sleep ""1"""',
) -> str:
    """
    Return a JOB_FINISH record of a job of 4 processors that ended at 200.
    """
    usage = " ".join(["0"] * 19)
    return (
        f'"JOB_FINISH" "10.1" 200 {job} 1501 33554434 4 100 0 0 {start} "ann" "night" '
        f'"rusage[mem=1]" "" "" "sub" "/home" "" "" "" "100.7" {asked}{hosts} {status} 60.0 '
        f'"my job" {command} {usage} "" "proj" 0 4 "" "" {index} {DESCRIPTION} {tail}'
    )


def acct(folder: Path, *lines: str) -> Workload:
    path = folder / "lsb.acct"
    path.write_text("\n".join(lines) + "\n")
    return read_lsf_acct(path)


def test_a_finished_job_is_read_by_position(tmp_path: Path) -> None:
    """
    Asked processors, not given ones, are its size; it ran from its start to the record.
    """
    job = acct(tmp_path, finish()).jobs.job(0)

    ask = job.details.ask
    assert (7, 100, 50, 4, 1) == (job.trace_id, job.submit_s, job.run_s, job.tasks, job.status)
    assert ("ann", "night", "proj", "my job", "rusage[mem=1]") == (
        ask.user_name, ask.queue_name, ask.project_name, job.details.job_name, ask.constraint,
    )  # fmt: skip


def test_the_run_limit_stands_in_what_newer_releases_append(tmp_path: Path) -> None:
    """
    After extensions and hosts' usage, which has a counted list of its own for each host.
    """
    tail = '1 1058 "1" 2 h1 1306 0 5 6 0 h2 1 0 5 6 1 "x" 43200 64 1024 "select[a]"'

    job = acct(tmp_path, finish(tail=tail)).jobs.job(0)

    assert 43_200 == job.requested_s


def test_a_record_cut_off_behind_its_description_is_whole(tmp_path: Path) -> None:
    """
    Each release appended fields; a file of an older one has fewer.
    """
    workload = acct(tmp_path, finish(), finish(tail="2 1058"), finish(tail="0 1 h1 1"))

    assert (3, 0) == (len(workload.jobs), workload.left_out.malformed)
    assert {UNKNOWN} == set(workload.jobs.requested_s)


def test_two_fields_glued_together_are_parted_and_said(tmp_path: Path) -> None:
    """
    A real file has `02` where the empty list of asked hosts is followed by two hosts.
    """
    workload = acct(tmp_path, finish(asked="0"))

    assert (("record with two fields glued together, parted", 1),) == workload.notes
    assert [50] == list(workload.jobs.run_s)


def test_hosts_that_were_asked_for_shift_nothing(tmp_path: Path) -> None:
    """
    A list follows its length, also in the short form of the hosts given.
    """
    workload = acct(tmp_path, finish(asked='2 "a" "b" ', hosts='1 "16*h"'))

    assert "my job" == workload.jobs.job(0).details.job_name


def test_a_job_that_never_started_is_left_out(tmp_path: Path) -> None:
    """
    Its start is 0; an array as a whole never starts itself.
    """
    never = (finish(start=0, status=32), finish(start=0, index=-1))

    workload = acct(tmp_path, *never, finish(index=3))

    assert 2 == workload.left_out.run_time_negative
    assert (("array as a whole, which never runs itself", 1),) == workload.notes
    assert "7[3]" == workload.jobs.job(0).details.trace_name


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ('"JOB_FINISH" "10.1" 200 7 1501', "JOB_FINISH ends before options"),
        (finish(hosts="900 "), "JOB_FINISH ends before execHosts"),
        (finish(hosts="-1"), "the length of execHosts must be from 0 to 1000000: -1"),
        ('"JOB_FINISH" "10.1" soon 7', "the event time is no whole number: 'soon'"),
        ("JOB_FINISH 10.1 200 7", "must begin with a record's type, version and time"),
        (finish(command='"open'), None),
    ],
)
def test_a_malformed_record_is_named(tmp_path: Path, text: str, rule: str | None) -> None:
    """
    By its line and the field that couldn't be read.
    """
    workload = acct(tmp_path, finish(), text)

    assert (1, 1) == (len(workload.jobs), workload.left_out.malformed)
    if rule is not None:
        assert (MalformedLine(2, rule),) == workload.malformed_lines


def test_remarks_and_other_records_are_told_apart_from_damage(tmp_path: Path) -> None:
    """
    Comments are remarks of the header, records of other types are counted.
    """
    workload = acct(tmp_path, "#80", finish(), '"EVENT_ADRSV_FINISH" "10.1" 5 1')

    assert ("80",) == workload.header.remarks
    assert (("record EVENT_ADRSV_FINISH, which ends no job", 1),) == workload.notes


# --------------------------------------------------------------------------------------- events


def new(job: int = 7, *, limits: str = "-1 " * 11) -> str:
    return (
        f'"JOB_NEW" "10.1" 100 {job} 1501 1 4 100 0 0 0 0 0 "ann" {limits} "" 1.00 2 "night" "" '
        f'"sub" "/" "" "" "" "" "/home" "100.7" 0 "" "" "my job" "cmd" 0 "" "proj" 1'
    )


def start(time: int, job: int = 7, index: int = 0) -> str:
    return f'"JOB_START" "10.1" {time} {job} 4 0 0 1.0 2 "h" "h" "" "" 0 "" {index}'


def status(time: int, word: int, *, job: int = 7, end: int = 0, index: int = 0) -> str:
    return f'"JOB_STATUS" "10.1" {time} {job} {word} 0 0 0.1 {end} 0 0 {index}'


def events(folder: Path, *lines: str) -> Workload:
    path = folder / "lsb.events"
    path.write_text("\n".join(("#80", *lines)) + "\n")
    return read_lsf_events(path)


def test_a_job_is_folded_from_its_records(tmp_path: Path) -> None:
    """
    It ran from its start to the end that its status names; a later status changes nothing.
    """
    job = events(tmp_path, new(), start(110), status(151, 64, end=150), status(152, 192, end=150))

    found = job.jobs.job(0)
    assert (7, 100, 40, 4, 1) == (
        found.trace_id, found.submit_s, found.run_s, found.tasks, found.status,
    )  # fmt: skip
    assert ("night", "my job") == (found.details.ask.queue_name, found.details.job_name)


def test_a_job_that_went_back_to_pending_counts_from_its_last_start(tmp_path: Path) -> None:
    """
    Forwarded jobs bounce; what ran before was in vain.
    """
    workload = events(
        tmp_path, new(), start(110), status(120, 1), start(130), status(150, 32, end=150)
    )

    assert ([20], [0]) == (list(workload.jobs.run_s), list(workload.jobs.status))


def test_a_job_that_is_killed_after_it_went_back_to_pending_never_ran(tmp_path: Path) -> None:
    """
    Its end isn't that of the start before.
    """
    workload = events(tmp_path, new(), start(110), status(120, 1), status(150, 32, end=150))

    assert (0, 1) == (len(workload.jobs), workload.left_out.run_time_negative)


def test_a_switched_job_is_in_its_last_queue(tmp_path: Path) -> None:
    """
    JOB_SWITCH names the user first.
    """
    switch = '"JOB_SWITCH" "10.1" 105 1501 7 "day" 0 "ann"'

    workload = events(tmp_path, new(), switch, start(110), status(120, 64, end=120))

    assert "day" == workload.jobs.job(0).details.ask.queue_name


def test_the_run_limit_is_the_tenth_of_a_jobs_limits(tmp_path: Path) -> None:
    """
    In seconds; -1 is none.
    """
    limits = "1 2 3 4 5 6 7 8 9 3600 11"

    workload = events(tmp_path, new(limits=limits), start(110), status(120, 64, end=120))

    assert [3600] == list(workload.jobs.requested_s)


def test_elements_of_an_array_are_jobs_and_the_array_is_none(tmp_path: Path) -> None:
    """
    An array is submitted by one record; its elements come with their first own one.
    """
    workload = events(
        tmp_path, new(), start(110, index=1), start(111, index=2),
        status(120, 64, end=120, index=1), status(131, 64, end=131, index=2),
    )  # fmt: skip

    names = [job.details.trace_name for job in workload.jobs]
    assert (["7[1]", "7[2]"], [10, 20]) == (names, list(workload.jobs.run_s))
    assert (("array as a whole, whose elements are jobs", 1),) == workload.notes


def test_an_id_that_comes_again_is_another_job(tmp_path: Path) -> None:
    """
    Ids wrap round; the job before keeps its end.
    """
    ended = (start(110), status(120, 64, end=120))

    workload = events(tmp_path, new(), *ended, new(), start(200), status(230, 32, end=230))

    assert [10, 30] == list(workload.jobs.run_s)


def test_what_has_not_ended_or_begins_in_an_older_log_is_said(tmp_path: Path) -> None:
    """
    Neither can be simulated, neither is passed over in silence.
    """
    workload = events(tmp_path, new(), start(110), status(120, 64, job=3, end=120),
                      '"JOB_MIG" "10.1" 5 7', "broken")  # fmt: skip

    assert 1 == workload.left_out.run_time_negative
    assert [6] == [line.line_number for line in workload.malformed_lines]
    assert dict(workload.notes) == {
        "record of a job whose submission isn't in this log": 1,
        "record JOB_MIG, which isn't modelled": 1,
        "job that hadn't ended": 1,
    }


@pytest.mark.needs_traces
def test_a_real_log_folds_to_the_jobs_that_its_publisher_counts(trace_folder: Path) -> None:
    """
    87 jobs, 45 of them DONE and 42 EXIT.
    """
    workload = read_lsf_events(trace_folder / "aws-lsf" / "lsb.events")

    assert {1: 45, 0: 42} == Counter(workload.jobs.status)
    assert (0, ()) == (workload.left_out.total, workload.notes)


@pytest.mark.needs_traces
def test_the_two_logs_of_one_cluster_agree(trace_folder: Path) -> None:
    """
    Jobs 384 to 388 are in both: the fold must give what LSF itself wrote at their ends.
    """
    finished = read_lsf_acct(trace_folder / "aws-lsf" / "lsb.acct").jobs
    jobs = read_lsf_events(trace_folder / "aws-lsf" / "lsb.events").jobs
    folded = {job.trace_id: job for job in jobs}

    assert [386, 387, 388, 384, 385] == list(finished.trace_id)
    for job in finished:
        twin = folded[job.trace_id]
        assert (job.submit_s, job.run_s, job.tasks, job.status) == (
            twin.submit_s, twin.run_s, twin.tasks, twin.status,
        )  # fmt: skip


@pytest.mark.needs_traces
def test_names_that_are_no_ascii_are_read(trace_folder: Path) -> None:
    """
    128 processors, 16 a host, and a run limit of 12 hours behind the usage of eight hosts.
    """
    job = read_lsf_acct(trace_folder / "xdmod" / "lsf-utf8-multibyte-chars.log").jobs.job(0)

    assert (128, 40_368, 43_200) == (job.tasks, job.run_s, job.requested_s)
