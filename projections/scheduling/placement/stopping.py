"""
Where a queue's stop condition holds, by what hosts have reported: jobs that run there are stopped,
and none is started.

What jobs reserve doesn't count, so that no job is stopped for what it asked for itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from domain.resources import Catalogue
from domain.resreq.syntax import Expr
from domain.resreq.verdicts import explain
from projections.scheduling.facts import HostFacts, SeenHost
from projections.scheduling.records import WorkerRecord

if TYPE_CHECKING:
    from projections.scheduling.capacity import Capacity

Mask = npt.NDArray[np.bool_]


class ReportedHost(SeenHost):
    """
    Be a host as its worker has reported it: what it is, and its load.
    """

    __slots__ = ("_worker",)

    def __init__(self, worker: WorkerRecord, facts: HostFacts) -> None:
        self._facts = facts
        self._worker = worker

    def amount_milli(self, name: str) -> int | None:
        """
        Return a number as it was reported, else one that never changes, None where there is none.
        """
        load = self._worker.load.get(name)
        return self._facts.amount_milli(name) if load is None else load


def is_stopping(capacity: Capacity, expr: Expr, number: int) -> bool:
    """
    Say whether a stop condition holds on a host; an index that it doesn't report meets none.
    """
    host = ReportedHost(capacity.workers[number], capacity.facts[number])
    return explain(expr, capacity.selector.catalogue, host).is_selected


@dataclass(slots=True)
class _Known:
    """
    Hold where a condition holds, right for every report up to ``stamp``.
    """

    mask: Mask
    stamp: int


class Stopping:
    """
    Remember where conditions hold; only hosts that have reported since are looked at again.

    Args:
        capacity: What hosts are and have reported.
    """

    def __init__(self, capacity: Capacity) -> None:
        self._capacity = capacity
        self._known: dict[Expr, _Known] = {}
        self._catalogue: Catalogue | None = None

    def where(self, expr: Expr) -> Mask:
        """
        Return the hosts where a condition holds.
        """
        capacity = self._capacity
        if self._catalogue is not capacity.selector.catalogue:
            self._catalogue = capacity.selector.catalogue
            self._known.clear()
        known = self._known.get(expr)
        if known is None:
            known = self._known[expr] = _Known(np.zeros(0, np.bool_), 0)
        if known.stamp != capacity.reports:
            mask = np.zeros(capacity.hosts, np.bool_)
            mask[: len(known.mask)] = known.mask
            for number in np.flatnonzero(capacity.reported > known.stamp).tolist():
                mask[number] = is_stopping(capacity, expr, number)
            known.mask, known.stamp = mask, capacity.reports
        return known.mask
