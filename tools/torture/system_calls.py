"""
Kill the scripted writer at every single system call that writes, syncs or renames.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tools.torture.outcome import Outcome
from tools.torture.power import REPO, examine

CALLS = "pwrite64,pwritev,writev,fdatasync,fsync,ftruncate,rename,link,unlink,openat"


def count_calls(directory: Path) -> int:
    """
    Return how many such calls the scripted writer makes on files of its own.
    """
    trace = directory / "trace"
    _run(directory / "count", ["-o", str(trace), "-e", f"trace={CALLS}"])
    count = len(trace.read_text().splitlines())
    trace.unlink()
    return count


def run(directory: Path, *, step: int, sabotage: bool = False) -> Outcome:
    """
    Kill at every call, or at every so many-th; hold what is left against what was acknowledged.

    Args:
        directory: An empty place.
        step: 1 for every call.
        sabotage: Pretend that one more commit had been acknowledged.
    """
    outcome = Outcome()
    for number in range(1, count_calls(directory) + 1, step):
        root = directory / "root"
        shutil.rmtree(root, ignore_errors=True)
        inject = f"inject={CALLS}:signal=SIGKILL:when={number}"
        said = _run(root, ["-o", "/dev/null", "-e", f"trace={CALLS}", "-e", inject])
        said = said[::-1]
        if sabotage and said and said[0].startswith("position"):
            said.insert(0, f"position {int(said[0].split()[1]) + 4}")
        outcome.tries += 1
        answer = examine(root, said)
        outcome.saw(answer.partition(":")[0])
        if answer.startswith("bad"):
            outcome.violated(f"killed at call {number}: {answer}")
    return outcome


def _run(root: Path, options: list[str]) -> list[str]:
    """
    Run the scripted writer under strace; return its acknowledgements.
    """
    root.mkdir()
    done = subprocess.run(
        ["strace", "-qq", "-P", root / "log", "-P", root / "log/data.mdb", "-P", root / "log/LOCK",
         "-P", root / "log/STORE", "-P", root / "log/.STORE.new", "-P", root / "snapshots",
         *options, sys.executable, "-m", "tools.torture.power", "script", str(root)],
        cwd=REPO, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    return done.stdout.splitlines()
