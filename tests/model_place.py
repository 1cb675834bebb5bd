"""
Place one job by the letter: what it sees of the hosts, plan by plan, bucket by bucket, host by
host. A part of the obvious slow scheduler, ``model.py``.
"""

# long: what a job sees and how it is placed belong together.

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.model import MILLI, Ask, Grant, Host, Job, Model, Queue, Reason

# ------------------------------------------------------------------------------------------ bounds


@dataclass
class Bound:
    """
    Bound one thing for the jobs of some users and queues, which have one budget together or one
    for each user or queue. None stands for anybody.

    Args:
        hosts: On which hosts, None for the whole job.
        each_host: Whether each host has a budget of its own.
        rank: In which order causes are looked at.
        counts_stopped: Whether jobs that were stopped for others count.
    """

    name: str
    resource: str
    most: int
    codes: tuple[str, str] = ("RES_LIMIT", "RES_LIMIT")
    users: tuple[str, ...] | None = None
    queues: tuple[str, ...] | None = None
    hosts: tuple[str, ...] | None = None
    each_user: bool = False
    each_queue: bool = False
    each_host: bool = False
    rank: int = 3
    counts_stopped: bool = True

    def code(self, ask: Ask) -> str:
        """
        Return the reason of a job that it keeps from starting: one of a single task, or a parallel
        one.
        """
        return self.codes[ask.tasks_min > 1]

    def owner_of(self, user: str, queue: str) -> str | None:
        """
        Return whose budget a job is charged to, None when it isn't bound.
        """
        if self.users is not None and user not in self.users:
            return None
        if self.queues is not None and queue not in self.queues:
            return None
        return "/".join(filter(None, (user * self.each_user, queue * self.each_queue)))


def bounds_of(model: Model) -> list[Bound]:
    """
    Return everything that bounds jobs together.
    """
    found = []
    for name, limit in model.limits.items():
        bound = Bound(name, limit.resource, limit.milli)
        bound.users, bound.queues, bound.hosts = limit.users, limit.queues, limit.hosts
        bound.each_user, bound.each_queue = limit.each_user, limit.each_queue
        bound.each_host, bound.counts_stopped = limit.each_host, limit.resource != "jobs"
        found.append(bound)
    for queue in model.queues.values():
        found += _bounds_of_queue(queue, tuple(model.hosts))
    for user, slots in model.user_slots.items():
        codes = ("USER_JOB_LIMIT", "USER_PJOB_LIMIT")
        bound = Bound(f"user {user}", "slots", slots * MILLI, codes, (user,), rank=1)
        bound.counts_stopped = False
        found.append(bound)
    return found


def _bounds_of_queue(queue: Queue, hosts: tuple[str, ...]) -> list[Bound]:
    """
    Return what a queue bounds: its slots, those of each of its users, those on each host, its jobs.
    """
    title, own, found = f"queue {queue.name}", (queue.name,), []
    if queue.slots is not None:
        codes = ("QUE_JOB_LIMIT", "QUE_PJOB_LIMIT")
        found.append(Bound(title, "slots", queue.slots * MILLI, codes, None, own, rank=0))
    if queue.user_slots is not None:
        codes, most = ("QUE_USR_JLIMIT", "QUE_USR_PJLIMIT"), queue.user_slots * MILLI
        bound = Bound(f"{title} by user", "slots", most, codes, None, own, rank=2)
        bound.each_user = True
        found.append(bound)
    if queue.host_slots is not None:
        codes, most = ("QUE_HOST_JLIMIT", "QUE_HOST_JLIMIT"), queue.host_slots * MILLI
        bound = Bound(f"{title} by host", "slots", most, codes, None, own, hosts)
        bound.each_host = True
        found.append(bound)
    if queue.jobs is not None:
        found.append(Bound(title, "jobs", queue.jobs * MILLI, queues=own))
    return found


