"""
The built-in allocators: ``seqjob`` (one task), ``parjob`` (even partitions), ``fill`` (hosts in
order, each full).

Each has its plan generator, which is its specification, and ``find``, which gives the same answer
from the columns without trying plans that must fail. A property test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final, final

import numpy as np

from projections.scheduling.capacity import Column
from projections.scheduling.placement.assembly import NUMBERS, one_host
from projections.scheduling.placement.plugins import Picked, Plan, View

ZERO: Final = np.array(0)
"""Short arrays are compared with it in half the time that a plain number takes."""
FEW_HOSTS: Final = 400
"""Among more, those that aren't 0 are found sooner once the numbers are made truth values."""
ONE_EACH: Final = np.ones(1 << 12, np.int64)
SCALAR_TRIES: Final = 6
"""Plans looked at one by one before all of them are looked at together in arrays."""


@final
class SeqJob:
    """
    Place a single task: always the one plan [1], no guard.
    """

    name = "seqjob"
    version = 1
    failing = "whole"
    is_monotone = True

    def accepts(self, tasks: int) -> bool:
        """
        Accept one task.
        """
        return tasks == 1

    def plans(self, tasks: int, view: View) -> Iterable[Plan] | None:
        """
        Yield the plan [1].
        """
        return (Plan(((1, 1),)),)

    def find(self, tasks: int, view: View, total: int) -> Picked | None:
        """
        Return the first host that fits.
        """
        if total < 1:
            return None
        fits = view.fits
        first = int(fits.argmax())
        if fits.item(first) > 1:
            # The first of those that can take most may not be the first that can take one.
            first = int((fits > ZERO).argmax())
        return [(one_host(first), 1)]


@final
class ParJob:
    """
    Spread tasks evenly over as few hosts as possible.
    """

    name = "parjob"
    version = 1
    failing = "even"
    is_monotone = False

    def accepts(self, tasks: int) -> bool:
        """
        Accept more than one task.
        """
        return tasks > 1

    def plans(self, tasks: int, view: View) -> Iterable[Plan] | None:
        """
        Yield the even partition over k hosts for k = 1, 2, ... tasks: for 8 tasks and k = 3, [3, 3,
        2].

        The sequence depends on the count of tasks alone, never on the hosts.
        """
        return _even_partitions(tasks)

    def find(self, tasks: int, view: View, total: int) -> Picked | None:
        """
        Return the first even partition that fits.

        Equivalent to: trying each plan in turn, each bucket on the first unclaimed host that fits.
        Differs in: 1. a plan of k buckets, r of q+1 tasks and the others of q, fits exactly if r
        hosts can take q+1 and k hosts can take q, so only counts are compared; 2. fewer hosts than
        ceil(tasks / largest) can't do.
        """
        if total < tasks:
            return None
        fits = view.fits
        # A third of the time of a maximum.
        first = int(fits.argmax())
        largest = fits.item(first)
        if largest >= tasks:
            return [(one_host(int((fits >= tasks).argmax())), tasks)]
        if largest == 1:
            # Mostly the first hosts that are free are neighbours, which comparing bytes tells.
            stop = first + tasks
            if fits[first:stop].tobytes() == ONE_EACH[:tasks].tobytes() and stop <= len(NUMBERS):
                return [(NUMBERS[first:stop], 1)]
            found = fits if len(fits) <= FEW_HOSTS else fits.astype(np.bool_)
            return [(found.nonzero()[0][:tasks], 1)]
        at_least = _counts_at_least(fits, largest)
        hosts = _first_even_fit(tasks, at_least)
        return None if hosts is None else _even_pick(tasks, hosts, fits)


def _even_partitions(tasks: int) -> Iterator[Plan]:
    for hosts in range(1, tasks + 1):
        each, larger = divmod(tasks, hosts)
        yield Plan(((larger, each + 1), (hosts - larger, each)) if larger else ((hosts, each),))


def _counts_at_least(fits: Column, largest: int) -> Column:
    """
    Return, for each n from 0 to largest + 1, how many hosts can take n tasks or more.
    """
    counts = np.bincount(fits, minlength=largest + 2)
    return counts[::-1].cumsum()[::-1]


def _first_even_fit(tasks: int, at_least: Column) -> int | None:
    """
    Return the least count of hosts whose even partition fits, None when none does.
    """
    largest = len(at_least) - 2
    least, most = -(-tasks // largest), min(tasks, int(at_least[1]))
    for hosts in range(least, min(most, least + SCALAR_TRIES) + 1):
        each, larger = divmod(tasks, hosts)
        if at_least[each] >= hosts and (not larger or at_least[each + 1] >= larger):
            return hosts
    if least + SCALAR_TRIES >= most:
        return None
    counts = np.arange(least + SCALAR_TRIES + 1, most + 1)
    each_of = tasks // counts
    larger_of = tasks - each_of * counts
    good = (at_least[each_of] >= counts) & (at_least[each_of + 1] >= larger_of)
    first = int(good.argmax())
    return int(counts[first]) if good[first] else None


def _even_pick(tasks: int, hosts: int, fits: Column) -> Picked:
    """
    Return the hosts of the even partition over so many hosts, larger buckets first, each in host
    order.
    """
    each, larger = divmod(tasks, hosts)
    if not larger:
        return [((fits >= each).nonzero()[0][:hosts], each)]
    first = (fits > each).nonzero()[0][:larger]
    open_still = fits >= each
    open_still[first] = False
    rest = open_still.nonzero()[0][: hosts - larger]
    return [(first, each + 1), (rest, each)]


@final
class Fill:
    """
    Take hosts in order, each as full as it goes: LSF's way. It reads the hosts.

    Its buckets are in host order, not largest first: the first host that fits a bucket is then the
    host it was cut for. Where the hosts together don't suffice, its one plan is all tasks on one
    host, so that every host that falls short is named.
    """

    name = "fill"
    version = 1
    failing = "whole"
    is_monotone = True

    def accepts(self, tasks: int) -> bool:
        """
        Accept any count.
        """
        return True

    def plans(self, tasks: int, view: View) -> Iterable[Plan] | None:
        """
        Yield the one plan.
        """
        left, groups = tasks, []
        for fits in _first_in_front(view):
            take = min(fits, left)
            if take:
                groups.append((1, take))
            left -= take
        return (Plan(tuple(groups) if left == 0 else ((1, tasks),)),)

    def find(self, tasks: int, view: View, total: int) -> Picked | None:
        """
        Return the hosts of that plan.
        """
        if total < tasks:
            return None
        fits = view.fits
        filled = np.cumsum(fits)
        last = int((filled >= tasks).argmax())
        used = np.flatnonzero(fits[: last + 1])
        shares = fits[used].copy()
        shares[-1] -= int(filled[last]) - tasks
        return _by_equal_shares(used, shares)


def _first_in_front(view: View) -> list[int]:
    """
    Return how many tasks each host takes, that of the job's first host in front.
    """
    found: list[int] = view.fits.tolist()
    if view.firsts is not None:
        usable = np.flatnonzero(view.firsts & (view.fits > 0))
        if len(usable):
            found.insert(0, found.pop(int(usable[0])))
    return found


def _by_equal_shares(hosts: Column, shares: Column) -> Picked:
    """
    Cut hosts, in order, where the share changes.
    """
    cuts = (np.flatnonzero(np.diff(shares)) + 1).tolist()
    edges = [0, *cuts, len(hosts)]
    return [(hosts[start:stop], int(shares[start])) for start, stop in pairwise(edges)]


BUILT_IN: Final = (SeqJob(), ParJob(), Fill())
