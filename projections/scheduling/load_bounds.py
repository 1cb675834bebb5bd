"""
The load thresholds of hosts in columns, and of a queue and the hosts together as a request sees
them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from domain.resources import Catalogue
from domain.thresholds import LoadThreshold

Column = npt.NDArray[np.int64]

NO_BOUND: Final = -1


@dataclass(slots=True, frozen=True)
class LoadBound:
    """
    Start nothing where a load index is beyond a bound.

    Args:
        index: Its name.
        is_ceiling: Whether beyond means above.
        milli: The queue's bound, None where only hosts have one.
    """

    index: str
    is_ceiling: bool
    milli: int | None = None


class HostBounds:
    """
    Hold what hosts have as thresholds: for each index two columns, NO_BOUND where a host has none.
    """

    def __init__(self) -> None:
        self.sched: dict[str, Column] = {}
        self.stop: dict[str, Column] = {}

    def __bool__(self) -> bool:
        return bool(self.sched)

    def known(self) -> dict[str, list[tuple[int, int, int]]]:
        """
        Return (host, where nothing starts, where jobs are stopped) of each index.
        """
        return {
            name: [
                (number, int(column[number]), int(self.stop[name][number]))
                for number in range(len(column))
                if column[number] != NO_BOUND or self.stop[name][number] != NO_BOUND
            ]
            for name, column in sorted(self.sched.items())
        }

    def set_host(self, number: int, hosts: int, thresholds: Iterable[LoadThreshold]) -> None:
        """
        Take over the thresholds of one host; of an index that none has any more nothing is kept.
        """
        for columns in (self.sched, self.stop):
            for name, column in columns.items():
                if len(column) < hosts:
                    more = np.full(hosts - len(column), NO_BOUND, np.int64)
                    columns[name] = np.append(column, more)
                columns[name][number] = NO_BOUND
        for each in thresholds:
            for columns, milli in ((self.sched, each.sched_milli), (self.stop, each.stop_milli)):
                if each.index not in columns:
                    columns[each.index] = np.full(hosts, NO_BOUND, np.int64)
                columns[each.index][number] = NO_BOUND if milli is None else milli
        for name in list(self.sched):
            if (self.sched[name] == NO_BOUND).all() and (self.stop[name] == NO_BOUND).all():
                del self.sched[name], self.stop[name]

    def of(self, bound: LoadBound, hosts: int) -> Column:
        """
        Return the bound of each host beyond which nothing starts there.
        """
        if bound.index not in self.sched:
            return np.full(hosts, NO_BOUND, np.int64)
        sched, stop = self.sched[bound.index][:hosts], self.stop[bound.index][:hosts]
        both = np.maximum(sched, stop)
        if bound.is_ceiling:
            is_one = (sched == NO_BOUND) | (stop == NO_BOUND)
            both = np.where(is_one, both, np.minimum(sched, stop))
        if len(both) < hosts:
            both = np.append(both, np.full(hosts - len(both), NO_BOUND, np.int64))
        return both


def bounds_of(
    thresholds: Iterable[LoadThreshold], hosts: HostBounds, catalogue: Catalogue
) -> tuple[LoadBound, ...]:
    """
    Return what bounds the load of hosts for the jobs of a queue: its own thresholds, then those
    that only hosts have, by name: a restored core has heard of them in another order.
    """
    found: dict[str, LoadBound] = {}
    for each in thresholds:
        is_ceiling = lower_is_better(each.index, catalogue)
        milli = each.stricter(is_ceiling=is_ceiling)
        found[each.index] = LoadBound(each.index, is_ceiling, milli)
    for name in sorted(hosts.sched):
        found.setdefault(name, LoadBound(name, lower_is_better(name, catalogue)))
    return tuple(found.values())


def lower_is_better(index: str, catalogue: Catalogue) -> bool:
    """
    Say whether a bound of an index is a ceiling; one that nobody describes any more is.
    """
    descriptor = catalogue.get(index)
    return descriptor is None or descriptor.lower_is_better
