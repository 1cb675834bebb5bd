"""
What a harness saw: how many tries, how many violations, and the first of them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Outcome:
    """
    Count tries and broken promises.

    Args:
        tries: How many kills, images, flips or whatever the harness makes.
        counts: How often what came of it, by name.
        violations: How often a promise was broken.
        first: The first broken promise, "" when there was none.
    """

    tries: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    violations: int = 0
    first: str = ""

    def saw(self, what: str) -> None:
        """
        Count something that may happen.
        """
        self.counts[what] += 1

    def violated(self, what: str) -> None:
        """
        Count a broken promise, and remember the first.
        """
        self.violations += 1
        self.first = self.first or what

    def bound(self) -> str:
        """
        Return the upper bound of the failure rate at 95 % when nothing failed: three in so many.
        """
        if not self.tries or self.violations:
            return "-"
        return f"< {300 / self.tries:.3g} %"
