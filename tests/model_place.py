"""
Place one job by the letter: what it sees of the hosts, plan by plan, bucket by bucket, host by
host. A part of the obvious slow scheduler, ``model.py``.
"""

# long: what a job sees and how it is placed belong together.

from __future__ import annotations

from collections.abc import Iterator

from tests.model import (
    DAY_MINUTES,
    MILLI,
    MINUTE_US,
    Ask,
    Branch,
    Grant,
    Host,
    Job,
    Model,
    Need,
    Part,
    Reason,
)
from tests.model_bounds import Bound, bounds_of, least_of, right_lost, taken_of, tasks_of
from tests.model_load import beyond_of, holds, unknown_of
from tests.model_profiles import is_allowed, wanted

# -------------------------------------------------------------------------------- what a job sees


class Sight:
    """
    See the cluster as one job does: without what is held for others, with what its victims gave
    back.

    Args:
        model: The cluster.
        job: Who looks.
        stopped: Jobs that are taken to have stopped for it.
        ended: Jobs that are taken to have ended for it.
        only: The one host that is looked at, None for all.
        is_empty: See every host open and nothing in use.
        sees_holds: See what is held for others.

    ``claimed`` is what earlier parts of the same request have been given, None for nothing.
    """

    def __init__(
        self,
        model: Model,
        job: Job,
        *,
        stopped: list[Job] | None = None,
        ended: list[Job] | None = None,
        only: str | None = None,
        is_empty: bool = False,
        sees_holds: bool = True,
    ) -> None:
        self.model = model
        self.job = job
        self.stopped = stopped or []
        self.ended = ended or []
        self.only = only
        self.is_empty = is_empty
        self.sees_holds = sees_holds
        self.claimed: Grant | None = None
        self.leads = True
        self.group: tuple[str, str] | None = None

    def hosts(self) -> list[Host]:
        """
        Return the hosts that take jobs, in host order.
        """
        found = list(self.model.hosts.values())
        if not self.is_empty:
            found = [host for host in found if self.model.is_open(host)]
        found = [host for host in found if self.only in (None, host.name)]
        if self.group is None:
            return found
        return [host for host in found if getattr(host, self.group[0]) == self.group[1]]

    def _gives_slots(self, other: Job) -> bool:
        """
        Say whether this job may use another one's slots.
        """
        if other in self.ended or other in self.stopped:
            return True
        if not other.aside or not other.stopped_for:
            return False
        holder = self.model.jobs[other.stopped_for]
        if holder.holds is not None:
            return holder is self.job
        return other.queue in preys_of(self.model, self.job.queue)

    def _is_spared(self, other: Job) -> bool:
        """
        Say whether another job is, or would be, stopped for one that may preempt it, such as this.
        """
        if other in self.stopped:
            return True
        preys = preys_of(self.model, self.job.queue)
        return bool(other.aside) and (
            other.stopped_for == self.job.number
            or (bool(other.stopped_for) and other.queue in preys)
        )

    def _has_given(self, other: Job, resource: str) -> bool:
        """
        Say whether another job has given a resource back.
        """
        is_stopped = other.aside or other in self.stopped
        return other in self.ended or (is_stopped and self.model.is_released(resource))

    def _others_that_hold(self) -> list[Job]:
        return [
            other
            for other in self.model.jobs.values()
            if other.holds is not None and other is not self.job and self.sees_holds
        ]

    def slots(self, host: Host) -> int:
        """
        Return the free slots of a host.
        """
        own = 0 if self.claimed is None else self.claimed.tasks.get(host.name, 0)
        if self.is_empty:
            return host.slots - own
        if self._is_barred(host):
            return 0
        used = own
        for other in self.model.live():
            if other.got is not None and not self._gives_slots(other):
                used += other.got.tasks.get(host.name, 0)
        for holder in self._others_that_hold():
            used += held_slots(self.model, holder, host.name)
        return max(0, host.slots - used)

    def _is_barred(self, host: Host) -> bool:
        """
        Say whether a job was stopped on the host for another, and goes on there before this one.
        """
        priority = self.model.queues[self.job.queue].priority
        return any(
            other.state == "SSUSP"
            and other.stopped_for
            and other.got is not None
            and host.name in other.got.tasks
            and self.model.queues[other.queue].priority >= priority
            for other in self.model.live()
        )

    def amount(self, host: Host, resource: str) -> int:
        """
        Return what is available of a resource of a host; of what it shares with others what they
        have together.
        """
        if resource in self.model.pools:
            own = [name for name in self.model.pools[resource] if host.name in self.hosts_of(name)]
            return self.shared(own[0]) if own else 0
        total = host.totals.get(resource, 0)
        charged = unused = 0
        if self.claimed is not None:
            charged = unused = self.claimed.amounts.get(host.name, {}).get(resource, 0)
        if self.is_empty:
            return total - charged
        for other in self.model.live():
            reserved = reserved_of(other, host.name, resource)
            if reserved and not self._has_given(other, resource):
                actual = other.actual.get(host.name, {}).get(resource, 0)
                charged += max(reserved, actual)
                unused += max(0, reserved - actual)
        for holder in self._others_that_hold():
            held = held_amount(self.model, holder, host.name, resource)
            charged, unused = charged + held, unused + held
        left = total - charged
        if resource == "mem" and resource in host.load:
            left = min(left, host.load[resource] - unused)
        return max(0, left)

    def hosts_of(self, pool: str) -> tuple[str, ...]:
        """
        Return the hosts that share a total.
        """
        return self.model.shared[pool].hosts

    def shared(self, resource: str) -> int:
        """
        Return what is left of a total that hosts share.
        """
        total = self.model.shared[resource].total
        own = 0 if self.claimed is None else self.claimed.shared.get(resource, 0)
        if self.is_empty:
            return total - own
        charged = own + sum(
            other.got.shared.get(resource, 0)
            for other in self.model.live()
            if other.got is not None and not self._has_given(other, resource)
        )
        held = sum(held_shared(self.model, each, resource) for each in self._others_that_hold())
        return max(0, total - charged - held)

    def left(self, bound: Bound, host: str | None = None) -> int | None:
        """
        Return what is left to this job of a bound beside what its earlier parts take, None when it
        isn't bound.
        """
        left = self._left(bound, host)
        if left is None or self.claimed is None or bound.resource == "jobs":
            return left
        hosts = (host,) if host is not None and bound.each_host else bound.hosts
        return left - taken_of(self.claimed, bound.resource, hosts)

    def _left(self, bound: Bound, host: str | None) -> int | None:
        owner = bound.owner_of(self.model, self.job)
        if owner is None:
            return None
        hosts = bound.hosts
        if host is not None:
            if hosts is None or host not in hosts:
                return None
            hosts = (host,) if bound.each_host else hosts
        if self.is_empty:
            # A bound of nothing is a brake, no ceiling.
            return bound.most_on(self.model, hosts) or None
        used = 0
        for other in self.model.live():
            is_stopped = other in self.stopped or (other.aside and other.stopped_for)
            is_free = other in self.ended or (is_stopped and not bound.counts_stopped)
            is_free |= bound.spares_hunters and self._is_spared(other)
            if bound.owner_of(self.model, other) == owner and other.got and not is_free:
                used += taken_of(other.got, bound.resource, hosts)
        for holder in self._others_that_hold():
            if bound.owner_of(self.model, holder) == owner:
                used += held_of(self.model, holder, bound, hosts)
        return max(0, bound.most_on(self.model, hosts) - used)


