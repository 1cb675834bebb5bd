"""
What bounds jobs together: one rule for each thing that a limit, a queue, a user, a group or a
project bounds; and the budgets of a rule, one for each whom it holds for by itself.

A budget is what a job is charged to. Everything here is worked out from definitions; what is in use
is in ``limits``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

from domain.groups import GroupSpec, Membership
from domain.limits import COUNTED, JOBS, SLOTS, Basis, LimitAmount, LimitSpec, Scope
from domain.name_lists import ALL, ListedName, NameList
from domain.preemption import Uncounted
from domain.projects import ProjectSpec, with_ancestors
from domain.queues import QueueLimits, QueueSpec
from domain.reasons import ReasonCode
from domain.users import UserSpec
from domain.windows import Windows
from domain.workers import HostSettings

MILLI: Final = 1000

QUEUE_RANK, USER_RANK, QUEUE_USER_RANK, LIMIT_RANK = range(4)
"""In which order causes are looked at: the queue's slots, users and groups, the queue's slots for
each user, limits and quotas."""

PLENTY: Final = 2**60
"""The headroom of hosts that a rule isn't about, in thousandths."""

EVERYONE: Final = NameList(entries=(ListedName(name=ALL),))
EACH: Final = Scope(names=EVERYONE, is_each=True)


@dataclass(slots=True, frozen=True)
class Codes:
    """
    Hold the reason of a job of one task and that of a parallel one.
    """

    serial: ReasonCode
    parallel: ReasonCode

    def of(self, tasks: int) -> ReasonCode:
        """
        Return the reason of a job of so many tasks.
        """
        return self.serial if tasks == 1 else self.parallel


RES_LIMIT: Final = Codes(ReasonCode.RES_LIMIT, ReasonCode.RES_LIMIT)


@dataclass(slots=True, frozen=True)
class Consumer:
    """
    Hold whatever of a job decides which rules hold for it.
    """

    user: str
    group: str
    queue: str
    project: str
    profile: str


@dataclass(slots=True, frozen=True)
class Rule:
    """
    Bound one thing for some jobs.

    Args:
        name: The limit's name, or what else has the bound: "queue normal", "user alice".
        resource: jobs, slots, tasks, or a resource that is reserved.
        most_milli: How much of it may be in use, as its basis says.
        scopes: (dimension, scope): jobs that aren't in each of them aren't bound.
        hosts: Which hosts it is about, None when it is about none: then it bounds the whole job.
        under: A project; its own jobs and those of the projects below are bound.
        windows: When it holds, None for always.
        counts_preempted: Whether jobs that the system suspended for others are still charged.
        spares_preemptors: Whether these, though charged, keep nobody from starting who may preempt
            them.
    """

    name: str
    resource: str
    most_milli: int
    codes: Codes = RES_LIMIT
    rank: int = LIMIT_RANK
    scopes: tuple[tuple[str, Scope], ...] = ()
    hosts: Scope | None = None
    basis: Basis = Basis.ABSOLUTE
    under: str = ""
    windows: Windows | None = None
    counts_preempted: bool = True
    spares_preemptors: bool = False

    @property
    def is_counted(self) -> bool:
        """
        Say whether every job takes some of it: jobs, slots or tasks.
        """
        return self.resource in COUNTED

    def owners(self, consumer: Consumer, membership: Membership) -> list[str]:
        """
        Return whose budgets a job is charged to: "" for the one of all, none when it isn't bound.
        """
        if self.under and self.under not in with_ancestors(consumer.project):
            return []
        found = []
        for dimension, scope in self.scopes:
            names = _owners_in(dimension, scope, consumer, membership)
            if not names:
                return []
            found.append(names)
        return ["/".join(filter(None, names)) for names in product(*found)]


def _owners_in(
    dimension: str, scope: Scope, consumer: Consumer, membership: Membership
) -> list[str]:
    """
    Return the names of one dimension that have a budget of their own, "" for a shared one.
    """
    if dimension == "users":
        inside = scope.names.holds(membership.names_of(consumer.user))
        names = [consumer.user] if inside else []
    elif dimension == "groups":
        own = (consumer.group,) if consumer.group else membership.groups_of(consumer.user)
        names = [name for name in own if scope.names.holds([name])]
    else:
        value: str = getattr(consumer, dimension[:-1])
        names = [value] if value and scope.names.holds([value]) else []
    return names if scope.is_each or not names else [""]


