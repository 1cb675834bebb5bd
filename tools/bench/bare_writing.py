"""
Write a simulation's events again without deciding anything: what the design itself costs.

Every event is made and stamped, the least that any scheduler must know is folded, and the same
commits are appended to a log of the same identity, whose digest must be the same in the end. What
a simulated job takes beyond that is its rules.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, final

from domain.allocations import Allocation
from domain.envelope import Envelope, Stamped, stamp
from domain.events.jobs import JobDispatched, JobFinished, JobPended, JobStarted, JobSubmitted
from domain.jobs import JobSpec
from projections.scheduling.core import Core
from replay.simulation import COMMIT_EVENTS
from store.log import EventLog


class Written(NamedTuple):
    """
    Say how many jobs a second had their events made, stamped and committed.

    Args:
        least: While the least was folded.
        folded: While the core folded them.
    """

    least: float
    folded: float


@final
class _Job:
    """
    Hold the least that is known of a job.
    """

    __slots__ = ("allocation", "end_us", "reason_set", "spec", "start_us", "submit_us")

    def __init__(self, spec: JobSpec, submit_us: int) -> None:
        self.spec, self.submit_us = spec, submit_us
        self.allocation: Allocation | None = None
        self.reason_set = self.start_us = self.end_us = 0


@final
class LeastState:
    """
    Fold who waits, runs and has ended, and how many slots are free.
    """

    def __init__(self) -> None:
        self.jobs: dict[str, _Job] = {}
        self.live: dict[str, _Job] = {}
        self.versions: dict[str, int] = {}
        self.used_slots = 0
        self._folds: Final[dict[type, Callable[[Stamped, Any], None]]] = {
            JobSubmitted: self._submitted,
            JobPended: self._pended,
            JobDispatched: self._dispatched,
            JobStarted: self._started,
            JobFinished: self._finished,
        }

    def fold(self, stamped: Stamped) -> None:
        """
        Fold one event.
        """
        stream, version, _, _, _, event, _ = stamped
        known = self._folds.get(type(event))
        if known is not None:
            known(stamped, event)
        self.versions[stream] = version

    def _submitted(self, stamped: Stamped, event: JobSubmitted) -> None:
        self.jobs[stamped.stream] = _Job(event.spec, stamped.time_us)

    def _pended(self, stamped: Stamped, event: JobPended) -> None:
        self.jobs[stamped.stream].reason_set = event.reason_set

    def _dispatched(self, stamped: Stamped, event: JobDispatched) -> None:
        job = self.live[stamped.stream] = self.jobs[stamped.stream]
        job.allocation = event.allocation
        for run in event.allocation.runs:
            self.used_slots += run.hosts * run.tasks

    def _started(self, stamped: Stamped, _: JobStarted) -> None:
        self.jobs[stamped.stream].start_us = stamped.time_us

    def _finished(self, stamped: Stamped, _: JobFinished) -> None:
        job = self.live.pop(stamped.stream)
        job.end_us = stamped.time_us
        for run in job.allocation.runs if job.allocation is not None else ():
            self.used_slots -= run.hosts * run.tasks


def commits_of(log: EventLog) -> Iterator[list[Envelope]]:
    """
    Yield the events of each commit as the simulation driver cut them: what sets the cluster up,
    then whole moments.
    """
    commit: list[Envelope] = []
    is_set_up = False
    for envelope in log.read():
        begins = not is_set_up and isinstance(envelope.event, JobSubmitted)
        is_full = len(commit) >= COMMIT_EVENTS and envelope.time_us != commit[-1].time_us
        if begins or (is_set_up and is_full):
            yield commit
            commit = []
        is_set_up = is_set_up or begins
        commit.append(envelope)
    yield commit


def write_again(log: EventLog, folder: Path) -> Written:
    """
    Write the events of a simulation's log into a new one.
    """
    state, core = LeastState(), Core()
    written_s = least_s = folded_s = 0.0
    clock = time.perf_counter
    with EventLog.create(folder, log_id=log.log_id) as again:
        for commit in commits_of(log):
            begin = clock()
            made = _made(state.versions, commit)
            is_made = clock()
            for stamped in made:
                state.fold(stamped)
            is_folded_least = clock()
            for stamped in made:
                core.apply(stamped)
            is_folded = clock()
            again.append(made)
            written_s += clock() - is_folded + is_made - begin
            least_s += is_folded_least - is_made
            folded_s += is_folded - is_folded_least
        assert again.head_digest() == log.head_digest(), "it is the same history"
    jobs = len(state.jobs)
    return Written(jobs / (written_s + least_s), jobs / (written_s + folded_s))


def _made(versions: dict[str, int], commit: list[Envelope]) -> list[Stamped]:
    """
    Make the events of a commit anew; values within them are taken as they are.
    """
    made: list[Stamped] = []
    known = dict[str, int]()
    for _, stream, _, time_us, actor, cause, event, ends_step in commit:
        version = known.get(stream) or versions.get(stream, 0)
        known[stream] = version = version + 1
        same = event.but()
        made.append(stamp(Stamped, (stream, version, time_us, actor, cause, same, ends_step)))
    return made
