"""
The process that keeps the audit tables up while a scheduler runs: never in its way, never left.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from tests.tools import cli_harness as harness
from tools.agent.processes import born_ticks

pytestmark = pytest.mark.slow


def started(cluster):
    """
    Return the process ids of the followers that schedulers of a cluster have started.
    """
    lines = (cluster.directory / "scheduler.log").read_text().splitlines()
    told = [json.loads(line) for line in lines]
    return [one["pid"] for one in told if one["what"] == "audit follower started"]


def state_in_tables(cluster, job_id):
    """
    Return a job's state in the tables as they are, without bringing them up.
    """
    query = f"SELECT state FROM jobs WHERE job_id = '{job_id}'"
    done = cluster.run("audit", "sql", query, "--no-catch-up", "--json")
    rows = json.loads(done.stdout)["rows"] if done.stdout else []
    return rows[0]["state"] if rows else None


@pytest.fixture
def live(tmp_path):
    """
    Return a cluster with one worker, as xce up begins it.
    """
    with harness.cluster(tmp_path, "--workers", "1") as one:
        yield one


def test_the_tables_are_kept_up_and_made_anew_at_will_meanwhile(live):
    """
    Whoever opens the file with a tool of their own sees what is; a rebuild needn't wait for it.
    """
    harness.wait_until(lambda: started(live))
    first = live.submit("--shell", "true")
    harness.wait_until(lambda: state_in_tables(live, first) == "DONE")

    assert 0 == live.run("audit", "rebuild").returncode

    second = live.submit("--shell", "true")
    harness.wait_until(lambda: state_in_tables(live, second) == "DONE")
    assert 0 == live.run("audit", "check").returncode
    assert 0 == live.run("down").returncode
    assert 0 == born_ticks(started(live)[0])


def test_catching_up_by_hand_waits_for_the_one_that_does_it_already(live):
    """
    Whoever asks for it wants the tables at the log's end, and doesn't care who brought them there.
    """
    harness.wait_until(lambda: started(live))
    (follower,) = started(live)
    harness.wait_until((live.directory / "audit.db").exists)
    os.kill(follower, signal.SIGSTOP)
    try:
        job_id = live.submit("--shell", "true")
        live.wait_state(job_id, "DONE")
        asked = live.begin("audit", "catch-up", "--json")
        maps = Path(f"/proc/{asked.pid}/maps")
        harness.wait_until(lambda: "data.mdb" in maps.read_text())
        assert asked.poll() is None
    finally:
        os.kill(follower, signal.SIGCONT)
    out, err = asked.communicate(timeout=harness.DEADLINE_S)

    assert (0, "") == (asked.returncode, err)
    assert 0 == json.loads(out)["taken"]
    assert "DONE" == state_in_tables(live, job_id)
    assert "keeps the tables up" in live.run("audit", "catch-up").stdout


def test_the_scheduler_does_not_wait_for_one_that_stands_still(live):
    """
    Jobs are taken, run and end; the tables catch up later.
    """
    harness.wait_until(lambda: started(live))
    (follower,) = started(live)
    os.kill(follower, signal.SIGSTOP)
    try:
        job_id = live.submit("--shell", "true")
        live.wait_state(job_id, "DONE")
        assert "DONE" != state_in_tables(live, job_id)
    finally:
        os.kill(follower, signal.SIGCONT)

    harness.wait_until(lambda: state_in_tables(live, job_id) == "DONE")


def test_it_ends_with_its_scheduler_however_that_ends(live):
    """
    Killed, the scheduler can't end it; the next one has one of its own.
    """
    harness.wait_until(lambda: started(live))
    (first,) = started(live)

    live.kill_scheduler()

    harness.wait_until(lambda: born_ticks(first) == 0)
    live.start()
    harness.wait_until(lambda: len(started(live)) == 2)
    job_id = live.submit("--shell", "true")
    harness.wait_until(lambda: state_in_tables(live, job_id) == "DONE")


def test_there_is_none_when_nobody_wants_one(tmp_path):
    """
    The tables are then brought up by whoever asks them.
    """
    with harness.cluster(tmp_path, "--workers", "1", "--no-audit") as live:
        job_id = live.submit("--shell", "true")
        live.wait_state(job_id, "DONE")

        assert [] == started(live)
        assert "attempt 1 done" in live.run("history", job_id).stdout
