"""
Which hosts were touched, in the order in which it happened.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

TOUCHED_MAX: Final = 4_096
FEW_TOUCHES: Final = 64
"""More touched hosts are no quicker to look at than all hosts of a middling cluster."""


class Touches:
    """
    Keep a journal of hosts of which something was taken or given back.

    It is written from the first mark on: before, nobody can ask. ``is_kept`` says so, for those
    who are in a hurry.
    """

    __slots__ = ("_before", "_entries", "is_kept")

    def __init__(self) -> None:
        self.is_kept = False
        self._entries: list[tuple[int, int]] = []
        self._before = 0

    def note(self, first: int, stop: int) -> None:
        """
        Note that what the hosts from first up to stop have left has changed.
        """
        if not self.is_kept:
            return
        self._entries.append((first, stop))
        if len(self._entries) >= TOUCHED_MAX:
            self._before += len(self._entries)
            self._entries.clear()

    def mark(self) -> int:
        """
        Return the place in the journal.
        """
        self.is_kept = True
        return self._before + len(self._entries)

    def since(self, mark: int) -> npt.NDArray[np.int64] | None:
        """
        Return the numbers of the hosts touched since a mark, each once; None where they are many or
        aren't known any more.
        """
        start = mark - self._before
        if start < 0 or len(self._entries) - start > FEW_TOUCHES:
            return None
        entries = self._entries[start:]
        if sum(stop - first for first, stop in entries) > FEW_TOUCHES:
            return None
        numbers = {number for first, stop in entries for number in range(first, stop)}
        return np.array(sorted(numbers), np.int64)
