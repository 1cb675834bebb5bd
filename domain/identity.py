"""
Remember something about an object itself, not about all that equal it.

Comparing two large frozen values costs more than what is remembered; the object is kept beside its
value, so that no other can come to be taken for it.
"""

from __future__ import annotations

from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class ByIdentity(Generic[K, V]):
    """
    Map objects to values by what they are, not by what they hold.
    """

    def __init__(self) -> None:
        self._kept: dict[int, tuple[K, V]] = {}

    def get(self, key: K) -> V | None:
        """
        Return the value of this very object, None when it has none.
        """
        found = self._kept.get(id(key))
        return None if found is None else found[1]

    def put(self, key: K, value: V) -> V:
        """
        Remember a value of this very object, and return it.
        """
        self._kept[id(key)] = (key, value)
        return value

    def __contains__(self, key: object) -> bool:
        return id(key) in self._kept

    def clear(self) -> None:
        """
        Forget everything.
        """
        self._kept.clear()
