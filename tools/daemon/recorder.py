"""
Record the running scheduler: what is committed goes into a file too, with whole states in it.

The engine's thread only hands over states, at commits; a thread of its own reads the log, as any
reader does, and writes. A recording that can't go on ends, and says why; the scheduler never waits
for it. After a kill the file ends with the last whole line.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from pathlib import Path
from typing import IO, Final

from domain.errors import Conflict, Refused, XceError
from projections.scheduling.core import SCHEMA
from replay.engine import Engine
from store.os_errors import unavailable
from store.recordings import LogLines, SnapshotLine, line_of
from store.transfer import RECORDING_FORMAT, RecordingHeader
from tools.daemon.journal import Journal

LOOK_S: Final = 0.2
JOIN_S: Final = 30.0


class Recorder:
    """
    Keep at most one recording going.

    Args:
        log: The log's directory.
        journal: Where to write what happens to it.
    """

    def __init__(self, log: Path, journal: Journal) -> None:
        self._log = log
        self._journal = journal
        self._writer: _Writer | None = None

    # -- in the engine's thread, at a commit

    def start(self, engine: Engine, file: Path, every: int) -> dict[str, object]:
        """
        Begin with the state as it is, in a new file.

        Args:
            engine: At a commit.
            file: An absolute path.
            every: A state is written every so many events.

        Raises:
            Conflict: One is going on already.
            Refused: The path is relative, or there is such a file.
            StoreUnavailable: It can't be written.
        """
        if self._writer is not None and self._writer.is_going:
            raise Conflict(
                "recording", "none", str(self._writer.file), "End it: xce scheduler record stop."
            )
        self._writer = _Writer(self._log, file, _state(engine), every, self._journal)
        self._writer.start()
        return self.status()

    def after_commit(self, engine: Engine) -> None:
        """
        Hand a state over when one is due.
        """
        writer = self._writer
        if writer is not None and writer.wants_state(engine.position):
            writer.states.append(_state(engine))

    def stop(self, engine: Engine) -> None:
        """
        Have it end with what is committed.

        Raises:
            Refused: None is going on.
        """
        if self._writer is None or not self._writer.is_going:
            raise Refused("recording", "must be going on to be stopped")
        self._writer.upto = engine.position

    # -- anywhere

    def status(self) -> dict[str, object]:
        """
        Tell of the recording that is going on, or of the last one of this process.
        """
        writer = self._writer
        return {"recording": False} if writer is None else writer.told()

    def wait_end(self) -> dict[str, object]:
        """
        Wait until a recording that was told to end has ended; tell of it.
        """
        if self._writer is not None:
            self._writer.join(JOIN_S)
        return self.status()

    def close(self, position: int) -> None:
        """
        End a recording with the process, after its last commit.
        """
        if self._writer is not None and self._writer.is_going:
            self._writer.upto = position
            self._writer.join(JOIN_S)


def _state(engine: Engine) -> SnapshotLine:
    return SnapshotLine(
        engine.position,
        engine.core.state.stored.time_us,
        SCHEMA,
        engine.log.digest_at(engine.position).hex(),
        engine.core.snapshot(),
    )


class _Writer(threading.Thread):
    """
    Write one recording.

    ``states`` are put in by the engine's thread, each at its own commit: no later event can have
    been read by then. ``upto`` is the last position to write, None for no end yet.
    """

    def __init__(
        self, log: Path, file: Path, first: SnapshotLine, every: int, journal: Journal
    ) -> None:
        super().__init__(name="recorder", daemon=True)
        self.file = file
        self.states: deque[SnapshotLine] = deque()
        self.upto: int | None = None
        self.is_going = True
        self._every = every
        self._journal = journal
        self._first = first
        self._position = first.position
        self._last_state = first.position
        self._states_written = 0
        self._problem = ""
        self._began_us = time.time_ns() // 1000
        self._lines = LogLines(log)
        try:
            self._out = self._opened(file)
        except BaseException:
            self._lines.close()
            raise

    def _opened(self, file: Path) -> IO[bytes]:
        """
        Make the file and write how it begins.
        """
        if not file.is_absolute():
            raise Refused("file", "must be an absolute path", str(file))
        if file.suffix in (".gz", ".zst"):
            rule = "must not be packed while it is written: name it .jsonl"
            raise Refused("file", rule, str(file))
        try:
            out = os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
        except FileExistsError:
            raise Refused("file", "must not exist yet", str(file)) from None
        except OSError as error:
            raise unavailable(file, error) from None
        header = RecordingHeader(
            RECORDING_FORMAT, self._lines.log_id, self._position + 1, None, self._lines.epoch(), ""
        )
        try:
            out.write(header.line())
            self._put_state(out, self._first)
            out.flush()
        except OSError as error:
            out.close()
            raise unavailable(file, error) from None
        return out

    def wants_state(self, position: int) -> bool:
        """
        Say whether a state is due; asked and answered in the engine's thread.
        """
        if not self.is_going or self.upto is not None:
            return False
        if position - self._last_state < self._every:
            return False
        self._last_state = position
        return True

    def told(self) -> dict[str, object]:
        """
        Tell how far it is.
        """
        found: dict[str, object] = {
            "recording": self.is_going,
            "file": str(self.file),
            "first_position": self._first.position + 1,
            "position": self._position,
            "events": self._position - self._first.position,
            "states": self._states_written,
            "states_every": self._every,
            "began_us": self._began_us,
        }
        return found | ({"problem": self._problem} if self._problem else {})

    def run(self) -> None:
        """
        Write what is committed until the end is reached.
        """
        try:
            while not self._is_done():
                if not self._write_some():
                    time.sleep(LOOK_S)
            self._out.flush()
            os.fsync(self._out.fileno())
        except OSError as error:
            self._problem = unavailable(self.file, error).text()
        except XceError as error:
            self._problem = error.text()
        except Exception as error:  # noqa: BLE001 - a recording's fault is no fault of the scheduler
            self._problem = repr(error)
        finally:
            self.is_going = False
            self._end()
        if self._problem:
            self._journal.error("recording ended", file=str(self.file), why=self._problem)
        else:
            self._journal.info("recorded", file=str(self.file), position=self._position)

    def _end(self) -> None:
        self._lines.close()
        try:
            self._out.close()
        except OSError as error:
            self._problem = self._problem or unavailable(self.file, error).text()

    def _is_done(self) -> bool:
        return self.upto is not None and self._position >= self.upto and not self.states

    def _write_some(self) -> bool:
        """
        Write the events up to the head, or to the next state and that state; tell whether there was
        anything.
        """
        last = self._lines.head() if self.upto is None else self.upto
        state = self.states[0] if self.states else None
        if state is not None:
            last = min(last, state.position)
        began = self._position
        for event in self._lines.events(self._position, last):
            self._out.write(line_of(event))
            self._position = event.position
        if state is not None and state.position == self._position:
            self._put_state(self._out, self.states.popleft())
            began = -1
        self._out.flush()
        return self._position != began

    def _put_state(self, out: IO[bytes], state: SnapshotLine) -> None:
        out.write(state.line())
        self._states_written += 1
