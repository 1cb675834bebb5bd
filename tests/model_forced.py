"""
Start jobs on hosts that an operator named, past all policy: a part of the obvious slow scheduler,
``model.py``.
"""

from __future__ import annotations

from tests.model import Ask, Branch, Job, Model, Need, Reason
from tests.model_place import Sight, granted, open_branches


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
    Say whether a job can have so many tasks, in any of its alternatives.
    """
    return any(is_for(branch, tasks) for branch in ask.alternatives())


def is_for(branch: Branch, tasks: int) -> bool:
    """
    Say whether an alternative is for so many tasks.
    """
    least = sum(part.tasks_min for part in branch.parts)
    return least <= tasks <= sum(part.tasks_max for part in branch.parts)


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
        every = model.wanted(job).alternatives()
        opened = [branch for branch in every if branch in open_branches(model, job)]
        # What is held for others is there: to keep it from others is policy.
        needs, reasons = _fitting(model, job, opened, Sight(model, job, sees_holds=False))
        barred = {(why, "", "", name) for name in job.wish if (why := _barred(model, name))}
        if needs is not None and not barred:
            job.is_forced = True
            model.start(job, granted(needs, model, job.wish))
            continue
        if not reasons:
            reasons = {(f"ALTERNATIVE_WAITS@{_first_for(job, every)}.0", "", "", "")}
        job.reasons = frozenset(barred or reasons)
        job.is_never = _fitting(model, job, every, Sight(model, job, is_empty=True))[0] is None


def _first_for(job: Job, every: list[Branch]) -> int:
    tasks = sum(job.wish.values())
    return next(number for number, each in enumerate(every, 1) if is_for(each, tasks))


def _fitting(
    model: Model, job: Job, branches: list[Branch], sight: Sight
) -> tuple[dict[str, Need] | None, set[Reason]]:
    """
    Return what the first alternative needs that is for so many tasks and can be had; or None, and
    what each of them lacks.
    """
    every, found = model.wanted(job).alternatives(), set[Reason]()
    for number, branch in enumerate(branches, 1):
        if len(every) > 1 and not is_for(branch, sum(job.wish.values())):
            continue
        needs = branch.parts[0].needs
        missing = _missing(model, job, needs, sight)
        if not missing:
            return needs, set()
        mark = f"@{number}.0" if len(branches) > 1 else ""
        found |= {(code + mark, *rest) for code, *rest in missing}  # type: ignore[misc]
    return None, found


def _missing(
    model: Model, job: Job, needs: dict[str, Need], sight: Sight
) -> set[Reason]:
    """
    Return the facts that keep a job from its hosts: what all hosts share, else what each of them
    lacks.
    """
    got = granted(needs, model, job.wish)
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
