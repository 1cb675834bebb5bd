"""
What bounds jobs together, and who may be where: a part of the obvious slow scheduler, ``model.py``.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.model import MILLI, Ask, Branch, Grant, Group, Job, Model, Part, Queue, Reason


@dataclass
class Bound:
    """
    Bound one thing for the jobs of some users, groups, queues and projects, which have one budget
    together or one for each of them. None stands for anybody.

    Args:
        users: Users, and groups whose members they are.
        group: The one group whose jobs are bound, "" for any.
        under: A project; jobs of those below it are bound too.
        hosts: On which hosts, None for the whole job.
        each_host: Whether each host has a budget of its own.
        rank: In which order causes are looked at.
        counts_stopped: Whether jobs that were stopped for others count.
        spares_hunters: Whether these keep nobody from starting who may preempt them.
        basis: What ``most`` is told in.
    """

    name: str
    resource: str
    most: int
    codes: tuple[str, str] = ("RES_LIMIT", "RES_LIMIT")
    users: tuple[str, ...] | None = None
    queues: tuple[str, ...] | None = None
    hosts: tuple[str, ...] | None = None
    each_user: bool = False
    each_group: bool = False
    each_queue: bool = False
    each_project: bool = False
    each_host: bool = False
    rank: int = 3
    counts_stopped: bool = True
    spares_hunters: bool = False
    projects: tuple[str, ...] | None = None
    profiles: tuple[str, ...] | None = None
    each_profile: bool = False
    group: str = ""
    under: str = ""
    basis: str = "absolute"

    def most_on(self, model: Model, hosts: tuple[str, ...] | None) -> int:
        """
        Return how much is allowed on some hosts together; by processors in whole units, rounded up.
        """
        if self.basis == "absolute":
            return self.most
        on = [model.hosts[name] for name in hosts or () if name in model.hosts]
        if self.basis == "percent":
            return sum(self.most * host.totals.get(self.resource, 0) // 100_000 for host in on)
        return sum(-(-self.most * host.slots // MILLI) * MILLI for host in on)

    def code(self, tasks: int) -> str:
        """
        Return the reason of a job that it keeps from starting: one of a single task, or a parallel
        one.
        """
        return self.codes[tasks > 1]

    def owner_of(self, model: Model, job: Job) -> str | None:
        """
        Return whose budget a job is charged to, None when it isn't bound.
        """
        user, project = job.ask.user, project_of(model, job)
        if self.users is not None and not {user, *groups_of(model, user)} & set(self.users):
            return None
        if self.queues is not None and job.queue not in self.queues:
            return None
        if self.projects is not None and project not in self.projects:
            return None
        if self.profiles is not None and job.ask.profile not in self.profiles:
            return None
        if self.under and not f"{project}/".startswith(f"{self.under}/"):
            return None
        if self.group and self.group not in groups_of_job(model, job):
            return None
        parts = (
            user * self.each_user,
            self.group * self.each_group,
            job.queue * self.each_queue,
            project * self.each_project,
            job.ask.profile * self.each_profile,
        )
        return "/".join(filter(None, parts))


def groups_of(model: Model, user: str) -> list[str]:
    """
    Return the groups that a user is in, through other groups too, the nearest first.
    """
    found: list[str] = []
    todo = [user]
    while todo:
        member = todo.pop(0)
        more = [name for name, group in model.groups.items() if member in group.members]
        new = [name for name in more if name not in found]
        found, todo = found + new, todo + new
    return found


def groups_of_job(model: Model, job: Job) -> list[str]:
    """
    Return the group that a job names, else those of its user.
    """
    return [job.ask.group] if job.ask.group else groups_of(model, job.ask.user)


def project_of(model: Model, job: Job) -> str:
    """
    Return a job's project: its own, else its queue's, else its group's; "" for none.
    """
    named = [job.ask.project, model.queues[job.queue].project]
    known = [model.groups[name] for name in groups_of_job(model, job) if name in model.groups]
    return next(filter(None, [*named, *(group.project for group in known)]), "")


def right_lost(model: Model, job: Job) -> Reason | None:
    """
    Return why a job may not be in its queue or its project, None when it may.
    """
    user, queue = job.ask.user, model.queues[job.queue]
    names = {user, *groups_of(model, user)}
    if queue.users is not None and not names & set(queue.users):
        return ("QUE_NO_RIGHT", "", queue.name, "")
    if not model.projects:
        return None
    path = project_of(model, job)
    project = model.projects.get(path)
    if project is None or not names & {*project.users, *project.groups}:
        return ("PROJECT_NO_RIGHT", "", path, "")
    return None if project.is_open else ("PROJECT_CLOSED", "", path, "")


def bounds_of(model: Model) -> list[Bound]:
    """
    Return everything that bounds jobs together.
    """
    found = []
    for name, limit in model.limits.items():
        for only in limit.groups or ("",):
            bound = Bound(name, limit.resource, limit.milli)
            bound.users, bound.queues, bound.hosts = limit.users, limit.queues, limit.hosts
            bound.projects, bound.group = limit.projects, only
            bound.each_user, bound.each_queue = limit.each_user, limit.each_queue
            bound.each_group, bound.each_project = True, limit.each_project
            bound.each_host, bound.spares_hunters = limit.each_host, limit.resource == "jobs"
            bound.basis = limit.basis
            bound.profiles, bound.each_profile = limit.profiles, limit.each_profile
            found.append(bound)
    for queue in model.queues.values():
        found += _bounds_of_queue(queue, tuple(model.hosts))
    for user, slots in model.user_slots.items():
        codes = ("USER_JOB_LIMIT", "USER_PJOB_LIMIT")
        bound = Bound(f"user {user}", "slots", slots * MILLI, codes, (user,), rank=1)
        bound.counts_stopped = False
        found.append(bound)
    for name, group in model.groups.items():
        found += _bounds_of_group(name, group)
    for path, project in model.projects.items():
        for resource, milli in project.quotas.items():
            found.append(Bound(f"project {path}", resource, milli, under=path))
    for host in model.hosts.values():
        if host.user_slots is not None:
            codes, most = ("HOST_USR_JLIMIT", "HOST_USR_JLIMIT"), host.user_slots * MILLI
            title = f"host {host.name} by user"
            found.append(Bound(title, "slots", most, codes, None, None, (host.name,), True))
    return found


def _bounds_of_group(name: str, group: Group) -> list[Bound]:
    """
    Return what a group bounds: the slots of its members together and of each, and their jobs.
    """
    title, found = f"group {name}", []
    if group.slots is not None:
        codes, most = ("UGRP_JOB_LIMIT", "UGRP_PJOB_LIMIT"), group.slots * MILLI
        found.append(Bound(title, "slots", most, codes, (name,), rank=1))
    if group.user_slots is not None:
        codes, most = ("USER_JOB_LIMIT", "USER_PJOB_LIMIT"), group.user_slots * MILLI
        bound = Bound(f"{title} by user", "slots", most, codes, (name,), rank=1)
        bound.each_user = True
        found.append(bound)
    if group.jobs is not None:
        found.append(Bound(title, "jobs", group.jobs * MILLI, users=(name,)))
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
    if queue.processor_slots_milli is not None:
        codes, most = ("QUE_PROC_JLIMIT", "QUE_PROC_JLIMIT"), queue.processor_slots_milli
        bound = Bound(f"{title} by processor", "slots", most, codes, None, own, hosts)
        bound.each_host, bound.basis = True, "per_processor"
        found.append(bound)
    if queue.jobs is not None:
        found.append(Bound(title, "jobs", queue.jobs * MILLI, queues=own))
    if queue.user_jobs is not None:
        bound = Bound(f"{title} by user", "jobs", queue.user_jobs * MILLI, queues=own)
        bound.each_user = True
        found.append(bound)
    if queue.host_jobs is not None:
        bound = Bound(f"{title} by host", "jobs", queue.host_jobs * MILLI, queues=own)
        bound.hosts, bound.each_host = hosts, True
        found.append(bound)
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


def tasks_of(ask: Ask) -> int:
    """
    Return the fewest tasks of any alternative.
    """
    return min(sum(part.tasks_min for part in each.parts) for each in ask.alternatives())


def least_of(branches: list[Branch], resource: str) -> int:
    """
    Return the least of a thing that any of some alternatives needs.
    """
    if resource == "jobs":
        return MILLI
    return min(sum(_least_of(part, resource) for part in each.parts) for each in branches)


def _least_of(part: Part, resource: str) -> int:
    if resource in ("slots", "tasks"):
        return part.tasks_min * MILLI
    need = part.needs.get(resource)
    return 0 if need is None else need.of(part.tasks_min, 1)
