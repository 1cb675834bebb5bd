"""
Recording the running scheduler by the real command.
"""

from __future__ import annotations

import pytest

from tests.tools.cli_harness import cluster

pytestmark = pytest.mark.slow


def test_a_recording_is_started_asked_for_and_stopped(tmp_path):
    """
    A relative name is taken from where the person stands; what is recorded verifies.
    """
    with cluster(tmp_path, "--workers", "1", "--slots", "2") as one:
        assert "Nothing is recorded." in one.run("scheduler", "record", "status").stdout
        assert 2 == one.run("scheduler", "record", "stop").returncode
        begun = one.ask("scheduler", "record", "start", "evening.jsonl", "--states-every", "4")
        assert str(one.directory.parent / "evening.jsonl") == begun["file"]
        one.wait_state(one.submit("--", "true"), "DONE")
        told = one.run("scheduler", "record", "stop")

        assert 0 == told.returncode
        assert "Recorded in" in told.stdout
        result = one.ask("replay", "verify", "evening.jsonl")
        assert result["is_same"]
        assert result["events"] > 3
