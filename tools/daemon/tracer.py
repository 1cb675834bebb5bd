"""
Decision traces for whoever may not read the log: each made in a process of its own, so that neither
the scheduler nor its other callers wait for it.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from typing import Final

from domain.errors import Conflict, StoreUnavailable
from tools.daemon.config import ClusterFiles
from tools.daemon.requests import Reply

AT_ONCE: Final = 1
WAITING_MAX: Final = 8
SECONDS_MAX: Final = 50.0
"""Less than the time after which clients give up."""


class Tracer:
    """
    Have traces made, one after the other.

    Args:
        files: The cluster's files.
    """

    def __init__(self, files: ClusterFiles) -> None:
        self._files = files
        self._turn = asyncio.Semaphore(AT_ONCE)
        self._waiting = 0

    async def trace(self, job_id: str, level: str, lines_max: int) -> Reply:
        """
        Return how a job was decided last.

        Raises:
            Conflict: Too many wait for one already.
            StoreUnavailable: It took too long, or its process ended without an answer.
        """
        if self._waiting >= WAITING_MAX:
            raise Conflict("traces that wait", f"at most {WAITING_MAX}", hint="Ask again later.")
        self._waiting += 1
        try:
            async with asyncio.timeout(SECONDS_MAX), self._turn:
                return await self._made(job_id, level, str(lines_max))
        except TimeoutError:
            raise StoreUnavailable(
                "time for a trace", None, f"more than {SECONDS_MAX:.0f} s",
                "Ask again, or the owner of the cluster.",
            ) from None  # fmt: skip
        finally:
            self._waiting -= 1

    async def _made(self, *arguments: str) -> Reply:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", "tools.tracing", str(self._files.directory), *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        try:
            told, _ = await process.communicate()
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        status, _, body = told.partition(b"\n")
        if not status.isdigit():
            raise StoreUnavailable(
                "process for a trace", None, f"it ended with {process.returncode}"
            )
        return Reply(int(status), body.strip())
