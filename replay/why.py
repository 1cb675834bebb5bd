"""
A job's place among the jobs that wait, and who holds what meanwhile, from the state at a position.

The order is asked of the cluster's own picker, a fresh one that is told that every job it names
could be placed: so it is the order in which jobs are really taken, whatever plug-in decides it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import final

from domain.errors import InvariantBroken
from domain.job_states import JobState
from domain.resreq.render import render
from domain.units import MILLI
from projections.scheduling.budgets import PLENTY
from projections.scheduling.core import Core
from projections.scheduling.pickers.lists import picker_of, picking_of
from projections.scheduling.pickers.protocol import JobPicker
from projections.scheduling.readiness import note_windows
from projections.scheduling.records import JobRecord, QueueRecord
from projections.scheduling.state import State


@final
@dataclass(frozen=True, slots=True)
class Waiting:
    """
    Hold one job that is taken before another, with what decides that and what it asks for.
    """

    job_id: str
    user: str
    queue: str
    queue_priority: int
    job_priority: int
    queue_us: int
    tasks_min: int
    tasks_max: int
    resreq: str


@final
@dataclass(frozen=True, slots=True)
class Holder:
    """
    Hold one job that has hosts; ``expected_end_us`` is None when it named no run time.
    """

    job_id: str
    user: str
    queue: str
    state: str
    tasks: int
    hosts: tuple[str, ...]
    expected_end_us: int | None


@final
@dataclass(frozen=True, slots=True)
class Order:
    """
    Hold a job's place in the order.

    Args:
        picker: Who picks from the job's queue.
        waiting_count: How many jobs may be tried.
        place: From 1; None when the job isn't in the order: it doesn't pend, or its queue is
            inactive or outside its windows.
        ahead: The jobs before it, in order.
    """

    picker: str
    waiting_count: int
    place: int | None
    ahead: tuple[JobRecord, ...]


class _AllFits:
    """
    Be what a picker asks, as if nothing had been tried yet and everything could be placed.
    """

    def __init__(self, state: State) -> None:
        self._state = state

    def is_ready(self, job: JobRecord) -> bool:
        return self._state.is_ready(job)

    def queue_of(self, job: JobRecord) -> QueueRecord:
        return self._state.queue_of(job)

    def fingerprint_of(self, job: JobRecord) -> str:
        return job.spec.queue

    def knows_reasons(self, job: JobRecord) -> bool:  # noqa: ARG002 - as the protocol has it
        return False

    def changes(self) -> int:
        return 0

    def freed(self) -> int:
        return 0

    def let_go(self) -> int:
        return 0

    def epoch_of(self, fingerprint: str) -> int:  # noqa: ARG002 - as the protocol has it
        return 0

    def now_us(self) -> int:
        return self._state.stored.time_us

    def planned_run_us(self, job: JobRecord) -> int | None:
        return self._state.planned_run_us(job)

    def kept_for(self, wanted: object) -> None:  # noqa: ARG002 - the same
        return None

    def groups_of(self, user: str) -> Collection[str]:
        return self._state.groups_of(user)

    def live_jobs(self) -> Iterable[JobRecord]:
        return self._state.live_jobs()

    def promised_jobs(self) -> Iterable[JobRecord]:
        return self._state.promised_jobs()

    def recall(self, name: str) -> str | None:
        return self._state.recall(name)

    def remember(self, name: str, version: int, text: str) -> None:
        raise InvariantBroken("looking at the order changes nothing", f"{name} {version} {text}")

    def hosts_changed(self) -> int:
        return 0

    def least_slots(self, job: JobRecord) -> int:
        return self._state.least_slots(job)

    def runs_changed(self) -> int:
        return 0

    def forecast(self, job: JobRecord, beside: object = ()) -> None:  # noqa: ARG002 - the same
        return None

    def slots_ahead(self, job: JobRecord) -> None:  # noqa: ARG002 - as the protocol has it
        return None


def order_of(core: Core, job: JobRecord) -> Order:
    """
    Return the place of a job in the order in which pickers take jobs.

    Args:
        core: The state, its picker's name and the pickers; nothing in it is changed but what is
            derived from the time.
        job: Which job of it.
    """
    state = core.state
    note_windows(state, state.stored.time_us)
    ready = [one for one in state.stored.jobs.values() if state.is_ready(one)]
    picking = picking_of(state.stored, otherwise=state.settings().picker)
    name = state.queue_of(job).spec.picker or picking.cluster
    if not state.is_ready(job):
        return Order(name, len(ready), None, ())
    ahead: list[JobRecord] = []
    for one in _taken(picker_of(picking, core.plugins.pickers), state, ready):
        if one is job:
            return Order(name, len(ready), len(ahead) + 1, tuple(ahead))
        ahead.append(one)
    return Order(name, len(ready), None, ())


def _taken(picker: JobPicker, state: State, ready: list[JobRecord]) -> Iterator[JobRecord]:
    picker.init(_AllFits(state))
    for queue in state.stored.queues.values():
        picker.on_queue_update(queue)
    for job in ready:
        picker.on_job_push(job)
    picker.begin_session()
    for _ in ready:
        taken = picker.next_job()
        if taken is None:
            break
        yield taken
        picker.on_job_state_change(taken)
        picker.on_dispatch(taken)


def waiting(state: State, job: JobRecord) -> Waiting:
    """
    Return a waiting job with what decides its place and what it asks for.
    """
    queue, values = state.queue_of(job).spec, state.effective(job)
    wish, most = job.spec.user_priority, queue.user_priority_max
    return Waiting(
        job.job_id,
        job.spec.user,
        job.spec.queue,
        queue.priority,
        wish if most is None else min(wish, most),
        job.queue_us,
        values.tasks_min,
        values.tasks_max,
        render(values.requirement) if values.requirement else "",
    )


def holders(state: State) -> list[Holder]:
    """
    Return the jobs that have hosts, the one that is expected to end first at the front; those that
    nobody can say it of come last.
    """
    found = [_holder(state, job) for job in state.live.values() if job.allocation is not None]
    return sorted(
        found,
        key=lambda one: (one.expected_end_us is None, one.expected_end_us or 0, one.job_id),
    )


def _holder(state: State, job: JobRecord) -> Holder:
    assert job.allocation is not None
    return Holder(
        job.job_id,
        job.spec.user,
        job.spec.queue,
        job.state.value,
        job.allocation.tasks(),
        tuple(name for name, _ in state.host_names(job.allocation)),
        _expected_end_us(state, job),
    )


def _expected_end_us(state: State, job: JobRecord) -> int | None:
    """
    Return when a running job ends by its user's guess, else by its run limit; a suspended one has
    no such moment.
    """
    begun_us = job.dispatch_us if job.start_us is None else job.start_us
    length_us = job.spec.run_estimate_us or state.effective(job).run_limit_us
    if job.state is not JobState.RUN or begun_us is None or length_us is None:
        return None
    return begun_us + length_us + job.user_stopped_us + job.system_suspended_us


@final
@dataclass(frozen=True, slots=True)
class BudgetUse:
    """
    Hold a limit that keeps a job back: how much of it may be in use, how much is, how much the job
    asks for at least (None unless slots or jobs are counted).
    """

    limit: str
    resource: str
    owner: str
    used_milli: int
    most_milli: int
    asked_milli: int | None

    @property
    def missing_milli(self) -> int | None:
        """
        Return by how much the job asks for too much.
        """
        if self.asked_milli is None:
            return None
        return max(0, self.used_milli + self.asked_milli - self.most_milli)


def budgets_short(state: State, job: JobRecord, limits: Collection[str]) -> list[BudgetUse]:
    """
    Return the budgets that a job is charged to, of the limits with these names.

    Left out are those that each host has for itself: their amounts are in the reason, host by host.
    """
    used, found = state.limits.in_use(), []
    for budget in state.limits.budgets_of(job.spec):
        most = state.limits.headroom(budget, is_empty=True)
        if budget.rule.name in limits and isinstance(most, int) and most != PLENTY:
            asked = state.effective(job).tasks_min * MILLI if budget.rule.is_counted else None
            name, resource, owner = budget.key
            taken = sum(used.get(budget.key, ()))
            found.append(BudgetUse(name, resource, owner, taken, most, asked))
    return found
