"""
The one writer's lock: a file lock that the kernel lets go when its holder dies, with the holder's
identity in it.

The lock alone makes nothing safe (a stopped process may wake up after somebody took over); the
epoch, compared inside every write transaction, does. The lock makes the refusal early, and names
who is in the way.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import socket
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from domain.errors import Conflict
from store.os_errors import unavailable

LOCK_FILE = "LOCK"
_held: set[int] = set()


@dataclass(frozen=True, slots=True)
class Holder:
    """
    Identify a process for ever: its number alone is given out again.

    Args:
        pid: Its number.
        start: When it started, in the kernel's ticks since boot.
        boot_id: Which boot of the machine.
        host: Name of the machine.
        is_clean: Whether it has given the lock back in good order.
    """

    pid: int
    start: int
    boot_id: str
    host: str
    is_clean: bool = False

    def text(self) -> str:
        """
        Return who it is, for people.
        """
        return f"process {self.pid} on {self.host} (start {self.start}, boot {self.boot_id[:8]})"


class WriterLock:
    """
    Hold the lock of a log directory, from making the object until `release`.

    Raises:
        Conflict: Another process, or this one, holds it; the error names it.
        StoreUnavailable: The lock file can't be opened or written.
    """

    def __init__(self, directory: Path) -> None:
        self.path = directory / LOCK_FILE
        try:
            self._handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise unavailable(self.path, error) from None
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            there = read_holder(directory)
            os.close(self._handle)
            found = "an unknown process" if there is None else there.text()
            raise Conflict(
                f"the log {directory} has a writer",
                "no writer",
                found,
                "Stop it first; reading needs no lock.",
            ) from None
        _held.add(self._handle)
        self.before = read_holder(directory)
        self.holder = this_process()
        self._write(self.holder)

    @property
    def is_after_crash_of_machine(self) -> bool:
        """
        Say whether the last holder never gave the lock back and the machine has started anew since.
        """
        return (
            self.before is not None
            and not self.before.is_clean
            and self.before.boot_id != self.holder.boot_id
        )

    def _write(self, holder: Holder) -> None:
        """
        Write who holds the lock.
        """
        text = json.dumps(asdict(holder)) + "\n"
        # A full disk must not keep a scheduler from starting or ending: the lock itself needs no
        # space.
        with suppress(OSError):
            os.ftruncate(self._handle, 0)
            os.pwrite(self._handle, text.encode(), 0)

    def release(self) -> None:
        """
        Give the lock back in good order; harmless when called again.
        """
        if self._handle in _held:
            self._write(
                Holder(
                    self.holder.pid,
                    self.holder.start,
                    self.holder.boot_id,
                    self.holder.host,
                    is_clean=True,
                )
            )
            _held.discard(self._handle)
            os.close(self._handle)


def take_over(directory: Path, *, timeout_s: float = 10.0) -> Holder | None:
    """
    End the process that holds the lock of a log directory; return who it was, None when nobody did.

    A stopped holder may sit on the engine's own writer lock, on which a newcomer would wait without
    limit; so it is killed, not passed by. It must be a process of this boot of this machine whose
    number was not given to another one since.

    Raises:
        Conflict: The holder isn't such a process, or doesn't end in time.
    """
    holder = read_holder(directory)
    if holder is None or not is_held(directory):
        return None
    here = this_process()
    if (holder.host, holder.boot_id) != (here.host, here.boot_id) or holder.pid == here.pid:
        raise Conflict("the log's writer can't be ended from here", here.text(), holder.text())
    try:
        handle = os.pidfd_open(holder.pid)
    except OSError:
        raise Conflict("the log's writer is not there", holder.text(), "no process") from None
    try:
        # The handle is on one process for good; its start then tells whether it is the right one.
        if start_of(holder.pid) != holder.start:
            raise Conflict("the log's writer is not there", holder.text(), "another process")
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        if not select.select([handle], [], [], timeout_s)[0]:
            raise Conflict("the log's writer doesn't end", f"within {timeout_s} s", holder.text())
    finally:
        os.close(handle)
    return holder


def is_held(directory: Path) -> bool:
    """
    Say whether somebody holds the lock of a log directory now.
    """
    try:
        handle = os.open(directory / LOCK_FILE, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def read_holder(directory: Path) -> Holder | None:
    """
    Return who wrote the lock file last, None when it can't be told.
    """
    try:
        return Holder(**json.loads((directory / LOCK_FILE).read_text()))
    except (OSError, ValueError, TypeError):
        return None


def this_process() -> Holder:
    """
    Return the identity of the calling process.
    """
    return Holder(os.getpid(), start_of(os.getpid()) or 0, boot_id(), socket.gethostname())


def start_of(pid: int) -> int | None:
    """
    Return when a process started, in ticks since boot; None when there is no such process.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The name in parentheses may hold anything; the 20th field behind it is the start.
    return int(text.rpartition(")")[2].split()[19])


def boot_id() -> str:
    """
    Return the identity of the machine's present boot, "" when the system has none.
    """
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _drop_inherited() -> None:
    """
    Close the locks in a forked child: they are the parent's, and must end with it.
    """
    for handle in _held:
        with suppress(OSError):
            os.close(handle)
    _held.clear()


os.register_at_fork(after_in_child=_drop_inherited)
