"""
What is promised to a waiting job, who overtakes it, and whose promises keep it from starting.
"""

from __future__ import annotations

from collections.abc import Iterator

from domain.units import show_duration, show_time
from projections.scheduling.promises import may_borrow
from projections.scheduling.records import JobRecord
from projections.scheduling.state import State
from projections.scheduling.status import blocker_of

Fields = dict[str, object]


def promise_fields(state: State, job: JobRecord) -> Fields:
    """
    Return the fields about promises of a job that waits.
    """
    return {
        "promise": _promise(state, job),
        "overtaken_by": [_overtaker(state, other) for other in _overtakers(state, job)],
        "beside": list(_beside(state, job)),
    }


def no_promise_fields() -> Fields:
    """
    Return the same of a job that doesn't wait.
    """
    return {"promise": None, "overtaken_by": [], "beside": []}


def _promise(state: State, job: JobRecord) -> Fields | None:
    promise = job.promise
    if promise is None:
        return None
    hosts = [
        {
            "host": state.hosts[number].name,
            "slots": run.slots,
            "amounts": [amount.model_dump() for amount in run.amounts],
        }
        for run in promise.runs
        for number in range(run.first, run.first + run.hosts)
    ]
    return {
        "policy": promise.policy,
        "start_us": promise.start_us,
        "is_held": promise.is_held,
        "until_us": promise.until_us,
        "slots": promise.slots(),
        "hosts": hosts,
    }


def _overtakers(state: State, job: JobRecord) -> Iterator[JobRecord]:
    for other in state.live.values():
        if other.ahead_of == job.job_id:
            yield other


def _overtaker(state: State, job: JobRecord) -> Fields:
    release = state.release_of.get(job.stream)
    return {
        "job_id": job.job_id,
        "user": job.spec.user,
        "queue": job.spec.queue,
        "tasks": 0 if job.allocation is None else job.allocation.tasks(),
        "expected_end_us": None if release is None else release[0],
    }


def _beside(state: State, job: JobRecord) -> Iterator[Fields]:
    """
    Yield the promises to others that a job must keep clear of, each with why it doesn't fit in.
    """
    blocker = blocker_of(state, job)
    others = [] if blocker is None else [blocker]
    others += [each for each in state.gatherers.values() if each is not blocker]
    for other in others:
        if other is job or other.promise is None:
            continue
        yield {
            "job_id": other.job_id,
            "start_us": other.promise.start_us,
            "is_held": other.promise.is_held,
            "words": _words(state, job, other),
        }


def _words(state: State, job: JobRecord, other: JobRecord) -> str:
    assert other.promise is not None, other.stream
    start_us, is_held = other.promise.start_us, other.promise.is_held
    if start_us is None:
        return f"nobody knows when job {other.job_id} starts: a job in its way has no run limit"
    start = f"job {other.job_id} starts by {show_time(start_us)}"
    if is_held and not state.queue_of(job).spec.is_backfill:
        return f"{start}, and queue {job.spec.queue} doesn't backfill"
    run_us = state.run_limit_us(job) if is_held else state.planned_run_us(job)
    if run_us is None:
        lacks = "no run limit" if is_held else "neither run limit nor estimate"
        return f"{start}, and this one has {lacks}"
    if is_held and may_borrow(state, job, other, state.stored.time_us):
        return f"{start}, and this one may use its hosts until then"
    end_us = state.stored.time_us + run_us
    if end_us > start_us:
        over = show_duration(end_us - start_us)
        return f"{start}, and this one would end {over} later"
    return f"{start}; this one would end in time, but doesn't fit in now"
