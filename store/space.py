"""
How much room a log has left: on its disk and in its map.

Room that is getting short is a reason to refuse what can wait, so that what can't (the ends of
running jobs) is still accepted.
"""

from __future__ import annotations

import os
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

from store.os_errors import unavailable

LOW_SHARE = 15
CRITICAL_SHARE = 5
"""Percent left; but no more than these bytes are ever kept back."""
LOW_BYTES_MAX = 1 << 30
CRITICAL_BYTES_MAX = 128 << 20


class Room(IntEnum):
    """
    Say what should still be accepted.
    """

    PLENTY = 2
    """Everything."""
    LOW = 1
    """No new work: submissions are refused."""
    CRITICAL = 0
    """Only what ends work: completions, kills."""


class Space(NamedTuple):
    """
    Say what is left, in bytes.

    Fields: what an ordinary user may still write to the disk, and its size; what is left of the
    map, and its size.
    """

    disk_free: int
    disk_size: int
    map_free: int
    map_size: int

    @property
    def room(self) -> Room:
        """
        Return what should still be accepted.
        """
        return min(room_of(self.disk_free, self.disk_size), room_of(self.map_free, self.map_size))

    def text(self) -> str:
        """
        Return it for people.
        """
        disk = f"{self.disk_free >> 20} MiB of {self.disk_size >> 20} MiB left on the disk"
        return f"{disk}, {self.map_free >> 20} MiB of {self.map_size >> 20} MiB in the map"


def room_of(free: int, size: int) -> Room:
    """
    Return what should still be accepted with so much left of a whole.
    """
    if free < min(size * CRITICAL_SHARE // 100, CRITICAL_BYTES_MAX):
        return Room.CRITICAL
    if free < min(size * LOW_SHARE // 100, LOW_BYTES_MAX):
        return Room.LOW
    return Room.PLENTY


def space_at(directory: Path, *, map_used: int, map_size: int) -> Space:
    """
    Measure the room of a log.

    Raises:
        StoreUnavailable: The file system can't be asked.
    """
    try:
        found = os.statvfs(directory)
    except OSError as error:
        raise unavailable(directory, error) from None
    size, free = found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize
    return Space(free, size, max(0, map_size - map_used), map_size)
