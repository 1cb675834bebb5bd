"""
What is installed: a wheel is built from a copy of the checkout, unpacked, and used.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.tidy_rules import CODE_FOLDERS

REPO = Path(__file__).resolve().parent.parent
# What the code reads or shows at run time, besides Python.
DATA_SUFFIXES = {".lark", ".md", ".html", ".css", ".js", ".sql", ".json", ".zdict"}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """
    Return the wheel, built without a network from a copy, so that no build files stay behind.
    """
    copy = tmp_path_factory.mktemp("checkout")
    for folder in (*CODE_FOLDERS, "tests"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(REPO / folder, copy / folder, ignore=ignored)
    for file in ("pyproject.toml", "README.md"):
        shutil.copy(REPO / file, copy / file)
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--no-index", "-w", "dist", "."], cwd=copy, check=True)
    (built,) = (copy / "dist").glob("xce-*.whl")
    return built


def shipped(folder: str) -> set[str]:
    """
    Return the files of a folder of the checkout that must be in the wheel.
    """
    return {
        path.relative_to(REPO).as_posix()
        for path in (REPO / folder).rglob("*")
        if path.suffix in DATA_SUFFIXES | {".py"} and "__pycache__" not in path.parts
    }


def test_the_wheel_has_every_file_of_the_five_folders_and_no_tests(wheel: Path) -> None:
    """
    A grammar or page that is missing fails only on other people's machines.
    """
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}

    expected = set().union(*(shipped(folder) for folder in CODE_FOLDERS))
    assert expected == names


def test_the_installed_command_runs_from_the_wheel_alone(wheel: Path, tmp_path: Path) -> None:
    """
    In the checkout everything can be imported; this starts it away from there.
    """
    zipfile.ZipFile(wheel).extractall(tmp_path)
    program = "import tools.cli.main as m, sys; print(m.__file__); sys.argv = ['xce', '--help']; "

    told = subprocess.run(
        [sys.executable, "-P", "-c", program + "m.main()"],
        cwd="/",
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert str(tmp_path) in told.stdout.splitlines()[0]
    assert "simulate" in told.stdout


def test_what_the_quick_start_writes_is_ignored() -> None:
    """
    Whoever types README's commands in a clone has nothing new to commit.
    """
    names = ["demo/log/STORE", "kth-log/STORE", "other/STORE", "report.html"]
    names += ["window.jsonl", "now.jsonl", "given.jsonl"]
    readme = (REPO / "README.md").read_text(encoding="utf-8")
    command = ["git", "check-ignore", "--no-index", *names]
    done = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=False)

    assert names == done.stdout.split()
    assert [] == [name for name in names if name.partition("/")[0] not in readme]
