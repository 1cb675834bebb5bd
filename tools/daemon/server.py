"""
The HTTP server: uvicorn on a unix socket, told by the kernel who is at the other end.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator

from starlette.types import ASGIApp
from uvicorn import Config, Server
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tools.agent.sockets import peer_of
from tools.daemon.config import DaemonSettings

KEEP_ALIVE_S = 60
GRACE_S = 2


class PeerProtocol(HttpToolsProtocol):
    """
    Speak HTTP, and put the peer's user id into the state of each request.
    """

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """
        Ask the kernel once for each connection; the answer is of the moment of connecting.
        """
        super().connection_made(transport)  # type: ignore[arg-type]
        connection = transport.get_extra_info("socket")
        self.app_state = {**self.app_state, "peer_uid": peer_of(connection)[1]}


class ApiServer(Server):
    """
    Serve until told to end; signals are the process's matter.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.has_started = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """
        Begin to listen, and say so.
        """
        await super().startup(sockets)
        self.has_started.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """
        Leave signals alone.
        """
        yield


def server_of(app: ASGIApp, settings: DaemonSettings) -> ApiServer:
    """
    Return a server of the application, with the limits that are set.
    """
    return ApiServer(
        Config(
            app,
            http=PeerProtocol,
            ws="none",
            loop="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=GRACE_S,
            limit_concurrency=settings.connections_max,
        )
    )


async def serve(server: ApiServer, listener: socket.socket) -> None:
    """
    Serve on a listening socket until the server's `should_exit` is set.
    """
    await server.serve(sockets=[listener])
