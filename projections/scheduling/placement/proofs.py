"""
What was found out about requests that failed, so that only hosts touched since are looked at again.

A request for tasks and amounts fails for sure while the hosts that match it can hold fewer tasks
than it needs; and its reasons are the same while no host begins or ceases to be short of anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from projections.scheduling.capacity import Capacity, Column, Mask
from projections.scheduling.placement.shortages import most_tasks
from projections.scheduling.request import Part, Request

PROOFS_MAX: Final = 4_096


@dataclass(slots=True)
class Proof:
    """
    Hold one failure.

    Args:
        status: Count of changes of which hosts take jobs, and of what hosts are.
        mark: Place in the journal of touched hosts.
        matching: Which hosts match the request.
        short: Per check, which hosts can't take the fewest tasks.
        fits: How many tasks each host could take, 0 where it doesn't match.
        total: Their sum.
    """

    request: Request
    status: int
    mark: int
    matching: Mask
    short: list[Mask]
    fits: Column
    total: int


class Proofs:
    """
    Keep failures by fingerprint.
    """

    def __init__(self, capacity: Capacity) -> None:
        self._capacity = capacity
        self._kept: dict[str, Proof] = {}

    def note(
        self, request: Request, matching: Mask, short: list[Mask], fits: Column, total: int
    ) -> None:
        """
        Keep what a failure found out.
        """
        if len(self._kept) >= PROOFS_MAX:
            self._kept.clear()
        capacity = self._capacity
        if any(need.resource in capacity.units for need in request.only.usages[0].needs):
            # Its units may be begun in another way though the amounts are the same.
            return
        self._kept[request.fingerprint] = Proof(
            request, capacity.status, capacity.touches.mark(), matching, short, fits.copy(), total
        )

    def still_hold(self, request: Request) -> bool:
        """
        Say whether a request still fails, for the same reasons.

        Equivalent to: placing it again and comparing the signatures. Differs in: only the hosts
        touched since are looked at; where they are many, or may suffice now, the answer is no.
        """
        proof = self._kept.get(request.fingerprint)
        capacity = self._capacity
        if proof is None or proof.request is not request or proof.status != capacity.status:
            return False
        hosts = capacity.touches.since(proof.mark)
        if hosts is None:
            return False
        limits = self._limits(request.only, hosts)
        matching = proof.matching[hosts]
        tasks = request.only.tasks_min
        for limit, short in zip(limits, proof.short, strict=True):
            if ((matching & (limit < tasks)) != short[hosts]).any():
                return False
        fits = np.where(matching, np.minimum.reduce(limits), 0)
        total = proof.total + int(fits.sum()) - int(proof.fits[hosts].sum())
        if total >= tasks:
            return False
        proof.fits[hosts] = fits
        proof.total, proof.mark = total, capacity.touches.mark()
        return True

    def _limits(self, part: Part, hosts: Column) -> list[Column]:
        capacity = self._capacity
        limits = [capacity.usable[hosts]]
        for need in part.usages[0].needs:
            column = capacity.resources.get(need.resource)
            if column is None:
                available = np.zeros(len(hosts), np.int64)
            else:
                available = column.available[hosts]
            limits.append(most_tasks(need, available, part.tasks_max))
        return limits
