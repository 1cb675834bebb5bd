"""
What a job gets: tasks and amounts on hosts, written as runs of neighbouring hosts.

Hosts are named by their number, which a worker gets at its first join and keeps for ever. A job
over a thousand equal hosts is one run, not a thousand entries.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from domain.amounts import Amount, Milli
from domain.event import Value

HostNumber = Annotated[int, Field(ge=0, le=2**31 - 1)]


class HostRun(Value):
    """
    Hold the share of each of ``hosts`` neighbouring hosts, the first being number ``first``: the
    same tasks and the same amounts on each.
    """

    first: HostNumber
    hosts: Annotated[int, Field(ge=1, le=2**31 - 1)] = 1
    tasks: Annotated[int, Field(ge=1, le=2**31 - 1)] = 1
    amounts: tuple[Amount, ...] = ()


class Allocation(Value):
    """
    Hold what a job got: runs in the order in which hosts were claimed, the cluster-wide amounts,
    and which allocator found it.
    """

    runs: tuple[HostRun, ...]
    shared: tuple[Amount, ...] = ()
    allocator: str

    def shares(self) -> Iterator[tuple[int, int, tuple[Amount, ...]]]:
        """
        Yield host number, tasks and amounts of every host, in claim order.
        """
        for run in self.runs:
            for number in range(run.first, run.first + run.hosts):
                yield number, run.tasks, run.amounts

    def tasks(self) -> int:
        """
        Return the count of tasks over all hosts.
        """
        return sum(run.hosts * run.tasks for run in self.runs)


class HostSpan(Value):
    """
    Name neighbouring hosts that have the same amount available.
    """

    first: HostNumber
    hosts: Annotated[int, Field(ge=1, le=2**31 - 1)] = 1
    available_milli: Milli = 0
