"""
Write one recording of a running scheduler: ``python -m tools.daemon.record_process DIR FILE
POSITION EVERY``.

FILE has its header already. This process folds the log up to POSITION, as a start does, writes the
state, and then what is committed, with a state every so many events. It tells on standard output,
in lines of JSON, how far it is. A line on standard input says up to where to write; when the input
ends without one, the scheduler is gone, and what it had committed is written.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import IO, Final

from domain.errors import XceError
from projections.scheduling.core import SCHEMA
from replay.engine import Engine, apply_all
from replay.plugins import found_plugins
from store.codec import decode
from store.log import EventLog
from store.os_errors import unavailable
from store.recordings import LogLines, SnapshotLine, line_of
from tools.collecting import collect_rarely, uncollected
from tools.daemon.config import ClusterFiles
from tools.daemon.snapshot_process import GIVE_WAY, store_of

LOOK_S: Final = 0.2


class Writer:
    """
    Write a recording.

    Args:
        log: The log, open for reading.
        files: The cluster's files.
        position: The last position that isn't in it.
        every: A state is written every so many events.
        out: Where to.

    ``upto`` is the last position to write, None for no end yet.
    """

    def __init__(
        self, log: EventLog, files: ClusterFiles, position: int, every: int, out: IO[bytes]
    ) -> None:
        self._lines = LogLines(files.log)
        self._every = every
        self._out = out
        snapshots = store_of(files, log.log_id)
        with uncollected():
            self._engine = Engine.recover(
                log, plugins=found_plugins(), snapshots=snapshots, upto=position
            )
        collect_rarely()
        self._last_state = position
        self._states = 0
        self.upto: int | None = None

    def write_all(self) -> None:
        """
        Write until the end is reached.

        Raises:
            OSError: The file can't be written.
            Corrupt: The log doesn't check.
        """
        self._put_state()
        self._tell()
        while self.upto is None or self._engine.position < self.upto:
            if not self._write_some():
                time.sleep(LOOK_S)
        os.fsync(self._out.fileno())

    def _write_some(self) -> bool:
        """
        Write the events up to the head, or to the next state and that state; tell whether there was
        anything.
        """
        engine = self._engine
        began = engine.position
        head = self._lines.head()
        for event in self._lines.events(began, head if self.upto is None else self.upto):
            self._out.write(line_of(event))
            apply_all(engine.core, [decode(event.position, *event.row)])  # type: ignore[arg-type]
            engine.position = event.position
            if event.ends_commit and event.position - self._last_state >= self._every:
                self._put_state()
                break
        if engine.position == began:
            return False
        self._tell()
        return True

    def _put_state(self) -> None:
        engine = self._engine
        state = SnapshotLine(
            engine.position,
            engine.core.state.stored.time_us,
            SCHEMA,
            engine.log.digest_at(engine.position).hex(),
            engine.core.snapshot(),
        )
        self._out.write(state.line())
        self._last_state = engine.position
        self._states += 1

    def _tell(self) -> None:
        """
        Say how far it is, once the lines are out of this process.
        """
        self._out.flush()
        tell(position=self._engine.position, states=self._states)

    def heed_input(self) -> None:
        """
        Take in where to end: what standard input says, else with what is committed when it ends.
        """
        line = sys.stdin.readline()
        self.upto = int(line) if line.endswith("\n") else self._lines.head()


def tell(**what: object) -> None:
    """
    Tell whoever still listens.
    """
    try:
        print(json.dumps(what), flush=True)  # noqa: T201 - the lines on standard output
    except BrokenPipeError:
        return


def main(arguments: list[str]) -> int:
    """
    Write it and return the exit status.
    """
    directory, file, position, every = arguments
    os.nice(GIVE_WAY)
    files = ClusterFiles(Path(directory))
    try:
        with EventLog.open(files.log, writable=False) as log, Path(file).open("ab") as out:
            writer = Writer(log, files, int(position), int(every), out)
            threading.Thread(target=writer.heed_input, daemon=True).start()
            writer.write_all()
    except OSError as error:
        tell(problem=unavailable(Path(file), error).text())
    except XceError as error:
        tell(problem=error.text())
    else:
        tell(is_whole=True)
        return 0
    return 1


if __name__ == "__main__":
    # Taking a large state apart again would take longer than the rest of the end.
    os._exit(main(sys.argv[1:]))
