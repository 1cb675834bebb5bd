"""
What is advised where no scheduler answers, and once one does.
"""

from __future__ import annotations

import subprocess

import pytest

from store.embedded.marker import MARKER_FILE
from store.embedded.preflight import DATA_FILE
from tests.replay.conftest import SMALL
from tools.cli import client, main, up


def test_the_files_that_tell_a_log_are_those_of_the_store():
    """
    They are written down in the client, so that asking a scheduler loads nothing of the store.
    """
    assert {MARKER_FILE, DATA_FILE} == set(client.LOG_FILES)


@pytest.mark.slow
def test_who_asks_a_scheduler_about_a_simulations_log_is_sent_to_the_log(tmp_path, capfd):
    """
    No scheduler can be started there, so `xce up` is no advice; what is advised must work.
    """
    workload, log = tmp_path / "small.swf", tmp_path / "run1"
    workload.write_text(SMALL)
    assert 0 == main.run(["simulate", str(workload), "--log", str(log)])
    capfd.readouterr()

    assert 3 == main.run(["jobs", "--dir", str(log)])

    told = capfd.readouterr().err
    assert "xce up" not in told
    assert f"xce replay state {log}, xce history JOB --dir {log}." in told
    assert 0 == main.run(["replay", "state", str(log)])
    capfd.readouterr()
    assert 1 == main.run(["replay", "state", str(log), "job:99999"])
    # What lists jobs asks a scheduler, and none has this log.
    assert "List them" not in capfd.readouterr().err
    assert 0 == main.run(["history", "1", "--dir", str(log)])


def test_who_asks_where_nothing_is_hears_how_to_start(tmp_path, capfd):
    """
    The directory may be mistyped, or its scheduler not be up.
    """
    assert 3 == main.run(["jobs", "--dir", str(tmp_path)])

    assert f"Start it: xce up --dir {tmp_path}; or name another" in capfd.readouterr().err


def test_what_is_advised_can_be_pasted_whatever_the_directory_is_called(tmp_path, capfd):
    """
    A blank in a path would make two words of it, a quote none.
    """
    place = tmp_path / "ann's first cluster"
    place.mkdir()
    up._say_ready({"dir": str(place), "pid": 7})
    line = capfd.readouterr().out.splitlines()[-1].partition(": ")[2].partition("; xce")[0]

    pasted = subprocess.run(
        ["/bin/sh", "-c", f'{line}; printf %s "$XCE_DIR"'],
        capture_output=True, text=True, check=True,
    )  # fmt: skip

    assert str(place) == pasted.stdout
    assert 3 == main.run(["jobs", "--dir", str(place)])
    told = capfd.readouterr().err.partition("Start it: xce up --dir ")[2].partition("; or")[0]
    assert f"{place}\n" == subprocess.check_output(["/bin/sh", "-c", f"echo {told}"], text=True)


def test_a_worker_of_no_cluster_is_refused(tmp_path, capfd):
    """
    It would make the mistyped directory, and wait there for a scheduler for ever.
    """
    nowhere = tmp_path / "nowhere"

    assert 1 == main.run(["worker", "--dir", str(nowhere), "--name", "alpha"])

    assert f"xce up --dir {nowhere} makes one." in capfd.readouterr().err
    assert not nowhere.exists()
