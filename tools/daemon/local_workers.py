"""
The local workers of a cluster: detached agents that outlive the scheduler, named local1, local2
and so on.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from domain.errors import StoreUnavailable
from tools.agent import sockets
from tools.agent.files import WorkerFiles
from tools.agent.messages import ToLauncher, line_of
from tools.daemon.config import ClusterFiles

PREFIX = "local"
STOP_S = 20.0
LOOK_S = 0.01


def start_missing(files: ClusterFiles, count: int, slots: int | None) -> list[str]:
    """
    Start the first *count* local workers where no agent of theirs lives; return whom it started.
    """
    wanted = [f"{PREFIX}{number}" for number in range(1, count + 1)]
    return [name for name in wanted if _start(WorkerFiles(files.directory, name), slots)]


def _start(files: WorkerFiles, slots: int | None) -> bool:
    if is_locked(files.agent_lock):
        return False
    files.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    arguments = ["--dir", str(files.cluster), "--name", files.worker]
    if slots is not None:
        arguments += ["--slots", str(slots)]
    with files.log("agent").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "tools.agent", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    # Nobody waits for it: it outlives this process, and a later one finds it by its lock.
    process.returncode = 0
    return True


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
    return {"agents": agents, "launchers": sum(_stop_launcher(worker) for worker in workers)}


def _stop_agent(worker: WorkerFiles) -> bool:
    if not is_locked(worker.agent_lock):
        return False
    with suppress(ProcessLookupError, ValueError):
        os.kill(int(worker.agent_lock.read_text(encoding="ascii")), signal.SIGTERM)
    _wait(lambda: not is_locked(worker.agent_lock), f"agent of {worker.worker}", worker.agent_lock)
    return True


def _stop_launcher(worker: WorkerFiles) -> bool:
    """
    Tell a launcher to end with all its jobs; their ends stay in its journal.
    """
    if not is_locked(worker.launcher_lock):
        return False
    with suppress(OSError), sockets.connect(worker.launcher_socket, timeout_s=STOP_S) as link:
        link.sendall(line_of(ToLauncher(quit=True)))
        _wait(
            lambda: not is_locked(worker.launcher_lock),
            f"launcher of {worker.worker}",
            worker.launcher_lock,
        )
    return True


def _wait(is_gone: Callable[[], bool], what: str, path: Path) -> None:
    deadline = time.monotonic() + STOP_S
    while not is_gone():
        if time.monotonic() > deadline:
            pid = path.read_text(encoding="ascii").strip()
            raise StoreUnavailable(
                what, str(path), f"process {pid} doesn't end", "Kill it: kill -9."
            )
        time.sleep(LOOK_S)
