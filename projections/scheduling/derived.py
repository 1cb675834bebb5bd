"""
What a rebuilt state must give again: every index and column that isn't stored, as plain data.

A test holds that each public attribute of the state is either here or named as a cache or hint.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from projections.scheduling.state import State

CACHES: Final = frozenset(
    (
        # Looked up again when they are missing.
        "requests wanted signatures told_status volatile parsed timed_hosts session_us runs_moved "
        # Hints of what a session must look at: they may hold more than is needed.
        "gave_up timers closings unchecked unready "
        "over_limit demands put_back windows_open run_windows_open windows_until_us "
        # Compared in parts of their own, or not derived.
        "stored picker planner rememberer is_applying foresight capacity limits ended ripe"
    ).split()
)
CAPACITY_CACHES: Final = frozenset(
    (
        "resources reports reported stopping freed claimed let_go changed status described "
        "revision selector limits workers facts names loads pools units shut is_plain "
        "load_bounds touches"
    ).split()
)


def derived(state: State) -> dict[str, Any]:
    """
    Return every index and column by name, as plain data in one order.
    """
    found: dict[str, Any] = {
        name: plain(value)
        for name, value in sorted(vars(state).items())
        if name not in CACHES and not name.startswith("_")
    }
    # Kept only from when somebody first asks, as here.
    found["releases"] = [list(release) for release in state.releases]
    found["release_of"] = sorted(state.release_of.values()) == state.releases
    found["forgettable"] = sorted({*state.ended, *((us, n) for n, us in state.ripe.items())})
    capacity = state.capacity
    for name, value in sorted(vars(capacity).items()):
        if name not in CAPACITY_CACHES and not name.startswith("_"):
            found[f"capacity.{name}"] = plain(value)
    # Worked out from other columns when somebody asks, as here.
    found["capacity.used"] = capacity.used.tolist()
    for name, column in sorted(capacity.resources.items()):
        if not (column.present.any() or column.charged.any()):
            continue  # Left over from a host that joined again without it.
        for part in type(column).__slots__:
            found[f"capacity.{name}.{part}"] = plain(getattr(column, part))
    found["capacity.load_bounds"] = capacity.load_bounds.known()
    used = {key: sorted(units.items()) for key, units in capacity.units.used.items()}
    found["capacity.units"] = sorted(used.items())
    found["capacity.pools"] = {
        name: [(pool.total, pool.charged) for pool in pools]
        for name, pools in sorted(capacity.pools.by_name.items())
    }
    found["limits"] = sorted(state.limits.in_use().items())
    return found


def plain(value: Any) -> Any:
    """
    Return an index as plain data: keyed tables by their keys, records by stream, name or number.
    """
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {key: plain(value[key]) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    for name in ("stream", "name", "number"):
        if hasattr(value, name) and not isinstance(value, str):
            return getattr(value, name)
    return value