def taken_of(got: Grant, resource: str, hosts: tuple[str, ...] | None) -> int:
    """
    Return what a job takes of a thing on some hosts, or in all.
    """
    on = [host for host in got.tasks if hosts is None or host in hosts]
    if resource == "jobs":
        return MILLI if on else 0
    if resource in ("slots", "tasks"):
        return sum(got.tasks[host] for host in on) * MILLI
    shared = got.shared.get(resource, 0) if hosts is None else 0
    return sum(got.amounts[host].get(resource, 0) for host in on) + shared


def least_of(ask: Ask, resource: str) -> int:
    """
    Return the least of a thing that a job needs.
    """
    if resource == "jobs":
        return MILLI
    if resource in ("slots", "tasks"):
        return ask.tasks_min * MILLI
    need = ask.needs.get(resource)
    return 0 if need is None else need.of(ask.tasks_min, 1)


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
    ) -> None:
        self.model = model
        self.job = job
        self.stopped = stopped or []
        self.ended = ended or []
        self.only = only
        self.is_empty = is_empty

    def hosts(self) -> list[Host]:
        """
        Return the hosts that take jobs, in host order.
        """
        found = list(self.model.hosts.values())
        if not self.is_empty:
            found = [host for host in found if self.model.is_open(host)]
        return [host for host in found if self.only in (None, host.name)]

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
            if other.holds is not None and other is not self.job
        ]

    def slots(self, host: Host) -> int:
        """
        Return the free slots of a host.
        """
        if self.is_empty:
            return host.slots
        used = 0
        for other in self.model.live():
            if other.got is not None and not self._gives_slots(other):
                used += other.got.tasks.get(host.name, 0)
        for holder in self._others_that_hold():
            used += held_slots(self.model, holder, host.name)
        return max(0, host.slots - used)

    def amount(self, host: Host, resource: str) -> int:
        """
        Return what is available of a resource of a host.
        """
        total = host.totals.get(resource, 0)
        if self.is_empty:
            return total
        charged = unused = 0
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

    def shared(self, resource: str) -> int:
        """
        Return what is left of a total that all hosts share.
        """
        total = self.model.shared[resource].total
        if self.is_empty:
            return total
        charged = sum(
            other.got.shared.get(resource, 0)
            for other in self.model.live()
            if other.got is not None and not self._has_given(other, resource)
        )
        held = sum(held_shared(self.model, each, resource) for each in self._others_that_hold())
        return max(0, total - charged - held)

    def left(self, bound: Bound, host: str | None = None) -> int | None:
        """
        Return what is left to this job of a bound, None when it isn't bound.
        """
        owner = bound.owner_of(self.job.ask.user, self.job.queue)
        if owner is None:
            return None
        hosts = bound.hosts
        if host is not None:
            if hosts is None or host not in hosts:
                return None
            hosts = (host,) if bound.each_host else hosts
        if self.is_empty:
            # A bound of nothing is a brake, no ceiling.
            return bound.most or None
        used = 0
        for other in self.model.live():
            is_stopped = other in self.stopped or (other.aside and other.stopped_for)
            is_free = other in self.ended or (is_stopped and not bound.counts_stopped)
            if bound.owner_of(other.ask.user, other.queue) == owner and other.got and not is_free:
                used += taken_of(other.got, bound.resource, hosts)
        for holder in self._others_that_hold():
            if bound.owner_of(holder.ask.user, holder.queue) == owner:
                used += held_of(self.model, holder, bound, hosts)
        return max(0, bound.most - used)


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
    owner = bound.owner_of(holder.ask.user, holder.queue)
    covered = 0
    for victim in victims_of(model, holder):
        gives = not victim.aside and (victim.order == "kill" or not bound.counts_stopped)
        if gives and victim.got and bound.owner_of(victim.ask.user, victim.queue) == owner:
            covered += taken_of(victim.got, bound.resource, hosts)
    return max(0, taken_of(holder.holds, bound.resource, hosts) - covered)


def _will_give(model: Model, victim: Job, resource: str) -> bool:
    return victim.order == "kill" or model.is_released(resource)


# ---------------------------------------------------------------------------------------- placing