@dataclass(slots=True, frozen=True)
class Budget:
    """
    Hold what of a rule one owner has.
    """

    rule: Rule
    owner: str

    @property
    def key(self) -> tuple[str, str, str]:
        """
        Return what it is called: the rule's name and resource, and its owner.
        """
        return (self.rule.name, self.rule.resource, self.owner)

    def text(self) -> str:
        """
        Return the same in words.
        """
        owner = f" of {self.owner}" if self.owner else ""
        return f"{self.rule.name}:{self.rule.resource}{owner}"


BY_PROCESSOR: Final = Budget(
    Rule(
        name="processors of the host",
        resource=SLOTS,
        most_milli=MILLI,
        codes=Codes(ReasonCode.HOST_SLOTS, ReasonCode.HOST_SLOTS),
        hosts=EACH,
        basis=Basis.PER_PROCESSOR,
    ),
    owner="",
)
"""What one parallel job may have of a host where jobs are scheduled by processors: it bounds each
job by itself, so nobody is ever charged to it."""


class Rules:
    """
    Know every rule, and which budgets a job is charged to.
    """

    def __init__(self, rules: list[Rule], membership: Membership) -> None:
        self.every = sorted(rules, key=lambda rule: rule.rank)
        self.membership = membership
        self._known: dict[Consumer, tuple[Budget, ...]] = {}

    def budgets_of(self, consumer: Consumer) -> tuple[Budget, ...]:
        """
        Return the budgets that a job is charged to, in the order in which causes are looked at.
        """
        known = self._known.get(consumer)
        if known is None:
            known = self._known[consumer] = tuple(
                Budget(rule, owner)
                for rule in self.every
                for owner in rule.owners(consumer, self.membership)
            )
        return known


# ------------------------------------------------------------------------------ from definitions


def rules_of_limits(limits: Mapping[str, LimitSpec]) -> Iterator[Rule]:
    """
    Yield the rules of limits.
    """
    for name, limit in limits.items():
        scopes = {
            "users": limit.users,
            "groups": limit.groups,
            "queues": limit.queues,
            "projects": limit.projects,
            "profiles": limit.profiles,
        }
        for amount in limit.amounts:
            yield Rule(
                name=name,
                resource=amount.resource,
                most_milli=amount.milli,
                scopes=tuple((each, scope) for each, scope in scopes.items() if scope is not None),
                hosts=limit.hosts,
                basis=amount.basis,
                windows=limit.windows,
                # A limit of jobs counts suspended jobs too, but never keeps one job from preempting
                # another.
                spares_preemptors=amount.resource == JOBS,
            )


def rules_of_queues(queues: Mapping[str, QueueSpec]) -> Iterator[Rule]:
    """
    Yield the rules of queues, with LSF's reasons where LSF has such a bound.
    """
    for name, queue in queues.items():
        if queue.limits is not None:
            yield from _of_queue(name, queue.limits)


def _of_queue(name: str, limits: QueueLimits) -> Iterator[Rule]:
    own = ("queues", _only(name))
    title = f"queue {name}"
    whole = Codes(ReasonCode.QUE_JOB_LIMIT, ReasonCode.QUE_PJOB_LIMIT)
    by_user = Codes(ReasonCode.QUE_USR_JLIMIT, ReasonCode.QUE_USR_PJLIMIT)
    on_host = Codes(ReasonCode.QUE_HOST_JLIMIT, ReasonCode.QUE_HOST_JLIMIT)
    each_user = ("users", EACH)
    if limits.slots is not None:
        yield Rule(title, SLOTS, limits.slots * MILLI, whole, QUEUE_RANK, (own,))
    if limits.user_slots is not None:
        most = limits.user_slots * MILLI
        scopes = (own, each_user)
        yield Rule(f"{title} by user", SLOTS, most, by_user, QUEUE_USER_RANK, scopes)
    if limits.processor_slots_milli is not None:
        yield Rule(
            name=f"{title} by processor",
            resource=SLOTS,
            most_milli=limits.processor_slots_milli,
            codes=Codes(ReasonCode.QUE_PROC_JLIMIT, ReasonCode.QUE_PROC_JLIMIT),
            rank=QUEUE_RANK,
            scopes=(own,),
            hosts=EACH,
            basis=Basis.PER_PROCESSOR,
        )
    if limits.host_slots is not None:
        most = limits.host_slots * MILLI
        yield Rule(f"{title} by host", SLOTS, most, on_host, QUEUE_RANK, (own,), EACH)
    if limits.jobs is not None:
        yield Rule(title, JOBS, limits.jobs * MILLI, scopes=(own,))
    if limits.user_jobs is not None:
        most = limits.user_jobs * MILLI
        yield Rule(f"{title} by user", JOBS, most, scopes=(own, each_user))
    if limits.host_jobs is not None:
        yield Rule(f"{title} by host", JOBS, limits.host_jobs * MILLI, scopes=(own,), hosts=EACH)


