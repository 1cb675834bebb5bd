"""
Measure who is logged in on a host, and how long ago something was last typed there.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

from domain.units import MILLI

MINUTE_S: Final = 60
LOGINS: Final = ("run/utmp", "var/run/utmp")
TERMINALS: Final = ("dev/pts/[0-9]*", "dev/tty[0-9]*", "dev/ttyS[0-9]*", "dev/console")

SYSTEM: Final = Path("/")


def indices(root: Path = SYSTEM) -> dict[str, int]:
    """
    Return the load indices that can be told, in thousandths: ls, how many users are logged in; it,
    whole minutes since the last input at any terminal, or since the start of the system.
    """
    found = {"it": _idle_minutes(root) * MILLI}
    if any((root / place).exists() for place in LOGINS):
        found["ls"] = len({one.name for one in psutil.users()}) * MILLI
    return found


def _idle_minutes(root: Path) -> int:
    now_s = int(time.time())
    last_s = max(_inputs_s(root), default=0)
    # A device file that nobody has touched since is older than the system's start.
    return max(0, now_s - max(last_s, int(psutil.boot_time()))) // MINUTE_S


def _inputs_s(root: Path) -> Iterator[int]:
    """
    Yield when something was last read from each terminal, which is what its access time says.
    """
    for pattern in TERMINALS:
        for file in root.glob(pattern):
            with suppress(OSError):
                yield int(file.stat().st_atime)