def preys_of(model: Model, name: str) -> list[str]:
    """
    Return the queues whose jobs those of a queue may preempt: of lower priority, and both agree.
    """
    own = model.queues[name]
    return [
        other.name
        for other in model.queues.values()
        if other.priority < own.priority
        and other.name in own.preys
        and name in other.preemptible_by
    ]


def reserved_of(job: Job, host: str, resource: str) -> int:
    """
    Return what a job reserved of a resource of a host.
    """
    return 0 if job.got is None else job.got.amounts.get(host, {}).get(resource, 0)


def victims_of(model: Model, job: Job) -> list[Job]:
    """
    Return the jobs that have stopped for a job or are about to, but for those that go on again.
    """
    return [
        other
        for other in model.live()
        if other.stopped_for == job.number and other.order != "resume"
    ]


def held_slots(model: Model, holder: Job, host: str) -> int:
    """
    Return what is held for a job on a host beyond the slots that its victims have there.
    """
    assert holder.holds is not None, holder
    covered = sum(each.got.tasks.get(host, 0) for each in victims_of(model, holder) if each.got)
    return max(0, holder.holds.tasks.get(host, 0) - covered)


def held_amount(model: Model, holder: Job, host: str, resource: str) -> int:
    """
    Return what is held for a job of a host's resource beyond what its victims will give back.
    """
    assert holder.holds is not None, holder
    covered = 0
    for victim in victims_of(model, holder):
        reserved = reserved_of(victim, host, resource)
        if reserved and not victim.aside and _will_give(model, victim, resource):
            covered += max(reserved, victim.actual.get(host, {}).get(resource, 0))
    return max(0, holder.holds.amounts.get(host, {}).get(resource, 0) - covered)


