"""
Record the running scheduler: what is committed goes into a file too, with whole states in it.

A process of its own writes it (`record_process`): encoding a state of a hundred thousand jobs in
the engine's thread kept everybody waiting for seconds. The scheduler never waits for it. One that
can't go on ends, and says why; killed, the file ends with the last whole line.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from domain.errors import Conflict, Refused, StoreUnavailable
from domain.units import show_duration
from store.log import EventLog
from store.os_errors import unavailable
from store.transfer import RECORDING_FORMAT, RecordingHeader
from tools.daemon.config import ClusterFiles
from tools.daemon.journal import Journal

# The first state takes as long as a snapshot, and has as much time as one.
BEGIN_S: Final = 600.0
JOIN_S: Final = 30.0
KILL_S: Final = 2.0


class Recorder:
    """
    Keep at most one recording going.

    Args:
        files: The cluster's files.
        log: The log; only what doesn't change while it is open is asked of it.
        journal: Where to write what happens to it.
    """

    def __init__(self, files: ClusterFiles, log: EventLog, journal: Journal) -> None:
        self._files = files
        self._log = log
        self._journal = journal
        self._writing: _Writing | None = None
        self._turn = threading.Lock()
        self._has_ended = False

    def start(self, position: int, file: Path, every: int) -> dict[str, object]:
        """
        Begin with the state at a commit, in a new file; return when that state is written.

        Args:
            position: The commit.
            file: An absolute path.
            every: A state is written every so many events.

        Raises:
            Conflict: One is going on already, or begins.
            Refused: The path is relative, or there is such a file.
            StoreUnavailable: It can't be written, or not begun.
        """
        with self._turn:
            before = self._writing
            if self._writing is not None and self._writing.is_going:
                hint = "End it: xce scheduler record stop."
                raise Conflict("recording", "none", str(self._writing.file), hint)
            header = RecordingHeader(
                RECORDING_FORMAT, self._log.log_id, position + 1, None, self._log.epoch, ""
            )
            _begin_file(file, header)
            writing = self._writing = _Writing(self._files, file, position, every, self._journal)
            if self._has_ended:
                writing.kill()
        problem = writing.wait_begun()
        if problem:
            with self._turn:
                if self._writing is writing:
                    self._writing = before
            file.unlink(missing_ok=True)
            raise StoreUnavailable("recording", str(file), problem)
        return writing.told()

    def stop(self, position: int) -> None:
        """
        Have it end with what is committed, and wait for nothing.

        Raises:
            Refused: None is going on.
        """
        if self._writing is None or not self._writing.is_going:
            raise Refused("recording", "must be going on to be stopped")
        self._writing.end_at(position)

    def status(self) -> dict[str, object]:
        """
        Tell of the recording that is going on, or of the last one of this process.
        """
        return {"recording": False} if self._writing is None else self._writing.told()

    def wait_end(self, silent_s: float = JOIN_S) -> dict[str, object]:
        """
        Wait until a recording that was told to end has ended; tell of it.

        One that tells nothing new for so long hangs, and is killed: no other could begin.
        """
        writing = self._writing
        while writing is not None and writing.is_going:
            before = writing.told()
            writing.wait_end(silent_s)
            if writing.told() == before:
                writing.kill(f"it told nothing new for {show_duration(int(silent_s * 1e6))}")
                writing.wait_end(KILL_S)
                break
        return self.status()

    def end(self) -> None:
        """
        Give up one that hasn't begun, and any that is asked for from now on.
        """
        self._has_ended = True
        if self._writing is not None and not self._writing.has_begun.is_set():
            self._writing.kill()

    def close(self, position: int) -> None:
        """
        End a recording with the process, after its last commit.
        """
        if self._writing is not None:
            self._writing.end_at(position)
            self._writing.wait_end()
            # One that hangs would be left behind; its end is told in the journal.
            self._writing.kill()
            self._writing.wait_end(KILL_S)


def _begin_file(file: Path, header: RecordingHeader) -> None:
    """
    Make the file and write how it begins.
    """
    if not file.is_absolute():
        raise Refused("file", "must be an absolute path", str(file))
    if file.suffix in (".gz", ".zst"):
        rule = "must not be packed while it is written: name it .jsonl"
        raise Refused("file", rule, str(file))
    try:
        number = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise Refused("file", "must not exist yet", str(file)) from None
    except OSError as error:
        raise unavailable(file, error) from None
    try:
        with os.fdopen(number, "wb") as out:
            out.write(header.line())
    except OSError as error:
        file.unlink(missing_ok=True)
        raise unavailable(file, error) from None


class _Writing:
    """
    Be one recording that a process writes; a thread of its own listens to what that tells.
    """

    def __init__(
        self, files: ClusterFiles, file: Path, position: int, every: int, journal: Journal
    ) -> None:
        self.file = file
        self.is_going = True
        self._journal = journal
        self._first_position = self._position = position
        self._every = every
        self._states = 0
        self._problem = ""
        self._began_us = time.time_ns() // 1000
        self.has_begun = threading.Event()
        arguments = [str(files.directory), str(file), str(position), str(every)]
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "tools.daemon.record_process", *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            file.unlink(missing_ok=True)
            raise unavailable(file, error) from None
        self._listener = threading.Thread(target=self._listen, name="recorder", daemon=True)
        self._listener.start()

    def wait_begun(self) -> str:
        """
        Wait for the first state; return why it isn't written, "" when it is.
        """
        if not self.has_begun.wait(BEGIN_S):
            limit = show_duration(round(BEGIN_S * 1e6))
            self._problem = f"its process wasn't ready after {limit} and was killed"
            self.kill()
        return "" if self._states else self._problem or "the scheduler ends"

    def end_at(self, position: int) -> None:
        """
        Say up to where to write: once, what is said later isn't heard.
        """
        assert self._process.stdin is not None
        with suppress(OSError, ValueError):
            self._process.stdin.write(b"%d\n" % position)
            self._process.stdin.close()

    def wait_end(self, longest_s: float = JOIN_S) -> None:
        """
        Wait for its end, no longer than anybody would.
        """
        self._listener.join(longest_s)

    def kill(self, why: str = "") -> None:
        """
        End it wherever it is.
        """
        if self.is_going:
            self._problem = self._problem or why
            self._process.kill()
        # Whoever waits for its begin doesn't wait for one that a disk keeps from ending.
        self.has_begun.set()

    def told(self) -> dict[str, object]:
        """
        Tell how far it is.
        """
        found: dict[str, object] = {
            "recording": self.is_going,
            "file": str(self.file),
            "first_position": self._first_position + 1,
            "position": self._position,
            "events": self._position - self._first_position,
            "states": self._states,
            "states_every": self._every,
            "began_us": self._began_us,
        }
        return found | ({"problem": self._problem} if self._problem else {})

    def _listen(self) -> None:
        """
        Take in what the process tells, to its end.
        """
        assert self._process.stdout is not None
        is_whole = False
        with self._process.stdout as lines:
            for line in lines:
                # What a plug-in prints isn't for us.
                if not line.startswith(b"{"):
                    continue
                told: dict[str, Any] = json.loads(line)
                is_whole = told.get("is_whole", False)
                self._problem = self._problem or told.get("problem", "")
                self._position = told.get("position", self._position)
                self._states = told.get("states", self._states)
                if self._states:
                    self.has_begun.set()
        status = self._process.wait()
        if not is_whole:
            self._problem = self._problem or f"its process ended with status {status}"
        self.is_going = False
        self.has_begun.set()
        if self._problem:
            self._journal.error("recording ended", file=str(self.file), why=self._problem)
        else:
            self._journal.info("recorded", file=str(self.file), position=self._position)
