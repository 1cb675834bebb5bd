"""
What a job asks for, as placement sees it, and the fingerprint that tells requests apart.

A request is worked out once for all jobs of one fingerprint: defaults of the cluster are filled in,
selects are split into conditions, amounts have their basis.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from domain.cluster import ClusterSettings, DefaultHostType
from domain.effective import names_tasks
from domain.jobs import HostChoice, JobSpec
from domain.limits import JOBS
from domain.name_lists import NameList
from domain.reasons import ReasonCode
from domain.resources import Catalogue, ResourceScope
from domain.resreq.evaluate import SubmissionHost, load_names
from domain.resreq.processors import order_with_slots, with_slots
from domain.resreq.render import render_expr
from domain.resreq.syntax import (
    EMPTY,
    Affinity,
    Compound,
    Expr,
    OrderKey,
    Per,
    Primary,
    Requirement,
    RusageTerm,
    Span,
    SpanForm,
    conjuncts,
)
from domain.resreq.tasks import TaskRange, kept_counts
from domain.resreq.verdicts import LOCAL_TYPE, is_static, with_default_type
from projections.scheduling.budgets import BY_PROCESSOR, Budget
from projections.scheduling.load_bounds import LoadBound
from projections.scheduling.queue_share import NO_SHARE, QueueShare

MILLI = 1000
WHOLE_FIRST: Final = ("parjob", "fill")
"""Allocators that try all tasks on one host whenever they place nothing."""


@dataclass(slots=True, frozen=True)
class HostNeed:
    """
    Hold an amount that a job takes on its hosts.

    Args:
        per: HOST counts once for each host, TASK for each task; JOB is one amount for the whole
            job, which its hosts bear by their share of the tasks.
        tasks: For JOB: of how many tasks the job is.
        is_queues: Whether only its queue says so.
    """

    resource: str
    milli: int
    per: Per = Per.HOST
    tasks: int = 1
    is_queues: bool = False

    def of(self, tasks: int) -> int:
        """
        Return what a bucket of so many tasks takes on its host, in thousandths.
        """
        if self.per is Per.TASK:
            return self.milli * tasks
        return self.milli if self.per is Per.HOST else -(-self.milli * tasks // self.tasks)


@dataclass(slots=True, frozen=True)
class SharedNeed:
    """
    Hold an amount of a resource that all hosts share: once for the job, or for each task or host.
    """

    resource: str
    milli: int
    per: Per = Per.JOB
    is_queues: bool = False


@dataclass(slots=True, frozen=True)
class Threshold:
    """
    Don't start where a resource is below so much (above, where less is better).
    """

    resource: str
    milli: int
    is_ceiling: bool = False


@dataclass(slots=True, frozen=True)
class Usage:
    """
    Hold one alternative of what a primary reserves.

    Args:
        pooled: What comes from pools that only some hosts share; ``per`` is as in a shared need.
    """

    needs: tuple[HostNeed, ...] = ()
    shared: tuple[SharedNeed, ...] = ()
    pooled: tuple[SharedNeed, ...] = ()
    thresholds: tuple[Threshold, ...] = ()

    def amounts(self) -> tuple[HostNeed | SharedNeed, ...]:
        """
        Return everything that is taken, wherever from.
        """
        return (*self.needs, *self.shared, *self.pooled)


@dataclass(slots=True, frozen=True)
class Condition:
    """
    Hold one condition of a select; a host must meet them all.

    Args:
        key: Its text, and what ``local`` means in it: equal keys have equal values on every host.
        is_static: Whether its value changes only when the host's description does.
        code: The reason of a host that doesn't meet it.
    """

    key: tuple[str, str, str]
    expr: Expr
    is_static: bool
    code: ReasonCode = ReasonCode.HOST_RES_REQ

    @property
    def text(self) -> str:
        """
        Return it as written.
        """
        return self.key[0]

    @property
    def submitted_from(self) -> SubmissionHost:
        """
        Return what ``local`` means in it.
        """
        return SubmissionHost(self.key[1], self.key[2])


@dataclass(slots=True, frozen=True)
class Part:
    """
    Hold one primary: what its tasks need, and how they may lie.

    Args:
        loads: Load indices that a host must report.
        usages: The alternatives of what is reserved, one at least.
        same: What all its hosts have in common.
        budgets: What bounds how its tasks may be placed: those of hosts, of slots, tasks and
            resources.
        bounds: The load from which on hosts take none of its tasks.
        stops: Where its queue's jobs are stopped; hosts where that holds take none either.
        leads: Whether it has the job's first host: the first member of a compound.
    """

    tasks_min: int
    tasks_max: int
    usages: tuple[Usage, ...] = (Usage(),)
    conditions: tuple[Condition, ...] = ()
    loads: tuple[str, ...] = ()
    span: Span | None = None
    order: tuple[OrderKey, ...] = ()
    same: tuple[str, ...] = ()
    budgets: tuple[Budget, ...] = ()
    bounds: tuple[LoadBound, ...] = ()
    stops: Expr | None = None
    leads: bool = True


@dataclass(slots=True, frozen=True)
class Branch:
    """
    Hold one alternative: its parts must all be placed, in order, or none is.
    """

    parts: tuple[Part, ...]
    same: tuple[str, ...] = ()
    delay_us: int = 0


@dataclass(slots=True, frozen=True)
class Request:
    """
    Hold a request. Jobs of one fingerprint ask for the same and get the same answer.

    Args:
        fingerprint: Everything that the outcome of a placement depends on, in canonical words.
        branches: The alternatives, hidden ones among them.
        open_branches: So many of them are open yet; delays never fall.
        asked: The hosts asked for, every host when empty.
        excluded_hosts: Numbers of hosts that the job must avoid.
        hosts_max: Most hosts it may have, None for any.
        is_bare: Whether it is one count or range of tasks with amounts per host or task, on hosts
            of some kind, in some order, and nothing else.
        is_slots: Whether it is bare, and for slots alone on any host.
        is_volatile: Whether its outcome or reasons may change with every change of capacity; those
            of slots alone only change when something is freed.
        is_timed: Whether it has alternatives that open some time after submission.
        queue_hosts: The hosts that the queue has, None for all.
        budgets: What the job is charged to, in the order in which causes are looked at.
        opens_by_taking: Whether hosts may open to it by what others take of them.
    """

    fingerprint: str
    branches: tuple[Branch, ...]
    open_branches: int = 1
    asked: tuple[HostChoice, ...] = ()
    excluded_hosts: tuple[int, ...] = ()
    is_exclusive: bool = False
    hosts_max: int | None = None
    is_bare: bool = False
    is_slots: bool = False
    is_volatile: bool = True
    is_timed: bool = False
    queue_hosts: NameList | None = None
    budgets: tuple[Budget, ...] = ()
    opens_by_taking: bool = False

    @property
    def firsts(self) -> tuple[str, ...]:
        """
        Return the hosts of which one must be the job's first, none when any may; the job's own word
        goes before its queue's.
        """
        if self.asked:
            return tuple(choice.host for choice in self.asked if choice.is_first)
        return self.queue_hosts.firsts() if self.queue_hosts is not None else ()

    def preference_of(self, host: str) -> int:
        """
        Return how much a host is preferred; the job's own word goes before its queue's.
        """
        if self.asked:
            return next((each.preference for each in self.asked if each.host == host), 0)
        return 0 if self.queue_hosts is None else self.queue_hosts.preference_of(host)

    @property
    def only(self) -> Part:
        """
        Return the one part of a bare request.
        """
        return self.branches[0].parts[0]


class Asking(NamedTuple):
    """
    Hold what a request depends on, beside the cluster's settings.

    Args:
        requirement: What holds for the job, None when it has no requirement.
        text: The same in canonical words.
        open_branches: How many of its alternatives are open yet.
        queue_hosts: The hosts that the queue has, None for all.
        budgets: What the job is charged to.
        bounds: The load of hosts that its queue and the hosts bound.
        stops: Where its queue's jobs are stopped, None for nowhere.
        of_queue: What of the requirement only its queue says.
    """

    spec: JobSpec
    requirement: Requirement | None
    text: str
    open_branches: int = 1
    excluded_hosts: tuple[int, ...] = ()
    hosts_max: int | None = None
    queue_hosts: NameList | None = None
    budgets: tuple[Budget, ...] = ()
    bounds: tuple[LoadBound, ...] = ()
    stops: Expr | None = None
    of_queue: QueueShare = NO_SHARE


def fingerprint_of(asking: Asking) -> str:
    """
    Return the canonical words of all that decides a job's placement.

    Users and projects are not in it but as the budgets that the job is charged to.
    """
    spec = asking.spec
    least, most = spec.tasks_min, spec.tasks_max
    tasks = least if least == most else f"{least},{most}"
    words = f"queue={spec.queue} tasks={tasks}"
    if asking.text:
        words += f" {asking.text}"
    if spec.hosts:
        words += f" hosts[{' '.join(choice.text() for choice in spec.hosts)}]"
    if spec.is_exclusive:
        words += " exclusive"
    if spec.submit_type or spec.submit_model:
        words += f" from[{spec.submit_type} {spec.submit_model}]"
    if asking.requirement and asking.open_branches < len(asking.requirement.compounds):
        words += f" open={asking.open_branches}"
    if asking.budgets:
        words += f" charged[{'; '.join(budget.text() for budget in asking.budgets)}]"
    return words


def request_of(asking: Asking, settings: ClusterSettings, catalogue: Catalogue) -> Request:
    """
    Return the request of a job.
    """
    spec, requirement = asking.spec, asking.requirement or EMPTY
    builder = _Builder(asking, settings, catalogue)
    branches = tuple(builder.branch(compound) for compound in requirement.compounds)
    is_restricted = bool(
        spec.hosts
        or spec.is_exclusive
        or asking.excluded_hosts
        or asking.hosts_max is not None
        or asking.queue_hosts is not None
    )
    first, one = branches[0], branches[0].parts[0]
    is_single = len(branches) == len(first.parts) == len(one.usages) == 1
    is_simple = is_single and not first.same
    is_counted = all(each.rule.hosts is None and each.rule.is_counted for each in one.budgets)
    is_bound = bool(one.budgets or asking.budgets)
    is_bare = is_simple and is_counted and not is_restricted and _is_bare(one)
    return Request(
        fingerprint=fingerprint_of(asking),
        branches=branches,
        open_branches=asking.open_branches,
        asked=spec.hosts,
        excluded_hosts=asking.excluded_hosts,
        is_exclusive=spec.is_exclusive,
        hosts_max=asking.hosts_max,
        is_bare=is_bare,
        is_slots=is_bare and not (one.usages[0].needs or one.conditions or one.budgets),
        is_volatile=bool(
            is_bound or not is_simple or is_restricted or _is_volatile(one, settings)
        ),
        is_timed=any(branch.delay_us for branch in branches),
        queue_hosts=asking.queue_hosts,
        budgets=asking.budgets,
    )


def _is_bare(part: Part) -> bool:
    usage = part.usages[0]
    is_static = all(condition.is_static for condition in part.conditions)
    is_bound = bool(part.loads or part.bounds or part.stops is not None)
    has_more = not is_static or is_bound or part.span or part.same
    is_amounts = not (usage.shared or usage.pooled or usage.thresholds)
    return not has_more and is_amounts and all(need.per is not Per.JOB for need in usage.needs)


def _is_volatile(part: Part, settings: ClusterSettings) -> bool:
    """
    Say whether less capacity may change the reasons of a failure.

    It doesn't where all that a host can be short of is slots, and some plan tries all tasks on one
    host: every host is then named from the first failure on.
    """
    is_known = part.tasks_max == 1 or all(name in WHOLE_FIRST for name in settings.allocators)
    is_static = all(each.is_static for each in part.conditions) and not part.loads
    is_bound = bool(part.bounds) or part.stops is not None
    has_more = part.usages != (Usage(),) or part.span is not None or is_bound
    return has_more or not is_static or not is_known


class _Builder:
    """
    Build the parts of one request.
    """

    def __init__(self, asking: Asking, settings: ClusterSettings, catalogue: Catalogue) -> None:
        self.asking = asking
        self.settings = settings
        self.catalogue = catalogue

    def branch(self, compound: Compound) -> Branch:
        """
        Return one alternative with the tasks of each of its parts.
        """
        spec = self.asking.spec
        is_simple = len(compound.primaries) == 1 and compound.primaries[0].tasks is None
        # Without -n the counts of the requirement hold.
        is_asked = is_simple or names_tasks(spec)
        asked = TaskRange(spec.tasks_min, spec.tasks_max) if is_asked else None
        counts = kept_counts(compound, asked)
        pairs = zip(compound.primaries, counts, strict=True)
        parts = tuple(self.part(*pair, leads=not place) for place, pair in enumerate(pairs))
        return Branch(parts, compound.same, compound.delay_us)

    def part(self, primary: Primary, tasks: TaskRange, *, leads: bool) -> Part:
        """
        Return one primary with the cluster's defaults filled in.
        """
        span, by_slot = primary.span, self.settings.parallel_sched_by_slot
        is_cancelled = span is not None and span.form is SpanForm.CANCELLED
        usages = tuple(self.usage(terms, primary.affinity) for terms in primary.rusage or ((),))
        return Part(
            tasks_min=tasks.least,
            tasks_max=tasks.most,
            usages=usages,
            conditions=self.conditions(primary.select),
            loads=load_names(primary.select, self.catalogue),
            span=None if is_cancelled else span,
            order=order_with_slots(primary.order, is_by_slot=by_slot),
            same=primary.same,
            budgets=(*self.budgets(usages), *self._by_processor(tasks)),
            bounds=self.asking.bounds,
            stops=self.asking.stops,
            leads=leads,
        )

    def budgets(self, usages: tuple[Usage, ...]) -> tuple[Budget, ...]:
        """
        Return the budgets that bound how a primary's tasks may be placed: not those of jobs that
        are about no hosts, nor those of resources that it takes nothing of.
        """
        taken = {need.resource for usage in usages for need in usage.amounts()}
        return tuple(
            budget
            for budget in self.asking.budgets
            if (budget.rule.hosts is not None or budget.rule.resource != JOBS)
            and (budget.rule.is_counted or budget.rule.resource in taken)
        )

    def _by_processor(self, tasks: TaskRange) -> tuple[Budget, ...]:
        """
        Return what bounds a parallel job to the processors of a host, where anything does.
        """
        is_bound = not self.settings.parallel_sched_by_slot and (
            tasks.most > 1 or self.asking.spec.tasks_max > 1
        )
        return (BY_PROCESSOR,) if is_bound else ()

    def conditions(self, select: Expr | None) -> tuple[Condition, ...]:
        """
        Return the conditions of a select, the default host type's first where the cluster has it.
        """
        spec = self.asking.spec
        has_requirement = self.asking.requirement is not None
        if self.settings.default_host_type is DefaultHostType.LOCAL:
            select = with_default_type(
                select,
                self.catalogue,
                has_requirement=has_requirement,
                names_hosts=bool(spec.hosts),
            )
        by_slot = self.settings.parallel_sched_by_slot
        parts = [(part, with_slots(part, is_by_slot=by_slot)) for part in conjuncts(select)]
        code = ReasonCode.HOST_RES_REQ if has_requirement else ReasonCode.HOST_SCHED_TYPE
        return tuple(
            Condition(
                key=(render_expr(meant), spec.submit_type, spec.submit_model),
                expr=meant,
                is_static=is_static(meant, self.catalogue),
                code=code if part == LOCAL_TYPE else self._code_of(part),
            )
            for part, meant in parts
        )

    def _code_of(self, part: Expr) -> ReasonCode:
        is_queues = part in self.asking.of_queue.selects
        return ReasonCode.HOST_QUE_RESREQ if is_queues else ReasonCode.HOST_RES_REQ

    def usage(self, terms: tuple[RusageTerm, ...], affinity: Affinity | None) -> Usage:
        """
        Return one alternative of what is reserved, each amount where it is taken from.
        """
        needs: list[HostNeed] = []
        shared: list[SharedNeed] = []
        pooled: list[SharedNeed] = []
        thresholds: list[Threshold] = []
        for term in terms:
            found = self.catalogue.get(term.resource)
            if not term.milli and term.threshold_milli is None:
                continue
            is_queues = term.resource in self.asking.of_queue.resources
            if found is not None and found.scope is ResourceScope.SHARED:
                per = self._per(term, Per.JOB)
                need = SharedNeed(term.resource, term.milli, per, is_queues)
                (pooled if found.totals[0].hosts else shared).append(need)
            elif term.milli:
                per = self._per(term, Per.HOST)
                needs.append(HostNeed(term.resource, term.milli, per, is_queues=is_queues))
            if term.threshold_milli is not None:
                ceiling = found is not None and found.lower_is_better
                thresholds.append(Threshold(term.resource, term.threshold_milli, ceiling))
        if affinity is not None:
            needs.append(HostNeed(f"{affinity.unit}s", affinity.count * MILLI, Per.TASK))
        return Usage(tuple(needs), tuple(shared), tuple(pooled), tuple(thresholds))

    def _per(self, term: RusageTerm, usual: Per) -> Per:
        if term.per is not Per.DEFAULT:
            return term.per
        return Per.TASK if self.settings.reserve_per_task else usual
