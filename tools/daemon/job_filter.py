"""
Which jobs are wanted: by state, queue, user, host, number and name.
"""

from __future__ import annotations

import pwd
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Final

from domain.errors import NotFound
from domain.job_states import ENDED
from projections.scheduling.records import JobRecord
from projections.scheduling.state import State

NAMES_MAX: Final = 20


@dataclass(frozen=True, slots=True)
class Filter:
    """
    Say which jobs are wanted.

    Args:
        everything: Whether ended ones are too.
        states: Only those in one of these states, in any when empty.
        queue: Only those of this queue, "" for any.
        user: Only those of this user, "" for any.
        host: Only those that have or had tasks on this host, "" for any.
        number: Only the job, or the elements of the array, of this number; 0 for any.
        limit: At most so many, the newest.
        name: Only those whose name fits, where * stands for any text; "" for any. Elements of
            arrays are called by the array's name, or by that with their index.
    """

    everything: bool
    states: tuple[str, ...]
    queue: str
    user: str
    host: str
    number: int
    limit: int
    name: str = ""

    def fits(self, state: State) -> Callable[[JobRecord], bool]:
        """
        Return what tells whether a job is wanted.
        """
        if not self.host:
            return self._fits
        worker = state.stored.workers.get(self.host)
        number = None if worker is None else worker.number
        return lambda job: self._fits(job) and number in _numbers(job)

    def _fits(self, job: JobRecord) -> bool:
        return (
            (self.everything or job.state not in ENDED)
            and (not self.states or job.state in self.states)
            and self.queue in ("", job.spec.queue)
            and self.user in ("", job.spec.user)
            and self.number in (0, job.number)
            and self._is_called(job)
        )

    def _is_called(self, job: JobRecord) -> bool:
        if not self.name:
            return True
        name = job.spec.name
        return matches(self.name, name) or (
            job.index > 0 and matches(self.name, f"{name}[{job.index}]")
        )

    def check_names(self, state: State) -> None:
        """
        Refuse names of which nothing is known, where there was nothing to list: a queue that was
        removed may still have had jobs.

        Raises:
            NotFound: A queue or host isn't there, or neither the state nor this machine's accounts
                know the user.
        """
        if self.queue and self.queue not in state.stored.queues:
            raise _unknown("queue", self.queue, state.stored.queues)
        if self.host and self.host not in state.stored.workers:
            raise _unknown("host", self.host, state.stored.workers)
        self._check_user(state)

    def _check_user(self, state: State) -> None:
        known = self.user in state.stored.users or any(
            self.user in group.members for group in state.stored.groups.values()
        )
        if not self.user or known:
            return
        has_jobs = any(job.spec.user == self.user for job in state.stored.jobs.values())
        if not has_jobs and not _has_account(self.user):
            hint = None if self.everything else "With -a the whole log is looked through."
            rule = "must be a user with jobs, a definition or an account"
            raise NotFound("user", rule, self.user, hint)


def matches(pattern: str, text: str) -> bool:
    """
    Say whether a text is what a pattern says, in which each * stands for any text.
    """
    first, *others = pattern.split("*")
    if not others:
        return pattern == text
    *middle, last = others
    at, end = len(first), len(text) - len(last)
    if not text.startswith(first) or not text.endswith(last) or end < at:
        return False
    for part in middle:
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


def _unknown(field: str, name: str, known: Iterable[str]) -> NotFound:
    names = ", ".join(islice(known, NAMES_MAX)) or "none yet"
    return NotFound(field, f"must be one that is known: {names}", name)


def _numbers(job: JobRecord) -> set[int]:
    """
    Return the numbers of the hosts that a job has or had.
    """
    if job.allocation is None:
        return set()
    return {number for number, _, _ in job.allocation.shares()}


def _has_account(user: str) -> bool:
    try:
        pwd.getpwnam(user)
    except (KeyError, ValueError):  # None, or no name of an account at all.
        return False
    return True
