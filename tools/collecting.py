"""
How often Python looks for garbage in cycles during long work.
"""

from __future__ import annotations

import gc

YOUNG_OBJECTS = 1_000_000


def collect_rarely() -> None:
    """
    Look for cycles a thousand times less often, and never again among what is there already.

    The core makes millions of small objects that live on and hardly any cycles: looking at them
    again and again took 14 % of a simulation's time (KTH, 28,475 jobs), and with a tenth of this
    threshold still 2 %; after 20,000 jobs 349 objects were garbage in cycles.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, 50, 100)
