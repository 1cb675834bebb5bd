"""
The processes of attempts, also those that left their process group.

A program may call setsid and lose its parents on purpose (fork twice), so neither group nor session
says what belongs to a job. The launcher therefore is the subreaper of all that it starts: whoever
loses its parents becomes its child, and none can get away from it. Which attempt such an orphan
belongs to is in the environment that it was started with. One that was started without it is nobody
in particular's: a kill reaches it while its parents live, and it ends as soon as no attempt runs
that is older than itself.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import Final

from tools.agent import processes
from tools.agent.messages import Attempt, AttemptKey
from tools.agent.processes import Process

PR_SET_CHILD_SUBREAPER: Final = 36
NUMBERS_NEAR: Final = 1 << 14
"""
Half of the smallest range of process numbers: two of one tick that lie further apart have the end
of the range between them.
"""


def become_subreaper() -> None:
    """
    Become the parent of every descendant that loses its own; needs no privilege.

    Raises:
        OSError: The kernel doesn't know it (it is older than 3.4).
    """
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl PR_SET_CHILD_SUBREAPER")


class Families:
    """
    Find and signal the processes of attempts.

    One look at all processes serves until `look_again`. Owned by the launcher.

    Args:
        worker_directory: As it stands in the environment of every job of this worker.
    """

    def __init__(self, worker_directory: str) -> None:
        self._worker_directory = worker_directory
        self._seen: dict[int, Process] | None = None
        self._below: dict[int, list[Process]] = {}
        # Whether an earlier launcher started some: their orphans aren't this one's children.
        self.has_heritage = False

    def look_again(self) -> None:
        """
        Forget what was seen.
        """
        self._seen = None

    def signal(self, attempt: Attempt, number: signal.Signals) -> None:
        """
        Send a signal to every process of an attempt: its group, whatever descends from its first
        process, and its orphans.
        """
        # Looked for first: once the group is gone its children hang below this process like any.
        outside = self._outside_group(attempt)
        with suppress(ProcessLookupError, PermissionError):
            # Its leader isn't waited for yet, so the number can't be another group's.
            os.killpg(attempt.pid, number)
        for one in outside:
            processes.send(one, number)

    def _outside_group(self, attempt: Attempt) -> list[Process]:
        found = {one.pid: one for one in self._descendants(attempt.pid)}
        for orphan in self._orphans({}):
            if processes.owner_of(orphan.pid, self._worker_directory) == attempt.key:
                found[orphan.pid] = orphan
                found.update((one.pid, one) for one in self._descendants(orphan.pid))
        return [one for one in found.values() if one.group != attempt.pid]

    def sweep(self, running: Mapping[AttemptKey, Attempt], leaders: Collection[int]) -> int:
        """
        Kill what attempts left behind that no longer run; return how many processes that were.

        Args:
            running: The attempts that run.
            leaders: Their first processes, as far as they are this process's children.
        """
        found = 0
        for orphan in self._orphans(leaders):
            owner = processes.owner_of(orphan.pid, self._worker_directory)
            if owner in running:
                continue
            if owner is None and any(_may_descend(orphan, one) for one in running.values()):
                continue
            for one in (orphan, *self._descendants(orphan.pid)):
                found += processes.send(one, signal.SIGKILL)
        return found

    def _orphans(self, leaders: Collection[int]) -> Iterator[Process]:
        """
        Yield children of this process that are nobody's leader; with a heritage also every process
        of this worker's jobs, wherever it hangs.
        """
        own = os.getpid()
        for one in self._all().values():
            if one.pid in leaders or one.pid == own:
                continue
            if one.parent == own or (
                self.has_heritage and processes.owner_of(one.pid, self._worker_directory)
            ):
                yield one

    def _descendants(self, pid: int) -> Iterator[Process]:
        self._all()
        for child in self._below.get(pid, ()):
            yield child
            yield from self._descendants(child.pid)

    def _all(self) -> dict[int, Process]:
        if self._seen is None:
            self._seen = {one.pid: one for one in processes.living()}
            self._below = {}
            for one in self._seen.values():
                self._below.setdefault(one.parent, []).append(one)
        return self._seen


def _may_descend(orphan: Process, attempt: Attempt) -> bool:
    """
    Say whether a process may have been started by an attempt: it is the younger one. Numbers rise,
    so they tell those apart that began in the same tick.
    """
    if orphan.born != attempt.born_ticks:
        return orphan.born > attempt.born_ticks
    return not 0 < attempt.pid - orphan.pid < NUMBERS_NEAR
