"""
What the scheduler process writes about itself: one JSON object a line.
"""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path


class Journal:
    """
    Append lines to a file; several threads may.

    What can't be written is dropped: a full disk must not stop the scheduler for its own notes.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._lock = threading.Lock()

    def write(self, level: str, what: str, **fields: object) -> None:
        """
        Write one line: when, how bad, what, and whatever belongs to it.
        """
        line = {"time_us": time.time_ns() // 1000, "level": level, "what": what, **fields}
        with self._lock:
            try:
                os.write(self._file, json.dumps(line, default=str).encode() + b"\n")
            except OSError:
                return

    def info(self, what: str, **fields: object) -> None:
        """
        Note what is as it should be.
        """
        self.write("info", what, **fields)

    def error(self, what: str, **fields: object) -> None:
        """
        Note what somebody should look at.
        """
        self.write("error", what, **fields)

    def close(self) -> None:
        """
        Close the file.
        """
        os.close(self._file)