def held_shared(model: Model, holder: Job, resource: str) -> int:
    """
    Return what is held for a job of a shared total beyond what its victims will give back.
    """
    assert holder.holds is not None, holder
    covered = sum(
        victim.got.shared.get(resource, 0)
        for victim in victims_of(model, holder)
        if victim.got is not None and not victim.aside and _will_give(model, victim, resource)
    )
    return max(0, holder.holds.shared.get(resource, 0) - covered)


def held_of(model: Model, holder: Job, bound: Bound, hosts: tuple[str, ...] | None) -> int:
    """
    Return what of a bound is held for a job beyond what its victims will give back of it.
    """
    assert holder.holds is not None, holder
    owner = bound.owner_of(model, holder)
    covered = 0
    for victim in victims_of(model, holder):
        gives = not victim.aside and (victim.order == "kill" or not bound.counts_stopped)
        if gives and victim.got and bound.owner_of(model, victim) == owner:
            covered += taken_of(victim.got, bound.resource, hosts)
    return max(0, taken_of(holder.holds, bound.resource, hosts) - covered)


def _will_give(model: Model, victim: Job, resource: str) -> bool:
    return victim.order == "kill" or model.is_released(resource)


# ---------------------------------------------------------------------------------------- placing


def why_kept(model: Model, job: Job) -> Reason | None:
    """
    Return what keeps a whole job from starting: by rank, then the bound that has least left, then
    the one that allows least in all. What is in use goes before what is only held.
    """
    found = short_bounds(model, job, Sight(model, job, sees_holds=False))
    found += [((rank, 0, 0, 0), kept) for rank, kept in other_keepers(model, job)]
    return min(found)[1] if found else None


def other_keepers(model: Model, job: Job) -> list[tuple[float, Reason]]:
    """
    Return what beside bounds keeps a job from starting whoever stops for it, with its rank among
    those.
    """
    limit, deadline = model.run_limit_of(job), job.ask.deadline_us
    found: list[tuple[float, Reason]] = []
    lost = right_lost(model, job)
    if lost is not None:
        found.append((-1, lost))
    if not is_allowed(model, job.ask):
        found.append((2.2, ("JOB_NOT_ALLOWED", "", "", "")))
    window = model.queues[job.queue].run_window
    if limit is not None and window is not None and model.is_run_open(job.queue):
        day_us = model.now_us // (MINUTE_US * DAY_MINUTES) * MINUTE_US * DAY_MINUTES
        if model.now_us + limit > day_us + window[1] * MINUTE_US:
            found.append((0.4, ("QUE_WINDOW_WILL_CLOSE", "", job.queue, "")))
    if limit is not None and deadline is not None and model.now_us + limit > deadline:
        found.append((0.5, ("JOB_MISS_DEADLINE", "", "", "")))
    if job.most_at_once is not None and model.started_of(job) >= job.most_at_once:
        found.append((2.5, ("JOB_ARRAY_JLIMIT", "", f"{job.most_at_once} at a time", "")))
    return found


def would_never(model: Model, job: Job) -> bool:
    """
    Say whether even the empty cluster couldn't hold a job.
    """
    if not is_allowed(model, job.ask) or is_over(model, job.ask, job.queue):
        return True
    return place(model, job, Sight(model, job, is_empty=True))[0] is None


