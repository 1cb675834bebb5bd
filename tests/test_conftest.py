"""
The account of tests that did not run and of processes left running, seen by running pytest.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parent.parent

MISSING = """
import pytest

@pytest.mark.needs_program("no-such-program", "no-such-package")
def test_needy():
    pass

def test_plain():
    pass
"""


def pytest_on(folder: Path, source: str, *, is_ci: bool) -> subprocess.CompletedProcess[str]:
    """
    Run pytest with this repository's configuration and conftest on one made file.
    """
    (folder / "test_made.py").write_text(source)
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider"]
    environment = {key: value for key, value in os.environ.items() if key != "CI"}
    return subprocess.run(
        [*command, "-c", str(REPO / "pyproject.toml"), str(folder / "test_made.py")],
        cwd=REPO,
        env=environment | ({"CI": "true"} if is_ci else {}),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize(("is_ci", "status"), [(False, 0), (True, 1)])
def test_what_did_not_run_is_listed_and_fails_only_in_ci(
    tmp_path: Path, is_ci: bool, status: int
) -> None:
    """
    A person without the Debian packages can still work; a green CI means that everything ran.
    """
    outcome = pytest_on(tmp_path, MISSING, is_ci=is_ci)

    assert "needs the program no-such-program (Debian package no-such-package)" in outcome.stdout
    assert "1 tests did not run" in outcome.stdout
    assert "1 passed, 1 skipped" in outcome.stdout
    assert status == outcome.returncode


@pytest.mark.slow
def test_an_unknown_marker_and_a_warning_are_errors(tmp_path: Path) -> None:
    """
    A slip in a marker would run a test where it can't; a warning is a fault that waits.
    """
    warns = "import warnings\n\ndef test_warns():\n    warnings.warn('old')\n"
    slips = "import pytest\n\n@pytest.mark.slwo\ndef test_slips():\n    pass\n"

    warned = pytest_on(tmp_path, warns, is_ci=False)
    slipped = pytest_on(tmp_path, slips, is_ci=False)

    assert (1, True) == (warned.returncode, "UserWarning: old" in warned.stdout)
    assert (1, True) == (slipped.returncode, "'slwo' not found in `markers`" in slipped.stdout)


LEAVES = """
import os

def test_leaves_a_process():
    # A new session and a parent that has ended: only the environment still tells whose it is.
    program = ["setsid", "-f", "sleep", "1000"]
    os.waitpid(os.posix_spawnp("setsid", program, dict(os.environ)), 0)
"""


@pytest.mark.slow
def test_a_process_left_running_fails_the_run_and_is_ended(tmp_path: Path) -> None:
    """
    What a test leaves behind disturbs the next one, and whoever's machine it is.
    """
    outcome = pytest_on(tmp_path, LEAVES, is_ci=False)

    assert "1 passed" in outcome.stdout
    assert "left running, and killed" in outcome.stdout
    assert "sleep 1000" in outcome.stdout
    assert outcome.returncode == 1
