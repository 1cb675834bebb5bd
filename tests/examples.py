"""
How many examples property tests draw.

Continuous integration has fifteen minutes on two cores, and draws the same examples each time;
``XCE_EXAMPLES_PERCENT`` asks for more or fewer anywhere.
"""

from __future__ import annotations

import os
from typing import Final

IN_CI: Final = os.environ.get("CI") == "true"
PERCENT: Final = int(os.environ.get("XCE_EXAMPLES_PERCENT", "20" if IN_CI else "100"))
FEWEST: Final = 12


def examples(most: int) -> int:
    """
    Return how many of at most so many examples are drawn.
    """
    return max(FEWEST, most * PERCENT // 100)
