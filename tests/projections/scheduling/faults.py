"""
Faults at every step of a piece of the core.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import CO_GENERATOR
from types import FrameType
from typing import Any


@contextmanager
def out_of_memory_at(step: int, *files: str) -> Iterator[list[int]]:
    """
    Raise when one of some files, or of the files of some folders, calls its step-th function,
    counted from 1; 0 only counts.
    """
    count = [0]
    generators: list[FrameType] = []

    def trace(frame: FrameType, event: str, argument: Any) -> None:
        if event != "call" or not any(file in frame.f_code.co_filename for file in files):
            return
        if frame.f_code.co_flags & CO_GENERATOR:
            # A generator is called at each step, and when it is dropped; only its start counts.
            if any(frame is known for known in generators):
                return
            generators.append(frame)
        count[0] += 1
        if count[0] == step:
            raise MemoryError

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield count
    finally:
        sys.settrace(before)
