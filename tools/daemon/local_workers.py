"""
The local workers of a cluster: detached agents that outlive the scheduler, named local1, local2
and so on.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from domain.errors import StoreUnavailable
from tools.agent import locks, sockets
from tools.agent.files import WorkerFiles
from tools.agent.messages import ToLauncher, line_of
from tools.daemon.config import ClusterFiles

PREFIX = "local"
STOP_S = 20.0
LOOK_S = 0.01
ASK_AGAIN_S = 0.2


def start_missing(files: ClusterFiles, count: int, slots: int | None) -> list[str]:
    """
    Start the first *count* local workers where no agent of theirs lives; return whom it started.
    """
    wanted = [f"{PREFIX}{number}" for number in range(1, count + 1)]
    return [name for name in wanted if _start(WorkerFiles(files.directory, name), slots)]


def _start(files: WorkerFiles, slots: int | None) -> bool:
    files.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = locks.take(files.agent_lock)
    if lock is None:
        return False
    arguments = ["--dir", str(files.cluster), "--name", files.worker, "--lock", str(lock)]
    if slots is not None:
        arguments += ["--slots", str(slots)]
    try:
        with files.log("agent").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "tools.agent", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=(lock,),
            )
        locks.write_holder(lock, process.pid)
    finally:
        os.close(lock)
    # Nobody waits for it: it outlives this process, and a later one finds it by its lock.
    process.returncode = 0
    return True


def stop_all(files: ClusterFiles) -> dict[str, int]:
    """
    End every agent, launcher and job of the workers in the directory; return how many agents and
    launchers there were.

    Raises:
        StoreUnavailable: One doesn't end.
    """
    folders = sorted(files.workers.iterdir()) if files.workers.is_dir() else []
    workers = [WorkerFiles(files.directory, folder.name) for folder in folders if folder.is_dir()]
    agents = sum(_stop_agent(worker) for worker in workers)
    launchers = sum(_stop_launcher(worker) for worker in workers)
    for worker in workers:
        _clear_socket(worker)
    return {"agents": agents, "launchers": launchers}


def _clear_socket(worker: WorkerFiles) -> None:
    """
    Remove the socket that a launcher left, unless a new one has come.
    """
    lock = locks.take(worker.launcher_lock)
    if lock is not None:
        worker.launcher_socket.unlink(missing_ok=True)
        os.close(lock)


def _stop_agent(worker: WorkerFiles) -> bool:
    if not locks.is_locked(worker.agent_lock):
        return False

    def ask() -> None:
        pid = locks.holder(worker.agent_lock)
        if pid:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)

    _ask_until_gone(ask, f"agent of {worker.worker}", worker.agent_lock)
    return True


def _stop_launcher(worker: WorkerFiles) -> bool:
    """
    Tell a launcher to end with all its jobs; their ends stay in its journal.
    """
    if not locks.is_locked(worker.launcher_lock):
        return False

    def ask() -> None:
        # One that is still on its way doesn't listen yet.
        with suppress(OSError), sockets.connect(worker.launcher_socket, timeout_s=1.0) as link:
            link.sendall(line_of(ToLauncher(quit=True)))
            link.recv(1)

    _ask_until_gone(ask, f"launcher of {worker.worker}", worker.launcher_lock)
    return True


def _ask_until_gone(ask: Callable[[], None], what: str, lock: Path) -> None:
    """
    Ask a process to end, now and again, until it has.
    """
    deadline = time.monotonic() + STOP_S
    ask_at = 0.0
    while locks.is_locked(lock):
        now = time.monotonic()
        if now > deadline:
            found = f"process {locks.holder(lock)} doesn't end"
            raise StoreUnavailable(what, str(lock), found, "Kill it: kill -9.")
        if now >= ask_at:
            ask()
            ask_at = now + ASK_AGAIN_S
        time.sleep(LOOK_S)
