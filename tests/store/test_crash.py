"""
A crash at any instruction loses nothing that was acknowledged and leaves no half commit.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.torture import kills


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_when_the_writer_is_killed(tmp_path: Path) -> None:
    """
    Promise 1 and 3, the short form; `make torture` kills ten thousand times.
    """
    outcome = kills.run(tmp_path / "log", kills=12, seed=1)

    assert (12, 0) == (outcome.tries, outcome.violations), outcome.first
    assert outcome.counts["acknowledged"] > 50


@pytest.mark.slow
def test_the_kill_loop_catches_an_acknowledgement_before_the_commit(tmp_path: Path) -> None:
    """
    A harness counts only if it has been seen to fail.
    """
    for attempt in range(20):
        directory = tmp_path / str(attempt)
        if kills.run(directory, kills=4, seed=attempt * 100, sabotage=True).violations:
            return
    pytest.fail("the sabotage was never caught")
