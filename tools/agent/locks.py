"""
Locks that say who lives: an agent's, a launcher's.

Whoever starts such a process takes the lock first and hands it over open, so that there is no
moment at which the process exists and nobody can see it. The file holds the process id; it is empty
until that is known.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


def take(path: Path) -> int | None:
    """
    Return the open, locked file, its content gone; None when somebody else holds it.
    """
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    os.ftruncate(lock, 0)
    return lock


def adopt(path: Path, handed_over: int | None) -> int | None:
    """
    Return the lock that whoever started this process handed over, or take it; None when it is held.
    """
    lock = take(path) if handed_over is None else handed_over
    if lock is not None:
        os.set_inheritable(lock, False)
        write_holder(lock, os.getpid())
    return lock


def write_holder(lock: int, pid: int) -> None:
    """
    Say which process holds the lock.
    """
    os.pwrite(lock, f"{pid:<10}\n".encode(), 0)


def holder(path: Path) -> int:
    """
    Return the process that holds a lock, 0 when none does or it isn't known yet.
    """
    text = path.read_text(encoding="ascii").strip() if is_locked(path) else ""
    return int(text or 0)


def is_locked(path: Path) -> bool:
    """
    Tell whether a living process holds the lock on a file.
    """
    try:
        with path.open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False
