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
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from domain.errors import StoreUnavailable
from tools.daemon.config import ClusterFiles
from tools.daemon.journal import Journal


class Snapshotter:
    """
    Have snapshots of one cluster made, one at a time.

    ``waiting`` is where requests wait for theirs: not among the threads that others need.
    """

    def __init__(self, files: ClusterFiles, journal: Journal) -> None:
        self._files = files
        self._journal = journal
        self._turn = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._has_ended = False
        self._newest: tuple[int, Path] | None = None
        self.waiting = ThreadPoolExecutor(1, thread_name_prefix="snapshots")

    def begin(self, position: int) -> bool:
        """
        Have one made of the state at a commit, and wait for nothing; tell whether it was begun: not
        while another one is being made.
        """
        if self._turn.locked() or self._has_ended:
            return False
        threading.Thread(
            target=self._make_quietly, args=(position,), name="snapshotter", daemon=True
        ).start()
        return True

    def _make_quietly(self, position: int) -> None:
        with suppress(StoreUnavailable):  # It is in the journal, and one that fails is no harm.
            self.make(position)

    def make(self, position: int) -> Path:
        """
        Have one made of the state at a commit, after the one that is being made; wait for it and
        return its file. Where the newest is of that commit it will do.

        Raises:
            StoreUnavailable: It isn't there; nothing else is harmed.
        """
        with self._turn:
            if self._newest is not None and self._newest[0] == position:
                path = self._newest[1]
                if path.exists():
                    return path
            if self._has_ended:
                raise StoreUnavailable("snapshot", str(self._files.snapshots), "the scheduler ends")
            began_ns = time.monotonic_ns()
            try:
                path = self._made(position)
            except StoreUnavailable as error:
                self._journal.error("snapshot failed", position=position, why=error.text())
                raise
            took_us = (time.monotonic_ns() - began_ns) // 1000
            self._journal.info("snapshot", position=position, took_us=took_us)
            self._newest = position, path
            return path

    def _made(self, position: int) -> Path:
        """
        Run the process to its end and read what it says.
        """
        arguments = [str(self._files.directory), str(position)]
        try:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "tools.daemon.snapshot_process", *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise StoreUnavailable("snapshot", str(self._files.snapshots), str(error)) from None
        with process:
            self._process = process
            if self._has_ended:
                process.kill()
            assert process.stdout is not None
            said = process.stdout.read()
            status = process.wait()
        self._process = None
        told = json.loads(said or b"{}")
        if status == 0:
            return Path(told["file"])
        why = told.get("error", "see what the scheduler writes to standard error")
        detail = f"its process ended with status {status}: {why}"
        raise StoreUnavailable("snapshot", str(self._files.snapshots), detail)

    def end(self) -> None:
        """
        Give up the one that is being made, and make no more.
        """
        self._has_ended = True
        process = self._process
        if process is not None:
            process.kill()
