"""
How often Python looks for garbage in cycles during long work.
"""

from __future__ import annotations

import gc

YOUNG_OBJECTS = 100_000


def collect_rarely() -> None:
    """
    Look for cycles a hundred times less often, and never again among what is there already.

    The core makes millions of small objects that live on and hardly any cycles: looking at them
    again and again took 14 % of a simulation's time (KTH, 28,475 jobs).
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, 50, 100)
