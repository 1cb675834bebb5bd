"""
Measure the host and what its jobs use.
"""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from pathlib import Path

import psutil

from domain.amounts import MEM, Amount, Attribute, HostResource
from domain.events.workers import JobUsage
from tools.agent.messages import Attempt, Phase
from tools.agent.protocol import Usage

CHANGE_SHARE = 10
"""A figure is told again when it has changed by more than a tenth of what was told last,"""
CHANGE_KIB_MIN = 4096
"""and by more than this, so that small jobs don't chatter."""


def slots() -> int:
    """
    Return how many processors this process may use.
    """
    return len(os.sched_getaffinity(0))


def resources() -> tuple[HostResource, ...]:
    """
    Return the consumable resources of the host.
    """
    return (
        HostResource(name=MEM, total_milli=_milli_kib(psutil.virtual_memory().total), is_real=True),
    )


def attributes() -> tuple[Attribute, ...]:
    """
    Return what the host is: its type (the architecture, as LSF names it), model and number of
    processors.
    """
    return (
        Attribute(name="type", value=platform.machine().upper() or "UNKNOWN"),
        Attribute(name="model", value=_model()),
        Attribute(name="ncpus", value=str(os.cpu_count() or 1)),
    )


def _model() -> str:
    with suppress(OSError):
        for line in (
            Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        ):
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine() or "unknown"


def _milli_kib(size_bytes: int) -> int:
    return size_bytes * 1000 // 1024


class Meter:
    """
    Measure again and again, and tell only what changed beyond the thresholds.
    """

    def __init__(self) -> None:
        self._told_load_milli = 0
        self._told: dict[tuple[str, int], JobUsage] = {}

    def measure(self, attempts: list[Attempt]) -> Usage | None:
        """
        Return load and the use of the running attempts, or None when nothing is worth telling.
        """
        running = {attempt.pid: attempt for attempt in attempts if attempt.phase is Phase.RUNNING}
        used = _used(running)
        free_milli = _milli_kib(psutil.virtual_memory().available)
        changed = tuple(usage for usage in used if self._is_news(usage))
        alive = {(usage.job_id, usage.attempt) for usage in used}
        self._told = {key: usage for key, usage in self._told.items() if key in alive}
        if not changed and not _has_changed(self._told_load_milli, free_milli):
            return None
        self._told_load_milli = free_milli
        self._told.update(((usage.job_id, usage.attempt), usage) for usage in changed)
        return Usage(load=(Amount(resource=MEM, milli=free_milli),), jobs=changed)

    def _is_news(self, usage: JobUsage) -> bool:
        told = self._told.get((usage.job_id, usage.attempt))
        if told is None or told.processes != usage.processes:
            return True
        return _has_changed(told.amounts[0].milli, usage.amounts[0].milli)


def _has_changed(told_milli: int, seen_milli: int) -> bool:
    change = abs(seen_milli - told_milli)
    return change > CHANGE_KIB_MIN * 1000 and change * CHANGE_SHARE > told_milli


def _used(running: dict[int, Attempt]) -> list[JobUsage]:
    """
    Add up memory, processor time and processes of each running attempt's process group.
    """
    totals = {group: [0, 0, 0] for group in running}
    for process in psutil.process_iter() if running else ():
        with suppress(psutil.Error, OSError):
            total = totals.get(os.getpgid(process.pid))
            if total is not None:
                spent = process.cpu_times()
                total[0] += process.memory_info().rss
                total[1] += round((spent.user + spent.system) * 1e6)
                total[2] += 1
    return [
        JobUsage(
            job_id=attempt.job_id,
            attempt=attempt.attempt,
            cpu_us=totals[group][1],
            processes=totals[group][2],
            amounts=(Amount(resource=MEM, milli=_milli_kib(totals[group][0])),),
        )
        for group, attempt in running.items()
        if totals[group][2]
    ]
