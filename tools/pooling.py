"""
Processes of their own for one piece of work, spawned; none outlives it, however it is ended.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from typing import Any

from tools.cli.temporary import ended_by_exceptions


@contextmanager
def pool_of(
    processes: int, begin: Callable[..., None] | None = None, *given: Any
) -> Iterator[ProcessPoolExecutor]:
    """
    Give a pool; an exception, Ctrl-C, SIGTERM or SIGHUP ends its processes at once.

    Args:
        processes: How many there are at most.
        begin: Called in each when it begins.
        given: What it is called with.
    """
    others = set(active_children())
    with (
        ended_by_exceptions(),
        _program_left_out(),
        ProcessPoolExecutor(processes, get_context("spawn"), begin, given) as pool,
    ):
        try:
            yield pool
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            # What they do is worth nothing any more, and may take minutes.
            for process in set(active_children()) - others:
                process.kill()
            raise


@contextmanager
def _program_left_out() -> Iterator[None]:
    """
    Have new processes not import the program that was started: they need none of it, and it may be
    a script that would run again.
    """
    program: dict[str, Any] = vars(sys.modules["__main__"])
    names = ("__file__", "__spec__")
    hidden = {name: program.pop(name) for name in names if name in program}
    program["__spec__"] = None
    try:
        yield
    finally:
        program.update(hidden)
