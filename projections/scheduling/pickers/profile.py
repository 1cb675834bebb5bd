"""
Free slots by time: what running jobs give back, less what is promised.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Final

FOREVER: Final = 2**62


class Profile:
    """
    Hold how many slots are free from each moment on, until the next.

    Args:
        now_us: Where it begins.
        free: So many are free then.
        releases: (moment, slots) of running jobs; one that is over its time counts as about to end.
    """

    def __init__(self, now_us: int, free: int, releases: Iterable[tuple[int, int]]) -> None:
        self.moments = [now_us]
        self.free = [free]
        for moment, slots in releases:
            later = max(moment, now_us + 1)
            if later == self.moments[-1]:
                self.free[-1] += slots
            else:
                self.moments.append(later)
                self.free.append(self.free[-1] + slots)

    def first(self, slots: int, run_us: int) -> int | None:
        """
        Return the first moment from which so many slots are free for so long, None for never.
        """
        moments, free = self.moments, self.free
        last = len(free)
        place = 0
        while place < last:
            if free[place] < slots:
                place += 1
                continue
            end_us = moments[place] + run_us
            later = place + 1
            while later < last and moments[later] < end_us and free[later] >= slots:
                later += 1
            if later == last or moments[later] >= end_us:
                return moments[place]
            place = later + 1
        return None

    def fits(self, slots: int, start_us: int, run_us: int) -> bool:
        """
        Say whether so many slots are free from a moment on for so long.
        """
        first = bisect_right(self.moments, start_us) - 1
        stop = bisect_left(self.moments, start_us + run_us)
        return first >= 0 and all(free >= slots for free in self.free[first:stop])

    def take(self, slots: int, start_us: int, run_us: int) -> None:
        """
        Take slots from a moment on for so long; negative ones are given back.
        """
        first = self._cut(start_us)
        stop = self._cut(min(start_us + run_us, FOREVER))
        for place in range(first, stop):
            self.free[place] -= slots

    def _cut(self, moment: int) -> int:
        """
        Return the place of a moment, made one where it was none.
        """
        place = bisect_left(self.moments, moment)
        if place == len(self.moments) or self.moments[place] != moment:
            self.moments.insert(place, moment)
            self.free.insert(place, self.free[place - 1] if place else 0)
        return place
