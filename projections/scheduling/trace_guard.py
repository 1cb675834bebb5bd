"""
Keep what goes wrong while a trace is written from those who decide.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from projections.scheduling.trace import DecisionTrace

P = ParamSpec("P")


class Writing(Protocol):
    """
    Be what writes a trace.
    """

    @property
    def trace(self) -> DecisionTrace:
        """
        Return the trace.
        """
        ...


W = TypeVar("W", bound=Writing)


def harmless(method: Callable[Concatenate[W, P], None]) -> Callable[Concatenate[W, P], None]:
    """
    Have a method never raise: writing stops then, and the trace says why.
    """

    @wraps(method)
    def guarded(self: W, /, *args: P.args, **more: P.kwargs) -> None:
        if self.trace.broken:
            return
        try:
            method(self, *args, **more)
        except Exception as error:  # noqa: BLE001 - a decision is worth more than its trace
            self.trace.broken = f"{type(error).__name__}: {error}"[:200]

    return guarded
