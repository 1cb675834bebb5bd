"""
Start jobs on hosts that an operator named (LSF's brun).

What is policy doesn't count: order, begin times and dependencies, queues that are inactive or shut,
limits and quotas, selects, closed and locked hosts, free slots. What is a fact does: the hosts are
reached, no exclusive job is on them, nor any job where an exclusive one is to start, and the
amounts and units that the job reserves are there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from domain.errors import InvariantBroken
from domain.jobs import HostChoice
from domain.reasons import PendReason, ReasonCode
from projections.scheduling.capacity import Column
from projections.scheduling.placement.failures import failed_outcome
from projections.scheduling.placement.ground import Ground
from projections.scheduling.placement.levels import waits_to_open
from projections.scheduling.placement.runner import Pending, Placed, PlacementRunner
from projections.scheduling.placement.shortages import identity_of, spans_of
from projections.scheduling.records import JobRecord
from projections.scheduling.request import Branch, Part, Request
from projections.scheduling.state import State
from projections.scheduling.trace_writing import Tracer

CHAIN: Final = ("fill",)
"""The hosts' tasks are given, so there is one way to fill them."""


def place_forced(
    state: State, runner: PlacementRunner, job: JobRecord, tracer: Tracer | None = None
) -> Placed | Pending:
    """
    Try to place a job where an operator wants it.
    """
    barred = tuple(_barred(state, list(_tasks_by_host(state, job))))
    if barred:
        if tracer is not None:
            tracer.unavailable(barred)
        # Whether it is for ever depends on what hosts there are.
        signature = (state.capacity.status, *((each.code, each.hosts) for each in barred))
        return Pending(signature, lambda: barred)
    ground = _ground(state, _tasks_by_host(state, job))
    ground.tracer = tracer
    request = _freed(state.request_of(job), job)
    try:
        outcome = runner.place_on(ground, request, CHAIN)
        is_one = len(job.forced_on) == len(state.request_of(job).branches) == 1
        if isinstance(outcome, Placed) or is_one:
            return outcome
        return _told_by_host(state, runner, job, request, outcome)
    except InvariantBroken:
        raise
    except Exception as failure:  # noqa: BLE001 - it is told to the job, and the others go on
        return failed_outcome(failure)


def _told_by_host(
    state: State, runner: PlacementRunner, job: JobRecord, request: Request, outcome: Pending
) -> Pending:
    """
    Return why a job can't start, each host named for what it lacks for the tasks that it is to
    have. The one plan that was tried in vain wanted all of them on one host, which is no reason.
    """
    several, found = len(request.branches) > 1, list[PendReason]()
    told = [each for each in outcome.reasons() if each.code is not ReasonCode.HOST_SLOTS]
    every, wanted = state.request_of(job).branches, sum(each.tasks for each in job.forced_on)
    for number, branch in enumerate(request.branches, 1):
        if len(every) > 1 and not _is_for(every[number - 1], wanted):
            continue
        own = [each for each in told if not several or each.alternative == number]
        is_whole = any(not each.hosts for each in own)
        if is_whole or len(branch.parts) > 1 or len(branch.parts[0].usages) > 1:
            found += own
            continue
        alone = replace(request, branches=(branch,), open_branches=1)
        for reason in _lacking(state, runner, job, alone):
            mark = {"alternative": number} if several else {}
            found.append(reason.model_copy(update=mark))
    for number, branch in enumerate(every[len(request.branches) :], len(request.branches) + 1):
        if not found and _is_for(branch, wanted):
            found.append(waits_to_open(branch, number))
    # Whether it is for ever depends on what hosts there are.
    return Pending((state.capacity.status, identity_of(found)), lambda: tuple(found))


def _lacking(
    state: State, runner: PlacementRunner, job: JobRecord, request: Request
) -> Iterator[PendReason]:
    """
    Yield why each host can't have its tasks of a request with one alternative of one part.
    """
    branch = request.branches[0]
    for number, tasks in _tasks_by_host(state, job).items():
        part = replace(branch.parts[0], tasks_min=tasks, tasks_max=tasks)
        own = replace(request, asked=(), branches=(replace(branch, parts=(part,)),))
        outcome = runner.place_on(_ground(state, {number: tasks}), own, CHAIN)
        if isinstance(outcome, Pending):
            yield from outcome.reasons()


