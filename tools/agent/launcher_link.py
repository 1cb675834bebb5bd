"""
The agent's side of the launcher: start it where none lives, ask it, hear what happens.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator

from tools.agent import locks, sockets
from tools.agent.files import WorkerFiles
from tools.agent.messages import FromLauncher, ToLauncher, from_launcher, line_of

START_S = 10.0
RETRY_S = 0.02
LINE_BYTES_MAX = 1 << 28


class LauncherLink:
    """
    Hold the connection to the worker's launcher.
    """

    def __init__(self, files: WorkerFiles) -> None:
        self._files = files
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def connect(self) -> None:
        """
        Connect to the living launcher, or start one.

        Raises:
            TimeoutError: None could be started.
        """
        async with asyncio.timeout(START_S):
            started: subprocess.Popen[bytes] | None = None
            while self._streams is None:
                try:
                    connection = sockets.connect(self._files.launcher_socket)
                except OSError:
                    if started is None or started.poll() is not None:
                        started = start_launcher(self._files)
                    await asyncio.sleep(RETRY_S)
                    continue
                self._streams = await asyncio.open_unix_connection(
                    sock=connection, limit=LINE_BYTES_MAX
                )
        self.send(ToLauncher(hello=True))

    def send(self, message: ToLauncher) -> None:
        """
        Send one message; what is lost with a broken connection is asked again after the next hello.
        """
        if self._streams is not None:
            self._streams[1].write(line_of(message))

    async def messages(self) -> AsyncIterator[FromLauncher]:
        """
        Yield what the launcher tells, until the connection breaks.
        """
        while self._streams is not None:
            try:
                line = await self._streams[0].readline()
            except ConnectionError:
                # A launcher that is killed with something unread resets the connection.
                line = b""
            if not line.endswith(b"\n"):
                self.close()
                return
            yield from_launcher(line)

    def close(self) -> None:
        """
        Drop the connection; the launcher lives on.
        """
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


def start_launcher(files: WorkerFiles) -> subprocess.Popen[bytes] | None:
    """
    Start a launcher in a session of its own, so that it outlives whoever started it; None when one
    is alive, or on its way.
    """
    lock = locks.take(files.launcher_lock)
    if lock is None:
        return None
    arguments = ["--dir", str(files.cluster), "--name", files.worker, "--lock", str(lock)]
    try:
        with files.log("launcher").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "tools.agent.launcher", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=(lock,),
            )
        locks.write_holder(lock, process.pid)
    finally:
        os.close(lock)
    return process