def may_not_be(model: Model, ask: Ask, queue: str | None = None) -> bool:
    """
    Say whether a request is refused: who makes it has no right to, or no bound could ever hold it.
    """
    trial = Job(0, ask, queue or ask.queue, 0)
    if right_lost(model, trial) is not None or not is_allowed(model, ask):
        return True
    return is_over(model, ask, queue)


def is_over(model: Model, ask: Ask, queue: str | None = None) -> bool:
    """
    Say whether a bound of the whole job could never hold a request.
    """
    sight = Sight(model, Job(0, ask, queue or ask.queue, 0), is_empty=True)
    branches = wanted(model, ask).alternatives()
    for bound in bounds_of(model):
        left = sight.left(bound) if bound.hosts is None else None
        if left is not None and least_of(branches, bound.resource) > left:
            return True
    return False


def open_branches(model: Model, job: Job) -> list[Branch]:
    """
    Return the alternatives of a job that are open by now.
    """
    return model.wanted(job).open_at(model.now_us - job.submit_us)


def place(model: Model, job: Job, sight: Sight) -> tuple[Grant | None, set[Reason]]:
    """
    Return what a job gets from the first of its alternatives that can be placed. Or every reason
    why it gets nothing.
    """
    every, reasons = model.wanted(job).alternatives(), set[Reason]()
    opened = every if sight.is_empty else open_branches(model, job)
    short = [] if sight.is_empty else short_bounds(model, job, sight)
    if short:
        return None, {min(short)[1]}
    for number, branch in enumerate(every, 1):
        alternative = number if len(every) > 1 else 0
        if branch not in opened:
            reasons.add((f"ALTERNATIVE_WAITS@{alternative}.0", "", "", ""))
            continue
        for group in _groups_of(branch, sight):
            sight.group = group
            got, more = _place_branch(job, branch, sight, alternative)
            sight.claimed = sight.group = None
            if got is not None:
                return got, set()
            reasons |= more
    return None, reasons


def _groups_of(branch: Branch, sight: Sight) -> list[tuple[str, str] | None]:
    """
    Return what hosts may have in common that all of an alternative must have, that of the first
    host first; None for no such thing.
    """
    if not branch.same:
        return [None]
    kinds = dict.fromkeys(getattr(host, branch.same) for host in sight.hosts())
    return [(branch.same, kind) for kind in kinds]


def short_bounds(
    model: Model, job: Job, sight: Sight
) -> list[tuple[tuple[float, int, int, int], Reason]]:
    """
    Return the bounds of the whole job that can't hold its least need, with their ranks.
    """
    branches, tasks = open_branches(model, job), tasks_of(model.wanted(job))
    found: list[tuple[tuple[float, int, int, int], Reason]] = []
    for place, bound in enumerate(bounds_of(model)):
        left = sight.left(bound) if bound.hosts is None else None
        if left is not None and least_of(branches, bound.resource) > left:
            reason = (bound.code(tasks), bound.resource, bound.name, "")
            found.append(((bound.rank, left, bound.most, place), reason))
    return found


def _place_branch(
    job: Job, branch: Branch, sight: Sight, alternative: int
) -> tuple[Grant | None, set[Reason]]:
    """
    Place the parts of an alternative one after the other, or none of them. On an empty cluster
    parts leave each other everything where hosts may come in any order, by what they report.
    """
    keys = [key for part in branch.parts for key in part.order]
    in_any_order = sight.is_empty and any(_may_be_reported(key, sight.model) for key in keys)
    reasons, has_failed = set[Reason](), False
    given: Grant | None = None
    for number, part in enumerate(branch.parts, 1):
        member = number if len(branch.parts) > 1 else 0
        mark = f"@{alternative}.{member}" if alternative or member else ""
        if has_failed:
            reasons.add((f"MEMBER_NOT_TRIED{mark}", "", "", ""))
            continue
        sight.leads = number == 1
        got, more = _place_part(job, part, sight)
        if got is None:
            has_failed = True
            reasons |= {(code + mark, *rest) for code, *rest in more}  # type: ignore[misc]
        else:
            given = got if given is None else together(given, got)
            sight.claimed = None if in_any_order else given
    return None if has_failed else given, reasons


