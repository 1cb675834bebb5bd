"""
Processes by what the kernel tells under /proc: when one was born, whether it is the same one, who
runs an attempt.
"""

from __future__ import annotations

import os
import selectors
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tools.agent.messages import AttemptKey

JOB_VARIABLE = "XCE_JOB_ID"
ATTEMPT_VARIABLE = "XCE_ATTEMPT"
WORKER_VARIABLE = "XCE_WORKER_DIR"

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Process(NamedTuple):
    """
    Hold what one look at a living process showed.

    Args:
        parent: Its parent's number.
        group: Its process group.
        born: When it began, in ticks since boot: tells it from a later one of the same number.
    """

    pid: int
    parent: int
    group: int
    born: int


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


def swapped_bytes(pid: int) -> int:
    """
    Return how much of a process lies in swap space, 0 when there is no such process.
    """
    try:
        status = Path(f"/proc/{pid}/status").read_bytes()
    except OSError:
        return 0
    return swapped_in(status)


def swapped_in(status: bytes) -> int:
    """
    Return the same from its status file; kernel threads have no such line.
    """
    words = status.partition(b"\nVmSwap:")[2].split(maxsplit=2)
    return int(words[0]) * 1024 if words else 0


def is_stopped(pid: int) -> bool:
    """
    Tell whether a process is stopped by a signal.
    """
    return _facts(pid)[:1] == [b"T"]


def living() -> Iterator[Process]:
    """
    Yield every living process; what has ended and isn't waited for yet isn't one.
    """
    with os.scandir("/proc") as folders:
        numbers = [int(folder.name) for folder in folders if folder.name.isdigit()]
    for pid in numbers:
        facts = _facts(pid)
        if facts and facts[0] not in (b"Z", b"X"):
            yield Process(pid, int(facts[1]), int(facts[2]), int(facts[19]))


def send(process: Process, number: signal.Signals) -> bool:
    """
    Send a signal to exactly this process, never to a later one of its number; tell whether it went.
    """
    try:
        held = os.pidfd_open(process.pid)
    except OSError:
        return False
    try:
        if born_ticks(process.pid) != process.born:
            return False
        signal.pidfd_send_signal(held, number)
    except OSError:
        return False
    finally:
        os.close(held)
    return True


def ended_child() -> int | None:
    """
    Return a child that has ended and isn't waited for yet, None when there is none.
    """
    try:
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    return None if ended is None else ended.si_pid


def has_children() -> bool:
    """
    Tell whether this process has any child, alive or not waited for yet.
    """
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def is_over(watched: int) -> bool:
    """
    Tell whether the process of a process descriptor has ended.
    """
    poll = selectors.PollSelector()
    poll.register(watched, selectors.EVENT_READ)
    return bool(poll.select(0))


def owner_of(pid: int, worker_directory: str) -> AttemptKey | None:
    """
    Return the attempt of this worker that a process was started for, by its environment; None when
    that doesn't say, or can't be read.
    """
    try:
        lines = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    told = dict(line.partition(b"=")[::2] for line in lines)
    if told.get(WORKER_VARIABLE.encode()) != os.fsencode(worker_directory):
        return None
    job_id, attempt = (told.get(name.encode(), b"") for name in (JOB_VARIABLE, ATTEMPT_VARIABLE))
    if not attempt.isdigit():
        return None
    return AttemptKey(job_id.decode(errors="replace"), int(attempt))


def find_attempt(job_id: str, attempt: int, worker_directory: str) -> int:
    """
    Return the first process of an attempt, known by its environment, or 0 when there is none.

    Used only when a launcher died between a start and its record; the leader of a group is its
    first process.
    """
    wanted = AttemptKey(job_id, attempt)
    for one in living():
        if one.group == one.pid and owner_of(one.pid, worker_directory) == wanted:
            return one.pid
    return 0
