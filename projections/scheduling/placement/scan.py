"""
Run plans as they come, bucket by bucket, on columns: for allocators that have no short cut, and
where hosts are bound in number, in which is first, or by pools they share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np

from projections.scheduling.capacity import Column, Mask
from projections.scheduling.placement.plugins import Picked, Plan

if TYPE_CHECKING:
    from projections.scheduling.placement.bounds import Together
    from projections.scheduling.trace_plans import PlanWriter

NEVER_FAILED = np.iinfo(np.int64).max


class Scan:
    """
    Run plans on one set of hosts, and note which buckets failed where.

    Args:
        fits: How many tasks each host can take, in host order.
        limits: The same by each check alone; their smallest is ``fits``.
        hosts_max: A plan of more buckets is skipped; None for any.
        firsts: Which hosts the first bucket may take, None for any.
        holds: Says whether what a plan picked is allowed at all.
        together: What hosts have together, kept bucket by bucket; None to leave that to ``holds``.
        writer: Writes plans, buckets and hosts down, None for not at all.
    """

    def __init__(
        self,
        fits: Column,
        limits: list[Column],
        *,
        hosts_max: int | None = None,
        firsts: Mask | None = None,
        holds: Callable[[Picked], bool] | None = None,
        together: Together | None = None,
        writer: PlanWriter | None = None,
    ) -> None:
        self._fits = fits
        self._limits = limits
        self._hosts_max = hosts_max
        self._firsts = firsts
        self._holds = holds
        self._together = together
        self._writer = writer
        self._failed = [np.full(len(fits), NEVER_FAILED, np.int64) for _ in limits]

    def run(self, plans: Iterable[Plan]) -> Picked | None:
        """
        Return what the first plan that is satisfied whole picks, None when none is.
        """
        iterator, writer = iter(plans), self._writer
        try:
            for plan in iterator:
                if writer is not None:
                    writer.plan(plan)
                if plan.is_empty:
                    if writer is not None:
                        writer.skip("it has a bucket without a task, or no bucket")
                    continue
                if self._hosts_max is not None and plan.bucket_count > self._hosts_max:
                    if writer is not None:
                        writer.skip(f"at most {self._hosts_max} hosts are allowed")
                    continue
                picked = self._try(plan)
                if picked is not None and (self._holds is None or self._holds(picked)):
                    if writer is not None:
                        writer.end("satisfied")
                        writer.untried(iterator)
                    return picked
                if writer is not None and picked is not None:
                    writer.end("discarded", "its hosts together take too much of what they share")
            return None
        finally:
            close = getattr(iterator, "close", None)
            if close is not None:
                close()

    def _try(self, plan: Plan) -> Picked | None:
        """
        Give each bucket the first host that fits and isn't claimed.

        Equivalent to: one bucket after the other, each scanning all hosts from the first. Differs
        in: buckets of one size that follow each other are given their hosts at once.
        """
        free = np.ones(len(self._fits), np.bool_)
        picked: Picked = []
        if self._together is not None:
            self._together.forget()
        for place, (count, tasks) in enumerate(self._groups(plan)):
            candidates = free
            if plan.pins:
                candidates = np.zeros(len(free), np.bool_)
                candidates[plan.pins[place]] = free[plan.pins[place]]
            if place == 0 and self._firsts is not None:
                candidates = candidates & self._firsts
            fitting = candidates & (self._fits >= tasks)
            if self._together is not None:
                fitting &= self._together.room(tasks)
            chosen = np.flatnonzero(fitting)[:count]
            is_short = len(chosen) < count
            scanned = candidates if is_short else _up_to(candidates, int(chosen[-1]))
            self._note(scanned, tasks)
            if self._writer is not None:
                pin = plan.pins[place] if plan.pins else -1
                self._writer.bucket(count, tasks, free, candidates, chosen, pin=pin)
            if is_short:
                return None
            free[chosen] = False
            if self._together is not None:
                self._together.claim(chosen, tasks)
            picked.append((chosen, tasks))
        return picked

    def _groups(self, plan: Plan) -> Iterable[tuple[int, int]]:
        """
        Return the plan's groups; the first bucket is one of its own where it is bound to hosts, and
        each where its claim counts for the next.
        """
        if plan.pins or self._together is not None:
            return [(1, tasks) for tasks in plan.buckets()]
        groups = [group for group in plan.groups if group[0] > 0]
        if self._firsts is None or groups[0][0] == 1:
            return groups
        (count, tasks), *rest = groups
        return [(1, tasks), (count - 1, tasks), *rest]

    def _note(self, scanned: Mask, tasks: int) -> None:
        for limit, failed in zip(self._limits, self._failed, strict=True):
            short = scanned & (limit < tasks)
            np.minimum(failed, tasks, out=failed, where=short)

    def sizes(self) -> list[Column]:
        """
        Return, for each check, the smallest bucket that failed on each host, 0 for none.
        """
        return [np.where(failed == NEVER_FAILED, 0, failed) for failed in self._failed]


def _up_to(mask: Mask, last: int) -> Mask:
    cut = mask.copy()
    cut[last + 1 :] = False
    return cut
