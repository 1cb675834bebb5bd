"""
Promises 1 and 5 with real processes: what was acknowledged is there after any crash, once.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.tools import acknowledges_too_early
from tests.tools.crash_run import crash_run

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


def test_sabotage_a_scheduler_that_answers_before_its_commit_is_caught(tmp_path: Path) -> None:
    """
    A crash test that an early acknowledgement passes would prove nothing.
    """
    program = [acknowledges_too_early.__file__]

    findings = crash_run(tmp_path, kills=6, seed=SEED, program=program, agents_too=False)

    assert any(
        "is lost" in one or "given" in one or "answered" in one for one in findings.problems
    ), findings
