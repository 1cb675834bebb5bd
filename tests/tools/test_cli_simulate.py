"""
What xce simulate prints, and that its log is kept only when asked for.
"""

from __future__ import annotations

import gzip
import json
import signal
from pathlib import Path

import pytest
from click.testing import CliRunner

from projections.scheduling.plugins import BUILT_IN_PICKERS
from store.log import EventLog
from tests.tools import cli_harness as harness
from tools.cli import main

# Fields: id, submit, wait, run, allocated, ..., requested processors at 8; the rest is unknown.
LINES = """\
; MaxNodes: 2
; MaxProcs: 4
1 0 -1 100 2 -1 -1 2 -1 -1 1 1 1 1 1 1 -1 -1
2 10 -1 20 4 -1 -1 4 -1 -1 1 1 1 1 1 1 -1 -1
3 20 -1 30 -1 -1 -1 -1 -1 -1 1 1 1 1 1 1 -1 -1
4 30 -1 30 9 -1 -1 9 -1 -1 1 1 1 1 1 1 -1 -1
5 40 -1 5 1 -1 -1 1 -1 -1 1 1 1 1 1 1 -1 -1
"""


@pytest.fixture
def workload(tmp_path):
    """
    Return a small trace: three jobs that run, one without size, one too large.
    """
    path = tmp_path / "small.swf"
    path.write_text(LINES)
    return path


def test_every_field_that_is_printed_is_documented(capfd, workload):
    """
    The document is the promise to scripts: a field that was forgotten there fails here.
    """
    document = (Path(main.__file__).parent / "README.md").read_text()
    section = document.split("\n## xce simulate\n")[1].partition("\n## ")[0]

    assert set() == {name for name in _json(capfd, workload) if f'"{name}"' not in section}


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda path: path.write_text("mine"), "must be a directory"),
        (lambda path: (path.mkdir(), (path / "notes.txt").touch()), "must be new or empty"),
    ],
)
def test_a_log_is_begun_in_a_new_or_empty_directory_only(capfd, workload, tmp_path, make, rule):
    """
    As the help says: nothing of somebody's own files is mixed up with a log, nor written over.
    """
    place = tmp_path / "place"
    make(place)

    status = main.run(["simulate", str(workload), "--log", str(place), "--no-progress"])

    captured = capfd.readouterr()
    assert (2, "") == (status, captured.out)
    assert captured.err.startswith(f"xce: --log: {rule}"), captured.err
    assert place.is_file() or ["notes.txt"] == [one.name for one in place.iterdir()]


def test_what_a_full_disk_left_of_a_log_does_not_stop_the_next_try(capfd, workload, tmp_path):
    """
    The same command is given again when there is space.
    """
    place = tmp_path / "place"
    place.mkdir()
    (place / "LOCK").touch()
    (place / "lock.mdb").touch()

    status = main.run(["simulate", str(workload), "--log", str(place), "--no-progress"])

    assert (0, "") == (status, capfd.readouterr().err)


@pytest.mark.parametrize("named", ["4x", "no-such-file"])
def test_a_size_that_is_none_is_not_taken_for_a_file(capfd, workload, named):
    """
    Whoever mistypes 4x4 doesn't look for a file; what was named isn't there.
    """
    status = main.run(["simulate", str(workload), "--cluster", named])

    assert 1 == status
    assert "--cluster: must be a size such as 1024x8, or a file" in capfd.readouterr().err


def _json(capfd, *arguments):
    status = main.run(["simulate", *map(str, arguments), "--json", "--no-progress"])
    captured = capfd.readouterr()
    assert (0, "") == (status, captured.err)
    return json.loads(captured.out)


def test_the_json_object_holds_the_figures_of_the_schedule(capfd, workload):
    """
    Greedy: job 1 starts at 0 on both hosts, job 5 at 40 beside it, the wide job 2 when all is free.
    """
    figures = _json(capfd, workload)

    starts = {1: 0, 2: 100, 5: 40}
    assert 3 == figures["jobs"]
    assert sum(starts.values()) == figures["sum_starts_s"]
    assert 30 == figures["mean_wait_s"]
    assert 120 == figures["makespan_s"]
    assert pytest.approx((1 + 110 / 20 + 1) / 3, abs=1e-6) == figures["mean_bounded_slowdown"]
    assert pytest.approx((200 + 80 + 5) / (4 * 120), abs=1e-6) == figures["utilisation"]
    assert figures["events"] > 10
    assert figures["log_bytes"] > 0
    assert figures["jobs_per_s"] > 0


