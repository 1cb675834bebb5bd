"""
What the demonstration stands on: a cluster in a temporary directory, the real command, and the
account of what was promised and seen.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

DEADLINE_S = 30.0
GREEN, RED, BOLD, FAINT, PLAIN = "\033[32m", "\033[31m", "\033[1m", "\033[2m", "\033[0m"


class StageError(Exception):
    """
    Say that the demonstration can't go on.
    """


def xce_argv() -> list[str]:
    """
    Return how the command is run: the installed one beside this Python, else the module.
    """
    installed = shutil.which("xce", path=str(Path(sys.executable).parent))
    return [installed] if installed else [sys.executable, "-m", "tools.cli"]


def painted(text: str, colour: str) -> str:
    """
    Return a text in a colour where a person looks at it.
    """
    return f"{colour}{text}{PLAIN}" if sys.stdout.isatty() else text


class Stage:
    """
    Run the cluster of the demonstration and keep account of what was seen.

    Args:
        directory: An empty directory of its own.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.cluster = directory / "cluster"
        self.scheduler: subprocess.Popen[bytes] | None = None
        self.failures: list[str] = []
        self._began = time.monotonic()
        self._environment = {**os.environ, "XCE_DIR": str(self.cluster)}

    # ------------------------------------------------------------------------------- what is said

    def say(self, text: str) -> None:
        """
        Print a line at once, also into a pipe.
        """
        sys.stdout.write(text + "\n")
        sys.stdout.flush()

    def chapter(self, title: str) -> None:
        """
        Begin a chapter.
        """
        elapsed_s = time.monotonic() - self._began
        self.say(f"\n{painted(title, BOLD)}  {painted(f'({elapsed_s:.0f} s)', FAINT)}")

    def check(self, claim: str, *, holds: bool, seen: object = "") -> None:
        """
        Say whether a claim holds, and remember when it doesn't.
        """
        if holds:
            self.say(f"  {painted('✓', GREEN)} {claim}")
            return
        self.say(f"  {painted('✗', RED)} {claim}: {seen}")
        self.failures.append(claim)

    # -------------------------------------------------------------------------------- the command

    def ask(self, *arguments: str) -> Any:
        """
        Return the JSON answer of a command, without showing it.

        Raises:
            StageError: The command ended with an error.
        """
        done = self._run([*arguments, "--json"])
        if done.returncode not in (0, 1) or not done.stdout:
            raise StageError(f"xce {' '.join(arguments)}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def show(self, *arguments: str) -> int:
        """
        Show a command and what it prints, and return its exit status.
        """
        self.say(f"  {painted('$ xce ' + ' '.join(map(quoted, arguments)), FAINT)}")
        done = self._run(list(arguments))
        for line in (done.stdout + done.stderr).splitlines():
            self.say(f"    {line}")
        return done.returncode

    def _run(self, arguments: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*xce_argv(), *arguments], env=self._environment, cwd=self.directory, text=True,
            capture_output=True, timeout=2 * DEADLINE_S, check=False,
        )

    def begin(self, *arguments: str) -> subprocess.Popen[bytes]:
        """
        Start a command that goes on beside the demonstration; what it prints goes to a file.
        """
        with (self.directory / "beside.txt").open("ab") as sink:
            return subprocess.Popen(
                [*xce_argv(), *arguments], env=self._environment, cwd=self.directory,
                stdin=subprocess.DEVNULL, stdout=sink, stderr=sink,
            )

    # ------------------------------------------------------------------------------ the scheduler

    def start(self, workers: int, slots: int) -> None:
        """
        Start the scheduler with local workers of so many slots, and wait until it answers.
        """
        self.scheduler = self.begin("up", "--workers", str(workers), "--slots", str(slots))
        self.wait("the scheduler answers and its hosts have joined", lambda: self._is_up(workers))

    def _is_up(self, workers: int) -> bool:
        assert self.scheduler is not None
        if self.scheduler.poll() is not None:
            raise StageError(f"the scheduler ended: {(self.directory / 'beside.txt').read_text()}")
        try:
            hosts = self.ask("hosts")["hosts"]
        except StageError:
            return False
        return [host["status"] for host in hosts] == ["ok"] * workers

    def kill_scheduler(self) -> int:
        """
        End the scheduler by kill -9 and return which process it was.
        """
        assert self.scheduler is not None
        self.scheduler.send_signal(signal.SIGKILL)
        self.scheduler.wait()
        return self.scheduler.pid

    def wait(
        self, what: str, condition: Callable[[], bool], deadline_s: float = DEADLINE_S
    ) -> None:
        """
        Wait until something is so.

        Raises:
            StageError: It isn't so in time.
        """
        deadline = time.monotonic() + deadline_s
        while not condition():
            if time.monotonic() > deadline:
                raise StageError(f"not within {deadline_s:.0f} s: {what}")
            time.sleep(0.1)

    # ------------------------------------------------------------------------------- what is left

    def processes(self) -> list[psutil.Process]:
        """
        Return every process that belongs to the demonstration: its directory is in the environment.
        """
        found = []
        for process in psutil.process_iter():
            try:
                if process.pid != os.getpid() and self._is_ours(process):
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def _is_ours(self, process: psutil.Process) -> bool:
        return (
            process.status() != psutil.STATUS_ZOMBIE
            and process.environ().get("XCE_DIR") == str(self.cluster)
        )

    def clear(self) -> None:
        """
        End whatever is still running, by its own number.
        """
        for process in self.processes():
            with_it = process.as_dict(["pid", "cmdline"])
            self.say(f"  ending process {with_it['pid']}: {' '.join(with_it['cmdline'] or ())}")
            process.kill()


def quoted(word: str) -> str:
    """
    Return a word as a person would type it.
    """
    import shlex

    return shlex.quote(word)
