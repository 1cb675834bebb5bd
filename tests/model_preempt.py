"""
Stop running jobs for a waiting one, and let them go on: a part of the obvious slow scheduler,
``model.py``.
"""

from __future__ import annotations

from tests.model import Grant, Host, Job, Model
from tests.model_bounds import Bound, bounds_of, taken_of
from tests.model_load import may_go_on
from tests.model_place import (
    Sight,
    held_amount,
    held_shared,
    other_keepers,
    place,
    preys_of,
    victims_of,
)

Rank = tuple[int, ...]


def stop_for(model: Model, job: Job) -> None:
    """
    Stop the fewest jobs that let this one start, and hold for it what the trial gave; nobody, when
    that doesn't help.
    """
    found = _search(model, job)
    if found is None:
        job.holds = None
        return
    victims, got = found
    if victims or job.holds is None:
        job.holds = got
    for victim in victims:
        way = model.queues[victim.queue].on_preempt
        if way == "suspend":
            model.decide("suspend", victim.name, job.name)
            victim.order = "suspend"
        else:
            model.order_kill(victim, "TERM_PREEMPT")
            victim.back_why = "preempted" if way == "requeue" else victim.back_why
        victim.stopped_for = job.number
        victim.times_stopped += 1


def _search(model: Model, job: Job) -> tuple[list[Job], Grant] | None:
    """
    Return whom to stop and what the job then gets; nobody, when those are enough that are about to.
    """
    preys = preys_of(model, job.queue)
    if not preys or model.now_us < job.queue_us + model.rules.delay_us:
        return None
    if other_keepers(model, job):
        return None
    coming = [each for each in victims_of(model, job) if not each.aside]
    if coming:
        got = _trial(model, job, [])
        if got is not None:
            return [], got
    ranked = [each for each in model.live() if each.queue in preys and _may_stop(model, each, job)]
    ranked.sort(key=lambda each: _rank(model, each, job))
    if _trial(model, job, ranked) is None:
        return None
    best: tuple[tuple[int, list[Rank], int], tuple[list[Job], Grant]] | None = None
    for place_, host in enumerate(model.hosts.values()):
        on_host = [each for each in ranked if each.got and host.name in each.got.tasks]
        found = _fewest(model, job, on_host, host)
        if found is None:
            continue
        # As many victims on two hosts: the kind of victim decides, then the order of hosts.
        kinds = sorted((_kind(model, each, job) for each in found[0]), reverse=True)
        key = (len(found[0]), kinds, place_)
        if best is None or key < best[0]:
            best = (key, found)
    # What bounds the job may be in use on any host.
    is_bound = any(each.owner_of(model, job) is not None for each in bounds_of(model))
    is_serial = all(
        sum(part.tasks_max for part in each.parts) == 1 for each in model.wanted(job).alternatives()
    )
    if best is not None and is_serial and not is_bound:
        return best[1]
    spread = _fewest(model, job, ranked, None)
    if best is None or (spread is not None and len(spread[0]) < len(best[1][0])):
        return spread
    return best[1]


def _may_stop(model: Model, other: Job, job: Job) -> bool:
    if other.state != "RUN" or other.order or other.ask.is_exclusive or other.is_forced:
        return False
    if other.is_unwanted or other.stop_wanted or other.back_why:
        return False
    return job.number not in other.spared and not _is_protected(model, other)


