"""
What is promised to a pending job: when it starts at the latest, and where.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from domain.allocations import HostNumber, SharedAmount
from domain.amounts import Amount, Count, TimeUs
from domain.event import Value


class KeptRun(Value):
    """
    Name what is kept on each of ``hosts`` neighbouring hosts, the first being number ``first``.
    """

    first: HostNumber
    hosts: Annotated[int, Field(ge=1, le=2**31 - 1)] = 1
    slots: Count = 0
    amounts: tuple[Amount, ...] = ()


class BackfillReservation(Value):
    """
    Hold the start that is promised to a pending job, or what it has gathered so far.

    Args:
        policy: Who promised: the name of a picker, or ``slot_reserve``.
        start_us: When it starts at the latest, as long as no job outruns its run limit or estimate
            and no host is lost; None when nobody knows, since a job in its way has neither.
        runs: Where it is to start; or, where ``is_held``, what it has gathered.
        shared: The same of resources that hosts share.
        is_held: Whether ``runs`` are kept from others from now on, but for jobs that end before its
            start; otherwise hosts are kept for it from its start on.
        until_us: When it gives everything back, None for never.
    """

    policy: Annotated[str, Field(min_length=1, max_length=128)]
    start_us: TimeUs | None
    runs: tuple[KeptRun, ...]
    shared: tuple[SharedAmount, ...] = ()
    is_held: bool = False
    until_us: TimeUs | None = None

    def slots(self) -> int:
        """
        Return the slots over all its hosts.
        """
        return sum(run.hosts * run.slots for run in self.runs)
