"""
Write down how plans are tried: which buckets, and each candidate host with its verdict.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

import numpy as np

from projections.scheduling.capacity import Column, Mask
from projections.scheduling.placement.plugins import Allocator, Plan
from projections.scheduling.trace import DecisionTrace, Kind, Line, Row
from projections.scheduling.trace_guard import harmless
from projections.scheduling.trace_rows import Amounts

if TYPE_CHECKING:
    from projections.scheduling.placement.shortages import Check
    from projections.scheduling.request import Part
    from projections.scheduling.trace_writing import Tracer

BUCKETS_SHOWN: Final = 8
UNTRIED_COUNTED: Final = 100_000
OURS: Final = "projections.scheduling."
"""Only our own allocators are asked for plans that aren't tried: asking changes nothing there."""

NOT_LOOKED_AT, TAKEN, CLAIMED, NOT_FIRST, SHORT = range(5)
WORDS: Final = {
    TAKEN: "taken",
    CLAIMED: "claimed_before",
    NOT_FIRST: "may_not_be_first",
    SHORT: "short",
}


def plan_text(plan: Plan) -> str:
    """
    Return a plan as its buckets: [3,3,2]; those of many buckets as [3 x 1000, 2 x 500].
    """
    if plan.bucket_count <= BUCKETS_SHOWN:
        return f"[{','.join(map(str, plan.buckets()))}]"
    groups = ", ".join(f"{tasks} x {count}" for count, tasks in plan.groups[:BUCKETS_SHOWN])
    return f"[{groups}{', ...' if len(plan.groups) > BUCKETS_SHOWN else ''}]"


