"""
A small HTTP client over a unix socket: one request at a time on a connection that is kept.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

from tools.agent import sockets

CONNECT_S = 5.0


class Unreachable(Exception):  # noqa: N818 - it says what happened
    """
    Say that the scheduler didn't answer; what was asked may have been done or not.
    """


class HttpClient:
    """
    Ask a server that listens on a unix socket.

    Args:
        path: The socket.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._is_interrupted = False

    async def ask(
        self, method: str, target: str, body: bytes = b"", *, timeout_s: float
    ) -> tuple[int, bytes]:
        """
        Return status and body of the answer.

        Raises:
            Unreachable: There was no whole answer in time.
        """
        head = f"{method} {target} HTTP/1.1\r\nHost: xce\r\nContent-Length: {len(body)}\r\n\r\n"
        self._is_interrupted = False
        try:
            async with asyncio.timeout(timeout_s):
                return await self._exchange(head.encode() + body)
        except (OSError, EOFError, TimeoutError, ValueError) as error:
            self.close()
            raise Unreachable(f"{method} {target}: {error!r}") from error
        except asyncio.CancelledError:
            self.close()
            raise

    async def _exchange(self, request: bytes) -> tuple[int, bytes]:
        """
        Send a request and read its answer; a kept connection that the server has closed is no
        failure, since all requests of an agent may arrive twice.
        """
        is_kept = self._streams is not None
        try:
            reader, writer = await self._connected()
            writer.write(request)
            return await _answer(reader)
        except (ConnectionError, asyncio.IncompleteReadError):
            if not is_kept or self._is_interrupted:
                raise
        self.close()
        return await self._exchange(request)

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._streams is None:
            connection = sockets.connect(self._path, timeout_s=CONNECT_S)
            self._streams = await asyncio.open_unix_connection(sock=connection)
        return self._streams

    def interrupt(self) -> None:
        """
        Make the question under way fail, since its answer is no longer wanted.
        """
        self._is_interrupted = True
        self.close()

    def close(self) -> None:
        """
        Drop the connection; the next question makes another.
        """
        if self._streams is not None:
            with suppress(OSError, RuntimeError):
                self._streams[1].close()
            self._streams = None


async def _answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    status = int(head.split(b" ", 2)[1])
    _, _, after = head.partition(b"content-length:")
    length = int(after.split(b"\r\n", 1)[0]) if after else 0
    return status, await reader.readexactly(length)
