"""
How tasks may lie over hosts when the requirement says so: one planner a form of ``span[...]``.

A span fixes the partition, so its planner takes the place of the allocators' chain.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, final

import numpy as np

from domain.resreq.syntax import Span, SpanForm
from projections.scheduling.capacity import Column
from projections.scheduling.placement.plugins import Picked, Plan, View

SPAN: Final = "span"


class _Planner:
    """
    Be what all planners have in common: one plan for a count of tasks.
    """

    name = SPAN
    version = 1
    failing = ""
    is_monotone = True

    def accepts(self, tasks: int) -> bool:
        """
        Accept any count.
        """
        return True

    def counts(self, least: int, most: int) -> Sequence[int]:
        """
        Return the counts of tasks that a range may start with, greatest first.
        """
        return range(most, least - 1, -1)


@final
class OneHost(_Planner):
    """
    Place all tasks on one host.
    """

    def plans(self, tasks: int, view: View) -> Iterable[Plan] | None:
        """
        Yield the whole.
        """
        return (Plan(((1, tasks),)),)

    def find(self, tasks: int, view: View, total: int) -> Picked | None:
        """
        Return the first host that takes all.
        """
        fits = view.fits >= tasks
        return [(np.array([int(fits.argmax())]), tasks)] if fits.any() else None


@final
class Tile(_Planner):
    """
    Place exactly so many tasks on each host; only one host may hold fewer.
    """

    def __init__(self, count: int) -> None:
        self.count = count

    def plans(self, tasks: int, view: View) -> Iterable[Plan] | None:
        """
        Yield whole tiles, and the remainder last.
        """
        whole, rest = divmod(tasks, self.count)
        groups = ((whole, self.count),) if whole else ()
        return (Plan((*groups, (1, rest)) if rest else groups),)

    def find(self, tasks: int, view: View, total: int) -> Picked | None:
        """
        Return the first hosts that hold a tile, and the first other one for the remainder.
        """
        whole, rest = divmod(tasks, self.count)
        tiles = np.flatnonzero(view.fits >= self.count)[:whole]
        if len(tiles) < whole:
            return None
        picked: Picked = [(tiles, self.count)] if whole else []
        if rest:
            others = view.fits >= rest
            others[tiles] = False
            if not others.any():
                return None
            picked.append((np.array([int(others.argmax())]), rest))
        return picked


class _Pinned(_Planner):
    """
    Cut a plan for certain hosts, in host order.
    """

    def shares(self, tasks: int, view: View) -> list[tuple[int, int]] | None:
        """
        Return (place, tasks) of every host, None when the hosts don't suffice.
        """
        raise NotImplementedError

    def failed_tile(self, tasks: int) -> int:
        """
        Return what every host should hold at least: those that can't are the short ones.
        """
        return 1

    def plans(self, tasks: int, view: View) -> Iterable[Plan] | None:
        """
        Yield the plan; where the hosts don't suffice, one that no hosts can satisfy.
        """
        found = self.shares(tasks, view) if view.firsts is None else self._from_first(tasks, view)
        if found is None:
            return (Plan(((len(view.fits) + 1, self.failed_tile(tasks)),)),)
        return (Plan(tuple((1, each) for _, each in found), tuple(place for place, _ in found)),)

    def _from_first(self, tasks: int, view: View) -> list[tuple[int, int]] | None:
        """
        Return the same with one of the hosts that may be the job's first in front of the others:
        the first of them with which it can be done.
        """
        assert view.firsts is not None, "asked only then"
        for lead in np.flatnonzero(view.firsts & (view.fits > 0)).tolist():
            order = np.array([lead, *(n for n in range(len(view.fits)) if n != lead)], np.int64)
            hosts = order if view.hosts is None else view.hosts[order]
            found = self.shares(tasks, View(view.part, view.capacity, view.fits[order], hosts))
            if found and found[0][0] == 0:
                return [(int(order[place]), each) for place, each in found]
        return None

    def find(self, tasks: int, view: View, total: int) -> Picked | None:
        """
        Return the hosts of that plan.
        """
        found = self.shares(tasks, view)
        if found is None:
            return None
        return [(np.array([place]), each) for place, each in found]


@final
class SlotTile(_Pinned):
    """
    Fill each host to its own tile: its slots, or what its type or model is given. Only the last one
    may hold fewer.
    """

    is_monotone = False

    def __init__(self, kinds: tuple[tuple[str, int], ...]) -> None:
        self.kinds = kinds

    def _tiles(self, view: View) -> list[int]:
        capacity = view.capacity
        tiles = capacity.slots
        if self.kinds:
            own = capacity.selector.tiles(self.kinds)
            tiles = np.where(own > 0, own, tiles)
        found: list[int] = (tiles if view.hosts is None else tiles[view.hosts]).tolist()
        return found

    def shares(self, tasks: int, view: View) -> list[tuple[int, int]] | None:
        """
        Take whole tiles in host order while they fit in what is left, then the first other host
        for the remainder.
        """
        left, found, taken = tasks, [], set()
        tiles, fits = self._tiles(view), view.fits.tolist()
        for place, (tile, fit) in enumerate(zip(tiles, fits, strict=True)):
            if 0 < tile <= fit and tile <= left:
                found.append((place, tile))
                taken.add(place)
                left -= tile
        if left:
            rest = (
                place
                for place, fit in enumerate(fits)
                if place not in taken and fit >= left and tiles[place] >= left
            )
            last = next(rest, None)
            if last is None:
                return None
            found.append((last, left))
        return found


@final
class Block(_Pinned):
    """
    Pack as many blocks as fit on a host, then go on to the next; a short block comes last.
    """

    def __init__(self, count: int) -> None:
        self.count = count

    def counts(self, least: int, most: int) -> Sequence[int]:
        """
        Return whole blocks only, unless the range holds no multiple of them.
        """
        top, low = most // self.count * self.count, -(-least // self.count) * self.count
        if least == most or low > top:
            return range(most, least - 1, -1)
        return range(top, low - 1, -self.count)

    def failed_tile(self, tasks: int) -> int:
        """
        Return a block.
        """
        return min(self.count, tasks)

    def shares(self, tasks: int, view: View) -> list[tuple[int, int]] | None:
        """
        Take whole blocks in host order; the rest goes to the host of the last block where it fits,
        else to the first host without a block.
        """
        whole, rest = divmod(tasks, self.count)
        blocks = np.minimum(view.fits // self.count, whole)
        ends = np.minimum(np.cumsum(blocks), whole)
        if whole and (not len(ends) or int(ends[-1]) < whole):
            return None
        taken = np.diff(ends, prepend=0)
        places = np.flatnonzero(taken)
        found = [(int(place), int(taken[place]) * self.count) for place in places]
        if not rest:
            return found
        if found and int(view.fits[found[-1][0]]) >= found[-1][1] + rest:
            found[-1] = (found[-1][0], found[-1][1] + rest)
            return found
        others = view.fits >= rest
        others[places] = False
        if not others.any():
            return None
        return [*found, (int(others.argmax()), rest)]


@final
class Stripe(_Pinned):
    """
    Deal tasks round robin: nobody gets a second one before every host has one.
    """

    def shares(self, tasks: int, view: View) -> list[tuple[int, int]] | None:
        """
        Fill all hosts to one level, and the first ones one above it.
        """
        fits = view.fits
        if int(fits.sum()) < tasks:
            return None
        level = _level(fits, tasks)
        shares = np.minimum(fits, level)
        more = np.flatnonzero(fits > level)[: tasks - int(shares.sum())]
        shares[more] += 1
        return [(int(place), int(shares[place])) for place in np.flatnonzero(shares)]


def _level(fits: Column, tasks: int) -> int:
    """
    Return the highest level to which every host can be filled with so many tasks.
    """
    low, high = 0, tasks
    while low < high:
        middle = (low + high + 1) // 2
        if int(np.minimum(fits, middle).sum()) <= tasks:
            low = middle
        else:
            high = middle - 1
    return low


@final
class StripeMost(_Pinned):
    """
    Place at most so many tasks on a host, host by host.
    """

    def __init__(self, count: int) -> None:
        self.count = count

    def shares(self, tasks: int, view: View) -> list[tuple[int, int]] | None:
        """
        Fill hosts in order, each up to the bound.
        """
        filled = np.minimum(np.cumsum(np.minimum(view.fits, self.count)), tasks)
        if not len(filled) or int(filled[-1]) < tasks:
            return None
        shares = np.diff(filled, prepend=0)
        return [(int(place), int(shares[place])) for place in np.flatnonzero(shares)]


Planner = OneHost | Tile | SlotTile | Block | Stripe | StripeMost


def planner_of(span: Span) -> Planner:
    """
    Return the planner of a span.
    """
    if span.form is SpanForm.ONE_HOST:
        return OneHost()
    if span.form is SpanForm.PTILE:
        return Tile(span.count)
    if span.form is SpanForm.PTILE_SLOTS:
        return SlotTile(tuple((each.kind, each.count) for each in span.kinds))
    if span.form is SpanForm.BLOCK:
        return Block(span.count)
    return StripeMost(span.count) if span.count else Stripe()
