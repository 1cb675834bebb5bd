"""
Free slots by time: what running jobs give back, less what is promised.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import accumulate
from typing import Final, NamedTuple

FOREVER: Final = 2**62
ENDLESS: Final = 2**63
"""When a gap ends that lasts: longer even than a job of which nobody knows how long it runs."""

Taking = tuple[int, int, int]
"""Slots that are taken, from when on, for how long."""


class _Gaps(NamedTuple):
    """
    Hold when so many slots are free: from each of ``starts`` to each of ``ends``; ``longest`` is
    how long the longest one lasts so far.
    """

    starts: list[int]
    ends: list[int]
    longest: list[int]


class Profile:
    """
    Hold how many slots are free from each moment on, until the next.

    Args:
        now_us: Where it begins.
        free: So many are free then.
        releases: (moment, slots) of running jobs; one that is over its time counts as about to end.
        taken: What is promised; none of it begins before now.

    Gaps are looked up: they are worked out once for each number of slots, until more is taken.
    Equivalent to: go through all moments for each job.
    """

    def __init__(
        self,
        now_us: int,
        free: int,
        releases: Iterable[tuple[int, int]],
        taken: Iterable[Taking] = (),
    ) -> None:
        changes = {now_us: free}
        for moment, slots in releases:
            later = max(moment, now_us + 1)
            changes[later] = changes.get(later, 0) + slots
        for slots, start_us, run_us in taken:
            end_us = min(start_us + run_us, FOREVER)
            changes[start_us] = changes.get(start_us, 0) - slots
            changes[end_us] = changes.get(end_us, 0) + slots
        self.moments = sorted(changes)
        self.free = list(accumulate(changes[moment] for moment in self.moments))
        self._gaps: dict[int, _Gaps] = {}

    def holds_all(self) -> bool:
        """
        Say whether no more is taken at any time than there is.
        """
        return min(self.free) >= 0

    def advance(self, now_us: int) -> None:
        """
        Begin later: no running job was due meanwhile, and nothing promised.
        """
        place = bisect_right(self.moments, now_us) - 1
        del self.moments[:place], self.free[:place]
        self.moments[0] = now_us
        self._gaps = {}

    def _gaps_of(self, slots: int) -> _Gaps:
        found = self._gaps.get(slots)
        if found is None:
            starts: list[int] = []
            ends: list[int] = []
            is_open = False
            for moment, free in zip(self.moments, self.free, strict=True):
                if (free >= slots) is is_open:
                    continue
                is_open = not is_open
                (starts if is_open else ends).append(moment)
            if is_open:
                ends.append(ENDLESS)
            lengths = [end - start for start, end in zip(starts, ends, strict=True)]
            found = self._gaps[slots] = _Gaps(starts, ends, list(accumulate(lengths, max)))
        return found

    def first(self, slots: int, run_us: int) -> int | None:
        """
        Return the first moment from which so many slots are free for so long, None for never.
        """
        gaps = self._gaps_of(slots)
        place = bisect_left(gaps.longest, run_us)
        return gaps.starts[place] if place < len(gaps.starts) else None

    def has_earlier(self, slots: int, start_us: int, run_us: int) -> bool:
        """
        Say whether what is taken from a moment on for so long could be taken from an earlier one.

        A gap before that moment must last long enough, or until then: later on it has its own.
        """
        gaps = self._gaps_of(slots)
        place = bisect_left(gaps.starts, start_us) - 1
        return place >= 0 and (gaps.ends[place] >= start_us or gaps.longest[place] >= run_us)

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
        self._gaps = {}
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