def test_a_strict_picker_holds_back_what_the_greedy_one_lets_pass(capfd, workload):
    """
    The wide job 2 can't be placed at 10, so job 5 must wait behind it.
    """
    assert 0 + 100 + 120 == _json(capfd, workload, "--picker", "strict_fcfs")["sum_starts_s"]


def test_a_queue_gets_a_picker_of_its_own_by_a_setting(capfd, workload, tmp_path):
    """
    The same schedule as with a strict cluster, recorded as the queue's; another log than without.
    """
    place, plain = tmp_path / "own", tmp_path / "plain"
    option = ("--set", "queue.normal.picker=strict_fcfs", "--log", place)

    assert 0 + 100 + 120 == _json(capfd, workload, *option)["sum_starts_s"]
    assert 0 + 100 + 40 == _json(capfd, workload, "--log", plain)["sum_starts_s"]
    with EventLog.open(place, writable=False) as own, EventLog.open(plain, writable=False) as other:
        assert own.log_id != other.log_id
        held = [one for one in own.read() if one.event.TYPE_CODE == "list.held_back"]
        assert ["queue:normal"] == [one.stream for one in held]
    assert 0 == main.run(["replay", "verify", str(place)])


def test_what_is_left_out_is_counted_by_name(capfd, workload):
    """
    Nothing is dropped silently: the rule that a job breaks is named with its count.
    """
    left_out = _json(capfd, workload)["left_out"]

    assert 1 == left_out["no size"]
    assert 1 == left_out["larger than the cluster"]
    assert 2 == sum(left_out.values())
    assert 0 == main.run(["simulate", str(workload), "--no-progress"])
    shown = capfd.readouterr().out
    assert "left out, no size" in shown
    assert "left out, larger than the cluster" in shown
    assert "left out, run time < 0" not in shown


def test_the_log_is_kept_where_it_was_asked_for(capfd, workload, tmp_path):
    """
    The log is what replay verify and everything after it reads.
    """
    place = tmp_path / "log"

    figures = _json(capfd, workload, "--log", place)

    assert str(place) == figures["log"]
    with EventLog.open(place, writable=False) as log:
        assert figures["events"] == log.head()


def test_a_log_is_never_written_over(capfd, workload, tmp_path):
    """
    A history that exists is kept: the second run is refused, exit status 2.
    """
    place = tmp_path / "log"
    _json(capfd, workload, "--log", place)

    assert 2 == main.run(["simulate", str(workload), "--log", str(place)])
    assert str(place) in capfd.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--picker", "nope"], "--picker: must be one of builtin_fcfs, "),
        (["--set", "queue.normal.picker=nope"], "--set picker: must be one of builtin_fcfs"),
        (["--set", "queue.colour=red"], "--set: must name a field"),
        (["--set", "queue.priority=-1"], "--set priority: must be at least 0"),
        (["--set", "cluster.forget_batch=x"], "--set forget_batch: must be a whole number"),
        (["--cluster", "0x4"], "--cluster hosts: must be from 1"),
    ],
)
def test_a_wrong_option_is_refused_in_one_line(capfd, workload, tmp_path, arguments, message):
    """
    Field and rule are named, nothing is simulated, and no log is begun.
    """
    kept = tmp_path / "kept"
    assert 2 == main.run(["simulate", str(workload), *arguments, "--log", str(kept)])
    assert not kept.exists()

    captured = capfd.readouterr()
    assert "" == captured.out
    assert message in captured.err
    assert 1 == captured.err.count("\n")


def test_a_workload_without_a_cluster_is_refused_naming_the_option(capfd, workload):
    """
    The header may say nothing; guessing a size would be a silent choice.
    """
    workload.write_text("".join(line for line in LINES.splitlines(keepends=True) if line[0] != ";"))

    assert 2 == main.run(["simulate", str(workload)])

    assert "--cluster" in capfd.readouterr().err


