"""
Of a job of several tasks that waits for slots: how many it asks for, and where how many are free.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tools.cli.client import Json

if TYPE_CHECKING:
    from domain.resreq.syntax import Requirement
    from projections.scheduling.state import State

OF_SLOTS: Final = ("HOST_SLOTS", "HOST_JOB_LIMIT", "HOST_LESS_SLOTS")
"""Reasons of hosts that would suit a job if more of their slots were free."""

OF_SPAN: Final = "JOB_NO_SPAN"
"""The same of a host on which the job's span wants more slots than are free."""

OF_CHOICE: Final = ("HOST_USR_SPEC", "HOST_QUE_MEMB")
"""Reasons of hosts that weren't asked for: the others are those that may be short."""


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
        names: Of the hosts that suit it.
        tile: How many tasks its span wants on each of several hosts, 0 when it says nothing so.
        tiled_count: How many hosts have so many slots, free or not.
    """

    wanted: int
    total: int
    free: int
    host_count: int
    freest: tuple[tuple[str, int], ...]
    names: tuple[str, ...]
    tile: int = 0
    tiled_count: int = 0

    @property
    def most_tasks(self) -> int:
        """
        Return how many tasks those hosts have slots for when nothing else runs there.
        """
        return self.tiled_count * self.tile if self.tile else self.total

    @property
    def is_of_hosts(self) -> bool:
        """
        Say whether it is hosts that are too few: each would hold what the span wants there.
        """
        return bool(self.tile and self.tiled_count)


def tile_of(requirement: Requirement | None, wanted: int) -> int:
    """
    Return how many tasks a span wants on each of several hosts, 0 when it says nothing of the kind.
    """
    from domain.resreq.syntax import SpanForm

    span = requirement.only.span if requirement is not None and requirement.is_simple else None
    if span is None or span.form is not SpanForm.PTILE or wanted <= span.count:
        return 0
    return span.count


def slots_wanted(
    state: State, reasons: Iterable[Json], wanted: int, tile: int = 0
) -> SlotsWanted:
    """
    Return what a job lacks of slots; left out are hosts that don't suit it, for whatever reason but
    their slots.

    Args:
        state: All there is.
        reasons: Of the job, as the scheduler tells them.
        wanted: How many slots it asks for at least.
        tile: How many of them on each of several hosts, 0 when it doesn't matter.
    """
    others = {
        host["host"]
        for reason in reasons
        if reason["code"] not in (*OF_SLOTS, OF_SPAN)
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
        tuple(free),
        tile,
        sum(int(state.capacity.slots[host.number]) >= tile for host in hosts) if tile else 0,
    )


def free_slots(state: State, number: int) -> int:
    """
    Return how many slots of a host nobody has.
    """
    return max(0, int(state.capacity.slots[number] - state.capacity.used[number]))


def too_many(job_id: str, slots: SlotsWanted) -> str:
    """
    Return what helps a job that asks for more slots than the hosts that it may run on have.
    """
    one = slots.host_count == 1
    hosts = f"{slots.names[0]} has" if one else f"the {slots.host_count:,} hosts that suit it have"
    fewer = f" (xce modify -n {slots.most_tasks} {job_id})" if slots.most_tasks else ""
    return f"fewer tasks{fewer}: {slots.wanted:,} slots are asked for, and {hosts} {slots.total:,}"
