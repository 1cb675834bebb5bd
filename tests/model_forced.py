"""
Start jobs on hosts that an operator named, past all policy: a part of the obvious slow scheduler,
``model.py``.
"""

from __future__ import annotations

from tests.model import Ask, Job, Model, Reason
from tests.model_place import Sight, granted


def may_not_be_wished(model: Model, job: Job, wish: dict[str, int]) -> bool:
    """
    Say whether a wish is refused: nobody on such a host would hear of it, or so many tasks are
    none that the job can have.
    """
    hosts = [model.hosts[name] for name in wish]
    if any(host.is_gone or host.lost_us is not None for host in hosts):
        return True
    return not is_in_range(model.wanted(job), sum(wish.values()))


def is_in_range(ask: Ask, tasks: int) -> bool:
    """
    Say whether a job can have so many tasks.
    """
    return ask.tasks_min <= tasks <= ask.tasks_max


def end_wish(model: Model, job: Job) -> None:
    """
    Forget a wish that so many tasks as it names contradict by now.
    """
    if not is_in_range(model.wanted(job), sum(job.wish.values())):
        job.wish = {}


def start_wished(model: Model) -> None:
    """
    Start pending jobs where operators want them, if the facts allow: others wait for these hosts.
    """
    for job in model.jobs.values():
        if job.state != "PEND" or not job.wish:
            continue
        # What is held for others is there: to keep it from others is policy.
        reasons = _missing(model, job, Sight(model, job, sees_holds=False))
        if reasons:
            job.reasons = frozenset(reasons)
            job.is_never = bool(_missing(model, job, Sight(model, job, is_empty=True)))
        else:
            job.is_forced = True
            model.start(job, granted(model.wanted(job).needs, model, job.wish))


def _missing(model: Model, job: Job, sight: Sight) -> set[Reason]:
    """
    Return the facts that keep a job from its hosts: who can't have it there at all, else what all
    hosts share, else what each of them lacks.
    """
    needs, found = model.wanted(job).needs, set[Reason]()
    got = granted(needs, model, job.wish)
    if not sight.is_empty:
        found = {(why, "", "", name) for name in job.wish if (why := _barred(model, name))}
    if found:
        return found
    # An exclusive job matches no host where others are, which is told with what is short.
    alone = [name for name in job.wish if sight.is_empty or not _has_company(model, job, name)]
    found = {("HOST_NONEXCLUSIVE", "", "", name) for name in job.wish if name not in alone}
    short = {name for name, milli in got.shared.items() if milli > sight.shared(name)}
    if short & set(needs):
        return found | {("RES_SHORT", name, "", "") for name in short & set(needs)}
    for name in alone:
        for resource, need in needs.items():
            is_own = resource not in model.shared
            if is_own and need.of(job.wish[name], 1) > sight.amount(model.hosts[name], resource):
                found.add(("HOST_JOB_RUSAGE", resource, "", name))
    # Each of some hosts has enough by itself, and not all of them together.
    pooled = {resource for resource in needs if short & set(model.pools.get(resource, ()))}
    return found or {("RES_SHORT", resource, "", "") for resource in pooled}


def _barred(model: Model, name: str) -> str:
    """
    Return why a host can't have any job more, "" when it can.
    """
    host = model.hosts[name]
    if host.is_gone:
        return "LOAD_UNAVAIL"
    if host.lost_us is not None:
        return "SBD_UNREACH"
    on = [job for job in model.live() if job.got and name in job.got.tasks]
    return "HOST_EXCLUSIVE" if any(job.ask.is_exclusive for job in on) else ""


def _has_company(model: Model, job: Job, name: str) -> bool:
    on = [other for other in model.live() if other.got and name in other.got.tasks]
    return job.ask.is_exclusive and bool(on)
