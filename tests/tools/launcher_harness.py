"""
A real launcher and a plain client of it, for tests.
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tools.agent import sockets
from tools.agent.files import WorkerFiles
from tools.agent.messages import (
    Attempt,
    AttemptKey,
    FromLauncher,
    OrderOutcome,
    Phase,
    StartRequest,
    ToLauncher,
    from_launcher,
    line_of,
)

DEADLINE_S = 20.0


class Client:
    """
    Be an agent's connection, and keep all that the launcher told.
    """

    def __init__(self, files: WorkerFiles) -> None:
        self._socket = connected(files)
        self._socket.settimeout(DEADLINE_S)
        self._lines = self._socket.makefile("rb")
        self.attempts: dict[AttemptKey, Attempt] = {}
        self.orders: list[OrderOutcome] = []
        self.send(ToLauncher(hello=True))
        self.greeting = self.hear()

    def send(self, message: ToLauncher) -> None:
        self._socket.sendall(line_of(message))

    def start(self, *requests: StartRequest) -> None:
        self.send(ToLauncher(start=list(requests)))

    def hear(self) -> FromLauncher:
        told = from_launcher(self._lines.readline())
        self.attempts.update((one.key, one) for one in told.attempts)
        self.orders += told.orders
        return told

    def wait_ended(self, *keys: AttemptKey) -> list[Attempt]:
        while not all(
            key in self.attempts and self.attempts[key].phase is Phase.ENDED for key in keys
        ):
            self.hear()
        return [self.attempts[key] for key in keys]

    def wait_running(self, key: AttemptKey) -> Attempt:
        while key not in self.attempts or self.attempts[key].phase is Phase.INTENDED:
            self.hear()
        return self.attempts[key]

    def close(self) -> None:
        self._lines.close()
        self._socket.close()


def connected(files: WorkerFiles) -> socket.socket:
    deadline = time.monotonic() + DEADLINE_S
    while True:
        try:
            return sockets.connect(files.launcher_socket)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.005)


def start_process(files: WorkerFiles, *, lonely_s: float = 60) -> subprocess.Popen[bytes]:
    files.directory.mkdir(parents=True, exist_ok=True)
    arguments = ["--dir", str(files.cluster), "--name", files.worker, "--lonely-s", str(lonely_s)]
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "tools.agent.launcher", *arguments], start_new_session=True
    )


@contextmanager
def running(directory: Path, name: str = "w1") -> Iterator[WorkerFiles]:
    """
    Give the files of a worker whose launcher runs; whatever runs there is ended afterwards.
    """
    files = WorkerFiles(directory, name)
    process = start_process(files)
    connected(files).close()
    try:
        yield files
    finally:
        end(files)
        process.kill()
        process.wait()


def end(files: WorkerFiles) -> None:
    """
    Tell the living launcher to end everything, and wait until it is gone.
    """
    with suppress(OSError), sockets.connect(files.launcher_socket) as connection:
        connection.sendall(line_of(ToLauncher(quit=True)))
        connection.settimeout(DEADLINE_S)
        connection.recv(1)


def crash(files: WorkerFiles) -> None:
    """
    Kill the launcher as a power cut of its process would, and wait until its lock is free.
    """
    os.kill(int(files.launcher_lock.read_text()), signal.SIGKILL)
    wait_gone(files)


def wait_gone(files: WorkerFiles) -> None:
    """
    Wait until no launcher of the worker lives.
    """
    with files.launcher_lock.open() as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)


def request(job_id: str, *argv: str, directory: Path, **changes: object) -> StartRequest:
    """
    Return a start with sensible values for what isn't given.
    """
    values: dict[str, object] = {
        "job_id": job_id,
        "attempt": 1,
        "argv": argv,
        "env": {"PATH": "/usr/bin:/bin"},
        "cwd": str(directory),
        "umask": None,
        "stdin": "",
        "stdout": f"{directory}/{job_id}.out",
        "stderr": f"{directory}/{job_id}.err",
    }
    return StartRequest(**(values | changes))
