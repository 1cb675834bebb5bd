"""
Paths of a job's files, in which %J and %I are filled in when it starts.
"""

from __future__ import annotations

import posixpath
from typing import Final

STREAMS: Final = ("stdin", "stdout", "stderr")
"""The files that the operating system gives a program when it starts."""


def within(directory: str, path: str) -> str:
    """
    Return a file of a job as an absolute path, "" when there is none: relative ones count from the
    job's directory, whose name is meant as it is.
    """
    return posixpath.join(directory.replace("%", "%%"), path) if path else ""
