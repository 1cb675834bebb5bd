"""
How often Python looks for garbage in cycles during long work.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG_OBJECTS = 1_000_000
YOUNG_LIVE, LOOKS_LIVE = 10_000, 3
ALL_EVERY_NS = 24 * 3600 * 10**9


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


@contextmanager
def uncollected() -> Iterator[None]:
    """
    Look for no cycles during work that makes much that lives on and hardly any of them: restoring
    100,000 jobs takes 3.8 s of processor time instead of 6.3 s.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class Collector:
    """
    Look for cycles only where it is called, so that nobody waits for a look at everything.

    Python's own way visits all that lives on whenever it has grown by a quarter: with 100,000 jobs
    that took up to 1.2 s, at any moment. Records of jobs are in no cycles and go when the last
    mention of them does; what is in cycles is mostly young. So the young are looked at, a few
    milliseconds each time, and what lives on is set aside; all of it is looked at once a day, at a
    quiet moment.

    Args:
        now_ns: By a clock that never goes back.
    """

    def __init__(self, now_ns: int) -> None:
        gc.disable()
        self.look_at_all(now_ns)

    def look(self, now_ns: int, *, is_quiet: bool) -> None:
        """
        Look for as long as a session may take; for longer only when it is quiet.
        """
        young, looks, _ = gc.get_count()
        if young >= YOUNG_LIVE:
            gc.collect(0)
        if looks >= LOOKS_LIVE:
            gc.collect(1)
            gc.freeze()
        if is_quiet and now_ns - self._all_ns >= ALL_EVERY_NS:
            self.look_at_all(now_ns)

    def close(self) -> None:
        """
        Leave it to Python again.
        """
        gc.unfreeze()
        gc.enable()

    def look_at_all(self, now_ns: int) -> None:
        """
        Look at everything, however long it takes: for when something large was dropped.
        """
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        self._all_ns = now_ns
