"""
Place one primary literally by the specification: host by host, plan by plan, bucket by bucket.

Slow; tests compare the fast way with it. It shares with it what a request is and what hosts have,
and nothing of how hosts are selected, ordered, counted and picked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from domain.reasons import PendReason, ReasonCode
from domain.resreq.ordering import compile_order
from domain.resreq.syntax import all_of
from domain.resreq.verdicts import explain
from projections.scheduling.capacity import Column, Mask
from projections.scheduling.placement.assembly import Found, found_of
from projections.scheduling.placement.bounds import dealt, has_joint, joint_shortage, room_of
from projections.scheduling.placement.eligible import SELECTS
from projections.scheduling.placement.ground import Ground
from projections.scheduling.placement.loads import unknown_load
from projections.scheduling.placement.parts import (
    add_once,
    counts_of,
    guarded,
)
from projections.scheduling.placement.plugins import Allocator, Picked, Plan, View
from projections.scheduling.placement.shortages import Check, checks_of, identity_of, spans_of
from projections.scheduling.placement.stopping import is_stopping
from projections.scheduling.request import Part, Request, Usage

Cause = tuple[ReasonCode, str]


class LiteralPart:
    """
    Place one primary plainly.
    """

    def __init__(
        self,
        part: Part,
        request: Request,
        ground: Ground,
        members: Sequence[Allocator],
        group: Mask | None,
    ) -> None:
        self._part = part
        self._request = request
        self._ground = ground
        self._members = members
        self._causes: dict[int, Cause] = {}
        self._hosts = self._candidates(group)
        self._found: list[PendReason] = []

    # -- hosts

    def _candidates(self, group: Mask | None) -> list[int]:
        ground = self._ground
        numbers = []
        for number in range(ground.capacity.hosts):
            if not ground.takes[number] or (group is not None and not group[number]):
                continue
            cause = self._cause(number)
            if cause is None:
                numbers.append(number)
            else:
                self._causes[number] = cause
        facts = ground.capacity.facts
        if self._part.order:
            key = compile_order(self._part.order, ground.capacity.selector.catalogue)
            numbers.sort(key=lambda number: key(ground.host(number)))
        numbers.sort(key=lambda number: -self._request.preference_of(facts[number].name))
        return numbers

    def _cause(self, number: int) -> Cause | None:
        """
        Return the first cause for which a host doesn't match, None when it does.
        """
        request, ground = self._request, self._ground
        name = ground.capacity.facts[number].name
        catalogue = ground.capacity.selector.catalogue
        host = ground.host(number)
        conditions, is_selected = self._part.conditions, True
        if conditions:
            expr = all_of(tuple(each.expr for each in conditions))
            whole = explain(expr, catalogue, host, submitted_from=conditions[0].submitted_from)
            if whole.unreported:
                return ReasonCode.LOAD_UNAVAIL, whole.unreported[0]
            is_selected = whole.is_selected
        for bound in self._part.bounds:
            if unknown_load(bound, ground)[number]:
                return ReasonCode.LOAD_UNAVAIL, bound.index
        if request.queue_hosts is not None and not request.queue_hosts.holds([name]):
            return ReasonCode.HOST_QUE_MEMB, ""
        if request.asked and name not in [choice.host for choice in request.asked]:
            return ReasonCode.HOST_USR_SPEC, ""
        if number in request.excluded_hosts:
            return ReasonCode.SBD_JOB_REQUEUE, ""
        if not is_selected:
            return self._unmet(host)
        if request.is_exclusive and not ground.idle[number]:
            return ReasonCode.HOST_NONEXCLUSIVE, ""
        if self._part.stops is not None and is_stopping(ground.capacity, self._part.stops, number):
            return ReasonCode.HOST_STOP_COND, ""
        return None

    def _unmet(self, host: object) -> Cause:
        catalogue = self._ground.capacity.selector.catalogue
        for each in self._part.conditions:
            verdict = explain(each.expr, catalogue, host, submitted_from=each.submitted_from)  # type: ignore[arg-type]
            if not verdict.is_selected:
                is_select = each.code in SELECTS
                return each.code, each.text if is_select else ""
        raise AssertionError(self._part.conditions)

    def _groups(self) -> list[list[int]]:
        """
        Return the hosts that are alike, the group of the first host first.
        """
        if not self._part.same:
            return [self._hosts]
        groups: dict[tuple[object, ...], list[int]] = {}
        for number in self._hosts:
            host = self._ground.host(number)
            alike = tuple((host.text(name), host.amount_milli(name)) for name in self._part.same)
            groups.setdefault(alike, []).append(number)
        return list(groups.values())

    # -- counts, groups, allocators, plans

    def place(self) -> Found | None:
        """
        Return what the first alternative of rusage that can be satisfied gives: the greatest count
        that any allocator can place on any group of hosts, then the first group, then the first
        allocator.
        """
        for number, usage in enumerate(self._part.usages):
            record = _Record()
            found = self._place_usage(usage, record)
            if found is not None:
                return found
            own = record.reasons()
            if not own and self._hosts:
                own.append(PendReason(code=ReasonCode.JOB_SPREAD_TASK))
            several = len(self._part.usages) > 1
            self._found += [
                each.model_copy(update={"alternative": number + 1}) if several else each
                for each in own
            ]
        return None

    def _place_usage(self, usage: Usage, record: _Record) -> Found | None:
        part = self._part
        room = room_of(part, usage, self._request, self._ground)
        record.whole += room.short
        if room.short:
            return None
        counts = counts_of(self._members, part.tasks_min, room.tasks_max)
        for tasks in counts:
            checks = checks_of(part, usage, self._ground, tasks)
            kept = record if tasks == counts[-1] else _Record()
            kept.checks = checks
            for hosts in self._groups():
                for member in self._members:
                    trial = _Trial(self, usage, room.hosts_max, hosts, checks, kept)
                    picked = guarded(member, trial.run, member, tasks)
                    if picked is None and has_joint(part, usage):
                        again = _Trial(self, usage, room.hosts_max, hosts, checks, _Record())
                        picked = guarded(member, again.run_dealt, member, tasks)
                    if picked is not None:
                        return found_of(usage, picked, member.name, self._ground)
        return None

    @property
    def ground(self) -> Ground:
        """
        Return what hosts have.
        """
        return self._ground

    @property
    def part(self) -> Part:
        """
        Return what is placed.
        """
        return self._part

    def firsts(self) -> set[str]:
        """
        Return the names of the hosts of which one must be the first.
        """
        return set(self._request.firsts) if self._part.leads else set()

    def signature(self) -> tuple[object, ...]:
        """
        Return what tells two failures apart.
        """
        return identity_of(self.reasons())

    def reasons(self) -> list[PendReason]:
        """
        Return why hosts don't match, then what each alternative of rusage was short of.
        """
        hosts_of: dict[Cause, list[int]] = {}
        for number in sorted(self._causes):
            hosts_of.setdefault(self._causes[number], []).append(number)
        nothing = np.zeros(self._ground.capacity.hosts, np.int64)
        found = [
            PendReason(code=code, detail=detail, hosts=spans_of(np.array(numbers), nothing))
            for (code, detail), numbers in sorted(hosts_of.items(), key=self._rank)
        ]
        found += self._found
        return found

    def _rank(self, item: tuple[Cause, list[int]]) -> tuple[int, int]:
        """
        Order causes as they are tested.
        """
        code, detail = item[0]
        order = [
            ReasonCode.LOAD_UNAVAIL,
            ReasonCode.HOST_QUE_MEMB,
            ReasonCode.HOST_USR_SPEC,
            ReasonCode.SBD_JOB_REQUEUE,
            ReasonCode.HOST_SCHED_TYPE,
            ReasonCode.HOST_RES_REQ,
            ReasonCode.HOST_QUE_RESREQ,
            ReasonCode.HOST_NONEXCLUSIVE,
            ReasonCode.HOST_STOP_COND,
        ]
        within = 0
        if code is ReasonCode.LOAD_UNAVAIL:
            bounded = [bound.index for bound in self._part.bounds]
            within = [*self._part.loads, *bounded].index(detail)
        if code in SELECTS:
            within = [each.text for each in self._part.conditions].index(detail)
        return order.index(code), within


class _Record:
    """
    Collect shortages: (check, host) -> the smallest bucket that was tried and didn't fit.
    """

    def __init__(self) -> None:
        self.checks: list[Check] = []
        self.sizes: dict[tuple[int, int], int] = {}
        self.whole: list[PendReason] = []

    def add(self, check: int, host: int, tasks: int) -> None:
        known = self.sizes.get((check, host))
        if known is None or tasks < known:
            self.sizes[check, host] = tasks

    def reasons(self) -> list[PendReason]:
        found = list(self.whole)
        for number, check in enumerate(self.checks):
            by_amount: dict[int, list[int]] = {}
            for (own, host), tasks in self.sizes.items():
                if own == number:
                    by_amount.setdefault(check.requested(tasks), []).append(host)
            for requested in sorted(by_amount):
                hosts = np.array(sorted(by_amount[requested]))
                found.append(
                    PendReason(
                        code=check.code,
                        resource=check.resource,
                        detail=check.detail,
                        requested_milli=requested,
                        hosts=spans_of(hosts, check.amounts()),
                    )
                )
        return found


class _Trial:
    """
    Run one allocator's plans for one count on one group of hosts.
    """

    def __init__(
        self,
        placer: LiteralPart,
        usage: Usage,
        hosts_max: int | None,
        hosts: list[int],
        checks: list[Check],
        record: _Record,
    ) -> None:
        self._placer = placer
        self._usage = usage
        self._hosts_max = hosts_max
        self._hosts = hosts
        self._checks = checks
        self._record = record
        self._tasks: int | None = None

    def run_dealt(self, member: Allocator, tasks: int) -> Picked | None:
        """
        Run the plans again: cut to what hosts have together, dealt to them in host order, and with
        less of it left to each host by what is claimed already.
        """
        ground, hosts = self._placer.ground, np.array(self._hosts, np.int64)
        limits = [check.limit(tasks) for check in self._checks]
        fits = np.array([min(int(limit[host]) for limit in limits) for host in self._hosts])
        found = dealt(self._placer.part, self._usage, fits.astype(np.int64), hosts, ground)
        if found is None:
            return None
        self._tasks = tasks
        return self._run(member, tasks, limits, found)

    def run(self, member: Allocator, tasks: int) -> Picked | None:
        return self._run(member, tasks, [check.limit(tasks) for check in self._checks])

    def _run(
        self, member: Allocator, tasks: int, limits: list[Column], dealt: Column | None = None
    ) -> Picked | None:
        self._limits = limits
        if dealt is None:
            dealt = np.array([min(int(limit[host]) for limit in limits) for host in self._hosts])
        view = View(
            self._placer.part,
            self._placer.ground.capacity,
            dealt.astype(np.int64),
            np.array(self._hosts, np.int64),
            self._firsts(),
        )
        plans = member.plans(tasks, view)
        if plans is None:
            add_once(self._record.whole, PendReason(code=ReasonCode.NO_PLAN, detail=member.name))
            return None
        return self._first(plans)

    def _firsts(self) -> Mask | None:
        names, facts = self._placer.firsts(), self._placer.ground.capacity.facts
        if not names:
            return None
        return np.array([facts[host].name in names for host in self._hosts], np.bool_)

    def _first(self, plans: Iterable[Plan]) -> Picked | None:
        iterator = iter(plans)
        try:
            for plan in iterator:
                if plan.is_empty:
                    continue
                if self._hosts_max is not None and plan.bucket_count > self._hosts_max:
                    continue
                picked = self._try(plan)
                if picked is not None and self._holds(picked):
                    return picked
            return None
        finally:
            close = getattr(iterator, "close", None)
            if close is not None:
                close()

    def _holds(self, picked: Picked) -> bool:
        reason = joint_shortage(self._placer.part, self._usage, picked, self._placer.ground)
        if reason is not None:
            add_once(self._record.whole, reason)
        return reason is None

    def _try(self, plan: Plan) -> Picked | None:
        """
        Give each bucket the first host that fits and isn't claimed; a bucket without one gives up
        every claim.
        """
        claims: dict[int, int] = {}
        for place, tasks in enumerate(plan.buckets()):
            host = self._first_host(plan, place, tasks, claims)
            if host is None:
                return None
            claims[host] = tasks
        return [(np.array([host]), tasks) for host, tasks in claims.items()]

    def _first_host(self, plan: Plan, place: int, tasks: int, claims: dict[int, int]) -> int | None:
        """
        Iterate afresh over the matching hosts: one too small for a large bucket may fit a later,
        smaller one.
        """
        hosts = [self._hosts[plan.pins[place]]] if plan.pins else self._hosts
        firsts = self._placer.firsts() if place == 0 else set()
        for host in hosts:
            name = self._placer.ground.capacity.facts[host].name
            if host in claims or (firsts and name not in firsts):
                continue
            short = list(self._shortages(host, tasks))
            if not short and not self._is_beyond(claims, host, tasks):
                return host
            for check in short:
                self._record.add(check, host, tasks)
        return None

    def _is_beyond(self, claims: dict[int, int], host: int, tasks: int) -> bool:
        """
        Say whether a host with those that are claimed would take more than they have together.
        """
        if self._tasks is None:
            return False
        part, ground = self._placer.part, self._placer.ground
        picked = [(np.array([each]), count) for each, count in {**claims, host: tasks}.items()]
        beyond = joint_shortage(part, self._usage, picked, ground, of_tasks=self._tasks)
        return beyond is not None

    def _shortages(self, host: int, tasks: int) -> Iterator[int]:
        for number, limit in enumerate(self._limits):
            if int(limit[host]) < tasks:
                yield number