def test_the_progress_bar_goes_to_standard_error(capfd, workload):
    """
    Standard output holds the answer only, so that it can be piped.
    """
    assert 0 == main.run(["simulate", str(workload), "--progress", "--json"])

    json.loads(capfd.readouterr().out)


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)]
)
def test_a_signal_leaves_no_temporary_log(tmp_path, number, status):
    """
    A simulation of a long trace is ended by a person or a batch system; its log may be gigabytes.
    """
    with harness.simulating(tmp_path, "simulate", "long.swf") as (running, place):
        harness.wait_until(lambda: any(place.glob("xce-simulate-*/log/STORE")))
        running.send_signal(number)
        running.communicate(timeout=harness.DEADLINE_S)

    assert (status, []) == (running.returncode, list(place.iterdir()))


def test_the_help_text_names_every_picker_that_is_built_in():
    """
    A picker that nobody is told of isn't used; a text of its own would miss the next one.
    """
    shown = " ".join(CliRunner().invoke(main.cli, ["simulate", "--help"]).output.split())

    assert all(f" {one().name} (" in shown for one in BUILT_IN_PICKERS)
    assert "be greedy: a job that can't be placed holds nobody back" in shown


def test_a_cluster_that_lies_beside_a_workload_is_named(capfd, tmp_path):
    """
    Alea's files come in pairs; the second one's name is the first's with an end.
    """
    (tmp_path / "a.swf").write_text("1 0 -1 10 1 -1 -1 1 10 -1 1 1 1 1 1 1 -1 -1\n")
    beside = tmp_path / "a.swf.machines"
    beside.write_text("0\tfast\t1\t4\t1\t1024\n")

    assert 2 == main.run(["simulate", str(tmp_path / "a.swf")])
    assert f"Beside it lies one: --cluster {beside}" in capfd.readouterr().err
    assert 2 == main.run(["simulate", str(beside)])
    assert "It is a cluster: give it by --cluster" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("workload", "beside"),
    [
        ("a.swf.gz", "a.swf.machines"),
        ("openb_pod_list_default.csv", "openb_node_list_all_node.csv"),
        ("week.swf", "slurm.conf"),
    ],
)
def test_a_cluster_is_found_by_the_names_that_pairs_have(capfd, tmp_path, workload, beside):
    """
    A packed workload's table isn't packed, and openb's pods lie beside the list of nodes.
    """
    pods = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np1,1000,10,0,0\n"
    job = "1 0 -1 10 1 -1 -1 1 10 -1 1 1 1 1 1 1 -1 -1\n"
    text = (pods if "pod" in workload else job).encode()
    packed = gzip.compress(text) if workload.endswith(".gz") else text
    (tmp_path / workload).write_bytes(packed)
    (tmp_path / beside).write_text("")

    assert 2 == main.run(["simulate", str(tmp_path / workload)])
    said = capfd.readouterr().err
    assert f"Beside it lies one: --cluster {tmp_path / beside}" in said
    assert "the workload doesn't say what its cluster is" in said
    assert "header" not in said


def test_a_header_without_the_sizes_is_named(capfd, tmp_path):
    """
    Where there is one, it could hold them.
    """
    (tmp_path / "a.swf").write_text("; Version: 2\n1 0 -1 10 1 -1 -1 1 10 -1 1 1 1 1 1 1 -1 -1\n")

    assert 2 == main.run(["simulate", str(tmp_path / "a.swf")])
    assert "the workload's header has neither MaxNodes nor MaxProcs" in capfd.readouterr().err


def test_that_nothing_could_be_simulated_is_said_with_what_to_do(capfd, tmp_path):
    """
    Figures of no job read as if all had gone well.
    """
    pods = tmp_path / "pods.csv"
    pods.write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np1,1000,10,0,0\n")

    assert 0 == main.run(["simulate", str(pods), "--cluster", "1x4", "--no-progress"])
    told = capfd.readouterr()
    assert "there is no job to simulate; --run-time SECONDS" in told.err
    assert "run time < 0                          1   (never ran, or hadn't ended)" in told.out