class PlanWriter:
    """
    Write down the plans of one allocator for one count, on one group of hosts.

    Args:
        tracer: Of the placement.
        line: Of the allocator; its plans are counted there.
        member: The allocator.
        part: The primary.
        hosts: Numbers of the hosts, in host order.
        checks: What a host must have.
        limits: How many tasks each of ``hosts`` can take by each check.
    """

    def __init__(
        self,
        tracer: Tracer,
        line: Line,
        member: Allocator,
        part: Part,
        hosts: Column,
        checks: list[Check],
        limits: list[Column],
    ) -> None:
        self._tracer = tracer
        self._line = line
        self._is_ours = type(member).__module__.startswith(OURS)
        self._part = part
        self._hosts = hosts
        self._checks = checks
        self._limits = limits
        self._amounts: dict[int, Amounts] = {}
        self._steps_of: dict[int, Mask] = {}
        self._plan = Line(Kind.PLAN)
        self._claims = 0

    @property
    def trace(self) -> DecisionTrace:
        """
        Return what is written to.
        """
        return self._tracer.trace

    # -- plans

    @harmless
    def plan(self, plan: Plan) -> None:
        """
        Begin a plan.
        """
        self._line.count += 1
        self._claims = 0
        self._plan = Line(Kind.PLAN, name=plan_text(plan), number=self._line.count)
        if self._tracer.is_full:
            self._tracer.add(self._plan)

    @harmless
    def skip(self, why: str) -> None:
        """
        Write that the plan was skipped.
        """
        self._plan.outcome, self._plan.detail = "skipped", why

    @harmless
    def end(self, outcome: str, detail: str = "") -> None:
        """
        Write what came of the plan.
        """
        self._plan.outcome, self._plan.detail = outcome, detail

    @harmless
    def untried(self, plans: Iterator[Plan]) -> None:
        """
        Write which plans needn't be tried any more.
        """
        if not self._tracer.is_full:
            return
        if not self._is_ours:
            detail = "its later plans weren't asked for"
            self._tracer.add(Line(Kind.PLAN, "not_tried", detail=detail))
            return
        first = next(plans, None)
        if first is None:
            return
        last, count = first, 1
        for plan in islice(plans, UNTRIED_COUNTED):
            last, count = plan, count + 1
        name = plan_text(first) if count == 1 else f"{plan_text(first)} to {plan_text(last)}"
        number = self._line.count + 1
        self._tracer.add(Line(Kind.PLAN, "not_tried", name=name, number=number, count=count))

    # -- buckets

    @harmless
    def bucket(
        self, count: int, tasks: int, free: Mask, candidates: Mask, chosen: Column, *, pin: int
    ) -> None:
        """
        Write which hosts some buckets of one size were tried on.

        Args:
            count: How many buckets.
            tasks: Of how many tasks each.
            free: Which hosts no earlier bucket had claimed.
            candidates: Which of those it might take.
            chosen: The places it took.
            pin: The only place that was looked at, -1 for all.
        """
        is_short = len(chosen) < count
        if is_short:
            claims = self._claims + len(chosen)
            released = f"; {claims} claim{'s' * (claims > 1)} released" if claims else ""
            self.end("discarded", f"no host left for a bucket of {tasks}{released}")
        self._claims += len(chosen)
        if not self._tracer.is_full:
            return
        outcome = "no_host" if is_short else "placed"
        self._tracer.add(
            Line(Kind.BUCKET, outcome, tasks=tasks, count=count, hosts=len(chosen))
        )
        verdicts = np.where(candidates, SHORT, np.where(free, NOT_FIRST, CLAIMED))
        verdicts[chosen] = TAKEN
        if pin >= 0:
            kept, verdicts = verdicts[pin], np.zeros(len(verdicts), np.int64)
            verdicts[pin] = kept
        elif not is_short:
            verdicts[int(chosen[-1]) + 1 :] = NOT_LOOKED_AT
        self._hosts_of(verdicts, tasks)

    def _hosts_of(self, verdicts: Column, tasks: int) -> None:
        """
        Write a line for each run of neighbours with the same verdict and the same amounts.
        """
        places = np.flatnonzero(verdicts)
        if not len(places):
            return
        numbers, kinds = self._hosts[places], verdicts[places]
        short = [(limit[places] < tasks) & (kinds == SHORT) for limit in self._limits]
        cuts = (numbers[1:] != numbers[:-1] + 1) | (kinds[1:] != kinds[:-1])
        for check, mask in enumerate(short[: len(self._checks)]):
            if mask.any():
                cuts |= (mask[1:] != mask[:-1]) | (self._steps(check)[numbers[:-1]] & mask[1:])
        starts = np.concatenate(([0], np.flatnonzero(cuts) + 1))
        ends = np.append(starts[1:], len(places))
        room = self._tracer.room_for(len(starts))
        for start, stop in zip(starts[:room].tolist(), ends[:room].tolist(), strict=True):
            rows = self._rows(start, numbers, short, tasks)
            self._tracer.add(self._host_line(int(kinds[start]), numbers, start, stop, rows))

    def _steps(self, check: int) -> Mask:
        """
        Return after which hosts, by number, the amounts of a check are others.
        """
        found = self._steps_of.get(check)
        if found is None:
            amounts = self._tracer.rows.amounts(self._checks[check], self._part)
            self._amounts[check] = amounts
            found = np.zeros(len(amounts.total), np.bool_)
            for column in (amounts.total, amounts.in_use, amounts.reserved, amounts.available):
                found[:-1] |= column[1:] != column[:-1]
            self._steps_of[check] = found
        return found

    def _rows(
        self, start: int, numbers: Column, short: list[Mask], tasks: int
    ) -> tuple[Row, ...]:
        return tuple(
            self._tracer.rows.of_host(
                self._checks[check], self._amounts[check], int(numbers[start]), tasks
            )
            for check, mask in enumerate(short[: len(self._checks)])
            if mask[start]
        )

    def _host_line(
        self, kind: int, numbers: Column, start: int, stop: int, rows: tuple[Row, ...]
    ) -> Line:
        outcome, detail = WORDS[kind], ""
        if kind == SHORT and rows and all(row.is_limit for row in rows):
            outcome = "limit"
        if kind == SHORT and not rows:
            detail = "hosts together have too little"
        first, last = int(numbers[start]), int(numbers[stop - 1])
        name = self._tracer.name_of
        return Line(
            Kind.HOST,
            outcome,
            detail=detail,
            host=name(first),
            last_host=name(last) if stop - start > 1 else "",
            hosts=stop - start,
            rows=rows,
        )
