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
from tests.tools import cli_harness as harness
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


@pytest.mark.slow
def test_an_array_and_some_of_its_elements_are_named_as_in_lsf(tmp_path: Path) -> None:
    """
    There bjobs 7 lists the elements of an array, bkill "7[1-3]" ends three of them.
    """
    with harness.cluster(tmp_path, "--workers", "1", "--slots", "2") as live:
        array = live.submit("-J", "a[1-6]", "--", harness.program("sleep"), "600")
        job = live.submit("--", harness.program("sleep"), "600")

        killed = live.ask("kill", f"{array}[2-3]")
        live.run("stop", f"{array}.5")
        live.wait_state(f"{array}[3]", "EXIT")
        live.wait_state(f"{array}[5]", "PSUSP")
        whole = live.ask("jobs", array)["jobs"]
        some = live.ask("jobs", f"{array}[5-99]", job)["jobs"]
        missing = live.run("jobs", f"{array}[50-99]")
        absent = live.run("jobs", f"{array}[99-99]")

        assert [f"{array}[2]", f"{array}[3]"] == [one["job_id"] for one in killed["jobs"]]
        assert [f"{array}[{index}]" for index in range(1, 7)] == [one["job_id"] for one in whole]
        assert whole == live.ask("jobs", f"{array}[*]")["jobs"]
        assert [f"{array}[5]", f"{array}[6]", job] == [one["job_id"] for one in some]
        # One job is told in full.
        assert "effective" in some[-1]
        assert (1, "JOB: must name a job") == (missing.returncode, missing.stderr[5:25])
        assert (1, "") == (absent.returncode, absent.stdout)
        assert f"{array}[99]" in absent.stderr
        assert "Traceback" not in absent.stderr
        assert 2 == live.run("kill", f"{array}[3-1]").returncode


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
