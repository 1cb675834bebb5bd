"""
Unix sockets whose path may be long, and who is at the other end.

A socket address holds 107 bytes at most. The directory is therefore opened first and named through
/proc/self/fd, so that a cluster directory may lie as deep as it likes.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ADDRESS_BYTES_MAX = 107
_CREDENTIALS = struct.Struct("3i")


@contextmanager
def short_address(path: Path) -> Iterator[str]:
    """
    Give an address of the socket file that is short enough; it holds inside the block only.
    """
    if len(os.fsencode(path)) <= ADDRESS_BYTES_MAX:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def listen(path: Path, *, backlog: int, mode: int = 0o600) -> socket.socket:
    """
    Return a listening socket at the path; one left behind by a dead process is replaced.

    Whoever calls this holds the lock that says that no living process listens there.
    """
    with suppress(FileNotFoundError):
        path.unlink()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.setblocking(False)
    with short_address(path) as address:
        listener.bind(address)
        path.chmod(mode)
    listener.listen(backlog)
    return listener


def connect(path: Path, *, timeout_s: float | None = None) -> socket.socket:
    """
    Return a socket connected to the one at the path.

    Raises:
        OSError: Nobody listens there.
    """
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.settimeout(timeout_s)
    try:
        with short_address(path) as address:
            client.connect(address)
    except OSError:
        client.close()
        raise
    return client


def peer_of(connection: socket.socket) -> tuple[int, int]:
    """
    Return process id and user id at the other end, as the kernel saw them when it connected.
    """
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, _ = _CREDENTIALS.unpack(raw)
    return pid, uid
