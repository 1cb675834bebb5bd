"""
Write down how one job is decided, while it is decided.

Each method is called by the code that decides, with what it has just found out. Nothing that goes
wrong in here may reach that code: writing stops then, and the trace says why.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from domain.allocations import Allocation, HostSpan
from domain.reasons import PendReason
from domain.resreq.syntax import OrderKey
from domain.units import show_lsf_duration
from projections.scheduling.budgets import LIMIT_RANK, Budget
from projections.scheduling.capacity import Column, Mask
from projections.scheduling.placement.plugins import Allocator
from projections.scheduling.placement.shortages import Check, spans_of
from projections.scheduling.request import HostNeed, SharedNeed
from projections.scheduling.takings import least_need
from projections.scheduling.trace import (
    DecisionTrace,
    Key,
    Kind,
    Level,
    Line,
    Verdict,
)
from projections.scheduling.trace_guard import harmless
from projections.scheduling.trace_outcomes import (
    pended_outcome,
    placed_outcome,
    skipped_outcome,
)
from projections.scheduling.trace_plans import PlanWriter
from projections.scheduling.trace_rows import Overage, Rows, needs_of

if TYPE_CHECKING:
    from projections.scheduling.pickers.protocol import JobPicker, Terms
    from projections.scheduling.placement.eligible import Eligible
    from projections.scheduling.placement.runner import Pending
    from projections.scheduling.records import JobRecord
    from projections.scheduling.request import Branch, Part, Request
    from projections.scheduling.state import State

DETAIL_PART: Final = (3, 4)
"""Lines of hosts may fill so much of a trace: what comes after them has room too."""

EVERY_RANK: Final = range(LIMIT_RANK + 1)


class Tracer:
    """
    Write one trace.

    Args:
        trace: Where to.
        lines_max: The most lines.
        state: What is decided on, read only.
        overage: Gives what jobs use beyond what they asked for.
    """

    def __init__(
        self, trace: DecisionTrace, lines_max: int, state: State, overage: Overage
    ) -> None:
        self.trace = trace
        self.is_full = trace.level is Level.FULL
        self._lines_max = lines_max
        self._state = state
        self.rows = Rows(state.capacity, state.catalogue, overage)
        self._last: dict[Kind, Line] = {}

    # -- lines

    def add(self, line: Line) -> Line:
        """
        Write a line, or count it when there is no room.
        """
        self._last[line.kind] = line
        if len(self.trace.lines) < self._lines_max:
            self.trace.lines.append(line)
        else:
            self.trace.left_out += 1
        return line

    def room_for(self, count: int) -> int:
        """
        Return how many of so many lines of hosts there is room for; the others are counted.
        """
        part, whole = DETAIL_PART
        room = max(0, self._lines_max * part // whole - len(self.trace.lines))
        self.trace.left_out += max(0, count - room)
        return min(count, room)

    def name_of(self, number: int) -> str:
        """
        Return the name of a host.
        """
        return self._state.capacity.facts[number].name

    def _end(self, kind: Kind, outcome: str, detail: str = "") -> None:
        line = self._last[kind]
        line.outcome = outcome
        line.detail = detail or line.detail

    def _spans(self, kind: Kind, reason: PendReason) -> None:
        """
        Write a line for each run of hosts of a reason.
        """
        room = self.room_for(len(reason.hosts))
        for span in reason.hosts[:room]:
            self.add(self._span_line(kind, reason, span))

    def _span_line(self, kind: Kind, reason: PendReason, span: HostSpan) -> Line:
        return Line(
            kind,
            code=reason.code.value,
            detail=reason.detail,
            host=self.name_of(span.first),
            last_host=self.name_of(span.first + span.hosts - 1) if span.hosts > 1 else "",
            hosts=span.hosts,
        )

    # -- before the placement

    @harmless
    def ordered(self, picker: JobPicker, job: JobRecord) -> None:
        """
        Write what gave the job its place, as far as its picker tells it.
        """
        keys_of: Callable[[JobRecord], Iterable[tuple[str, int | str]]] | None
        keys_of = getattr(picker, "order_keys", None)
        if keys_of is not None:
            # Somebody else's picker may count in numbers that a trace can't be stored with.
            self.trace.keys = tuple(
                Key(name, value if isinstance(value, int) else str(value))
                for name, value in keys_of(job)
            )

    @harmless
    def limits(self, request: Request, kept: PendReason | None) -> None:
        """
        Write every limit that the job is charged to, and whether it may start at all.
        """
        limits = self._state.limits
        for _, budget, left, least in limits.needs_of(request, EVERY_RANK):
            self._limit(budget, left, least)
        for budget in request.budgets:
            if budget.rule.hosts is not None:
                least = least_need(request, budget.rule.resource)
                self._limit(budget, limits.headroom(budget), least)
        line = Line(Kind.READINESS, "may_start")
        if kept is not None:
            line = Line(Kind.READINESS, "kept_back", name=kept.resource, code=kept.code.value)
            line.detail = kept.detail
        self.add(line)

    def _limit(self, budget: Budget, left: int | Column, least: int) -> None:
        row = self.rows.of_budget(budget, left, least)
        outcome = "met" if row.is_met else "reached"
        self.add(
            Line(Kind.LIMIT, outcome, name=budget.rule.name, detail=_scope_of(budget), rows=(row,))
        )

    @harmless
    def beside(self, terms: Terms, lenders: Collection[str]) -> None:
        """
        Write what the job must leave free, by the word of its picker, and who lends it hosts.
        """
        if terms.ahead_of:
            hosts = sum(run.hosts for run in terms.kept)
            detail = f"job {terms.ahead_of} must not be delayed"
            self.add(Line(Kind.READINESS, "on_terms", detail=detail, hosts=hosts))
        for stream in lenders:
            lender = self._state.stored.jobs[stream].job_id
            detail = f"it may borrow what is gathered for job {lender}"
            self.add(Line(Kind.READINESS, "on_terms", detail=detail))

    @harmless
    def unavailable(self, reasons: Iterable[PendReason]) -> None:
        """
        Write which hosts take no jobs whatever the job, and why.
        """
        for reason in reasons:
            if self.is_full and reason.hosts:
                self._spans(Kind.UNAVAILABLE, reason)
            else:
                hosts = sum(span.hosts for span in reason.hosts)
                self.add(Line(Kind.UNAVAILABLE, code=reason.code.value, hosts=hosts))

    # -- levels

    @harmless
    def alternative(self, number: int, request: Request) -> None:
        """
        Begin an alternative.
        """
        several = len(request.branches) > 1
        count = len(request.branches[number - 1].parts)
        self.add(Line(Kind.ALTERNATIVE, number=number if several else 0, count=count))

    @harmless
    def end_alternative(self, number: int, request: Request, *, is_placed: bool) -> None:
        """
        End an alternative; when it was placed, the open ones behind it aren't tried.
        """
        self._end(Kind.ALTERNATIVE, "allocated" if is_placed else "failed")
        if not is_placed and number < request.open_branches:
            return
        for later in range(number + 1, len(request.branches) + 1):
            branch = request.branches[later - 1]
            line = Line(Kind.ALTERNATIVE, "not_tried", number=later, count=len(branch.parts))
            if later > request.open_branches:
                line.outcome = "skipped"
                line.detail = f"opens {show_lsf_duration(branch.delay_us)} after submission"
            self.add(line)

    @harmless
    def compound(self, branch: Branch, group: Mask | None) -> None:
        """
        Begin a try of all members, on all hosts or on a group that is alike.
        """
        if len(branch.parts) > 1 or group is not None:
            hosts = 0 if group is None else int(group.sum())
            name = f"same[{':'.join(branch.same)}]" if branch.same else ""
            self.add(Line(Kind.COMPOUND, count=len(branch.parts), name=name, hosts=hosts))

    @harmless
    def end_compound(self, branch: Branch, group: Mask | None, *, is_placed: bool) -> None:
        """
        End such a try.
        """
        if len(branch.parts) > 1 or group is not None:
            detail = "" if is_placed else "what earlier members claimed is released"
            self._end(Kind.COMPOUND, "allocated" if is_placed else "failed", detail)

    @harmless
    def primary(self, number: int, part: Part) -> None:
        """
        Begin a member, or the only primary (number 0).
        """
        self.add(
            Line(Kind.PRIMARY, number=number, tasks=part.tasks_min, tasks_max=part.tasks_max)
        )

    @harmless
    def end_primary(self, outcome: str, detail: str = "") -> None:
        """
        End it.
        """
        self._end(Kind.PRIMARY, outcome, detail)

    @harmless
    def untried_members(self, branch: Branch, first: int) -> None:
        """
        Write which members weren't tried because an earlier one failed.
        """
        for number in range(first, len(branch.parts)):
            part = branch.parts[number]
            line = Line(Kind.PRIMARY, "not_tried", number=number + 1, tasks=part.tasks_min)
            line.tasks_max = part.tasks_max
            self.add(line)

    @harmless
    def merged(self, members: int, failure: str = "") -> None:
        """
        Write that what members of a compound got was merged per host, or that it failed.
        """
        if members > 1 or failure:
            self.add(
                Line(Kind.MERGE, "failed" if failure else "merged", count=members, detail=failure)
            )

    # -- one primary

    @harmless
    def guards(self, names: Sequence[str], accepted: Sequence[Allocator]) -> None:
        """
        Write which allocators of the chain accept a primary.
        """
        kept = {member.name for member in accepted}
        for name in names:
            self.add(Line(Kind.GUARD, "accepts" if name in kept else "declines", name=name))

    @harmless
    def candidates(self, eligible: Eligible, part: Part) -> None:
        """
        Write how many hosts match, and which don't for what cause.
        """
        name = f"order[{':'.join(map(_order_text, part.order))}]" if part.order else ""
        self.add(Line(Kind.CANDIDATES, "match", name=name, hosts=len(eligible.hosts)))
        for code, detail, hosts in eligible.sieve():
            if self.is_full:
                nothing = np.zeros(self._state.capacity.hosts, np.int64)
                reason = PendReason(code=code, detail=detail, hosts=spans_of(hosts, nothing))
                self._spans(Kind.SELECTED_OUT, reason)
            else:
                line = Line(Kind.SELECTED_OUT, code=code.value, detail=detail, hosts=len(hosts))
                self.add(line)

    @harmless
    def usage(self, number: int, part: Part) -> None:
        """
        Begin an alternative of what is reserved.
        """
        usage, several = part.usages[number - 1], len(part.usages) > 1
        self.add(Line(Kind.USAGE, number=number if several else 0, rows=needs_of(usage)))

    @harmless
    def end_usage(self, number: int, part: Part, *, is_placed: bool) -> None:
        """
        End it; when it was placed, those behind it aren't tried.
        """
        self._end(Kind.USAGE, "allocated" if is_placed else "failed")
        for later in range(number + 1, len(part.usages) + 1) if is_placed else ():
            rows = needs_of(part.usages[later - 1])
            self.add(Line(Kind.USAGE, "not_tried", number=later, rows=rows))

    @harmless
    def check(
        self, need: SharedNeed | HostNeed, left: int, least: int, budget: Budget | None
    ) -> None:
        """
        Write a check of the whole cluster, met or not.
        """
        if budget is not None:
            row = self.rows.of_budget(budget, left, least)
            name, detail = budget.rule.name, _scope_of(budget)
        else:
            assert isinstance(need, SharedNeed)
            row, name, detail = self.rows.of_shared(need, left, least), need.resource, ""
        outcome = "met" if row.is_met else "limit" if row.is_limit else "short"
        self.add(Line(Kind.CHECK, outcome, name=name, detail=detail, rows=(row,)))

    @harmless
    def allocator(self, name: str, tasks: int, hosts: int) -> None:
        """
        Begin an allocator's try of one count on a group of hosts.
        """
        self.add(Line(Kind.ALLOCATOR, name=name, tasks=tasks, hosts=hosts))

    @harmless
    def dealt(self) -> None:
        """
        Write that plans are tried again with what hosts have together dealt to them.
        """
        self._end(Kind.ALLOCATOR, "failed", "plans are tried again with shared room dealt out")

    @harmless
    def end_allocator(self, members: Sequence[Allocator], member: Allocator, tasks: int,
                      *, is_placed: bool) -> None:  # fmt: skip
        """
        End it; when it was placed, the allocators behind it aren't tried.
        """
        self._end(Kind.ALLOCATOR, "allocated" if is_placed else "failed")
        later = list(members)[list(members).index(member) + 1 :] if is_placed else []
        for other in later:
            self.add(Line(Kind.ALLOCATOR, "not_tried", name=other.name, tasks=tasks))

    @harmless
    def no_plan(self) -> None:
        """
        Write that the allocator's generator couldn't start.
        """
        self._last[Kind.ALLOCATOR].detail = "no plan generated"

    @harmless
    def untried_counts(self, counts: Sequence[int], total: int) -> None:
        """
        Write which counts of tasks weren't tried, because all hosts together can't hold them.
        """
        if not counts:
            return
        detail = f"the hosts hold {total} tasks together"
        line = Line(Kind.ALLOCATOR, "not_tried", count=len(counts), detail=detail)
        line.tasks, line.tasks_max = min(counts), max(counts)
        self.add(line)

    def plans(
        self,
        member: Allocator,
        part: Part,
        hosts: Column,
        checks: list[Check],
        limits: list[Column],
    ) -> PlanWriter:
        """
        Return what writes down the plans of the allocator that was begun last.
        """
        line = self._last.get(Kind.ALLOCATOR) or Line(Kind.ALLOCATOR)
        return PlanWriter(self, line, member, part, hosts, checks, limits)

    # -- preemption

    @harmless
    def preemption(self, outcome: str, detail: str = "", *, count: int = 0) -> None:
        """
        Write a step of the search for jobs to suspend.
        """
        self.add(Line(Kind.PREEMPTION, outcome, detail=detail, count=count))

    @harmless
    def victims(self, victims: Sequence[JobRecord], ranks: Sequence[tuple[int, ...]]) -> None:
        """
        Write the jobs that are suspended, with what ranks them.
        """
        for number, (victim, rank) in enumerate(zip(victims, ranks, strict=True), 1):
            detail = f"rank {', '.join(map(str, rank))}"
            self.add(
                Line(Kind.VICTIM, "ordered", name=victim.job_id, number=number, detail=detail)
            )

    @harmless
    def gathered(self, job: JobRecord) -> None:
        """
        Write what is gathered for a job that couldn't be placed.
        """
        promise = job.promise
        if promise is not None and promise.is_held:
            hosts = sum(run.hosts for run in promise.runs)
            detail = f"gathered for it so far: {promise.slots()} slots"
            self.add(Line(Kind.READINESS, "gathers", detail=detail, hosts=hosts))

    # -- the outcome

    @harmless
    def skipped(self, because_of: str, reason_set: int) -> None:
        """
        End with: the same request proved unsatisfiable earlier in this session.
        """
        self.trace.outcome = skipped_outcome(because_of, reason_set)

    @harmless
    def dispatched(self, allocation: Allocation) -> None:
        """
        End with: dispatched.
        """
        self.trace.outcome = placed_outcome(
            allocation, self.name_of, is_forced=bool(self.trace.forced_on)
        )

    @harmless
    def pended(self, found: Pending, reason_set: int) -> None:
        """
        End with: pended, with every reason.
        """
        kept = self._state.stored.reason_sets[reason_set]
        outcome = self.trace.outcome = pended_outcome(found.reasons(), self.name_of)
        outcome.reason_set, outcome.is_never = reason_set, kept.never
        if self._last.get(Kind.VICTIM) is not None:
            outcome.verdict = Verdict.PREEMPTS
        if found.has_failed:
            outcome.verdict = Verdict.FAILED

    @harmless
    def behind(self, found: Pending, first: str) -> None:
        """
        End with: it can't start beside what is promised to a job before it.
        """
        outcome = self.trace.outcome = pended_outcome(found.reasons(), self.name_of)
        outcome.why = f"it can't start now without delaying job {first}"
        outcome.because_of = first


def _scope_of(budget: Budget) -> str:
    """
    Return for whom a budget holds, in words.
    """
    rule = budget.rule
    scopes = [*rule.scopes, *((("hosts", rule.hosts),) if rule.hosts is not None else ())]
    words = [f"{'each of ' * scope.is_each}{name} {scope.names.text()}" for name, scope in scopes]
    if rule.under:
        words.append(f"project {rule.under} and below")
    whose = f"; the budget of {budget.owner}" if budget.owner else ""
    return f"{', '.join(words) or 'everybody'}{whose}"


def _order_text(key: OrderKey) -> str:
    return f"{'-' * key.is_reversed}{key.name}"
