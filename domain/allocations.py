"""
What a job gets: tasks and amounts on hosts, written as runs of neighbouring hosts.

Hosts are named by their number, which a worker gets at its first join and keeps for ever. A job
over a thousand equal hosts is one run, not a thousand entries.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from domain.amounts import Amount, Count, Milli
from domain.event import Value
from domain.limits import LimitCharge

HostNumber = Annotated[int, Field(ge=0, le=2**31 - 1)]


class Instances(Value):
    """
    Name the units of a resource that a job got on one host, such as which GPUs.

    Args:
        milli: How much of each, in thousandths; empty when all are whole.
    """

    resource: str
    units: tuple[str, ...]
    milli: tuple[Milli, ...] = ()


class SharedAmount(Amount):
    """
    Say how much of a shared resource a job got, once however many hosts it has.

    Args:
        pool: Which of the resource's totals it comes from, in order of their definition.
    """

    pool: Count = 0


class HostRun(Value):
    """
    Hold the share of each of ``hosts`` neighbouring hosts, the first being number ``first``: the
    same tasks and the same amounts on each. A host whose units are named is a run of its own.
    """

    first: HostNumber
    hosts: Annotated[int, Field(ge=1, le=2**31 - 1)] = 1
    tasks: Annotated[int, Field(ge=1, le=2**31 - 1)] = 1
    amounts: tuple[Amount, ...] = ()
    instances: tuple[Instances, ...] = ()


class Allocation(Value):
    """
    Hold what a job got: runs in the order in which hosts were claimed, the amounts of shared
    resources, and which allocator found it.

    Args:
        alternative: Which alternative of the requirement was taken, from 1; 0 when it has only one.
        is_exclusive: Whether the hosts take no other job meanwhile.
        charges: What limits, queues, users, groups and projects were charged for it when it was
            made; what they are charged now follows their definitions.
    """

    runs: tuple[HostRun, ...]
    shared: tuple[SharedAmount, ...] = ()
    allocator: str
    alternative: Count = 0
    is_exclusive: bool = False
    charges: tuple[LimitCharge, ...] = ()

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
        found = 0
        for run in self.runs:
            found += run.hosts * run.tasks
        return found


class HostSpan(Value):
    """
    Name neighbouring hosts that have the same amount available.
    """

    first: HostNumber
    hosts: Annotated[int, Field(ge=1, le=2**31 - 1)] = 1
    available_milli: Milli = 0