def could_never_be(state: State, runner: PlacementRunner, job: JobRecord) -> bool:
    """
    Say whether a job couldn't start where an operator wants it, were these hosts reached and empty.

    Raises:
        Exception: Whatever an allocator raises.
    """
    request = state.request_of(job)
    request = replace(request, open_branches=len(request.branches))
    ground = _ground(state, _tasks_by_host(state, job), is_empty=True)
    return runner.never_on(ground, _freed(request, job), CHAIN)


def _tasks_by_host(state: State, job: JobRecord) -> dict[int, int]:
    return {state.worker(each.host).number: each.tasks for each in job.forced_on}


def _ground(state: State, tasks: dict[int, int], *, is_empty: bool = False) -> Ground:
    """
    Return some hosts, by their numbers, each with room for as many tasks as it is to have.
    """
    ground = Ground(state.capacity, is_empty=is_empty)
    ground.takes = np.zeros(state.capacity.hosts, np.bool_)
    ground.usable = np.zeros(state.capacity.hosts, np.int64)
    for number, count in tasks.items():
        ground.takes[number], ground.usable[number] = True, count
    return ground


def forced_fingerprint(state: State, job: JobRecord) -> str:
    """
    Return what the outcome depends on, in canonical words.
    """
    where = ",".join(each.text() for each in job.forced_on)
    # Of two jobs on one host only one may be told "never": no set is both's.
    word = "wanted" if job.tells_never else "forced"
    return f"{state.request_of(job).fingerprint} {word}={where}"


def _barred(state: State, numbers: list[int]) -> Iterator[PendReason]:
    """
    Yield why hosts can take no job at all, whoever says so.
    """
    causes = {
        ReasonCode.LOAD_UNAVAIL: [n for n in numbers if state.hosts[n].left],
        ReasonCode.SBD_UNREACH: [
            n for n in numbers if state.hosts[n].is_silent and not state.hosts[n].left
        ],
        ReasonCode.HOST_EXCLUSIVE: [n for n in numbers if state.capacity.exclusive[n]],
    }
    nothing: Column = np.zeros(state.capacity.hosts, np.int64)
    for code, hosts in causes.items():
        if hosts:
            found = np.array(sorted(hosts), np.int64)
            yield PendReason(code=code, hosts=spans_of(found, nothing))


def _freed(request: Request, job: JobRecord) -> Request:
    """
    Return a request for exactly as many tasks as the hosts named are to have, without all that an
    operator may pass over.
    """
    tasks = sum(each.tasks for each in job.forced_on)
    several = len(request.branches) > 1
    branches = tuple(
        _freed_branch(branch, tasks, has_others=several)
        for branch in request.branches[: request.open_branches]
    )
    wishes = range(len(job.forced_on), 0, -1)
    return replace(
        request,
        branches=branches,
        open_branches=len(branches),
        asked=tuple(
            HostChoice(host=each.host, preference=wish)
            for each, wish in zip(job.forced_on, wishes, strict=True)
        ),
        excluded_hosts=(),
        hosts_max=None,
        is_bare=False,
        is_slots=False,
        queue_hosts=None,
        budgets=(),
    )


def _freed_branch(branch: Branch, tasks: int, *, has_others: bool) -> Branch:
    parts = tuple(map(_freed_part, branch.parts))
    if has_others and not _is_for(branch, tasks):
        # The hosts named have no room for it.
        parts = (replace(parts[0], tasks_min=tasks + 1, tasks_max=tasks + 1), *parts[1:])
    elif len(parts) == 1:
        parts = (replace(parts[0], tasks_min=tasks, tasks_max=tasks),)
    return replace(branch, parts=parts, same=())


def _is_for(branch: Branch, tasks: int) -> bool:
    """
    Say whether an alternative is for so many tasks.
    """
    least = sum(part.tasks_min for part in branch.parts)
    return least <= tasks <= sum(part.tasks_max for part in branch.parts)


def _freed_part(part: Part) -> Part:
    return replace(
        part,
        usages=tuple(replace(usage, thresholds=()) for usage in part.usages),
        conditions=(),
        loads=(),
        span=None,
        order=(),
        same=(),
        budgets=(),
        bounds=(),
        stops=None,
    )
