"""
Cases that every job picker must pass; a third party runs them on its own.

``problems_of(make)`` returns a line for each rule that is broken, none when all hold. Each case is
tried with the picker as the cluster's, and as a queue's own beside one of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from domain.job_states import JobState
from projections.scheduling.core import Core
from projections.scheduling.pickers.protocol import JobPicker
from projections.scheduling.plugins import Plugins
from projections.scheduling.records import JobRecord
from tools.conformance.plugin_trial import STEPS, PluginTrial

SEEDS: Final = range(4)
RETURNED_MAX: Final = 10_000

Make = Callable[[], JobPicker]
Begin = Callable[[int], PluginTrial]


def problems_of(make: Make) -> list[str]:
    """
    Return what is wrong with a picker.

    Args:
        make: Makes one, as the cluster does; each core has its own.
    """
    cases = (
        _jobs_are_returned_once_a_session,
        _equal_events_give_equal_decisions,
        _empty_sessions_change_no_decision,
        _a_restore_changes_no_decision,
        _every_job_runs_at_last,
    )
    return [
        f"{case.__name__[1:]}: {where}{line}"
        for where, trials in (("", _as_the_clusters(make)), ("in a queue, ", _as_a_queues(make)))
        for case in cases
        for line in case(trials)
    ]


def _as_the_clusters(make: Make) -> Begin:
    def begin(seed: int) -> PluginTrial:
        plugins, name = _plugins_with(make)
        return PluginTrial(plugins, picker=name, seed=seed)

    return begin


def _as_a_queues(make: Make) -> Begin:
    """
    Give one queue the picker, and the others one of ours under another name.
    """

    def begin(seed: int) -> PluginTrial:
        plugins, name = _plugins_with(make)
        ours = next(each for each in Plugins().pickers if each != name)
        return PluginTrial(plugins, picker=ours, queue_picker=name, seed=seed)

    return begin


def _plugins_with(make: Make) -> tuple[Plugins, str]:
    plugins = Plugins()
    name = make().name
    plugins.pickers[name] = make
    return plugins, name


def _jobs_are_returned_once_a_session(begin: Begin) -> Iterator[str]:
    """
    Expect a session to end: each job at most once, and only jobs that may be tried.
    """
    for seed in SEEDS:
        trial = begin(seed)
        for step in range(STEPS):
            trial.step()
            returned = _returned(Core.restore(trial.core.snapshot(), trial.plugins))
            ids = [job.job_id for job in returned]
            if len(set(ids)) < len(ids):
                yield f"seed {seed}, step {step}: a job was returned twice"
            if any(job.state is not JobState.PEND for job in returned):
                yield f"seed {seed}, step {step}: a job was returned that doesn't pend"
            trial.session()


def _returned(core: Core) -> list[JobRecord]:
    """
    Return the jobs of a session in which nothing can be placed.
    """
    picker = core.state.picker
    picker.begin_session()
    found: list[JobRecord] = []
    while len(found) < RETURNED_MAX and (job := picker.next_job()) is not None:
        found.append(job)
        picker.on_pend(job)
    picker.end_session()
    return found


def _equal_events_give_equal_decisions(begin: Begin) -> Iterator[str]:
    """
    Expect a total order of jobs.
    """
    for seed in SEEDS:
        one, other = begin(seed), begin(seed)
        for _ in range(STEPS):
            for trial in (one, other):
                trial.step()
                trial.session()
        if one.log != other.log:
            yield f"seed {seed}"


def _empty_sessions_change_no_decision(begin: Begin) -> Iterator[str]:
    """
    Expect no trace of a session that decides nothing.
    """
    for seed in SEEDS:
        once, often = begin(seed), begin(seed)
        for step in range(STEPS):
            for trial in (once, often):
                trial.step()
                trial.session()
            copy = Core.restore(often.core.snapshot(), often.plugins)
            if copy.session(often.now_us):
                continue
            if often.core.session(often.now_us):
                yield f"seed {seed}, step {step}: a session decides what a restored core doesn't"
                break
        if once.log != often.log:
            yield f"seed {seed}: decisions differ"


def _a_restore_changes_no_decision(begin: Begin) -> Iterator[str]:
    """
    Expect all that a picker knows to be made again from the jobs that wait.
    """
    for seed in SEEDS:
        kept, restored = begin(seed), begin(seed)
        for step in range(STEPS):
            for trial in (kept, restored):
                trial.step()
                trial.session()
            if step % 7 == seed % 7:
                restored.restore()
        if kept.log != restored.log:
            yield f"seed {seed}"


def _every_job_runs_at_last(begin: Begin) -> Iterator[str]:
    """
    Expect what the empty cluster can hold to start once everything else has ended.
    """
    for seed in SEEDS:
        trial = begin(seed)
        for _ in range(STEPS):
            trial.step()
            trial.session()
        for worker in trial.core.state.hosts:
            trial.open(worker.name)
        for _ in range(STEPS * 2):
            trial.session()
            for job in trial.jobs(JobState.RUN):
                trial.end(job)
        waiting = trial.jobs(JobState.PEND)
        if waiting and not any(trial.can_never_start(job) for job in waiting):
            yield f"seed {seed}: job {waiting[0].job_id} never started"
