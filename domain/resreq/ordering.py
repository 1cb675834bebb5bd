"""
Turn order[] into the key that sorts hosts, best first.
"""

from __future__ import annotations

from collections.abc import Callable

from domain.resources import Catalogue
from domain.resreq.evaluate import HostView
from domain.resreq.syntax import DEFAULT_ORDER, OrderKey

SortKey = tuple[tuple[int, int], ...]


def compile_order(
    keys: tuple[OrderKey, ...], catalogue: Catalogue
) -> Callable[[HostView], SortKey]:
    """
    Return the key function that sorts hosts best first; without keys LSF's default order holds.

    The leftmost key decides first; a host without the value comes last. Ties keep the order they
    had, so the sort must be stable.
    """
    signed = tuple((key.name, _sign(key, catalogue)) for key in keys or DEFAULT_ORDER)

    def sort_key(host: HostView) -> SortKey:
        found = ((host.amount_milli(name), sign) for name, sign in signed)
        return tuple((1, 0) if milli is None else (0, sign * milli) for milli, sign in found)

    return sort_key


def _sign(key: OrderKey, catalogue: Catalogue) -> int:
    found = catalogue.get(key.name)
    lower_first = (found is not None and found.lower_is_better) != key.is_reversed
    return 1 if lower_first else -1
