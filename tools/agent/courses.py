"""
What runs around a job's command: shell texts before it, each of which must succeed, and texts after
it, which are run however it ended. Their output goes to the job's standard error.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from tools.agent import spawn
from tools.agent.messages import Attempt, AttemptKey, Phase, StartRequest

SHELL: Final = "/bin/sh"
EXIT_VARIABLE: Final = "LSB_JOBEXIT_STAT"
"""Tells what runs after a command how that ended: the status that it was waited for with."""
LOST: Final = 128 + signal.SIGKILL
"""What a text before the command counts as having returned when nobody saw its end."""


@dataclass(frozen=True, slots=True)
class Course:
    """
    Hold how far an attempt has come on its way to its command.

    Args:
        request: What is started.
        done: So many texts before it have succeeded.
    """

    request: StartRequest
    done: int = 0

    @property
    def is_at_command(self) -> bool:
        """
        Tell whether nothing is left to do before the command.
        """
        return self.done == len(self.request.before)

    @property
    def owner(self) -> str:
        """
        Return who says what runs now: queue, profile or job.
        """
        return self.request.before[self.done][0]

    def start(self) -> int:
        """
        Start what comes now, and return its process id.

        Raises:
            CannotStart: A file, the directory or the program is missing or barred.
        """
        if self.is_at_command:
            return spawn.start(self.request)
        return spawn.start(_text(self.request, self.request.before[self.done][1]))

    def next(self) -> Course:
        """
        Return where it is when what runs now has succeeded.
        """
        return replace(self, done=self.done + 1)

    def failed(self, status: int) -> Attempt:
        """
        Return the end of an attempt whose text before the command returned something else than 0.
        """
        code = os.waitstatus_to_exitcode(status)
        return failed_before(self.request.key, self.owner, code if code >= 0 else 128 - code)


def failed_before(key: AttemptKey, owner: str, code: int) -> Attempt:
    """
    Return the end of an attempt that never came to its command.
    """
    return Attempt(
        *key,
        Phase.ENDED,
        failed=f"pre-exec of the {owner}: it ended with {code}",
        pre_exec_of=owner,
        pre_exec_exit=code,
    )


def _text(request: StartRequest, text: str, **variables: str) -> StartRequest:
    return replace(
        request,
        argv=(SHELL, "-c", text, SHELL),
        env=request.env | variables,
        stdin="",
        stdout=request.stderr,
    )


class Afterwards:
    """
    Run the texts that follow commands, one after the other, whatever they return.

    They belong to no attempt that anybody waits for: its end has been told.
    """

    def __init__(self) -> None:
        self._expected: dict[AttemptKey, StartRequest] = {}
        self._running: dict[int, tuple[StartRequest, int]] = {}

    @property
    def leaders(self) -> set[int]:
        """
        Return the first process of each text that runs.
        """
        return set(self._running)

    @property
    def attempts(self) -> dict[AttemptKey, Attempt]:
        """
        Return the attempts whose texts run: what belongs to them is still wanted.
        """
        return {
            request.key: Attempt(*request.key, Phase.RUNNING, pid=pid)
            for pid, (request, _) in self._running.items()
        }

    def expect(self, request: StartRequest) -> None:
        """
        Note what is to follow a command that was started.
        """
        if request.after:
            self._expected[request.key] = request

    def begin(self, key: AttemptKey, status: int) -> None:
        """
        Run what follows a command, which was waited for with this status.
        """
        request = self._expected.pop(key, None)
        if request is not None:
            self._start(replace(request, env=request.env | {EXIT_VARIABLE: str(status)}), 0)

    def has_ended(self, pid: int) -> bool:
        """
        Go on after one of its processes has ended; tell whether it was one.
        """
        found = self._running.pop(pid, None)
        if found is not None:
            request, index = found
            self._start(request, index + 1)
        return found is not None

    def _start(self, request: StartRequest, index: int) -> None:
        for place in range(index, len(request.after)):
            with suppress(spawn.CannotStart):
                pid = spawn.start(_text(request, request.after[place]))
                self._running[pid] = (request, place)
                return

    def kill(self) -> None:
        """
        End all that run, and let nothing follow.
        """
        self._expected.clear()
        for pid, (request, _) in self._running.items():
            self._running[pid] = (request, len(request.after))
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
