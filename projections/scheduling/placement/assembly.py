"""
Build allocations from what was picked: privately, published only when complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from domain.allocations import Allocation, HostRun, Instances, SharedAmount
from domain.amounts import Amount
from domain.event import sure
from domain.resreq.syntax import Per
from projections.scheduling.capacity import Column
from projections.scheduling.placement.ground import Ground
from projections.scheduling.placement.plugins import Picked
from projections.scheduling.request import MILLI, HostNeed, SharedNeed, Usage
from projections.scheduling.unit_shares import shares_in

ONE: Final = np.array(1)
"""Arithmetic of short arrays takes half the time with it as with a plain number."""


NUMBERS: Final = np.arange(1 << 16)
"""Most picks are one stretch, and comparing bytes tells that in a fifth of the time."""
NUMBERS.flags.writeable = False

FEW_HOSTS: Final = 24
"""So many are read one by one in the time that arrays take to tell anything."""


class Found(NamedTuple):
    """
    Hold what one primary was given.
    """

    runs: tuple[HostRun, ...]
    shared: tuple[SharedAmount, ...]
    allocator: str


def found_of(usage: Usage, picked: Picked, allocator: str, ground: Ground) -> Found:
    """
    Return what a primary gets on the hosts picked for it; *picked* names them by number.
    """
    tasks = sum(len(hosts) * each for hosts, each in picked)
    needs = [
        HostNeed(need.resource, need.milli, need.per, tasks) if need.per is Per.JOB else need
        for need in usage.needs
    ]
    runs = with_units(runs_of(needs, picked), needs, ground)
    shared = () if not (usage.shared or usage.pooled) else _shared(usage, picked, tasks, ground)
    return Found(runs, shared, allocator)


def runs_of(needs: Sequence[HostNeed], picked: Picked) -> tuple[HostRun, ...]:
    """
    Return one share per claimed host, in claim order, neighbours with equal shares as one run.
    """
    runs: list[HostRun] = []
    for hosts, tasks in picked:
        if needs:
            amounts = tuple(
                [sure(Amount, resource=need.resource, milli=need.of(tasks)) for need in needs]
            )
            for first, count in stretches(hosts):
                run = sure(HostRun, first=first, hosts=count, tasks=tasks, amounts=amounts)
                runs.append(run)
        else:
            runs += [slots_run(first, count, tasks) for first, count in stretches(hosts)]
    # Within one pick neighbours are joined already.
    return joined(runs) if len(picked) > 1 else tuple(runs)


@lru_cache(maxsize=1 << 14)
def slots_run(first: int, hosts: int, tasks: int) -> HostRun:
    """
    Return a share of slots alone; equal ones are one object, which never changes.
    """
    return sure(HostRun, first=first, hosts=hosts, tasks=tasks)


# hot: once a dispatch; the simulator and the bench of dispatches need it.
def stretches(hosts: Column) -> list[tuple[int, int]]:
    """
    Return (first, count) of each stretch of hosts that follow each other by number.

    Equivalent to: going through the hosts, and beginning a stretch at each that isn't the one after
    the host before it.
    """
    size = len(hosts)
    first = hosts.item(0)
    if size == 1 or hosts.tobytes() == NUMBERS[first : first + size].tobytes():
        return [(first, size)]
    if size <= FEW_HOSTS:
        return _stretches_one_by_one(hosts.tolist())
    cuts = ((hosts[1:] - hosts[:-1]) != ONE).nonzero()[0]
    found, start = [], 0
    for last in (*cuts.tolist(), size - 1):
        found.append((hosts.item(start), last + 1 - start))
        start = last + 1
    return found


def _stretches_one_by_one(hosts: list[int]) -> list[tuple[int, int]]:
    found = []
    first = after = hosts[0]
    for host in hosts:
        if host != after:
            found.append((first, after - first))
            first = host
        after = host + 1
    found.append((first, after - first))
    return found


def one_host(number: int) -> Column:
    """
    Return one host as what is picked.
    """
    return NUMBERS[number : number + 1] if number < len(NUMBERS) else np.array([number])


def joined(runs: Sequence[HostRun]) -> tuple[HostRun, ...]:
    """
    Join runs that follow each other with equal shares, so that the same claims give the same runs
    however picked.
    """
    if len(runs) < 2:
        return tuple(runs)
    found = [runs[0]]
    for run in runs[1:]:
        last = found[-1]
        follows = last.first + last.hosts == run.first
        is_alike = last.tasks == run.tasks and last.amounts == run.amounts
        if follows and is_alike and not (last.instances or run.instances):
            found[-1] = last.model_copy(update={"hosts": last.hosts + run.hosts})
        else:
            found.append(run)
    return tuple(found)


def _shared(usage: Usage, picked: Picked, tasks: int, ground: Ground) -> tuple[SharedAmount, ...]:
    """
    Return one record per shared entry: from the one total of all hosts, or from each total that
    the picked hosts share in.
    """
    hosts = sum(len(each) for each, _ in picked)
    found = [
        SharedAmount(resource=need.resource, milli=_times(need, tasks, hosts))
        for need in usage.shared
    ]
    for need in usage.pooled:
        for pool, amount in pool_amounts(need, picked, ground):
            found.append(SharedAmount(resource=need.resource, milli=amount, pool=pool))
    return tuple(found)


def _times(need: SharedNeed, tasks: int, hosts: int) -> int:
    return need.milli * {Per.TASK: tasks, Per.HOST: hosts}.get(need.per, 1)


def pool_amounts(need: SharedNeed, picked: Picked, ground: Ground) -> list[tuple[int, int]]:
    """
    Return (pool, amount) of each total that the hosts share in.
    """
    found = []
    for number, pool in enumerate(ground.capacity.pools.by_name[need.resource]):
        inside = [(int(pool.members[hosts].sum()), tasks) for hosts, tasks in picked]
        hosts = sum(count for count, _ in inside)
        if hosts:
            found.append((number, _times(need, sum(n * each for n, each in inside), hosts)))
    return found


def pools_hold(usage: Usage, picked: Picked, ground: Ground) -> str:
    """
    Return the name of a shared resource of which the hosts together would take more than is left,
    "" when there is none.
    """
    for need in usage.pooled:
        left = ground.left(need.resource)
        if any(amount > left[pool] for pool, amount in pool_amounts(need, picked, ground)):
            return need.resource
    return ""


# ----------------------------------------------------------------------------------- the whole job


def allocation_of(found: Sequence[Found], *, alternative: int, is_exclusive: bool) -> Allocation:
    """
    Return the allocation of a job: the members of a compound merged per host.
    """
    runs, shared = shares_of(found)
    allocator = found[0].allocator
    if len(found) > 1:
        allocator = "+".join(dict.fromkeys(each.allocator for each in found))
    return sure(
        Allocation,
        runs=runs,
        shared=shared,
        allocator=allocator,
        alternative=alternative,
        is_exclusive=is_exclusive,
    )


def shares_of(
    found: Sequence[Found],
) -> tuple[tuple[HostRun, ...], tuple[SharedAmount, ...]]:
    """
    Return what the members of a compound get together, merged per host.
    """
    if len(found) == 1:
        return found[0].runs, found[0].shared
    return _merged(run for each in found for run in each.runs), _sum_shared(found)


def _merged(runs: Iterable[HostRun]) -> tuple[HostRun, ...]:
    """
    Return one share per host, in order of its first claim, amounts of the same resource summed.
    """
    tasks: dict[int, int] = {}
    amounts: dict[int, dict[str, int]] = {}
    units: dict[int, dict[str, dict[str, int]]] = {}
    for run in runs:
        for instances in run.instances:
            used = units.setdefault(run.first, {}).setdefault(instances.resource, {})
            for unit, milli in shares_in(instances):
                used[unit] = used.get(unit, 0) + milli
        for number in range(run.first, run.first + run.hosts):
            tasks[number] = tasks.get(number, 0) + run.tasks
            own = amounts.setdefault(number, {})
            for amount in run.amounts:
                own[amount.resource] = own.get(amount.resource, 0) + amount.milli
    return joined(
        [
            sure(
                HostRun,
                first=number,
                tasks=tasks[number],
                amounts=tuple(Amount(resource=name, milli=own[name]) for name in own),
                instances=tuple(_instances(*each) for each in units.get(number, {}).items()),
            )
            for number, own in amounts.items()
        ]
    )


def _sum_shared(found: Sequence[Found]) -> tuple[SharedAmount, ...]:
    sums: dict[tuple[str, int], int] = {}
    for each in found:
        for amount in each.shared:
            key = (amount.resource, amount.pool)
            sums[key] = sums.get(key, 0) + amount.milli
    return tuple(
        SharedAmount(resource=name, milli=milli, pool=pool) for (name, pool), milli in sums.items()
    )


def _instances(name: str, used: dict[str, int]) -> Instances:
    is_whole = all(milli == MILLI for milli in used.values())
    return Instances(
        resource=name, units=tuple(used), milli=() if is_whole else tuple(used.values())
    )


def with_units(
    runs: tuple[HostRun, ...], needs: Sequence[HostNeed], ground: Ground
) -> tuple[HostRun, ...]:
    """
    Name the units of resources that have some, each host then a run of its own.
    """
    units = ground.capacity.units
    named = [need for need in needs if need.resource in units]
    if not named:
        return runs
    found: list[HostRun] = []
    for run in runs:
        for number in range(run.first, run.first + run.hosts):
            given = (
                units.named(number, need, run.tasks, ground.unit_shares(need.resource))
                for need in named
            )
            instances = tuple(each for each in given if each is not None)
            changes = {"first": number, "hosts": 1, "instances": instances}
            found.append(run.model_copy(update=changes))
    return joined(found)
