"""
Processes by what the kernel tells under /proc: when one was born, whether it is the same one, who
runs an attempt.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

JOB_VARIABLE = "XCE_JOB_ID"
ATTEMPT_VARIABLE = "XCE_ATTEMPT"
WORKER_VARIABLE = "XCE_WORKER_DIR"

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str:
    """
    Return the identity of this boot of the machine.
    """
    return _BOOT_ID.read_text(encoding="ascii").strip()


def _facts(pid: int) -> list[bytes]:
    """
    Return what stands in a process's stat file after its name, nothing when there is none.
    """
    try:
        # The name may hold blanks and brackets: what counts begins after its last bracket.
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return []


def born_ticks(pid: int) -> int:
    """
    Return when a process began, in ticks since boot, or 0 when there is none (or only its remains).
    """
    facts = _facts(pid)
    return 0 if not facts or facts[0] in (b"Z", b"X") else int(facts[19])


def is_stopped(pid: int) -> bool:
    """
    Tell whether a process is stopped by a signal.
    """
    return _facts(pid)[:1] == [b"T"]


def find_attempt(job_id: str, attempt: int, worker_directory: str) -> int:
    """
    Return the first process of an attempt, known by its environment, or 0 when there is none.

    Used only when a launcher died between a start and its record; the leader of a group is its
    first process.
    """
    wanted = {
        f"{JOB_VARIABLE}={job_id}".encode(),
        f"{ATTEMPT_VARIABLE}={attempt}".encode(),
        f"{WORKER_VARIABLE}={worker_directory}".encode(),
    }
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        with suppress(OSError):
            variables = set((folder / "environ").read_bytes().split(b"\0"))
            if wanted <= variables and os.getpgid(int(folder.name)) == int(folder.name):
                return int(folder.name)
    return 0
