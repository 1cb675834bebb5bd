"""
Measure the disk's own synced appends: what every durable acknowledgement waits for at least once.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from tools.bench.frame import Figure, Reading

# A page, about a commit of a few commands.
APPEND_BYTES = 4096
APPENDS = 300


def synced_appends_per_s(folder: Path, appends: int = APPENDS) -> float:
    """
    Return how many appends of a page, each followed by fdatasync, the folder's disk takes a second.
    """
    page = bytes(APPEND_BYTES)
    handle = os.open(folder / "appends", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    try:
        begin = time.perf_counter()
        for _ in range(appends):
            os.write(handle, page)
            os.fdatasync(handle)
        return appends / (time.perf_counter() - begin)
    finally:
        os.close(handle)


def measure(folder: Path) -> list[Reading]:
    """
    Take one round.
    """
    return [Reading("synced appends of a page", synced_appends_per_s(folder), "1/s")]


FIGURE = Figure("disk", "Synced appends of a page per second, one after the other.", measure, 5)