def _may_be_reported(key: str, model: Model) -> bool:
    """
    Say whether some host may report what orders hosts, beside those that count it. Who counts no
    scratch space though others do has none.
    """
    name = key.removeprefix("-")
    counting = [name in host.totals for host in model.hosts.values()]
    return not all(counting) if name == "mem" else not any(counting)


def together(one: Grant, other: Grant) -> Grant:
    """
    Return what two grants give.
    """
    tasks = {host: one.tasks.get(host, 0) + n for host, n in other.tasks.items()}
    amounts = {
        host: {
            name: milli + one.amounts.get(host, {}).get(name, 0)
            for name, milli in {**dict.fromkeys(one.amounts.get(host, {}), 0), **own}.items()
        }
        for host, own in other.amounts.items()
    }
    names = {**one.shared, **other.shared}
    shared = {name: one.shared.get(name, 0) + other.shared.get(name, 0) for name in names}
    return Grant({**one.tasks, **tasks}, {**one.amounts, **amounts}, shared)


def _place_part(job: Job, part: Part, sight: Sight) -> tuple[Grant | None, set[Reason]]:
    """
    Return what a part gets: as many tasks as can be placed. Or every reason why it gets nothing.
    """
    model, reasons, hosts = sight.model, set[Reason](), []
    for host in sight.hosts():
        code, detail = _mismatch(job, part, host, sight)
        if code:
            reasons.add((code, "", detail, host.name))
        else:
            hosts.append(host)
    hosts.sort(key=lambda host: (-_wish(job, host, model), *_order(part, host, sight)))
    for resource, need in part.needs.items():
        if resource in model.shared and need.of(part.tasks_min, 1) > sight.shared(resource):
            reasons.add(("RES_SHORT", resource, "", ""))
    for bound in bounds_of(model):
        left = sight.left(bound) if bound.hosts is None else None
        if left is not None and least_of([Branch([part])], bound.resource) > left:
            reasons.add((bound.code(part.tasks_min), bound.resource, bound.name, ""))
    if any(not host for _, _, _, host in reasons):
        return None, reasons
    for tasks in _counts(part):
        short: set[Reason] = set()
        for alike in _alike(part, hosts):
            got = _place_count(job, part, sight, alike, tasks, short)
            if got is not None:
                return got, set()
    if hosts and not short:
        short = {("JOB_SPREAD_TASK", "", "", "")}
    return None, reasons | short


def _counts(part: Part) -> list[int]:
    """
    Return the counts of tasks to try, the greatest first: whole blocks where a range holds some.
    """
    counts = list(range(part.tasks_max, part.tasks_min - 1, -1))
    if part.span != "block" or len(counts) == 1:
        return counts
    return [count for count in counts if count % part.ptile == 0] or counts


def _order(part: Part, host: Host, sight: Sight) -> list[int]:
    """
    Return what orders hosts by what they have left: the most first, the least with a minus; those
    that don't have it last.
    """
    keys = []
    for key in part.order:
        name = key.removeprefix("-")
        # What a host doesn't have to give it may still report.
        # An empty cluster has no load.
        reported = None if sight.is_empty else host.load.get(name)
        left = sight.amount(host, name) if name in host.totals else reported
        keys += [left is None, (left or 0) if key.startswith("-") else -(left or 0)]
    return keys


def _alike(part: Part, hosts: list[Host]) -> list[list[Host]]:
    """
    Return groups of hosts that are alike in what the part wants the same.
    """
    groups: dict[str, list[Host]] = {}
    for host in hosts:
        groups.setdefault(host.rack if part.same else "", []).append(host)
    return list(groups.values())


def _wish(job: Job, host: Host, model: Model) -> int:
    """
    Return how much a host is preferred; what the job asks for goes before its queue.
    """
    asked = job.ask.hosts or model.queues[job.queue].hosts or {}
    return asked.get(host.name, 0)


