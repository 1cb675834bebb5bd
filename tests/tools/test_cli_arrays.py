"""
Arrays by -J, and a cluster that isn't begun inside a log: through the real command.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from domain.errors import Refused
from store.log import EventLog
from tests.conftest import REPO
from tools.daemon.process import run_scheduler


def test_a_list_of_indices_that_makes_no_sense_is_refused_with_its_place() -> None:
    """
    Never half-taken: it doesn't become a job of that name.
    """
    command = [sys.executable, "-m", "tools.cli", "submit", "--dir", "/nowhere", "-J", "b[1-0]"]
    done = subprocess.run(
        [*command, "--", "true"], cwd=REPO, capture_output=True, text=True, check=False
    )

    assert done.returncode == 2
    assert "-J" in done.stderr
    assert "^" in done.stderr


def test_a_cluster_is_not_begun_in_the_directory_of_a_log(tmp_path: Path) -> None:
    """
    Otherwise every command on that directory would read the old log and say that it is good.
    """
    with EventLog.create(tmp_path / "log", log_id="x"):
        pass
    before = sorted(path.name for path in (tmp_path / "log").iterdir())

    with pytest.raises(Refused) as refused:
        run_scheduler(tmp_path / "log")

    assert refused.value.field == "--dir"
    assert before == sorted(path.name for path in (tmp_path / "log").iterdir())
