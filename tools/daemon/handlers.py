"""
What every handler of a route is given, and how it takes a request apart.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from pydantic import ValidationError
from starlette.requests import Request as HttpRequest

from domain.broken_rules import refused_of
from domain.errors import Refused
from domain.event import Value
from domain.ids import check_name, split_job_id
from store.log import EventLog
from tools.daemon.access import Caller
from tools.daemon.config import ClusterFiles, DaemonSettings
from tools.daemon.engine_thread import EngineThread
from tools.daemon.recorder import Recorder
from tools.daemon.requests import (
    Reply,
)
from tools.daemon.snapshotter import Snapshotter
from tools.daemon.tracer import Tracer

POLL_WAIT_MAX_S = 30.0
JOBS_MAX = 100_000
DIGITS_MAX = 20
"""Longer numbers aren't even read; Python itself refuses some thousand digits."""

Body = TypeVar("Body", bound=Value)
Handler = Callable[["Api", HttpRequest, Caller], Awaitable[Reply]]


class Api:
    """
    Turn HTTP requests into requests of the engine thread.

    Args:
        engine: The engine thread.
        settings: How the process runs.
        files: The cluster's files.
        key: The cluster's secret key.
        shut_down: Ends the process in good order.
        recorder: Records the running process.
        snapshotter: Has snapshots made.
    """

    def __init__(
        self,
        engine: EngineThread,
        log: EventLog,
        settings: DaemonSettings,
        files: ClusterFiles,
        key: bytes,
        shut_down: Callable[[], None],
        recorder: Recorder,
        snapshotter: Snapshotter,
    ) -> None:
        self.engine = engine
        self.log = log
        self.files = files
        self.key = key
        self.shut_down = shut_down
        self.recorder = recorder
        self.snapshotter = snapshotter
        self.tracer = Tracer(files)
        self.started_us = time.time_ns() // 1000
        # A worker that only waits must speak often enough not to pass for silent.
        self.poll_wait_max_s = settings.silent_after_s / 3
        self._settings = settings

    async def body(self, http: HttpRequest) -> bytes:
        """
        Return the request's body, no larger than allowed.

        Raises:
            Refused: It is larger.
        """
        parts: list[bytes] = []
        size = 0
        async for part in http.stream():
            parts.append(part)
            size += len(part)
            if size > self._settings.body_bytes_max:
                rule = f"must have at most {self._settings.body_bytes_max} bytes"
                raise Refused("body", rule)
        return b"".join(parts)

    async def parsed(self, http: HttpRequest, model: type[Body]) -> Body:
        """
        Return the request's body as a model; an empty one stands for an object without fields.

        Raises:
            Refused: A field breaks a rule.
        """
        return parsed(await self.body(http), model)


def parsed(body: bytes, model: type[Body], *, inside: str = "") -> Body:
    """
    Return a body as a model; an empty one stands for an object without fields.

    Args:
        body: The bytes.
        model: What they must be.
        inside: A field that everything is in and that errors don't name, "" for none.

    Raises:
        Refused: A field breaks a rule.
    """
    try:
        return model.model_validate_json(body or b"{}")
    except ValidationError as error:
        raise refused_of(error, model, inside=inside) from None


def job_id_of(http: HttpRequest) -> str:
    """
    Return the job that a request's path names.

    Raises:
        Refused: It is no job id.
    """
    job_id: str = http.path_params["job_id"]
    split_job_id(job_id)
    return job_id


def name_of(http: HttpRequest) -> str:
    """
    Return the host, queue or worker that a request's path names.

    Raises:
        Refused: It is no name.
    """
    return check_name("name", http.path_params["name"])


def number_of(text: str | None, field: str, least: int, most: int, default: int) -> int:
    """
    Return a number of a request's query.

    Raises:
        Refused: It is none, or out of bounds.
    """
    if text is None:
        return default
    is_one = text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX
    if not is_one or not least <= int(text) <= most:
        raise Refused(field, f"must be a whole number from {least} to {most}", text[:40])
    return int(text)