def _mismatch(job: Job, part: Part, host: Host, sight: Sight) -> tuple[str, str]:
    """
    Return why a host doesn't match a job, whatever it has left.
    """
    ask, queue = job.ask, sight.model.queues[job.queue]
    own, unknown = queue.hosts, unknown_of(queue, host)
    if unknown and not sight.is_empty:
        return "LOAD_UNAVAIL", unknown
    if own is not None and host.name not in own:
        return "HOST_QUE_MEMB", ""
    if ask.hosts and host.name not in ask.hosts:
        return "HOST_USR_SPEC", ""
    if host.name in job.avoids:
        return "SBD_JOB_REQUEUE", ""
    for flag in part.flags:
        if flag not in host.flags:
            return "HOST_RES_REQ", flag
    if ask.is_exclusive and not sight.is_empty:
        on = [job for job in sight.model.live() if job.got and host.name in job.got.tasks]
        if on:
            return "HOST_NONEXCLUSIVE", ""
    if queue.stop_when is not None and not sight.is_empty and holds(queue.stop_when, host):
        return "HOST_STOP_COND", ""
    return "", ""


def _place_count(
    job: Job, part: Part, sight: Sight, hosts: list[Host], tasks: int, short: set[Reason]
) -> Grant | None:
    """
    Place so many tasks: the first plan of the first allocator that is satisfied whole. Where no
    plan keeps within what hosts have together, that is dealt to them in order.
    """
    if part.tasks_max == 1:
        names = ["seqjob"]
    elif part.span:
        names = [part.span]
    else:
        names = list(sight.model.rules.chain)
    joint = _joint(part, sight)
    for name in names:
        most = {}
        if joint or name in ("fill", *PINNED):
            most = {host.name: _most(job, part, sight, host, tasks) for host in hosts}
        for plan in _plans(name, job, part, sight, hosts, tasks, most):
            claims = _claim(job, part, sight, hosts, plan, short, tasks)
            beyond = None if claims is None else _beyond(part, sight, claims)
            if beyond is not None:
                short.add(beyond)
            elif claims is not None:
                return granted(part.needs, sight.model, claims)
        for each in joint:
            most = _dealt(part, most, each)
        for plan in _plans(name, job, part, sight, hosts, tasks, most) if joint else ():
            claims = _claim(job, part, sight, hosts, plan, set(), tasks, is_dealt=True)
            if claims is not None:
                return granted(part.needs, sight.model, claims)
    return None


def _most(job: Job, part: Part, sight: Sight, host: Host, tasks: int) -> int:
    """
    Return how many tasks a host can take by itself, so many at most.
    """
    takes = [n for n in range(1, tasks + 1) if not _shortages(job, part, sight, host, n)]
    return max(takes, default=0)


Joint = tuple[str, Reason, tuple[str, ...], int]
"""What hosts have together: the resource, the reason when it is short, the hosts, what is left."""


def _joint(part: Part, sight: Sight) -> list[Joint]:
    """
    Return what some hosts have together and a part takes of: bounds, then totals that they share.
    """
    model, found = sight.model, list[Joint]()
    for bound in bounds_of(model):
        is_joint = bound.hosts is not None and not bound.each_host
        is_joint = is_joint and bound.resource not in ("jobs", *model.shared)
        left = sight.left(bound) if is_joint else None
        if left is not None and bound.hosts is not None:
            reason = (bound.code(part.tasks_min), bound.resource, bound.name, "")
            found.append((bound.resource, reason, bound.hosts, left))
    for resource in part.needs:
        for name in model.pools.get(resource, ()):
            reason = ("RES_SHORT", resource, "", "")
            found.append((resource, reason, sight.hosts_of(name), sight.shared(name)))
    return found


def _taken(part: Part, resource: str, tasks: int, hosts: int) -> int:
    if resource in ("slots", "tasks"):
        return tasks * MILLI
    return part.needs[resource].of(tasks, hosts) if hosts and resource in part.needs else 0


def _beyond(part: Part, sight: Sight, claims: dict[str, int]) -> Reason | None:
    """
    Return of what hosts together would take more than is left to them, totals before bounds.
    """
    found = []
    for resource, reason, hosts, left in _joint(part, sight):
        inside = [tasks for host, tasks in claims.items() if host in hosts]
        if _taken(part, resource, sum(inside), len(inside)) > left:
            found.append(reason)
    return min(found, key=lambda each: each[0] != "RES_SHORT", default=None)


