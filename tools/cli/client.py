"""
Talk to the scheduler over its Unix socket, and turn its errors back into ours.
"""

from __future__ import annotations

import http.client
import json
import os
import shlex
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote, urlencode

from domain.errors import (
    Conflict,
    Corrupt,
    Denied,
    InvariantBroken,
    NotFound,
    Refused,
    StoreUnavailable,
    XceError,
)
from domain.texts import NotUnderstood

SOCKET_NAME = "xce.sock"
RESPONSE_TIMEOUT_S = 60.0
LOST = (ConnectionError, http.client.HTTPException, TimeoutError, OSError)
# A path in an address of a Unix socket may have 107 bytes.
SOCKET_PATH_BYTES_MAX = 107

# Written down, so that nothing of the store is loaded for them; a test holds them to the store's.
LOG_FILES = ("STORE", "data.mdb")

Json = dict[str, Any]


class NoScheduler(StoreUnavailable):
    """
    Say that no scheduler answers at the socket of a cluster.
    """


class _UnixConnection(http.client.HTTPConnection):
    """
    Speak HTTP over the Unix socket in a directory.
    """

    def __init__(self, directory: Path, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._directory = directory

    def connect(self) -> None:
        """
        Connect; a socket with too long a path for an address is reached through its directory.
        """
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        path = str(self._directory / SOCKET_NAME)
        if len(os.fsencode(path)) <= SOCKET_PATH_BYTES_MAX:
            self.sock.connect(path)
            return
        descriptor = os.open(self._directory, os.O_PATH | os.O_DIRECTORY)
        try:
            self.sock.connect(f"/proc/self/fd/{descriptor}/{SOCKET_NAME}")
        finally:
            os.close(descriptor)


class Client:
    """
    Ask one scheduler, over one connection that is kept.

    Args:
        directory: The cluster's directory.
        wait_s: For so many seconds a request is tried again while no scheduler answers. Only
            requests that may arrive twice are sent with it: reads, and commands with a key.
        waiting: Called once, when the first try failed and waiting begins.
        answer_s: An answer that takes longer counts as none.
    """

    def __init__(
        self,
        directory: Path,
        *,
        wait_s: float = 0.0,
        waiting: Callable[[], None] | None = None,
        answer_s: float = RESPONSE_TIMEOUT_S,
    ) -> None:
        self.directory = directory.absolute()
        self._wait_s = wait_s
        self._waiting = waiting
        self._answer_s = answer_s
        self._connection: _UnixConnection | None = None

    def get(self, path: str, **query: object) -> Json:
        """
        Return the answer to a read.
        """
        return self._repeated("GET", path + _query(query), None)

    def post(self, path: str, body: Json | None = None) -> Json:
        """
        Return the answer to a command.
        """
        return self._repeated("POST", path, body or {})

    def close(self) -> None:
        """
        Give the connection back.
        """
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _repeated(self, method: str, path: str, body: Json | None) -> Json:
        deadline = time.monotonic() + self._wait_s
        while True:
            try:
                return self._once(method, path, body)
            except NoScheduler:
                if time.monotonic() >= deadline:
                    raise
                if self._waiting is not None:
                    self._waiting()
                    self._waiting = None
                time.sleep(0.1)

    def _once(self, method: str, path: str, body: Json | None) -> Json:
        is_kept = self._connection is not None
        try:
            return self._over_connection(method, path, body)
        except NoScheduler:
            # A connection that was idle for long is closed at the other end: that says nothing
            # about whether somebody listens, and a read may be asked twice.
            if not is_kept or method != "GET":
                raise
        return self._over_connection(method, path, body)

    def _over_connection(self, method: str, path: str, body: Json | None) -> Json:
        if self._connection is None:
            self._connection = _UnixConnection(self.directory, self._answer_s)
        content = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"} if content is not None else {}
        try:
            self._connection.request(method, path, content, headers)
            response = self._connection.getresponse()
            answer = response.read()
        except LOST as error:
            self.close()
            raise _no_scheduler(self.directory, error) from error
        except BaseException:
            # An answer that was given up half-way must not become the answer to the next request.
            self.close()
            raise
        return _answer(response.status, answer)


def _query(query: dict[str, object]) -> str:
    given = {name: value for name, value in query.items() if value not in (None, "")}
    return "?" + urlencode(given, doseq=True) if given else ""


def segment(name: str) -> str:
    """
    Return a name as one segment of a path.
    """
    return quote(name, safe="[]")


_SAID: dict[type[Exception], str] = {
    FileNotFoundError: "there is no such socket",
    ConnectionRefusedError: "nobody listens there",
    PermissionError: "permission denied",
    TimeoutError: "no answer in time",
}


def _no_scheduler(directory: Path, error: Exception) -> NoScheduler:
    lost = f"connection lost: {error or type(error).__name__}"
    where = shlex.quote(str(directory))
    hint = f"Start it: xce up --dir {where}; or name another cluster with --dir or XCE_DIR."
    if _holds_log(directory):
        hint = (
            "This is the directory of a log, such as a simulation's, that no scheduler serves; ask "
            f"the log itself: xce replay state {where}, xce history JOB --dir {where}."
        )
    return NoScheduler(
        "no scheduler answers",
        str(directory / SOCKET_NAME),
        _SAID.get(type(error), lost),
        hint=hint,
    )


def _holds_log(directory: Path) -> bool:
    """
    Say whether a directory is that of a log itself; a cluster keeps its log one below.
    """
    with suppress(OSError):
        return any((directory / name).exists() for name in LOG_FILES)
    return False


def _answer(status: int, content: bytes) -> Json:
    try:
        answer = json.loads(content)
    except ValueError:
        answer = None
    if 200 <= status < 300 and isinstance(answer, dict):
        return answer
    raise error_of(status, answer if isinstance(answer, dict) else {})


def error_of(status: int, answer: Json) -> XceError:
    """
    Return the error that an answer of the scheduler means, told by its status.
    """
    error = answer.get("error")
    if not isinstance(error, dict):
        error = _validation(answer)
    hint = error.get("hint")
    if status == Conflict.http_status:
        what = error.get("what") or error.get("rule") or "the request"
        return Conflict(what, error.get("expected"), error.get("found"), hint)
    if status == StoreUnavailable.http_status:
        resource = error.get("resource") or error.get("rule") or "the scheduler can't take it now"
        return StoreUnavailable(resource, error.get("path"), error.get("detail"), hint)
    if status >= XceError.http_status:
        return _failed(error)
    family = {404: NotFound, 403: Denied, 401: Denied}.get(status, Refused)
    field = error.get("field") or "request"
    rule = error.get("rule") or f"was answered with status {status}"
    value, column = error.get("value"), error.get("column")
    if family is Refused and isinstance(value, str) and isinstance(column, int):
        return NotUnderstood(field, rule, value, column, hint)
    return family(field, rule, value, hint)


def _failed(error: Json) -> XceError:
    with suppress(KeyError):
        return Corrupt(
            error["kind"],
            error.get("position"),
            error.get("expected"),
            error.get("found"),
            error.get("path"),
            error.get("hint"),
        )
    return InvariantBroken(error.get("rule") or error.get("text") or "the scheduler failed", None)


def _validation(answer: Json) -> Json:
    """
    Return field and rule of a request that didn't even parse, in the framework's own words.
    """
    detail = answer.get("detail")
    first = detail[0] if isinstance(detail, list) and detail else detail
    if not isinstance(first, dict):
        return {"rule": first} if first else {}
    field = ".".join(str(part) for part in first.get("loc", ()) if part != "body")
    return {"field": field, "rule": first.get("msg"), "value": first.get("input")}