def why_kept(model: Model, job: Job) -> Reason | None:
    """
    Return what keeps a whole job from starting: by rank, then the bound that has least left, then
    the one that allows least in all.
    """
    found = []
    sight = Sight(model, job)
    for rank, kept in other_keepers(model, job):
        found.append(((rank, 0, 0, 0), kept))
    for place, bound in enumerate(bounds_of(model)):
        left = sight.left(bound) if bound.hosts is None else None
        if left is not None and least_of(job.ask, bound.resource) > left:
            reason = (bound.code(job.ask), bound.resource, bound.name, "")
            found.append(((bound.rank, left, bound.most, place), reason))
    return min(found)[1] if found else None


def other_keepers(model: Model, job: Job) -> list[tuple[float, Reason]]:
    """
    Return what beside bounds keeps a job from starting whoever stops for it, with its rank among
    those.
    """
    limit, deadline = model.run_limit_of(job), job.ask.deadline_us
    found: list[tuple[float, Reason]] = []
    if limit is not None and deadline is not None and model.now_us + limit > deadline:
        found.append((0.5, ("JOB_MISS_DEADLINE", "", "", "")))
    return found


def would_never(model: Model, job: Job) -> bool:
    """
    Say whether even the empty cluster couldn't hold a job.
    """
    if is_over(model, job.ask, job.queue):
        return True
    return place(model, job, Sight(model, job, is_empty=True))[0] is None


def is_over(model: Model, ask: Ask, queue: str | None = None) -> bool:
    """
    Say whether a bound of the whole job could never hold a request, so that it is refused.
    """
    sight = Sight(model, Job(0, ask, queue or ask.queue, 0), is_empty=True)
    for bound in bounds_of(model):
        left = sight.left(bound) if bound.hosts is None else None
        if left is not None and least_of(ask, bound.resource) > left:
            return True
    return False


def place(model: Model, job: Job, sight: Sight) -> tuple[Grant | None, set[Reason]]:
    """
    Return what a job gets: as many tasks as can be placed. Or every reason why it gets nothing.
    """
    ask, reasons, hosts = job.ask, set[Reason](), []
    for host in sight.hosts():
        code, detail = _mismatch(job, host, sight)
        if code:
            reasons.add((code, "", detail, host.name))
        else:
            hosts.append(host)
    hosts.sort(key=lambda host: -_wish(job, host, model))
    for resource, need in ask.needs.items():
        if resource in model.shared and need.of(ask.tasks_min, 1) > sight.shared(resource):
            reasons.add(("RES_SHORT", resource, "", ""))
    for bound in bounds_of(model):
        left = sight.left(bound) if bound.hosts is None else None
        if left is not None and least_of(ask, bound.resource) > left:
            reasons.add((bound.code(ask), bound.resource, bound.name, ""))
    if any(not host for _, _, _, host in reasons):
        return None, reasons
    for tasks in range(ask.tasks_max, ask.tasks_min - 1, -1):
        short: set[Reason] = set()
        got = _place_count(job, sight, hosts, tasks, short)
        if got is not None:
            return got, set()
    if hosts and not short:
        short = {("JOB_SPREAD_TASK", "", "", "")}
    return None, reasons | short


def _wish(job: Job, host: Host, model: Model) -> int:
    """
    Return how much a host is preferred; what the job asks for goes before its queue.
    """
    asked = job.ask.hosts or model.queues[job.queue].hosts or {}
    return asked.get(host.name, 0)


def _mismatch(job: Job, host: Host, sight: Sight) -> tuple[str, str]:
    """
    Return why a host doesn't match a job, whatever it has left.
    """
    ask, own = job.ask, sight.model.queues[job.queue].hosts
    if own is not None and host.name not in own:
        return "HOST_QUE_MEMB", ""
    if ask.hosts and host.name not in ask.hosts:
        return "HOST_USR_SPEC", ""
    if host.name in job.avoids:
        return "SBD_JOB_REQUEUE", ""
    for flag in ask.flags:
        if flag not in host.flags:
            return "HOST_RES_REQ", flag
    if ask.is_exclusive and not sight.is_empty:
        on = [job for job in sight.model.live() if job.got and host.name in job.got.tasks]
        if on:
            return "HOST_NONEXCLUSIVE", ""
    return "", ""


