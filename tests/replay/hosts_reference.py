"""
The obvious, slow scheduler of hosts that differ: first come, first served, with EASY backfilling or
without. Where jobs go is written from the specification: buckets largest first, each on the first
host in order that isn't taken yet; even partitions, then hosts filled in order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

Amounts = dict[str, int]
Free = dict[str, Amounts]
Share = dict[str, Amounts]


@dataclass
class HostJob:
    """
    Hold a job: what each of its tasks takes, and what it takes once on each host beside; whether it
    must have its hosts alone.
    """

    number: int
    submit: int
    run: int
    estimate: int
    tasks: int
    per_task: Amounts
    per_host: Amounts
    wants: tuple[frozenset[str], ...]
    most_on_host: int
    is_alone: bool = False
    start: int = -1
    share: Share = field(default_factory=dict)

    @property
    def end(self) -> int:
        return self.start + self.run

    @property
    def planned_end(self) -> int:
        return self.start + self.estimate

    @cached_property
    def asked(self) -> object:
        """
        Return what of a job decides where it fits.
        """
        needs = (tuple(sorted(self.per_task.items())), tuple(sorted(self.per_host.items())))
        return (self.tasks, needs, self.wants, self.most_on_host, self.is_alone)


@dataclass
class Hosts:
    """
    Hold what hosts have, in order, and what they are.
    """

    has: Free
    kinds: dict[str, frozenset[str]]
    _matching: dict[object, list[str]] = field(default_factory=dict)

    def matching(self, wants: tuple[frozenset[str], ...]) -> list[str]:
        """
        Return the hosts that are what a job wants, in order.
        """
        if wants not in self._matching:
            self._matching[wants] = [
                host
                for host, kinds in self.kinds.items()
                if all(not kinds.isdisjoint(one_of) for one_of in wants)
            ]
        return self._matching[wants]


def taken(job: HostJob, tasks: int) -> Amounts:
    """
    Return what so many tasks of a job take on a host.
    """
    found = {"slots": tasks}
    for name, each in job.per_task.items():
        found[name] = found.get(name, 0) + each * tasks
    for name, each in job.per_host.items():
        found[name] = found.get(name, 0) + each
    return found


def plans(job: HostJob) -> Iterator[list[int]]:
    """
    Yield the buckets to try.
    """
    if job.tasks == 1:
        yield [1]
    elif job.most_on_host:
        whole, rest = divmod(job.tasks, job.most_on_host)
        yield [job.most_on_host] * whole + ([rest] if rest else [])
    else:
        for hosts in range(1, job.tasks + 1):
            each, more = divmod(job.tasks, hosts)
            yield [each + 1] * more + [each] * (hosts - more)


def fits(job: HostJob, has: Amounts, left: Amounts, needs: Amounts) -> bool:
    """
    Say whether a host that has something left holds a bucket, alone where the job wants that.
    """
    if not all(left.get(name, 0) >= amount for name, amount in needs.items()):
        return False
    return not job.is_alone or all(left[name] >= amount for name, amount in has.items())


def place(job: HostJob, hosts: Hosts, free: Free) -> Share | None:
    """
    Return what a job gets where, None when it doesn't fit.
    """
    fitting, has = hosts.matching(job.wants), hosts.has

    def taken_on(host: str, tasks: int) -> Amounts:
        needs = taken(job, tasks)
        if not job.is_alone:
            return needs
        return {name: max(amount, needs.get(name, 0)) for name, amount in has[host].items()}

    def that_fit(tasks: int) -> Iterator[str]:
        needs = taken(job, tasks)
        return (host for host in fitting if fits(job, has[host], free[host], needs))

    for plan in plans(job):
        share: Share = {}
        for tasks in plan:
            host = next((one for one in that_fit(tasks) if one not in share), None)
            if host is None:
                break
            share[host] = taken_on(host, tasks)
        else:
            return share
    if job.tasks == 1 or job.most_on_host:
        return None
    left, share = job.tasks, {}
    for host in fitting:
        tasks = max((n for n in range(1, left + 1) if host in that_fit(n)), default=0)
        if tasks:
            share[host] = taken_on(host, tasks)
            left -= tasks
        if not left:
            return share
    return None


def less(free: Free, shares: list[Share], sign: int = -1) -> Free:
    """
    Return what is left when these are taken, or given back.
    """
    found = dict(free)
    for share in shares:
        for host, amounts in share.items():
            found[host] = dict(found[host])
            for name, amount in amounts.items():
                found[host][name] = found[host].get(name, 0) + sign * amount
    return found


def schedule(
    jobs: list[HostJob], hosts: Hosts, *, backfills: bool, remembers: bool = False
) -> None:
    """
    Give every job its start and its hosts.

    Args:
        jobs: All of them; changed in place.
        hosts: The cluster.
        backfills: EASY, else first come, first served.
        remembers: Within a pass don't try again what didn't fit: less is free later in it. It is a
            shortcut, for workloads that would take days without it.
    """
    to_come = sorted(jobs, key=lambda job: (job.submit, job.number))
    waiting: list[HostJob] = []
    running: list[HostJob] = []
    while to_come or running:
        now = min([*(job.submit for job in to_come[:1]), *(job.end for job in running)])
        is_first = True
        while is_first or any(job.end == now for job in running):
            running = [job for job in running if job.end > now]
            while is_first and to_come and to_come[0].submit == now:
                waiting.append(to_come.pop(0))
            is_first = False
            one_pass(waiting, running, hosts, now, backfills=backfills, remembers=remembers)


def one_pass(
    waiting: list[HostJob], running: list[HostJob], hosts: Hosts, now: int, *, backfills: bool,
    remembers: bool,
) -> None:
    """
    Start what can start.
    """
    free = less(hosts.has, [job.share for job in running])
    in_vain: set[tuple[object, bool]] = set()

    def tried(job: HostJob, kept: Share) -> bool:
        nonlocal free
        key = (job.asked, bool(kept))
        if remembers and key in in_vain:
            return False
        share = place(job, hosts, less(free, [kept]))
        if share is None:
            in_vain.add(key)
            return False
        job.start, job.share = now, share
        waiting.remove(job)
        running.append(job)
        free = less(free, [share])
        return True

    while waiting and tried(waiting[0], {}):
        pass
    if not waiting or not backfills:
        return
    first = waiting[0]
    shadow, kept = promised(first, running, hosts, free)
    for job in waiting[1:]:
        tried(job, {} if now + job.estimate <= shadow else kept)


def promised(
    first: HostJob, running: list[HostJob], hosts: Hosts, free: Free
) -> tuple[int, Share]:
    """
    Return when the first job can start at the latest, and what of its hosts must stay free.
    """
    ending = sorted(running, key=lambda job: (job.planned_end, job.number))
    buckets = [taken(first, tasks) for tasks in sorted({n for plan in plans(first) for n in plan})]
    matching = set(hosts.matching(first.wants))

    def held(host: str, free: Free) -> list[bool]:
        return [fits(first, hosts.has[host], free[host], needs) for needs in buckets]

    for one in ending:
        before, free = free, less(free, [one.share], 1)
        # Where no host holds more than before there is nothing to try.
        helps = any(held(host, before) != held(host, free) for host in matching & {*one.share})
        share = place(first, hosts, free) if helps else None
        if share is not None:
            shadow = one.planned_end
            given = [job.share for job in ending if job.planned_end <= shadow]
            missing = less(share, [{h: one for h, one in each.items() if h in share}
                                   for each in given])  # fmt: skip
            return shadow, {
                host: {name: max(0, missing[host][name]) for name in share[host]} for host in share
            }
    raise AssertionError(f"job {first.number} never fits")
