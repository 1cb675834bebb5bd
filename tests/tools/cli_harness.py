"""
A real cluster for tests of the command line: `xce` in processes of its own, nothing replaced.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

DEADLINE_S = 30.0
XCE = [sys.executable, "-m", "tools.cli"]


class Cluster:
    """
    Run a scheduler with local workers, and ask it by the real command.
    """

    def __init__(self, directory: Path, *options: str) -> None:
        self.directory = directory
        self.options = options
        self.scheduler: subprocess.Popen[bytes] | None = None
        self._environment = {
            **os.environ, "XCE_DIR": str(directory), "PYTHONPATH": str(Path.cwd()),
        }

    def run(self, *arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*XCE, *arguments], env=self._environment | changes, text=True, capture_output=True,
            timeout=DEADLINE_S * 2, check=False, cwd=self.directory.parent,
        )

    def ask(self, *arguments: str) -> Any:
        done = self.run(*arguments, "--json")
        assert (0, "") == (done.returncode, done.stderr), done
        return json.loads(done.stdout)

    def submit(self, *arguments: str) -> str:
        done = self.run("submit", "--json", *arguments)
        assert 0 == done.returncode, done
        return json.loads(done.stdout)["job_id"]

    def begin(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*XCE, *arguments], env=self._environment, text=True, cwd=self.directory.parent,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )

    def start(self) -> None:
        with (self.directory.parent / "up.txt").open("ab") as sink:
            self.scheduler = subprocess.Popen(
                [*XCE, "up", *self.options], env=self._environment, cwd=self.directory.parent,
                stdin=subprocess.DEVNULL, stdout=sink, stderr=sink,
            )
        wait_until(self._is_up)

    def _is_up(self) -> bool:
        assert self.scheduler is not None
        assert self.scheduler.poll() is None, (self.directory.parent / "up.txt").read_text()
        done = self.run("hosts", "--json")
        if done.returncode:
            return False
        return any(host["status"] == "ok" for host in json.loads(done.stdout)["hosts"])

    def kill_scheduler(self) -> None:
        assert self.scheduler is not None
        self.scheduler.send_signal(signal.SIGKILL)
        self.scheduler.wait()

    def job(self, job_id: str) -> dict[str, Any]:
        return self.ask("job", job_id)

    def wait_state(self, job_id: str, *states: str) -> dict[str, Any]:
        wait_until(lambda: self.job(job_id)["state"] in states)
        return self.job(job_id)

    def clean(self) -> None:
        """
        End all; if the command doesn't manage that, the run's own watch names what is left.
        """
        with suppress(subprocess.TimeoutExpired):
            self.run("down")
        if self.scheduler is not None and self.scheduler.poll() is None:
            self.scheduler.kill()
            self.scheduler.wait()


@contextmanager
def cluster(directory: Path, *options: str) -> Iterator[Cluster]:
    """
    Give a running cluster, and end it.
    """
    one = Cluster(directory / "cluster", *options)
    one.directory.mkdir()
    try:
        one.start()
        yield one
    finally:
        one.clean()


@contextmanager
def simulating(place: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """
    Give a command that simulates a long trace, ``long.swf``, and the folder of its temporary files.
    """
    jobs = (f"{job} {job} 0 10 1 -1 -1 1 10 -1 1 1 1 1 1 1 -1 -1" for job in range(1, 40_000))
    (place / "long.swf").write_text("; MaxProcs: 4\n" + "\n".join(jobs) + "\n")
    temporary = place / "temporary"
    temporary.mkdir()
    running = subprocess.Popen(
        [*XCE, *arguments], cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path.cwd()), "TMPDIR": str(temporary)},
    )  # fmt: skip
    try:
        yield running, temporary
    finally:
        running.kill()
        running.wait()


def wait_until(condition: Callable[[], bool], deadline_s: float = DEADLINE_S) -> None:
    """
    Poll until something is so.
    """
    deadline = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < deadline, "not within the deadline"
        time.sleep(0.05)


def program(name: str) -> str:
    """
    Return the path of a program.
    """
    found = shutil.which(name)
    assert found is not None
    return found
