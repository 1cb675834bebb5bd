"""
Measure bare posix_spawn: how many programs the machine can start and reap, with nothing around it.
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

from tools.bench.frame import Figure, NotMeasured, Reading

SPAWNS = 300


def spawns_per_s(spawns: int = SPAWNS, *, at_once: int = 1) -> float:
    """
    Return how many runs of `true` are started and reaped a second.

    Args:
        spawns: How many in all.
        at_once: How many run at a time.
    """
    program = shutil.which("true")
    if program is None:
        raise NotMeasured("there is no program named true")
    begin = time.perf_counter()
    running = 0
    for _ in range(spawns):
        if running == at_once:
            os.wait()
            running -= 1
        os.posix_spawn(program, ["true"], {})
        running += 1
    for _ in range(running):
        os.wait()
    return spawns / (time.perf_counter() - begin)


def measure(folder: Path) -> list[Reading]:  # noqa: ARG001 - the frame's protocol
    """
    Take one round.
    """
    return [
        Reading("one at a time", spawns_per_s(), "1/s"),
        Reading("two at once", spawns_per_s(at_once=2), "1/s", per="one at a time"),
    ]


FIGURE = Figure("spawn", "Runs of `true` per second by bare posix_spawn.", measure, 5)
