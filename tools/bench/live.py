"""
A real scheduler process to measure, and a small client that costs little itself.
"""

from __future__ import annotations

import json
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.agent import sockets
from tools.agent.files import SOCKET_NAME
from tools.bench.frame import NotMeasured
from tools.daemon.process import stop_all

START_S = 20.0


@contextmanager
def cluster(directory: Path, *, workers: int = 0) -> Iterator[Path]:
    """
    Run a scheduler with local workers in a directory, and end all of it afterwards.
    """
    arguments = ["--dir", str(directory), "--workers", str(workers)]
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "tools.daemon", *arguments], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            if not process.stdout.readline():
                raise NotMeasured("the scheduler doesn't start")
            wait_hosts(directory, workers)
            yield directory
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()
            stop_all(directory)


def wait_hosts(directory: Path, count: int) -> None:
    """
    Wait until so many hosts have joined.
    """
    connection = connect(directory)
    deadline = time.monotonic() + START_S
    while ask(connection, request("GET", "/v1/status"))["hosts"].get("ok", 0) < count:
        if time.monotonic() > deadline:
            raise NotMeasured("the workers don't join")
        time.sleep(0.02)
    connection.close()


def connect(directory: Path) -> socket.socket:
    """
    Return a connection to the scheduler.
    """
    return sockets.connect(directory / SOCKET_NAME, timeout_s=START_S)


def request(method: str, target: str, body: object = None) -> bytes:
    """
    Return a whole request, ready to be sent any number of times.
    """
    content = b"" if body is None else json.dumps(body).encode()
    head = f"{method} {target} HTTP/1.1\r\nHost: xce\r\nContent-Length: {len(content)}\r\n\r\n"
    return head.encode() + content


def submission(*argv: str) -> bytes:
    """
    Return the request that submits a program with an ordinary small environment.
    """
    env = [{"name": name, "value": value} for name, value in ENVIRONMENT.items()]
    program = {"argv": argv, "cwd": "/", "env": env, "stdout": "/dev/null", "stderr": "/dev/null"}
    return request("POST", "/v1/jobs", {"program": program})


ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/home/user",
    "LANG": "C.UTF-8",
    "USER": "user",
}


def read_answer(connection: socket.socket) -> tuple[int, bytes]:
    """
    Return status and body of one answer.
    """
    received = b""
    while (end := received.find(b"\r\n\r\n")) < 0:
        received += connection.recv(1 << 16)
    head = received[:end].lower()
    length = int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0])
    while len(received) < end + 4 + length:
        received += connection.recv(1 << 20)
    return int(head[9:12]), received[end + 4 :]


def ask(connection: socket.socket, asked: bytes) -> dict:  # type: ignore[type-arg]
    """
    Return the answer to one request.
    """
    connection.sendall(asked)
    status, body = read_answer(connection)
    if status >= 300:
        raise NotMeasured(f"the scheduler answered {status}: {body[:200]!r}")
    answer: dict[str, object] = json.loads(body)
    return answer


def rate_at_once(directory: Path, asked: bytes, *, clients: int, count: int) -> float:
    """
    Return how many answers a second so many clients get, each asking again when it has its answer.
    """
    connections = {one.fileno(): one for one in (connect(directory) for _ in range(clients))}
    poll = select.epoll()
    for number in connections:
        poll.register(number, select.EPOLLIN)
    begin = time.perf_counter()
    sent, answered = 0, 0
    for connection in connections.values():
        connection.sendall(asked)
        sent += 1
    while answered < count:
        for number, _ in poll.poll():
            status, body = read_answer(connections[number])
            if status != 201:
                raise NotMeasured(f"the scheduler answered {status}: {body[:200]!r}")
            answered += 1
            if sent < count:
                connections[number].sendall(asked)
                sent += 1
    elapsed_s = time.perf_counter() - begin
    poll.close()
    for connection in connections.values():
        connection.close()
    return answered / elapsed_s