def _is_protected(model: Model, other: Job) -> bool:
    rules, limit, run_us = model.rules, model.run_limit_of(other), model.has_run_us(other)
    if rules.times_max is not None and other.times_stopped >= rules.times_max:
        return True
    if model.now_us < other.since_us + rules.no_interval_us:
        return True
    if limit is None:
        return False
    long_us = [rules.no_run_us, limit * rules.no_run_percent // 100]
    near_us = [rules.no_finish_us, limit * rules.no_finish_percent // 100]
    has_run_long = any(run_us >= bound_us > 0 for bound_us in long_us)
    return has_run_long or any(limit - run_us <= bound_us > 0 for bound_us in near_us)


def _kind(model: Model, other: Job, job: Job) -> Rank:
    """
    Return the most preferred queue first, then the lowest, then the lowest priority; or how long a
    job has run.
    """
    queue = model.queues[job.queue]
    own = model.has_run_us(other) if queue.by_run_time else model.priority_of(other)
    return (-queue.wishes.get(other.queue, 0), model.queues[other.queue].priority, own)


def _rank(model: Model, other: Job, job: Job) -> Rank:
    """
    Rank by kind, then the latest start, the highest number.
    """
    return (*_kind(model, other, job), -other.start_us, -other.number)


def _trial(
    model: Model, job: Job, victims: list[Job], host: Host | None = None
) -> Grant | None:
    """
    Place a job as if victims, and those that are about to stop for it, had stopped.
    """
    coming = [each for each in victims_of(model, job) if not each.aside]
    ended = [each for each in coming if each.order == "kill"]
    stopped = [each for each in coming if each.order != "kill"]
    for victim in victims:
        is_stopped = model.queues[victim.queue].on_preempt == "suspend"
        (stopped if is_stopped else ended).append(victim)
    only = None if host is None else host.name
    return place(model, job, Sight(model, job, stopped=stopped, ended=ended, only=only))[0]


def _fewest(
    model: Model, job: Job, ranked: list[Job], host: Host | None
) -> tuple[list[Job], Grant] | None:
    """
    Add victims in order of their rank until the job can be placed, then drop, last added first,
    each that isn't needed.
    """
    chosen: list[Job] = []
    got = None
    for victim in ranked:
        chosen = [*chosen, victim]
        got = _trial(model, job, chosen, host)
        if got is not None:
            break
    if got is None:
        return None
    for victim in reversed(chosen):
        rest = [each for each in chosen if each is not victim]
        without = _trial(model, job, rest, host) if rest else None
        if without is not None:
            chosen, got = rest, without
    return chosen, got


# -------------------------------------------------------------------------------------- going on


def let_go_on(model: Model) -> None:
    """
    Let victims go on for which nothing is held any more: higher queues first, then earlier starts;
    none before another one that waits for the same hosts.
    """
    waiting = [
        job
        for job in model.live()
        if job.aside and job.stopped_for and model.jobs[job.stopped_for].holds is None
        and job.state == "SSUSP" and not job.order
        and not job.stop_wanted and not job.is_unwanted and model.is_run_open(job.queue)
    ]  # fmt: skip
    blocked: set[str] = set()
    for job in sorted(waiting, key=lambda each: _resume_key(model, each)):
        assert job.got is not None, job
        is_free = blocked.isdisjoint(job.got.tasks) and _may_be_charged(model, job)
        is_free = is_free and may_go_on(model, job)
        if is_free and fits_again(model, job):
            model.resume(job)
        else:
            blocked.update(job.got.tasks)


def _may_be_charged(model: Model, job: Job) -> bool:
    """
    Say whether what a victim isn't charged for while it is stopped is free again, and held for
    nobody.
    """
    assert job.got is not None, job
    sight = Sight(model, job)
    for bound in bounds_of(model):
        for host in job.got.tasks if bound.each_host else [None]:
            left = sight.left(bound, host)
            hosts = bound.hosts if host is None else (host,)
            is_more = left is not None and taken_of(job.got, bound.resource, hosts) > left
            if is_more and not bound.counts_stopped:
                return False
            if bound.spares_hunters and _is_overdrawn(model, bound, job, hosts):
                return False
    return True


def _is_overdrawn(
    model: Model, bound: Bound, job: Job, hosts: tuple[str, ...] | None
) -> bool:
    """
    Say whether more is in use than a bound allows of what a stopped job has too.
    """
    owner = bound.owner_of(model, job)
    if owner is None or job.got is None or not taken_of(job.got, bound.resource, hosts):
        return False
    used = sum(
        taken_of(other.got, bound.resource, hosts)
        for other in model.live()
        if other.got is not None and bound.owner_of(model, other) == owner
    )
    return used > bound.most_on(model, hosts)


def _resume_key(model: Model, job: Job) -> Rank:
    return (-model.queues[job.queue].priority, job.start_us, job.number)


def fits_again(model: Model, job: Job) -> bool:
    """
    Say whether what a stopped job gave back is free, and held for nobody.
    """
    assert job.got is not None, job
    others = [other for other in model.live() if other is not job and other.got is not None]
    holders = [each for each in model.jobs.values() if each.holds is not None]
    for name, tasks in job.got.tasks.items():
        host = model.hosts[name]
        used = sum(_slots_kept(other, name) for other in others)
        used += sum(_slots_held(model, each, name) for each in holders)
        if job.stopped_for and host.slots - used < tasks:
            return False
        for resource, reserved in job.got.amounts[name].items():
            if model.is_released(resource):
                actual = job.actual.get(name, {}).get(resource, 0)
                if _amount_left(model, host, resource, holders) < max(reserved, actual):
                    return False
    return all(
        _shared_left(model, resource, holders) >= milli
        for resource, milli in job.got.shared.items()
        if model.is_released(resource)
    )


def _slots_kept(job: Job, host: str) -> int:
    is_open = job.aside and job.stopped_for
    return 0 if is_open or job.got is None else job.got.tasks.get(host, 0)


def _slots_held(model: Model, holder: Job, host: str) -> int:
    """
    Return what is held for a job on a host: all that its victims freed there, and what it needs
    beyond what they have.
    """
    assert holder.holds is not None, holder
    victims = victims_of(model, holder)
    freed = sum(each.got.tasks.get(host, 0) for each in victims if each.got and each.aside)
    covered = sum(each.got.tasks.get(host, 0) for each in victims if each.got)
    return freed + max(0, holder.holds.tasks.get(host, 0) - covered)


def _amount_left(model: Model, host: Host, resource: str, holders: list[Job]) -> int:
    charged = 0
    for job in model.live():
        reserved = 0 if job.got is None else job.got.amounts.get(host.name, {}).get(resource, 0)
        if reserved and not job.aside:
            charged += max(reserved, job.actual.get(host.name, {}).get(resource, 0))
    held = sum(held_amount(model, each, host.name, resource) for each in holders)
    return host.totals.get(resource, 0) - charged - held


def _shared_left(model: Model, resource: str, holders: list[Job]) -> int:
    charged = sum(
        job.got.shared.get(resource, 0) for job in model.live() if job.got and not job.aside
    )
    held = sum(held_shared(model, each, resource) for each in holders)
    return model.shared[resource].total - charged - held
