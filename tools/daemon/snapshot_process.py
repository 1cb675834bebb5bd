"""
Make one snapshot of a cluster and end: ``python -m tools.daemon.snapshot_process DIR POSITION``.

It folds the log as a start does, and so needs nothing of the process that serves. The answer is one
line of JSON. When standard input ends, whoever asked for it is gone, and so is it.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
from pathlib import Path

from domain.errors import XceError
from replay.engine import Engine
from replay.plugins import found_plugins
from store.log import EventLog
from store.snapshots import SnapshotStore
from tools.daemon.config import ClusterFiles

GIVE_WAY = 10
# The newest, in case one is bad; and for so many days the last of the day.
KEEP_SNAPSHOTS, KEEP_DAYS = 3, 7
GONE = 75


def store_of(files: ClusterFiles, log_id: str) -> SnapshotStore:
    """
    Return the snapshots of a cluster, kept as a live scheduler keeps them.
    """
    return SnapshotStore(files.snapshots, log_id=log_id, keep=KEEP_SNAPSHOTS, daily=KEEP_DAYS)


def make_snapshot(files: ClusterFiles, position: int) -> object:
    """
    Keep a snapshot of the state at a position of the log; return its file.

    Raises:
        StoreUnavailable: It can't be written.
        Corrupt: The log doesn't check.
    """
    with EventLog.open(files.log, writable=False) as log:
        snapshots = store_of(files, log.log_id)
        engine = Engine.recover(log, plugins=found_plugins(), snapshots=snapshots, upto=position)
        return engine.take_snapshot()


def _end_with_input() -> None:
    while os.read(sys.stdin.fileno(), 1):
        pass
    os._exit(GONE)


def main(arguments: list[str]) -> int:
    """
    Make it and return the exit status.
    """
    directory, position = arguments
    os.nice(GIVE_WAY)
    gc.disable()  # A fold makes hardly any cycles, and this ends before they matter.
    threading.Thread(target=_end_with_input, daemon=True).start()
    try:
        told = {"file": str(make_snapshot(ClusterFiles(Path(directory)), int(position)))}
        status = 0
    except XceError as error:
        told, status = {"error": error.text()}, error.exit_status
    print(json.dumps(told), flush=True)  # noqa: T201 - the one line on standard output
    return status


if __name__ == "__main__":
    # Taking a large state apart again would take longer than all the rest.
    os._exit(main(sys.argv[1:]))
