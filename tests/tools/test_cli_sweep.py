"""
A sweep gives one table, the same wherever its trials ran.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.conftest import REPO
from tests.replay.conftest import SMALL
from tests.tools.cli_harness import DEADLINE_S, XCE, simulating, wait_until
from tools.cli.main import run

pytestmark = pytest.mark.slow
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(REPO)}


@pytest.fixture
def place(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.swf").write_text(SMALL)
    return tmp_path


def swept(*arguments: str) -> dict:
    """
    Run a sweep in a process of its own; return what it printed.
    """
    done = subprocess.run(
        [*XCE, "replay", "sweep", "small.swf", *arguments, "--json"], env=ENVIRONMENT,
        text=True, capture_output=True, timeout=120, check=False,
    )  # fmt: skip
    assert (0, "") == (done.returncode, done.stderr), done
    return json.loads(done.stdout)


CHOICES = ("--cluster", "2x2,4x1", "--picker", "builtin_fcfs,strict_fcfs", "--load", "1,2")


def test_rows_are_in_order_of_the_options_and_the_same_over_processes(place):
    """
    Whatever ends first; every combination once.
    """
    alone = swept(*CHOICES, "--jobs", "1")
    together = swept(*CHOICES, "--jobs", "3")

    assert alone == together
    told = [(row["cluster"], row["load"], row["picker"]) for row in alone["trials"]]
    assert [
        (cluster, load, picker)
        for cluster in ("2x2", "4x1") for load in ("1", "2")
        for picker in ("builtin_fcfs", "strict_fcfs")
    ] == told  # fmt: skip
    assert list(range(1, 9)) == [row["trial"] for row in alone["trials"]]
    assert len({row["mean_wait_s"] for row in alone["trials"]}) > 2


def test_each_trial_is_what_simulate_gives(place, capsys):
    """
    Chance comes from the trial's seed, settings from its own --set; a kept log replays.
    """
    options = ["--estimates", "random:3", "--seed", "1,2", "--set", "queue.priority=1,99"]
    assert 0 == run(["replay", "sweep", "small.swf", *options, "--jobs", "1", "--logs", "kept",
                     "--json"])  # fmt: skip
    rows = json.loads(capsys.readouterr().out)["trials"]
    assert [(1, "1"), (1, "99"), (2, "1"), (2, "99")] == [
        (row["seed"], row["queue.priority"]) for row in rows
    ]
    assert 0 == run(["simulate", "small.swf", "--estimates", "random:3", "--seed", "2",
                     "--set", "queue.priority=99", "--json"])  # fmt: skip
    figures = json.loads(capsys.readouterr().out)
    assert {name: figures[name] for name in ("mean_wait_s", "events", "makespan_s")} == {
        name: rows[3][name] for name in ("mean_wait_s", "events", "makespan_s")
    }
    assert 0 == run(["replay", "verify", rows[3]["log"]])
    assert str(place / "kept" / "0004") == rows[3]["log"]


def test_the_table_shows_what_varies(place, capsys):
    """
    People see the settings that differ, and the figures.
    """
    assert 0 == run(["replay", "sweep", "small.swf", "--picker", "builtin_fcfs,strict_fcfs",
                     "--jobs", "1"])  # fmt: skip
    head, *rows = capsys.readouterr().out.splitlines()
    assert "PICKER" in head
    assert "LOAD" not in head
    assert 2 == len(rows)


# The job runs longer than it asked for, so that what is told of run times matters to easy.
LATE = """\
; MaxNodes: 1
; MaxProcs: 4
1 0 -1 300 3 -1 -1 3 10 -1 1 1 1 1 1 1 -1 -1
2 1 -1 50 4 -1 -1 4 60 -1 1 2 1 1 1 1 -1 -1
3 2 -1 100 1 -1 -1 1 100 -1 1 3 1 1 1 1 -1 -1
4 3 -1 -1 1 -1 -1 1 100 -1 0 3 1 1 1 1 -1 -1
"""


def test_without_options_a_trial_is_what_simulate_gives_without_them(place, capsys):
    """
    One request has one answer: both tell the scheduler of run times by the same rule.
    """
    (place / "late.swf").write_text(LATE)
    assert 0 == run(["replay", "sweep", "late.swf", "--picker", "easy", "--jobs", "1", "--json"])
    swept_row = json.loads(capsys.readouterr().out)["trials"][0]
    assert 0 == run(["simulate", "late.swf", "--picker", "easy", "--json"])
    alone = json.loads(capsys.readouterr().out)
    assert 0 == run(["simulate", "late.swf", "--picker", "easy", "--estimates", "requested",
                     "--json"])  # fmt: skip
    requested = json.loads(capsys.readouterr().out)

    assert "at-least-run" == swept_row["estimates"]
    assert alone["mean_wait_s"] == swept_row["mean_wait_s"] != requested["mean_wait_s"]
    assert alone["left_out"] == swept_row["left_out"]


def test_what_is_left_out_is_counted_and_named(place, capsys):
    """
    Figures of different jobs side by side mislead who isn't told.
    """
    (place / "late.swf").write_text(LATE)
    assert 0 == run(["replay", "sweep", "late.swf", "--cluster", "1x3,1x4", "--jobs", "1"])
    head, first, second, *told = capsys.readouterr().out.splitlines()

    assert head.endswith("LEFT_OUT")
    assert ["2", "1"] == [row.split()[-1] for row in (first, second)]
    assert ["run time < 0 1", "larger than the cluster 0 to 1"] == [
        " ".join(line.removeprefix("  left out, ").split()) for line in told
    ]


@pytest.mark.parametrize(
    "bad",
    [
        ["--picker", "nobody"], ["--set", "queue.nothing=1"], ["--set", "queue.priority"],
        ["--load", "0"], ["--seed", "x"], ["--dask", "nonsense"], ["--cluster", "nowhere.conf"],
        ["--estimates", "guess"],
        # The first value of each can be run.
        ["--picker", "builtin_fcfs,nobody"], ["--load", "1,0"], ["--cluster", "2x2,nowhere.conf"],
        ["--cluster", "2x2,0x1"], ["--estimates", "exact,guess"],
        ["--estimates", "exact,random:2"], ["--set", "queue.priority=1,-1"],
        ["--set", "cluster.session_max_decisions=5,x"], ["--set", "queue.picker=easy,nobody"],
        ["--set", "queue.normal.stop_condition=nosuch>2"],
    ],
)  # fmt: skip
def test_what_cannot_be_run_is_refused_before_anything_is(place, capsys, bad):
    """
    One line, exit status 2 (1 for a file that isn't there), and no log.
    """
    status = 1 if bad[-1].endswith("nowhere.conf") else 2
    assert status == run(["replay", "sweep", "small.swf", *bad, "--jobs", "1", "--logs", "kept"])
    told = capsys.readouterr()
    assert 1 == len(told.err.splitlines())
    assert not list(place.glob("kept/*/data.mdb"))


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)]
)
@pytest.mark.parametrize("processes", [1, 2])
def test_a_signal_leaves_no_temporary_log_and_no_process(tmp_path, number, status, processes):
    """
    A process that went on would simulate for hours for nobody, and each trial has a log.
    """
    arguments = ("replay", "sweep", "long.swf", "--seed", "1,2,3", "--jobs", str(processes))
    with simulating(tmp_path, *arguments) as (running, place):
        wait_until(lambda: len(list(place.rglob("log/STORE"))) == processes)
        children = [one.pid for one in psutil.Process(running.pid).children()]
        running.send_signal(number)
        _, told = running.communicate(timeout=DEADLINE_S)

    assert (status, b"", []) == (running.returncode, told.strip(), list(place.iterdir()))
    assert (processes > 1) == bool(children)
    wait_until(lambda: not any(Path(f"/proc/{child}").exists() for child in children))


@contextmanager
def dask_cluster(place: Path):
    """
    Give the address of a real Dask scheduler with one worker.
    """
    file = place / "dask.json"
    common = {"env": ENVIRONMENT, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    module = [sys.executable, "-m"]
    scheduler = subprocess.Popen(
        [*module, "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0",
         "--no-dashboard", "--no-show", "--scheduler-file", str(file)], **common,
    )  # fmt: skip
    worker = subprocess.Popen(
        [*module, "distributed.cli.dask_worker", "--scheduler-file", str(file), "--nthreads", "1",
         "--no-dashboard", "--no-nanny", "--local-directory", str(place)], **common,
    )  # fmt: skip
    try:
        wait_until(lambda: file.exists() and file.read_text().endswith("}"))
        yield json.loads(file.read_text())["address"]
    finally:
        for process in (worker, scheduler):
            process.terminate()
            process.wait(30)


def test_a_dask_cluster_gives_the_same_table(place):
    """
    A real scheduler and worker, by address.
    """
    with dask_cluster(place) as address:
        there = swept(*CHOICES, "--dask", address)

    assert swept(*CHOICES, "--jobs", "1") == there
