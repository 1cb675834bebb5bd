"""
Free slots by time at very many moments, in arrays.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, final

import numpy as np

from projections.scheduling.capacity import Column
from projections.scheduling.pickers.profile import FOREVER, Profile, Taking

MANY: Final = 400
"""From so many moments on arrays are quicker than lists."""
LONGEST: Final = 2**63 - 1
"""How long a gap lasts that has no end."""


class _Gaps(NamedTuple):
    """
    Hold when so many slots are free, as ``profile`` has it.
    """

    starts: Column
    ends: Column
    longest: Column


@final
class WideProfile:
    """
    Hold how many slots are free from each moment on, until the next.

    Equivalent to: ``Profile``. Differs in: moments and slots are arrays with room behind them, so
    that what is taken, and the gaps, cost some passes over them at the speed of memory.

    Args:
        profile: What it begins as.
    """

    def __init__(self, profile: Profile) -> None:
        self._count = len(profile.moments)
        self._moments: Column = np.array(profile.moments, np.int64)
        self._free: Column = np.array(profile.free, np.int64)
        self._gaps: dict[int, _Gaps] = {}

    @property
    def moments(self) -> list[int]:
        """
        Return when the count of free slots changes.
        """
        found: list[int] = self._moments[: self._count].tolist()
        return found

    @property
    def free(self) -> list[int]:
        """
        Return how many slots are free from each of these on.
        """
        found: list[int] = self._free[: self._count].tolist()
        return found

    def holds_all(self) -> bool:
        """
        Say whether no more is taken at any time than there is.
        """
        return bool(self._free[: self._count].min() >= 0)

    def advance(self, now_us: int) -> None:
        """
        Begin later: no running job was due meanwhile, and nothing promised.
        """
        place = int(self._moments[: self._count].searchsorted(now_us, "right")) - 1
        if place:
            self._moments, self._free = self._moments[place:], self._free[place:]
            self._count -= place
        self._moments[0] = now_us
        self._gaps = {}

    def _gaps_of(self, slots: int) -> _Gaps:
        found = self._gaps.get(slots)
        if found is None:
            moments, are_free = self._moments[: self._count], self._free[: self._count] >= slots
            edges = (are_free[1:] != are_free[:-1]).nonzero()[0] + 1
            # Every other edge begins a gap; the first moment may too.
            if are_free[0]:
                starts, ends = moments[np.append(0, edges[1::2])], moments[edges[::2]]
            else:
                starts, ends = moments[edges[::2]], moments[edges[1::2]]
            lengths = np.full(len(starts), LONGEST)
            lengths[: len(ends)] = ends - starts[: len(ends)]
            if len(ends) < len(starts):
                ends = np.append(ends, LONGEST)
            longest = np.maximum.accumulate(lengths)
            found = self._gaps[slots] = _Gaps(starts, ends, longest)
        return found

    def first(self, slots: int, run_us: int) -> int | None:
        """
        Return the first moment from which so many slots are free for so long, None for never.
        """
        gaps = self._gaps_of(slots)
        place = int(gaps.longest.searchsorted(run_us))
        return gaps.starts.item(place) if place < len(gaps.starts) else None

    def has_earlier(self, slots: int, start_us: int, run_us: int) -> bool:
        """
        Say whether what is taken from a moment on for so long could be taken from an earlier one.
        """
        gaps = self._gaps_of(slots)
        place = int(gaps.starts.searchsorted(start_us)) - 1
        if place < 0:
            return False
        return bool(gaps.ends.item(place) >= start_us or gaps.longest.item(place) >= run_us)

    def fits(self, slots: int, start_us: int, run_us: int) -> bool:
        """
        Say whether so many slots are free from a moment on for so long.
        """
        moments = self._moments[: self._count]
        first = int(moments.searchsorted(start_us, "right")) - 1
        stop = int(moments.searchsorted(start_us + run_us))
        return first >= 0 and bool((self._free[first:stop] >= slots).all())

    def take(self, slots: int, start_us: int, run_us: int) -> None:
        """
        Take slots from a moment on for so long; negative ones are given back.
        """
        self._gaps = {}
        first = self._cut(start_us)
        stop = self._cut(min(start_us + run_us, FOREVER))
        self._free[first:stop] -= slots

    def _cut(self, moment: int) -> int:
        """
        Return the place of a moment, made one where it was none.
        """
        count = self._count
        place = int(self._moments[:count].searchsorted(moment))
        if place < count and self._moments[place] == moment:
            return place
        if count == len(self._moments):
            room = np.zeros(count, np.int64)
            self._moments = np.concatenate([self._moments, room])
            self._free = np.concatenate([self._free, room])
        for column in (self._moments, self._free):
            column[place + 1 : count + 1] = column[place:count]
        self._moments[place] = moment
        self._free[place] = self._free[place - 1] if place else 0
        self._count += 1
        return place


def profile_of(
    now_us: int,
    free: int,
    releases: Iterable[tuple[int, int]],
    taken: Iterable[Taking] = (),
) -> Profile | WideProfile:
    """
    Return the profile that is quicker for so many moments.
    """
    found = Profile(now_us, free, releases, taken)
    return found if len(found.moments) < MANY else WideProfile(found)
