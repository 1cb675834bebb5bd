"""
Which load keeps jobs from starting, stops them, and lets them go on: a part of the obvious slow
scheduler, ``model.py``.
"""

from __future__ import annotations

from tests.model import Host, Job, Model, Queue, Threshold

CEILINGS = ("r1m", "pg")
"""Of these less is better; of anything else more."""


def is_beyond(index: str, load: int, bound: int | None) -> bool:
    """
    Say whether a load is beyond a bound; the bound itself isn't.
    """
    if bound is None:
        return False
    return load > bound if index in CEILINGS else load < bound


def thresholds_of(queue: Queue, host: Host) -> list[Threshold]:
    """
    Return what bounds the load of a host for the jobs of a queue.
    """
    return [*queue.thresholds, *sorted(host.thresholds, key=lambda each: each.index)]


def unknown_of(queue: Queue, host: Host) -> str:
    """
    Return a load that is bounded and that a host hasn't reported, "" for none.
    """
    for each in thresholds_of(queue, host):
        is_known = each.index in host.load or each.index in host.totals
        if not is_known:
            return each.index
    return ""


def beyond_of(queue: Queue, host: Host, free_milli: int | None, *, is_empty: bool) -> list[str]:
    """
    Return the loads of a host that are too much for jobs of a queue to start there. Of memory
    counts what reservations leave; any other can fall, and is none of an empty cluster.
    """
    found = []
    for each in thresholds_of(queue, host):
        is_free = each.index == "mem" and free_milli is not None
        load = free_milli if is_free else host.load.get(each.index)
        if load is None or (is_empty and not is_free):
            continue
        if is_beyond(each.index, load, each.sched) or is_beyond(each.index, load, each.stop):
            found.append(each.index)
    return found


def holds(condition: tuple[str, int], host: Host) -> bool:
    """
    Say whether a condition holds on a host: that a load is above an amount.
    """
    return host.load.get(condition[0], 0) > condition[1]


def is_stopped_by(queue: Queue, host: Host) -> bool:
    """
    Say whether the load of a host is too much for the jobs of a queue that run there.
    """
    if queue.stop_when is not None and holds(queue.stop_when, host):
        return True
    return any(
        each.index in host.load and is_beyond(each.index, host.load[each.index], each.stop)
        for each in thresholds_of(queue, host)
    )


def may_go_on(model: Model, job: Job) -> bool:
    """
    Say whether the load of all its hosts lets a stopped job go on.
    """
    assert job.got is not None, job
    queue = model.queues[job.queue]
    return all(_lets_go_on(queue, model.hosts[name]) for name in job.got.tasks)


def _lets_go_on(queue: Queue, host: Host) -> bool:
    """
    Say whether a job may go on here: not where it would be stopped at once, and where its queue's
    condition holds; without one where no load is beyond a threshold.
    """
    if is_stopped_by(queue, host):
        return False
    if queue.resume_when is not None:
        return holds(queue.resume_when, host)
    return not any(
        each.index in host.load and is_beyond(each.index, host.load[each.index], each.sched)
        for each in thresholds_of(queue, host)
    )


def stop_by_load(model: Model) -> None:
    """
    Stop one job for each report of a host under too much load: of the lowest queue the one that was
    started last. A host that it was put back from before it isn't put back from again.
    """
    for host in model.hosts.values():
        running = [
            job
            for job in model.live()
            if job.state == "RUN" and not job.order and job.got and host.name in job.got.tasks
            and is_stopped_by(model.queues[job.queue], host)
        ]  # fmt: skip
        if host.load_us <= host.answered_us or not running:
            continue
        job = min(
            running,
            key=lambda each: (model.queues[each.queue].priority, -each.start_us, -each.number),
        )
        for name in job.got.tasks if job.got else ():
            model.hosts[name].answered_us = model.now_us
        way, hosts = model.queues[job.queue].on_load, list(job.got.tasks) if job.got else []
        if way == "requeue" and set(hosts) & set(job.eased):
            way = "suspend"
        if way == "suspend":
            model.decide("suspend", job.name, "")
            job.order, job.by_load = "suspend", True
        else:
            model.order_kill(job, "TERM_LOAD")
            if way == "requeue":
                job.back_why, job.eased = "load", [*job.eased, *hosts]
