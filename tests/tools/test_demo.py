"""
The demonstration: what it says is so, it leaves nothing behind, and it fails when it is not so.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tools.demo import demonstration
from tools.demo.stage import Stage, StageError

REPO = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_demonstration_is_as_it_says(tmp_path):
    """
    This is what a newcomer sees first; it takes less than two minutes and every claim holds.
    """
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "tools.demo"], cwd=REPO, capture_output=True, text=True,
        check=False, env={**os.environ, "TMPDIR": str(tmp_path)},
    )

    assert 0 == done.returncode, done.stdout + done.stderr
    assert "✗" not in done.stdout
    assert done.stdout.count("✓") >= 15
    assert "What to type next" in done.stdout
    assert [] == list(tmp_path.iterdir())
    assert time.monotonic() - began < 120


def _doubtful(stage):
    stage.check("water flows uphill", holds=False, seen="downhill")


def _stuck(stage):
    stage.wait("pigs fly", lambda: False, deadline_s=0.01)


@pytest.mark.parametrize("play", [_doubtful, _stuck])
def test_a_claim_that_does_not_hold_fails_the_demonstration(capsys, monkeypatch, play):
    """
    A demonstration that ends well whatever happens would show nothing.
    """
    monkeypatch.setattr(demonstration, "_play", play)
    monkeypatch.setattr(sys, "argv", ["tools.demo"])

    assert 1 == demonstration.main()

    assert "✗" in capsys.readouterr().out


def test_a_command_that_fails_stops_the_demonstration(tmp_path):
    """
    Going on with half an answer would only confuse: what went wrong is said.
    """
    with pytest.raises(StageError) as failed:
        Stage(tmp_path).ask("jobs")

    assert "no scheduler answers" in str(failed.value)