def _dealt(part: Part, most: dict[str, int], joint: Joint) -> dict[str, int]:
    """
    Return how many tasks each host can take when the ones before it take all that they can.
    """
    resource, _, hosts, left = joint
    found: dict[str, int] = {}
    for host, own in most.items():
        inside = [host for host in found if host in hosts and found[host]]
        tasks = sum(found[host] for host in inside)
        takes = [0] + [
            n
            for n in range(1, own + 1)
            if _taken(part, resource, tasks + n, len(inside) + 1) <= left
        ]
        found[host] = max(takes) if host in hosts else own
    return found


PINNED = ("block", "stripe")
Plan = list[tuple[int, str]]
"""The tasks of each bucket, and its host where the plan is cut for one, else ""."""


def _plans(
    name: str,
    job: Job,
    part: Part,
    sight: Sight,
    hosts: list[Host],
    tasks: int,
    most: dict[str, int],
) -> Iterator[Plan]:
    """
    Yield partitions of the tasks, each largest first; ``fill`` takes hosts in order, each as full
    as it goes, of which ``most`` says how many tasks that is.
    """
    if name in PINNED:
        yield _pinned(name, job, part, sight, hosts, tasks, most)
        return
    for sizes in _partitions(name, job, part, sight, hosts, tasks, most):
        yield [(size, "") for size in sizes]