def rules_of_hosts(
    hosts: Mapping[str, HostSettings], uncounted: Collection[Uncounted]
) -> Iterator[Rule]:
    """
    Yield the rules of hosts: what one user may have there.
    """
    is_counted = Uncounted.HOST_JLU not in uncounted
    codes = Codes(ReasonCode.HOST_USR_JLIMIT, ReasonCode.HOST_USR_JLIMIT)
    for name, settings in hosts.items():
        if settings.user_slots_max is not None:
            most = settings.user_slots_max * MILLI
            scopes = (("users", EACH),)
            title = f"host {name} by user"
            rule = Rule(title, SLOTS, most, codes, LIMIT_RANK, scopes, _only(name))
            yield replace(rule, counts_preempted=is_counted)


def rules_of_users(
    users: Mapping[str, UserSpec], uncounted: Collection[Uncounted]
) -> Iterator[Rule]:
    """
    Yield the rules of users; jobs suspended for others don't count for a user's slots.
    """
    codes = Codes(ReasonCode.USER_JOB_LIMIT, ReasonCode.USER_PJOB_LIMIT)
    on_host = Codes(ReasonCode.USER_PROC_JLIMIT, ReasonCode.USER_PROC_JLIMIT)
    for name, user in users.items():
        scopes = (("users", _only(name)),)
        if user.slots_max is not None:
            most = user.slots_max * MILLI
            rule = Rule(f"user {name}", SLOTS, most, codes, USER_RANK, scopes)
            yield replace(rule, counts_preempted=False)
        if user.processor_slots_max_milli is not None:
            yield Rule(
                name=f"user {name} by processor",
                resource=SLOTS,
                most_milli=user.processor_slots_max_milli,
                codes=on_host,
                rank=USER_RANK,
                scopes=scopes,
                hosts=EACH,
                basis=Basis.PER_PROCESSOR,
                counts_preempted=Uncounted.USER_JLP not in uncounted,
            )


def rules_of_groups(
    groups: Mapping[str, GroupSpec], uncounted: Collection[Uncounted]
) -> Iterator[Rule]:
    """
    Yield the rules of user groups; their members are bound whatever group a job names.
    """
    codes = Codes(ReasonCode.UGRP_JOB_LIMIT, ReasonCode.UGRP_PJOB_LIMIT)
    by_user = Codes(ReasonCode.USER_JOB_LIMIT, ReasonCode.USER_PJOB_LIMIT)
    for name, group in groups.items():
        members = (("users", _only(name)),)
        each = (("users", _only(name, is_each=True)),)
        title = f"group {name}"
        if group.slots_max is not None:
            rule = Rule(title, SLOTS, group.slots_max * MILLI, codes, USER_RANK, members)
            yield replace(rule, counts_preempted=Uncounted.GROUP_MAX not in uncounted)
        if group.user_slots_max is not None:
            most = group.user_slots_max * MILLI
            yield Rule(f"{title} by user", SLOTS, most, by_user, USER_RANK, each)
        if group.jobs_max is not None:
            yield Rule(title, JOBS, group.jobs_max * MILLI, scopes=members)


def rules_of_projects(projects: Mapping[str, ProjectSpec]) -> Iterator[Rule]:
    """
    Yield the quotas of projects: what a project's jobs take counts for those above it too.
    """
    for path, project in projects.items():
        for quota in project.quotas:
            yield _quota(path, quota)


def _quota(path: str, quota: LimitAmount) -> Rule:
    return Rule(f"project {path}", quota.resource, quota.milli, under=path)


def _only(name: str, *, is_each: bool = False) -> Scope:
    return Scope(names=NameList(entries=(ListedName(name=name),)), is_each=is_each)
