"""
Measure what a host does by the second: how busy its processors are, how much it pages and what goes
over its disks. The kernel counts these from its start on; what is told is a mean of a minute.
"""

from __future__ import annotations

import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from domain.units import MILLI

WINDOW_US: Final = 60_000_000
"""A mean is of so long at most, as LSF's indices are, so that a moment's peak is no load."""
SPAN_US_MIN: Final = 1_000_000
"""And of so long at least: of a few ticks it would say nothing."""

SECOND_US: Final = 1_000_000
SECTORS_A_KIB: Final = 2
IDLE, WAITING = 3, 4
BUSY_COLUMNS: Final = 8
"""user, nice, system, idle, iowait, irq, softirq, steal; what guests use is in user already."""
SECTORS_READ, SECTORS_WRITTEN = 5, 9

SYSTEM: Final = Path("/")


class Counters(NamedTuple):
    """
    Hold what the kernel has counted up to a moment; None for what it doesn't count here.
    """

    at_us: int
    busy_ticks: int | None
    all_ticks: int | None
    pages: int | None
    sectors: int | None


class Rates:
    """
    Remember the counters of the last minute.

    Args:
        root: Where proc and sys lie.
    """

    def __init__(self, root: Path = SYSTEM) -> None:
        self._root = root
        self._seen: deque[Counters] = deque()
        self.look()

    def look(self) -> None:
        """
        Take the counters in.
        """
        self.note(read_counters(self._root))

    def note(self, now: Counters) -> None:
        """
        Take counters in, and forget those that aren't needed for the last minute any more.
        """
        seen = self._seen
        seen.append(now)
        while len(seen) > 1 and now.at_us - seen[1].at_us >= WINDOW_US:
            seen.popleft()

    def indices(self) -> dict[str, int]:
        """
        Return the load indices that can be told, in thousandths: ut, the share of the processors'
        time that was used; pg, pages swapped in and out a second; io, KiB to and from disks a
        second.
        """
        first, last = self._seen[0], self._seen[-1]
        span_us = last.at_us - first.at_us
        if span_us < SPAN_US_MIN:
            return {}
        found: dict[str, int] = {}
        busy = _grown(first.busy_ticks, last.busy_ticks)
        every = _grown(first.all_ticks, last.all_ticks)
        if busy is not None and every:
            found["ut"] = min(busy * MILLI // every, MILLI)
        pages = _grown(first.pages, last.pages)
        sectors = _grown(first.sectors, last.sectors)
        if pages is not None:
            found["pg"] = pages * MILLI * SECOND_US // span_us
        if sectors is not None:
            found["io"] = sectors * MILLI * SECOND_US // (SECTORS_A_KIB * span_us)
        return found


def _grown(before: int | None, now: int | None) -> int | None:
    """
    Return by how much a counter grew, None when it isn't counted or began anew.
    """
    return now - before if before is not None and now is not None and now >= before else None


def read_counters(root: Path = SYSTEM) -> Counters:
    """
    Return what the kernel has counted up to now.
    """
    at_us = time.monotonic_ns() // 1_000
    busy, every = _processor_ticks(_lines(root / "proc/stat"))
    pages = _swapped_pages(_lines(root / "proc/vmstat"))
    return Counters(at_us, busy, every, pages, _disk_sectors(root))


def _lines(file: Path) -> list[str]:
    with suppress(OSError):
        return file.read_text(encoding="ascii", errors="replace").splitlines()
    return []


def _processor_ticks(lines: list[str]) -> tuple[int | None, int | None]:
    """
    Return what processors spent at work, and in all: waiting for a disk they do nothing.
    """
    words = lines[0].split() if lines else []
    if words[:1] != ["cpu"] or len(words) <= WAITING + 1:
        return None, None
    ticks = [int(word) for word in words[1 : 1 + BUSY_COLUMNS]]
    return sum(ticks) - ticks[IDLE] - ticks[WAITING], sum(ticks)


def _swapped_pages(lines: list[str]) -> int | None:
    """
    Return the pages that went to swap space or came back: what else is paged in are files.
    """
    counted = dict(line.split(" ", 1) for line in lines if line.startswith("pswp"))
    if not {"pswpin", "pswpout"} <= counted.keys():
        return None
    return int(counted["pswpin"]) + int(counted["pswpout"])


def _disk_sectors(root: Path) -> int | None:
    """
    Return the sectors read from and written to real disks: what goes over a volume or a loop made
    of them would be counted twice.
    """
    rows = (line.split() for line in _lines(root / "proc/diskstats"))
    of_disks = [
        int(row[SECTORS_READ]) + int(row[SECTORS_WRITTEN])
        for row in rows
        if len(row) > SECTORS_WRITTEN and _is_disk(root, row[2])
    ]
    return sum(of_disks) if of_disks else None


def _is_disk(root: Path, name: str) -> bool:
    return (root / "sys/block" / name.replace("/", "!") / "device").exists()