def _place_count(
    job: Job, sight: Sight, hosts: list[Host], tasks: int, short: set[Reason]
) -> Grant | None:
    """
    Place so many tasks: the first plan of the first allocator that is satisfied whole.
    """
    ask = job.ask
    if ask.tasks_max == 1:
        names = ["seqjob"]
    elif ask.span:
        names = [ask.span]
    else:
        names = list(sight.model.rules.chain)
    for name in names:
        for plan in _plans(name, job, sight, hosts, tasks):
            claims = _claim(job, sight, hosts, plan, short)
            if claims is not None:
                return _granted(ask, sight.model, claims)
    return None


def _plans(
    name: str, job: Job, sight: Sight, hosts: list[Host], tasks: int
) -> Iterator[list[int]]:
    """
    Yield partitions of the tasks, each largest first; ``fill`` takes hosts in order, each as full
    as it goes.
    """
    if name in ("seqjob", "hosts"):
        yield [tasks]
    elif name == "ptile":
        tile = job.ask.ptile
        yield [tile] * (tasks // tile) + ([tasks % tile] if tasks % tile else [])
    elif name == "parjob":
        for count in range(1, tasks + 1):
            each, larger = divmod(tasks, count)
            yield [each + 1] * larger + [each] * (count - larger)
    else:
        left, plan = tasks, []
        for host in hosts:
            takes = [n for n in range(1, left + 1) if not _shortages(job, sight, host, n, {})]
            if takes:
                plan.append(takes[-1])
                left -= takes[-1]
        yield plan if left == 0 else [tasks]


def _claim(
    job: Job, sight: Sight, hosts: list[Host], plan: list[int], short: set[Reason]
) -> dict[str, int] | None:
    """
    Give each bucket the first host that satisfies it and isn't claimed; None when one finds none.
    """
    if not _within(job, sight, sum(plan), len(plan)):
        return None
    claims: dict[str, int] = {}
    for tasks in plan:
        for host in hosts:
            if host.name in claims:
                continue
            missing = _shortages(job, sight, host, tasks, claims)
            if not missing:
                claims[host.name] = tasks
                break
            short |= missing
        else:
            return None
    return claims


def _within(job: Job, sight: Sight, tasks: int, hosts: int) -> bool:
    """
    Say whether shared resources and bounds of the whole job hold so many tasks and hosts.
    """
    needs = job.ask.needs
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


def _shortages(
    job: Job, sight: Sight, host: Host, tasks: int, claims: dict[str, int]
) -> set[Reason]:
    """
    Return everything that a host is short of for a bucket.
    """
    ask, model, found = job.ask, sight.model, set[Reason]()
    if tasks > sight.slots(host):
        found.add(("JOB_NO_SPAN" if ask.span else "HOST_SLOTS", "slots", "", host.name))
    for resource, need in ask.needs.items():
        if resource not in model.shared and need.of(tasks, 1) > sight.amount(host, resource):
            found.add(("HOST_JOB_RUSAGE", resource, "", host.name))
    for bound in bounds_of(model):
        left = sight.left(bound, host.name)
        if left is None or (bound.resource in model.shared):
            continue
        claimed = {} if bound.each_host else {n: t for n, t in claims.items() if n in bound.hosts}
        got = _granted(ask, model, {**claimed, host.name: tasks})
        wanted = taken_of(got, bound.resource, None)
        if wanted > left:
            found.add((bound.code(ask), bound.resource, bound.name, host.name))
    return found


def _granted(ask: Ask, model: Model, claims: dict[str, int]) -> Grant:
    """
    Return what claims give.
    """
    total = sum(claims.values())
    own = {name: need for name, need in ask.needs.items() if name not in model.shared}
    shared = {name: need for name, need in ask.needs.items() if name in model.shared}
    return Grant(
        dict(claims),
        {host: {name: each.of(n, 1) for name, each in own.items()} for host, n in claims.items()},
        {name: need.of(total, len(claims)) for name, need in shared.items()},
    )
