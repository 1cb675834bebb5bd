"""
A temporary directory of a command, gone however the command is ended.
"""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import current_thread, main_thread
from types import FrameType
from typing import NoReturn

ENDING = (signal.SIGTERM, signal.SIGHUP)
SIGNALLED = 128
"""What shells add to a signal's number for an exit status."""


@contextmanager
def temporary_directory(prefix: str | None = None, parent: Path | None = None) -> Iterator[Path]:
    """
    Give a new directory that is removed at the end, also at one by Ctrl-C, SIGTERM or SIGHUP.

    Args:
        prefix: What its name begins with.
        parent: Where it is made; None for the system's place.
    """
    with (
        ended_by_exceptions(),
        tempfile.TemporaryDirectory(prefix=prefix, dir=parent) as directory,
    ):
        yield Path(directory)


@contextmanager
def ended_by_exceptions() -> Iterator[None]:
    """
    Have SIGTERM and SIGHUP end the block by an exception, as Ctrl-C does.
    """
    # Python raises an exception for Ctrl-C alone; other signals would leave no time to tidy up.
    before = {}
    if current_thread() is main_thread():
        handled = (number for number in ENDING if signal.getsignal(number) is signal.SIG_DFL)
        before = {number: signal.signal(number, _end) for number in handled}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    # A second one must not end the tidying up.
    for each in (*ENDING, signal.SIGINT):
        signal.signal(each, signal.SIG_IGN)
    raise SystemExit(SIGNALLED + number)
