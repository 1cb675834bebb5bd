"""
Snapshots of a live scheduler, each made by a process of its own.

The engine's thread only says at which commit: encoding a hundred thousand jobs there kept everybody
waiting for over a second, thirty times as long as a session, and in another thread of the same
process the interpreter is held just as long.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from domain.errors import StoreUnavailable
from domain.units import show_duration
from tools.daemon.config import ClusterFiles, DaemonSettings
from tools.daemon.journal import Journal

# One may take so many times as long as the one before it.
LIMIT_FACTOR = 10
LIMIT_MAX_S = 24 * 3600.0
LOOK_S = 1.0
# The end of a killed process is waited for so long: one that waits for a disk may not end.
KILL_S = 2.0


class Snapshotter:
    """
    Have snapshots of one cluster made, one at a time.

    One that isn't made in time is given up, so that a process or a disk that hangs holds up no
    later one; the next one gets twice the time, in case the log has grown that long.

    Args:
        files: The cluster's files.
        journal: Where to write what becomes of them.
        limit_s: The time that each may take at least.
    """

    def __init__(
        self,
        files: ClusterFiles,
        journal: Journal,
        limit_s: float = DaemonSettings().snapshot_limit_s,
    ) -> None:
        self._files = files
        self._journal = journal
        self._limit_least_s = self._limit_s = limit_s
        self._late_count = 0
        self._turn = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._has_ended = False
        self._newest: tuple[int, Path] | None = None
        self._making: dict[str, object] | None = None
        self._last: dict[str, object] | None = None
        # Requests wait for theirs here: not among the threads that others need.
        self._waiting = ThreadPoolExecutor(1, thread_name_prefix="snapshots")

    def begin(self, position: int) -> bool:
        """
        Have one made of the state at a commit, and wait for nothing; tell whether it was begun: not
        while another one is being made.
        """
        if self._has_ended or not self._turn.acquire(blocking=False):
            return False
        threading.Thread(
            target=self._make_quietly, args=(position,), name="snapshotter", daemon=True
        ).start()
        return True

    def _make_quietly(self, position: int) -> None:
        """
        Make one in the turn that was taken for it.
        """
        try:
            with suppress(StoreUnavailable):  # It is in the journal, and one that fails is no harm.
                self._make(position)
        finally:
            self._turn.release()

    def asked(self, position: int) -> Future[Path]:
        """
        Have one made for somebody who waits for it, when it is its turn: as `make`.

        Whoever has waited for one that wasn't made in time doesn't wait as long once more.
        """
        return self._waiting.submit(self.make, position, self._late_count)

    def make(self, position: int, late_count: int | None = None) -> Path:
        """
        Have one made of the state at a commit, after the one that is being made; wait for it and
        return its file. Where the newest is of that commit it will do.

        Args:
            position: The commit.
            late_count: How many must have been late, no more; None for any number.

        Raises:
            StoreUnavailable: It isn't there; nothing else is harmed.
        """
        with self._turn:
            if late_count not in (None, self._late_count):
                raise self._failure("the one before it wasn't made in time")
            return self._make(position)

    def status(self) -> dict[str, object]:
        """
        Tell of the one that is being made, and of the last one, with a problem when it failed; and
        how long one may take.
        """
        return {"making": self._making, "last": self._last, "limit_s": self._limit_s}

    def _make(self, position: int) -> Path:
        if self._newest is not None and self._newest[0] == position and self._newest[1].exists():
            return self._newest[1]
        if self._has_ended:
            raise self._failure("the scheduler ends")
        began_us, began_ns = time.time_ns() // 1000, time.monotonic_ns()
        told: dict[str, object] = {"position": position, "began_us": began_us}
        self._making = dict(told)
        try:
            path = self._made(position)
            took_us = (time.monotonic_ns() - began_ns) // 1000
            told |= {"took_us": took_us, "file": str(path)}
        except StoreUnavailable as error:
            told["problem"] = error.text()
            self._journal.error("snapshot failed", position=position, why=error.text())
            raise
        finally:
            self._last, self._making = told, None
        self._journal.info("snapshot", position=position, took_us=took_us)
        self._newest = position, path
        self._limit_s = max(self._limit_least_s, LIMIT_FACTOR * took_us / 1e6)
        return path

    def _made(self, position: int) -> Path:
        """
        Run the process to its end and read what it says.
        """
        if self._process is not None and self._process.poll() is None:
            raise self._failure(f"process {self._process.pid} of an earlier one can't be ended")
        self._process = process = self._started(position)
        assert process.stdin is not None
        assert process.stdout is not None
        with process.stdin, process.stdout:
            status = self._wait_end(process)
            if status is None:
                raise self._given_up(process)
            told = json.loads(process.stdout.read() or b"{}")
        if status == 0:
            return Path(told["file"])
        why = told.get("error", "see what the scheduler writes to standard error")
        raise self._failure(f"its process ended with status {status}: {why}")

    def _started(self, position: int) -> subprocess.Popen[bytes]:
        arguments = [str(self._files.directory), str(position)]
        try:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", "tools.daemon.snapshot_process", *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise self._failure(str(error)) from None

    def _wait_end(self, process: subprocess.Popen[bytes]) -> int | None:
        """
        Return the exit status of a process, None when there is none in time or the scheduler ends.
        """
        deadline_s = time.monotonic() + self._limit_s
        while not self._has_ended and (left_s := deadline_s - time.monotonic()) > 0:
            with suppress(subprocess.TimeoutExpired):
                return process.wait(min(left_s, LOOK_S))
        return process.poll()

    def _given_up(self, process: subprocess.Popen[bytes]) -> StoreUnavailable:
        """
        End a process that hasn't ended in time; return what to tell.
        """
        process.kill()
        with suppress(subprocess.TimeoutExpired):
            process.wait(KILL_S)
        if self._has_ended:
            return self._failure("the scheduler ends")
        limit = show_duration(round(self._limit_s * 1e6))
        self._late_count += 1
        self._limit_s = min(2 * self._limit_s, LIMIT_MAX_S)
        return self._failure(f"its process wasn't ready after {limit} and was killed")

    def _failure(self, detail: str) -> StoreUnavailable:
        return StoreUnavailable("snapshot", str(self._files.snapshots), detail)

    def end(self) -> None:
        """
        Give up the one that is being made, and make no more.
        """
        self._has_ended = True
        process = self._process
        if process is not None:
            process.kill()
