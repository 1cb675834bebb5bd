"""
Writing a simulation's events again: what is timed must be the same work as was simulated.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from projections.scheduling.core import Core
from replay import simulation
from replay.cluster_file import cluster_of
from replay.simulation import Simulation
from replay.simulation_settings import log_id_of, simulation_settings
from replay.workloads.source import Header, Jobs, LeftOut, Workload
from store.log import EventLog
from tools.bench import bare_writing
from tools.bench.bare_writing import LeastState, commits_of, write_again

PICKER = "strict_fcfs"
COMMIT_EVENTS = 40


@pytest.fixture
def simulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EventLog:
    """
    Return the log of 120 jobs on 8 hosts, many of them at one moment, in commits of 40 events.
    """
    for module in (simulation, bare_writing):
        monkeypatch.setattr(module, "COMMIT_EVENTS", COMMIT_EVENTS)
    columns = Jobs.empty()
    columns.extend(
        [(n, n // 7 * 5, n * 3 % 11, 1 + n % 5, *[-1] * 10) for n in range(1, 121)],
    )
    workload = Workload("made", Header(), 0, columns, LeftOut())
    cluster = cluster_of("8x1", workload.header)
    log = EventLog.create(tmp_path / "log", log_id=log_id_of(workload, cluster, PICKER))
    settings = simulation_settings(PICKER, ("parjob", "fill"))
    Simulation(workload, cluster, log, settings=settings).run()
    return log


def test_the_same_events_are_written_in_the_same_commits(simulated: EventLog, tmp_path: Path):
    """
    It compares the digests itself; here it is seen to have had several commits to cut alike.
    """
    with simulated as log:
        written = write_again(log, tmp_path / "again")

        assert log.info().frames > 5
        assert written.least > 0
        assert written.folded > 0


def test_the_least_state_knows_who_runs_and_on_how_many_slots(simulated: EventLog):
    """
    A scheduler that forgot to fold something would look quick.
    """
    state, core, has_run = LeastState(), Core(), 0
    with simulated as log:
        for commit in commits_of(log):
            for envelope in commit:
                state.fold(envelope.stamped())
                core.apply(envelope.stamped())
            has_run = max(has_run, state.used_slots)

            assert list(core.state.live) == list(state.live)
            assert int(core.state.capacity.used.sum()) == state.used_slots
            assert core.state.stored.versions == state.versions

    assert has_run > 0
    assert all(job.end_us >= job.start_us >= job.submit_us for job in state.jobs.values())
