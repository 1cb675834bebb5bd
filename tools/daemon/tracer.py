"""
Decision traces for whoever may not read the log: each made in a process of its own, so that neither
the scheduler nor its other callers wait for it.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from domain.errors import Conflict, StoreUnavailable
from tools.daemon.config import ClusterFiles
from tools.daemon.requests import Reply

AT_ONCE: Final = 1
WAITING_MAX: Final = 64
WAITING_OF_ONE_MAX: Final = 4
"""Requests of one user that are being answered or wait: nobody keeps all others from asking."""
SECONDS_MAX: Final = 50.0
"""Less than the time after which clients give up."""

Question = tuple[str, str, str]
"""Job, level and most lines, as the program takes them."""


@dataclass(slots=True)
class _Shared:
    """
    Hold a trace that some wait for; who asks for the same before it is begun waits with them.
    """

    made: asyncio.Task[Reply]
    askers: int = 0


class Tracer:
    """
    Have traces made, one after the other.

    Args:
        files: The cluster's files.
    """

    def __init__(self, files: ClusterFiles) -> None:
        self._files = files
        self._turn = asyncio.Semaphore(AT_ONCE)
        self._not_begun: dict[Question, _Shared] = {}
        self._of: Counter[str] = Counter()

    async def trace(self, job_id: str, level: str, lines_max: int, user: str) -> Reply:
        """
        Return how a job was decided last.

        Args:
            job_id: Which job.
            level: How much is told.
            lines_max: How many lines at most.
            user: Who asks.

        Raises:
            Conflict: Too many requests of this user, or of all, wait already.
            StoreUnavailable: It took too long, or its process ended without an answer.
        """
        again = "Ask again later."
        if self._of[user] >= WAITING_OF_ONE_MAX:
            raise Conflict("your traces that wait", f"at most {WAITING_OF_ONE_MAX}", hint=again)
        if self._of.total() >= WAITING_MAX:
            raise Conflict("traces that wait", f"at most {WAITING_MAX}", hint=again)
        self._of[user] += 1
        try:
            async with asyncio.timeout(SECONDS_MAX):
                return await self._joined((job_id, level, str(lines_max)))
        except TimeoutError:
            raise StoreUnavailable(
                "time for a trace", None, f"more than {SECONDS_MAX:.0f} s",
                "Ask again, or the owner of the cluster.",
            ) from None  # fmt: skip
        finally:
            self._of[user] -= 1

    async def _joined(self, question: Question) -> Reply:
        """
        Wait for an answer, with whoever waits for the same; the last one to give up ends the work.
        """
        shared = self._not_begun.get(question)
        if shared is None:
            shared = _Shared(asyncio.create_task(self._answered(question)))
            self._not_begun[question] = shared
        shared.askers += 1
        try:
            return await asyncio.shield(shared.made)
        finally:
            shared.askers -= 1
            if not shared.askers and not shared.made.done():
                if self._not_begun.get(question) is shared:
                    del self._not_begun[question]
                shared.made.cancel()
                await asyncio.wait([shared.made])

    async def _answered(self, question: Question) -> Reply:
        async with self._turn:
            # From here on the log is read: who asks now may want to see what comes after that.
            self._not_begun.pop(question, None)
            return await self._made(*question)

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
