"""
Of a job of several tasks that waits for slots: how many it asks for, and where how many are free.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tools.cli.client import Json

if TYPE_CHECKING:
    from projections.scheduling.state import State

OF_SLOTS: Final = ("HOST_SLOTS", "HOST_JOB_LIMIT", "HOST_LESS_SLOTS")
"""Reasons of hosts that would suit a job if more of their slots were free."""


@dataclass(frozen=True, slots=True)
class SlotsWanted:
    """
    Hold how many slots a job of several tasks asks for, and what the hosts that suit it have.

    Args:
        wanted: By the job, at least.
        total: All that those hosts have.
        free: Of them.
        host_count: How many hosts suit it.
        freest: Hosts with free slots and how many, most first.
    """

    wanted: int
    total: int
    free: int
    host_count: int
    freest: tuple[tuple[str, int], ...]


def slots_wanted(state: State, reasons: Iterable[Json], wanted: int) -> SlotsWanted:
    """
    Return what a job lacks of slots; left out are hosts that don't suit it, for whatever reason but
    their slots.

    Args:
        state: All there is.
        reasons: Of the job, as the scheduler tells them.
        wanted: How many slots it asks for at least.
    """
    others = {
        host["host"]
        for reason in reasons
        if reason["code"] not in OF_SLOTS
        for host in reason["hosts"]
    }
    hosts = [host for host in state.hosts if host.name not in others]
    free = {host.name: free_slots(state, host.number) for host in hosts}
    most = sorted(free.items(), key=lambda one: -one[1])
    return SlotsWanted(
        wanted,
        sum(int(state.capacity.slots[host.number]) for host in hosts),
        sum(free.values()),
        len(hosts),
        tuple(one for one in most if one[1]),
    )


def free_slots(state: State, number: int) -> int:
    """
    Return how many slots of a host nobody has.
    """
    return max(0, int(state.capacity.slots[number] - state.capacity.used[number]))
