"""
Measure a host's load: what is free, how long its run queue is, and what of all that is worth
telling.
"""

from __future__ import annotations

import os
import tempfile
from typing import Final

import psutil

from domain.amounts import MEM, Amount
from domain.units import MILLI

CHANGE_SHARE: Final = 10
"""A figure is told again when it has changed by more than a tenth of what was told last,"""
CHANGE_KIB_MIN: Final = 4096
"""and by more than this, so that small jobs don't chatter."""
CHANGES: Final = {
    "r1m": (4, 500),
    "r15m": (4, 500),
    "ut": (4, 100),
    "pg": (4, 10 * MILLI),
    "io": (4, 1024 * MILLI),
    "ls": (10**9, 0),
    "it": (10, MILLI - 1),
}
"""Load index -> of which share, and of how many thousandths, a change is worth telling when it is
more than both: a quarter and half a process; a tenth of all processors; 10 pages, 1 MiB a second;
any change of who is logged in; a minute, and of long times a tenth."""

KIB_BYTES: Final = 1024


def milli_kib(size_bytes: int) -> int:
    """
    Return bytes as thousandths of a KiB.
    """
    return size_bytes * MILLI // KIB_BYTES


def load_of_host() -> dict[str, int]:
    """
    Return what is free and the load indices, in thousandths, under LSF's names.

    Raises:
        OSError: It can't be measured.
    """
    minute, _, quarter = os.getloadavg()
    return {
        MEM: milli_kib(psutil.virtual_memory().available),
        "swp": milli_kib(psutil.swap_memory().free),
        "tmp": milli_kib(psutil.disk_usage(tempfile.gettempdir()).free),
        "r1m": round(minute * MILLI),
        "r15m": round(quarter * MILLI),
    }


class LoadNews:
    """
    Remember what was told of the load, and say what is worth telling.
    """

    def __init__(self) -> None:
        self._told: dict[str, int] = {}

    def of(self, load: dict[str, int]) -> tuple[Amount, ...]:
        """
        Return the figures that weren't told yet, or have changed beyond their threshold.
        """
        return tuple(
            Amount(resource=name, milli=milli)
            for name, milli in load.items()
            if self._is_news(name, milli)
        )

    def note(self, told: tuple[Amount, ...]) -> None:
        """
        Remember what is told.
        """
        self._told.update((amount.resource, amount.milli) for amount in told)

    def forget(self) -> None:
        """
        Have every figure told again.
        """
        self._told.clear()

    def _is_news(self, name: str, milli: int) -> bool:
        told = self._told.get(name)
        if told is None:
            return True
        if name not in CHANGES:
            return has_changed(told, milli)
        share, least = CHANGES[name]
        change = abs(milli - told)
        return change > least and change * share > told


def has_changed(told_milli: int, seen_milli: int) -> bool:
    """
    Say whether an amount of memory has changed beyond the threshold.
    """
    change = abs(seen_milli - told_milli)
    return change > CHANGE_KIB_MIN * MILLI and change * CHANGE_SHARE > told_milli
