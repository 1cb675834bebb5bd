"""
Cases that every allocator must pass; a third party runs them on its own.

``problems_of(make)`` returns a line for each rule that is broken, none when all hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final

import numpy as np

from domain.events.jobs import JobDispatched
from projections.scheduling.capacity import Capacity
from projections.scheduling.placement.plugins import Allocator, Plan, View
from projections.scheduling.plugins import Plugins
from projections.scheduling.request import Part
from tools.conformance.plugin_trial import STEPS, PluginTrial

PLANS_MAX: Final = 200
SEEDS: Final = range(4)
FITS: Final = ((), (0,), (4,), (1, 7), (3, 3, 3), (5, 0, 2, 1), (1,) * 9, (2, 6, 4, 4))
TASKS: Final = (1, 2, 3, 5, 8, 12)

Make = Callable[[], Allocator]


def problems_of(make: Make) -> list[str]:
    """
    Return what is wrong with an allocator.

    Args:
        make: Makes one; it is made afresh for each case.
    """
    cases = (
        _plans_repeat,
        _plans_partition_the_tasks,
        _plans_change_nothing,
        _plans_end_when_they_are_closed,
        _jobs_fit_their_hosts,
        _short_cuts_decide_as_plans,
    )
    return [f"{case.__name__[1:]}: {line}" for case in cases for line in case(make)]


def _views() -> Iterator[tuple[int, View]]:
    for fits in FITS:
        for tasks in TASKS:
            column = np.array(fits, np.int64)
            yield tasks, View(Part(tasks, tasks), Capacity(), column, np.arange(len(fits)))


def _plans(allocator: Allocator, tasks: int, view: View) -> list[Plan]:
    if not allocator.accepts(tasks):
        return []
    found = allocator.plans(tasks, view)
    return [] if found is None else list(islice(found, PLANS_MAX))


def _plans_repeat(make: Make) -> Iterator[str]:
    """
    Expect equal plans for equal requests on equal hosts, whatever was asked before.
    """
    kept = make()
    for tasks, view in _views():
        if _plans(kept, tasks, view) != _plans(make(), tasks, view):
            yield f"{tasks} tasks on {view.fits.tolist()}"


def _plans_partition_the_tasks(make: Make) -> Iterator[str]:
    """
    Expect all tasks in the buckets of a plan; empty plans are skipped.
    """
    for tasks, view in _views():
        for plan in _plans(make(), tasks, view):
            if not plan.is_empty and sum(plan.buckets()) != tasks:
                yield f"{tasks} tasks as {plan.groups}"


def _plans_change_nothing(make: Make) -> Iterator[str]:
    """
    Expect that what hosts have is only looked at.
    """
    for tasks, view in _views():
        before = view.fits.tolist()
        allocator: Any = make()
        _plans(allocator, tasks, view)
        if allocator.accepts(tasks) and hasattr(allocator, "find"):
            allocator.find(tasks, view, int(view.fits.sum()))
        if view.fits.tolist() != before:
            yield f"{tasks} tasks on {before}"


def _plans_end_when_they_are_closed(make: Make) -> Iterator[str]:
    """
    Expect that plans may be given up between any two steps.
    """
    for tasks, view in _views():
        allocator = make()
        for steps in range(4):
            plans = iter(allocator.plans(tasks, view) or ()) if allocator.accepts(tasks) else None
            close = getattr(plans, "close", None)
            if plans is None or close is None:
                continue
            list(islice(plans, steps))
            try:
                close()
            except Exception as error:  # noqa: BLE001 - it is what is looked for
                yield f"closed after {steps} plans: {type(error).__name__}: {error}"


def _trial(make: Make, seed: int, *, is_plain: bool = False) -> PluginTrial:
    allocator = make()
    plugins = Plugins()
    plugins.allocators[allocator.name] = allocator
    return PluginTrial(plugins, allocators=(allocator.name,), seed=seed, is_plain=is_plain)


def _jobs_fit_their_hosts(make: Make) -> Iterator[str]:
    """
    Expect that nothing is given twice, and that a job gets as many tasks as it may have.
    """
    for seed in SEEDS:
        trial = _trial(make, seed)
        for _ in range(STEPS):
            trial.step()
            for stamped in trial.session():
                if isinstance(stamped.event, JobDispatched):
                    spec = trial.core.state.stored.jobs[stamped.stream].spec
                    tasks = stamped.event.allocation.tasks()
                    if not spec.tasks_min <= tasks <= spec.tasks_max:
                        yield f"seed {seed}: {tasks} tasks for {spec.tasks_min},{spec.tasks_max}"
            capacity = trial.core.state.capacity
            if (capacity.used > capacity.slots).any():
                yield f"seed {seed}: more slots taken than there are"
                break


def _short_cuts_decide_as_plans(make: Make) -> Iterator[str]:
    """
    Expect ``find`` to give what the plans would have given, and ``failing`` the same reasons.
    """
    for seed in SEEDS:
        fast, plain = _trial(make, seed), _trial(make, seed, is_plain=True)
        for step in range(STEPS):
            for trial in (fast, plain):
                trial.step()
                trial.session()
            if fast.log != plain.log:
                yield f"seed {seed}, step {step}: decisions differ"
                break
