"""
Promises 1 and 5 with real processes: what was acknowledged is there after any crash, once.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.tools import acknowledges_too_early, dies_at_a_commit, live_cluster
from tests.tools.crash_run import LOST, crash_run
from tests.tools.live_cluster import Cluster

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("XCE_CRASH_KILLS", "12"))
SEED = int(os.environ.get("XCE_CRASH_SEED", "1"))


def test_a_scheduler_killed_at_random_points_loses_nothing_and_runs_nothing_twice(
    tmp_path: Path,
) -> None:
    """
    The scheduler is killed under load, sometimes an agent with it: no acknowledged job is lost, no
    id is given twice, each job runs exactly once, and the state is that of a full replay.
    """
    findings = crash_run(tmp_path, kills=KILLS, seed=SEED)
    print(f"seed {SEED}: {dict(findings.counts)}")

    assert [] == findings.problems
    assert findings.counts["kills"] == KILLS
    assert findings.counts["acknowledged"] > KILLS


@pytest.mark.parametrize(("moment", "is_replayed"), [("before", False), ("after", True)])
def test_killed_at_the_commit_a_repeated_key_tells_what_became_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, is_replayed: bool
) -> None:
    """
    Between the commit and the answer nobody can know; the same key again gives the one true answer,
    and one job.
    """
    monkeypatch.setenv(dies_at_a_commit.VARIABLE, moment)
    body = {"key": "k", "program": {"argv": ["true"]}}
    cluster = Cluster(tmp_path, workers=0, program=[dies_at_a_commit.__file__])
    cluster.start()
    with pytest.raises(LOST):
        cluster.ask("POST", "/v1/jobs", body)
    cluster.kill()

    with live_cluster.running(tmp_path, workers=0) as again:
        status, answer = again.ask("POST", "/v1/jobs", body)
        jobs = again.get("/v1/jobs")["jobs"]

    assert ((200 if is_replayed else 201), "1", is_replayed) == (
        status,
        answer["job_id"],
        answer.get("replayed", False),
    )
    assert ["1"] == [job["job_id"] for job in jobs]


def test_sabotage_a_scheduler_that_answers_before_its_commit_is_caught(tmp_path: Path) -> None:
    """
    A crash test that an early acknowledgement passes would prove nothing.
    """
    program = [acknowledges_too_early.__file__]

    findings = crash_run(tmp_path, kills=6, seed=SEED, program=program, agents_too=False)

    assert any(
        "is lost" in one or "given" in one or "answered" in one for one in findings.problems
    ), findings
