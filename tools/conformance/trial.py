"""
The scheduler that schedule vectors are tried on, as a port: the frame knows vectors, a trial knows
a scheduler.
"""

from __future__ import annotations

from typing import Protocol

from tools.conformance.seen import Observed
from tools.conformance.values import Fields


class NotYet(Exception):  # noqa: N818 - it says what is missing, not what went wrong
    """
    Say that a vector needs something that the scheduler can't do yet.
    """


class Trial(Protocol):
    """
    Be a scheduler set up as one case says: cluster, queues, limits, and jobs that run already.
    """

    def submit(self, job: Fields) -> None:
        """
        Submit a job; a refusal is observed, not raised.
        """

    def go_to(self, minute: int) -> None:
        """
        Let time go on to so many minutes after the beginning.
        """

    def happen(self, step: Fields) -> None:
        """
        Let happen what a step says beside its time: jobs that finish, hosts that are lost or come
        back.
        """

    def act(self, name: str, job: str, value: object, *, by: str) -> None:
        """
        Do to a job what a command does, or let something happen to it.

        Args:
            name: bkill, bstop, bresume, brequeue, bswitch, bmod, exit, killed, over ...
            job: The job or the elements, as the vector calls them.
            value: What more the vector says of it, None for nothing.
            by: The user who does it.
        """

    def cycle(self) -> None:
        """
        Hold a cycle, and let the hosts carry out at once what it ordered.
        """

    def observe(self) -> Observed:
        """
        Return what can be seen now.
        """