def _partitions(
    name: str,
    job: Job,
    part: Part,
    sight: Sight,
    hosts: list[Host],
    tasks: int,
    most: dict[str, int],
) -> Iterator[list[int]]:
    if name in ("seqjob", "hosts"):
        yield [tasks]
    elif name == "ptile":
        tile = part.ptile
        yield [tile] * (tasks // tile) + ([tasks % tile] if tasks % tile else [])
    elif name == "parjob":
        for count in range(1, tasks + 1):
            each, larger = divmod(tasks, count)
            yield [each + 1] * larger + [each] * (count - larger)
    else:
        left, plan = tasks, []
        may_lead = _leaders(job, sight, hosts)
        in_front = [host for host in may_lead if most[host.name]][:1]
        for host in [*in_front, *(host for host in hosts if host not in in_front)]:
            if min(left, most[host.name]):
                plan.append(min(left, most[host.name]))
                left -= plan[-1]
        yield plan if left == 0 else [tasks]


def _pinned(
    name: str,
    job: Job,
    part: Part,
    sight: Sight,
    hosts: list[Host],
    tasks: int,
    most: dict[str, int],
) -> Plan:
    """
    Return a plan for certain hosts, one that may lead in front; one that no hosts can satisfy where
    they don't suffice, so that each is named that can't hold a block, or a task.
    """
    may_lead = _leaders(job, sight, hosts)
    orders = [[lead, *(each for each in hosts if each is not lead)] for lead in may_lead]
    for order in [hosts] if may_lead is hosts else orders:
        room = {host.name: most[host.name] for host in order}
        found = (_blocks if name == "block" else _stripes)(room, part.ptile, tasks)
        if found and (may_lead is hosts or found[0][1] == order[0].name):
            return found
    tile = min(part.ptile, tasks) if name == "block" else 1
    return [(tile, "")] * (len(hosts) + 1)


def _blocks(room: dict[str, int], size: int, tasks: int) -> Plan:
    """
    Pack as many whole blocks as fit on each host in order; what is left over lies beside the last
    block, else on the first host without one. [] when they don't fit.
    """
    left, found = tasks // size, {}
    for host, most in room.items():
        if min(left, most // size):
            found[host] = min(left, most // size) * size
            left -= min(left, most // size)
    rest = tasks % size
    if left:
        return []
    if rest:
        last = list(found)[-1:]
        beside = [host for host in last if room[host] >= found[host] + rest]
        others = [host for host, most in room.items() if host not in found and most >= rest]
        if not [*beside, *others]:
            return []
        where = [*beside, *others][0]
        found[where] = found.get(where, 0) + rest
    return [(n, host) for host, n in found.items()]


def _stripes(room: dict[str, int], most_each: int, tasks: int) -> Plan:
    """
    Deal tasks to hosts, one to each before any has two; or host by host, so many on each at most.
    [] when they don't fit.
    """
    found = dict.fromkeys(room, 0)
    for _ in range(tasks):
        if most_each:
            open_ = [host for host in room if found[host] < min(room[host], most_each)]
        else:
            open_ = [host for host in room if found[host] < room[host]]
            open_.sort(key=lambda host: found[host])
        if not open_:
            return []
        found[open_[0]] += 1
    return [(n, host) for host, n in found.items() if n]


def _leaders(job: Job, sight: Sight, hosts: list[Host]) -> list[Host]:
    """
    Return the hosts that may be a part's first.
    """
    if not (job.ask.firsts and sight.leads):
        return hosts
    return [host for host in hosts if host.name in job.ask.firsts]


def _claim(
    job: Job,
    part: Part,
    sight: Sight,
    hosts: list[Host],
    plan: Plan,
    short: set[Reason],
    tasks: int,
    *,
    is_dealt: bool = False,
) -> dict[str, int] | None:
    """
    Give each bucket the first host that satisfies it and isn't claimed; None when one finds none.
    Where what hosts have together is dealt out, each must keep within it beside those before.
    """
    hosts_max = sight.model.queues[job.queue].hosts_max
    if hosts_max is not None and len(plan) > hosts_max:
        return None
    if not _within(part, sight, tasks, len(plan)):
        return None
    claims: dict[str, int] = {}
    for size, pin in plan:
        for host in hosts if claims else _leaders(job, sight, hosts):
            if host.name in claims or pin not in ("", host.name):
                continue
            missing = _shortages(job, part, sight, host, size)
            if missing:
                short |= missing
            elif not is_dealt or _beyond(part, sight, {**claims, host.name: size}) is None:
                claims[host.name] = size
                break
        else:
            return None
    return claims


def _within(part: Part, sight: Sight, tasks: int, hosts: int) -> bool:
    """
    Say whether shared resources and bounds of the whole job hold so many tasks and hosts.
    """
    needs = part.needs
    for resource, need in needs.items():
        if resource in sight.model.shared and need.of(tasks, hosts) > sight.shared(resource):
            return False
    for bound in bounds_of(sight.model):
        left = sight.left(bound) if bound.hosts is None else None
        wanted = needs[bound.resource].of(tasks, hosts) if bound.resource in needs else 0
        if bound.resource in ("slots", "tasks"):
            wanted = tasks * MILLI
        if left is not None and wanted > left:
            return False
    return True


def _shortages(job: Job, part: Part, sight: Sight, host: Host, tasks: int) -> set[Reason]:
    """
    Return everything that a host by itself is short of for a bucket.
    """
    model, found = sight.model, set[Reason]()
    if tasks > sight.slots(host):
        is_tiled = part.span and (part.span, part.ptile) != ("stripe", 0)
        found.add(("JOB_NO_SPAN" if is_tiled else "HOST_SLOTS", "slots", "", host.name))
    for resource, need in part.needs.items():
        if resource not in model.shared and need.of(tasks, 1) > sight.amount(host, resource):
            found.add(("HOST_JOB_RUSAGE", resource, "", host.name))
    free = sight.amount(host, "mem") if "mem" in host.totals else None
    for index in beyond_of(model.queues[job.queue], host, free, is_empty=sight.is_empty):
        found.add(("HOST_LOAD", index, "", host.name))
    for bound in bounds_of(model):
        left = sight.left(bound, host.name)
        if left is None or (bound.resource in model.shared):
            continue
        wanted = taken_of(
            granted(part.needs, model, {host.name: tasks}), bound.resource, (host.name,)
        )
        if wanted > left:
            found.add((bound.code(part.tasks_min), bound.resource, bound.name, host.name))
    return found


def granted(needs: dict[str, Need], model: Model, claims: dict[str, int]) -> Grant:
    """
    Return what claims give.
    """
    shared: dict[str, int] = {}
    for name, need in needs.items():
        if name in model.shared:
            shared[name] = need.of(sum(claims.values()), len(claims))
        for pool in model.pools.get(name, ()):
            inside = [n for host, n in claims.items() if host in model.shared[pool].hosts]
            if inside:
                shared[pool] = need.of(sum(inside), len(inside))
    own = {
        name: need
        for name, need in needs.items()
        if name not in model.shared and name not in model.pools
    }
    return Grant(
        dict(claims),
        {host: {name: each.of(n, 1) for name, each in own.items()} for host, n in claims.items()},
        shared,
    )
