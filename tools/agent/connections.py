"""
The agents that are connected to a launcher: what they say, whole lines at a time, and who of them
wants to hear.
"""

from __future__ import annotations

import os
import selectors
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from tools.agent import sockets
from tools.agent.messages import ToLauncher, to_launcher

LINE_BYTES_MAX: Final = 1 << 26
SEND_S: Final = 5.0
"""So long an agent may take to hear a line before it is dropped."""


class AgentConnections:
    """
    Take connections on a socket, messages from them, and lines to them.

    Args:
        path: The socket to listen on.
        selector: Tells the owner that something came; what is registered here are sockets.
    """

    def __init__(self, path: Path, selector: selectors.BaseSelector) -> None:
        self._selector = selector
        self._listener = sockets.listen(path, backlog=8)
        self._selector.register(self._listener, selectors.EVENT_READ, None)
        self._received: dict[socket.socket, bytearray] = {}
        self._listening: set[socket.socket] = set()

    def __bool__(self) -> bool:
        return bool(self._received)

    def read(self, ready: socket.socket) -> list[tuple[socket.socket, ToLauncher]]:
        """
        Take what came on a socket, and return the whole messages among it with who sent them.
        """
        if ready is self._listener:
            self._accept()
            return []
        return self._receive(ready)

    def listen(self, connection: socket.socket) -> None:
        """
        Tell this agent everything from now on.
        """
        self._listening.add(connection)

    def tell(self, line: bytes) -> None:
        """
        Send a line to every agent that listens.
        """
        for connection in list(self._listening):
            self.send(connection, line)

    def send(self, connection: socket.socket, line: bytes) -> None:
        """
        Send a line to one agent; it is dropped when that fails.
        """
        try:
            connection.settimeout(SEND_S)
            connection.sendall(line)
        except OSError:
            self._drop(connection)

    def close(self) -> None:
        """
        Take no more connections.
        """
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            connection, _ = self._listener.accept()
            if sockets.peer_of(connection)[1] not in (os.geteuid(), 0):
                connection.close()
                return
            connection.setblocking(True)
            self._received[connection] = bytearray()
            self._selector.register(connection, selectors.EVENT_READ, None)

    def _receive(self, connection: socket.socket) -> list[tuple[socket.socket, ToLauncher]]:
        try:
            data = connection.recv(1 << 16)
        except OSError:
            data = b""
        waiting = self._received[connection]
        waiting += data
        if not data or len(waiting) > LINE_BYTES_MAX:
            self._drop(connection)
            return []
        *lines, rest = waiting.split(b"\n")
        self._received[connection] = rest
        try:
            return [(connection, to_launcher(bytes(line))) for line in lines]
        except (ValueError, KeyError, TypeError) as error:
            log(f"refused a line: {error!r}")
            self._drop(connection)
            return []

    def _drop(self, connection: socket.socket) -> None:
        self._selector.unregister(connection)
        self._listening.discard(connection)
        self._received.pop(connection, None)
        connection.close()


def log(text: str) -> None:
    """
    Write a line to the launcher's own log, which its standard error is.
    """
    print(f"launcher: {text}", file=sys.stderr, flush=True)  # noqa: T201
