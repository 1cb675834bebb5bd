"""
Named units of a resource, such as GPUs: each keeps its own amount, so that shares of one never add
up to more than it.

An amount of a whole number is that many whole units; what is left over is a share of one more.
Amounts for each task are told apart: two tasks of 0.6 need two units.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from domain.allocations import Instances
from domain.errors import InvariantBroken
from domain.resreq.syntax import Per
from projections.scheduling.request import MILLI, HostNeed

Column = npt.NDArray[np.int64]
Shares = npt.NDArray[np.int64]
"""What each unit of each host has left, in thousandths: hosts x units, 0 where there is none."""

NOTHING: Final[Shares] = np.zeros((0, 0), np.int64)


class UnitShares:
    """
    Hold what every unit of every host has left.

    ``used`` is what is taken: (host, resource) -> unit -> thousandths, also of units that a host
    which joined again no longer has.
    """

    def __init__(self) -> None:
        self.used: dict[tuple[int, str], dict[str, int]] = {}
        self._names: dict[str, dict[int, tuple[str, ...]]] = {}
        self._free: dict[str, Shares] = {}
        self._whole: dict[str, Shares] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def __bool__(self) -> bool:
        return bool(self._names)

    def set_host(self, number: int, units: Mapping[str, tuple[str, ...]]) -> None:
        """
        Take over which units a host has.
        """
        for name in list(self._names):
            if name not in units:
                self._names[name].pop(number, None)
                self._settle(number, name)
        for name, names in units.items():
            self._names.setdefault(name, {})[number] = names
            self._settle(number, name)

    def _settle(self, number: int, name: str) -> None:
        # Jobs may have units of a host that joined again without any.
        names = self._names.setdefault(name, {}).get(number, ())
        used = self.used.get((number, name), {})
        for kept in (self._free, self._whole):
            shares = kept.get(name, NOTHING)
            rows, width = max(len(shares), number + 1), max(shares.shape[1], len(names))
            if shares.shape != (rows, width):
                grown = np.zeros((rows, width), np.int64)
                grown[: len(shares), : shares.shape[1]] = shares
                kept[name] = grown
            kept[name][number] = 0
        for place, unit in enumerate(names):
            self._whole[name][number, place] = MILLI
            self._free[name][number, place] = max(0, MILLI - used.get(unit, 0))

    def charge(self, number: int, instances: Instances, sign: int) -> None:
        """
        Note what of which units of a host is taken, or no longer.
        """
        key = (number, instances.resource)
        used = self.used.setdefault(key, {})
        for unit, milli in shares_in(instances):
            left = used.get(unit, 0) + sign * milli
            if left:
                used[unit] = left
            else:
                del used[unit]
        if not used:
            del self.used[key]
        self._settle(number, instances.resource)

    def are_free(self, number: int, instances: Instances, hosts: int) -> bool:
        """
        Say whether units of a host have what is asked of each; those that it doesn't have any more
        are no obstacle.
        """
        if instances.resource not in self:
            return True
        free = self.free(instances.resource, hosts)
        places = [
            (self.place_of(number, instances.resource, unit), milli)
            for unit, milli in shares_in(instances)
        ]
        return all(place is None or free[number, place] >= milli for place, milli in places)

    def free(self, name: str, hosts: int, *, is_empty: bool = False) -> Shares:
        """
        Return what each unit has left, or would have if nobody ran, a row for each host.
        """
        shares = self._whole[name] if is_empty else self._free[name]
        if len(shares) < hosts:
            more = np.zeros((hosts - len(shares), shares.shape[1]), np.int64)
            shares = np.concatenate([shares, more])
        return shares

    def hosts_with(self, name: str, hosts: int) -> npt.NDArray[np.bool_]:
        """
        Return which hosts have units of a resource.
        """
        return np.asarray(self.free(name, hosts, is_empty=True).any(axis=1), np.bool_)

    def place_of(self, number: int, name: str, unit: str) -> int | None:
        """
        Return the place of a unit among its host's, None when the host doesn't have it any more.
        """
        names = self._names.get(name, {}).get(number, ())
        return names.index(unit) if unit in names else None

    def named(self, number: int, need: HostNeed, tasks: int, free: Shares) -> Instances | None:
        """
        Return which units a bucket of tasks takes on a host, None where units have no names: shares
        in those that are begun first, all in the host's own order.

        Raises:
            InvariantBroken: They don't have so much left, though that was looked at before.
        """
        names = self._names.get(need.resource, {}).get(number, ())
        if not names:
            return None
        row = free[number].tolist()[: len(names)]
        taken = _take(row, [need.milli] * tasks if need.per is Per.TASK else [need.of(tasks)])
        if taken is None:
            rule = "as much of some units is free as was available"
            raise InvariantBroken(rule, need.resource)
        places = sorted(taken)
        amounts = tuple(taken[place] for place in places)
        return Instances(
            resource=need.resource,
            units=tuple(names[place] for place in places),
            milli=() if all(milli == MILLI for milli in amounts) else amounts,
        )


def shares_in(instances: Instances) -> Iterable[tuple[str, int]]:
    """
    Return (unit, thousandths) of units that are taken, whole where nothing else is said.
    """
    amounts = instances.milli or (MILLI,) * len(instances.units)
    return zip(instances.units, amounts, strict=True)


def _take(row: list[int], chunks: list[int]) -> dict[int, int] | None:
    """
    Take chunks of what units have left, the shares first; return place -> amount.
    """
    taken: dict[int, int] = {}

    def take(milli: int, least: int, below: int) -> bool:
        for place, left in enumerate(row):
            if least <= left < below:
                row[place] -= milli
                taken[place] = taken.get(place, 0) + milli
                return True
        return False

    for chunk in chunks:
        share = chunk % MILLI
        if share and not take(share, share, MILLI) and not take(share, MILLI, MILLI + 1):
            return None
    for chunk in chunks:
        for _ in range(chunk // MILLI):
            if not take(MILLI, MILLI, MILLI + 1):
                return None
    return taken


def usable_milli(free: Shares, need: HostNeed) -> Column:
    """
    Return how much of a need each host's units can give, in thousandths: for a need of each task,
    divided by it, how many tasks; else the greatest amount in one.
    """
    whole = (free == MILLI).sum(axis=1)
    begun = np.where(free < MILLI, free, 0)
    most: Column = whole * MILLI + begun.max(axis=1, initial=0)
    if need.per is not Per.TASK or need.milli % MILLI == 0:
        return most
    units, share = divmod(need.milli, MILLI)
    if not units:
        shares = (free // share).sum(axis=1) * share
        found: Column = shares + (free % share).max(axis=1, initial=0)
        return found
    within = (begun // share).sum(axis=1)
    tasks = np.zeros(len(free), np.int64)
    for count in range(1, free.shape[1] // units + 1):
        beyond = np.maximum(count - within, 0)
        opened = -(-beyond // (MILLI // share))
        tasks = np.where(count * units + opened <= whole, count, tasks)
    return tasks * need.milli
