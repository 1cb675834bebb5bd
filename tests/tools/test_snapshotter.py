"""
Snapshots of a live scheduler: what its thread does for one is no more than at any other commit, and
whatever becomes of the process that makes it, the scheduler goes on.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import psutil
import pytest

from domain.arrays import ArraySpec, IndexRange
from domain.commands import SubmitJob
from domain.jobs import JobSpec, Program
from projections.scheduling.core import SCHEMA
from replay.engine import Engine
from store.log import EventLog
from store.snapshots import SnapshotStore
from tests.tools import live_cluster
from tests.tools.live_cluster import Cluster, until
from tests.tools.test_engine_thread import Harness, submission
from tools.daemon.config import ClusterFiles, DaemonSettings
from tools.daemon.snapshotter import Snapshotter

pytestmark = pytest.mark.slow

JOBS, ELEMENTS = 100_000, 1_000
COMMITS, ORDINARY, EVERY = 30, 10, 100
SPARE_NS = 10_000_000


class Work(NamedTuple):
    """
    What the engine's thread did from one commit to the next.
    """

    processor_ns: int
    calls: int


class Measured:
    """
    Run an engine thread over many jobs, one commit after the other; after the tenth a snapshot is
    begun.
    """

    def __init__(self, folder: Path, begin: Callable[[Harness, int], bool]) -> None:
        self.harness = Harness(folder, DaemonSettings(snapshot_every_events=EVERY))
        self.begun: list[int] = []
        self.gaps: list[Work] = []
        self._begin = begin
        self._calls: dict[int, int] = {}
        self._last: Work | None = None
        engine = self.harness.thread.engine
        array = ArraySpec(ranges=(IndexRange(start=1, end=ELEMENTS),))
        program = Program(argv=("true",))
        spec = JobSpec(user="user", queue="normal", name="a", program=program, array=array)
        for number in range(JOBS // ELEMENTS):
            many = SubmitJob(spec=spec, key=f"a{number}", digest="a")
            engine.accept(many, actor="user", now_us=self.harness.thread.clock.now_us())
            engine.commit()
        self.harness.log.after_append = self._note
        self.harness.thread.begin_snapshot = self._maybe_begin

    def _count(self, frame: FrameType, event: str, _argument: object) -> None:
        if event in ("call", "c_call"):
            me = threading.get_ident()
            self._calls[me] = self._calls.get(me, 0) + 1

    def _note(self) -> None:
        now = Work(time.thread_time_ns(), self._calls.get(threading.get_ident(), 0))
        if self._last is not None:
            self.gaps.append(Work(*(a - b for a, b in zip(now, self._last, strict=True))))
        self._last = now

    def _maybe_begin(self, position: int) -> bool:
        if self.begun or len(self.gaps) < ORDINARY or not self._begin(self.harness, position):
            return False
        self.begun.append(position)
        return True

    def run(self) -> tuple[list[Work], list[Work]]:
        """
        Return the work between commits before a snapshot was begun, and from there on.
        """
        threading.setprofile(self._count)
        try:
            steps = [lambda n=n: [submission(f"k{n}")] for n in range(COMMITS)]
            self.harness.run(*steps)
        finally:
            threading.setprofile(None)
            sys.setprofile(None)
        assert 1 == len(self.begun)
        return self.gaps[:ORDINARY], self.gaps[ORDINARY:]


def is_no_longer(ordinary: list[Work], meanwhile: list[Work]) -> bool:
    """
    Say whether at no commit much more was done than at the hardest ordinary one, which has a
    session.
    """
    processor_ns = 2 * max(one.processor_ns for one in ordinary) + SPARE_NS
    calls = 2 * max(one.calls for one in ordinary)
    return all(one.processor_ns <= processor_ns and one.calls <= calls for one in meanwhile)


@pytest.fixture
def in_a_process(tmp_path: Path) -> Iterator[Callable[[Harness, int], bool]]:
    made: list[Snapshotter] = []

    def begin(harness: Harness, position: int) -> bool:
        if not made:
            made.append(Snapshotter(ClusterFiles(tmp_path), harness.journal))
        return made[0].begin(position)

    yield begin
    for one in made:
        one.end()


def test_between_two_commits_no_more_is_done_when_a_snapshot_of_many_jobs_is_made(
    tmp_path: Path, in_a_process: Callable[[Harness, int], bool]
) -> None:
    """
    What the thread does is counted, in processor time and in calls: neither grows by what encoding
    100,000 jobs takes, so that nobody waits longer than for a session.
    """
    measured = Measured(tmp_path, in_a_process)

    ordinary, meanwhile = measured.run()

    assert is_no_longer(ordinary, meanwhile), (ordinary, meanwhile)
    assert measured.begun[0] < measured.harness.log.head()
    made = until(
        lambda: [one for one in measured.harness.snapshots.entries()
                 if one.position == measured.begun[0]],
        "the snapshot is made",
    )  # fmt: skip
    state = Engine.recover(measured.harness.log, upto=made[0].position).core.snapshot()
    assert state == kept(measured.harness.snapshots, measured.harness.log, made[0].position)
    measured.harness.close()


def test_a_snapshot_made_in_the_engines_thread_is_seen(tmp_path: Path) -> None:
    """
    The test of the test above.
    """

    def begin(harness: Harness, _: int) -> bool:
        harness.thread.engine.take_snapshot()
        return True

    measured = Measured(tmp_path, begin)

    ordinary, meanwhile = measured.run()

    assert not is_no_longer(ordinary, meanwhile)
    measured.harness.close()


def kept(snapshots: SnapshotStore, log: Any, position: int) -> bytes | None:
    """
    Return the state that a good snapshot at a position has.
    """
    found = snapshots.newest_good(
        schema=SCHEMA, head=log.head(), digest_at=log.digest_at, upto=position
    )
    return found.state if found is not None and found.position == position else None


# --------------------------------------------------------------------------- a scheduler of its own


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with live_cluster.running(tmp_path / "cluster", workers=0) as found:
        yield found


def maker(cluster: Cluster) -> psutil.Process:
    """
    Return the process that makes a snapshot, stopped.
    """
    assert cluster.process is not None
    scheduler = psutil.Process(cluster.process.pid)
    return until(lambda: stopped_maker(scheduler), "a snapshot is being made")


def stopped_maker(parent: psutil.Process) -> psutil.Process | None:
    for one in parent.children():
        with suppress(psutil.ZombieProcess):
            if "tools.daemon.snapshot_process" in one.cmdline():
                one.suspend()
                return one
    return None


def asked(cluster: Cluster) -> tuple[int, dict[str, Any]]:
    """
    Ask for a snapshot over a connection of its own.
    """
    other = Cluster(cluster.directory)
    try:
        return other.ask("POST", "/v1/snapshot")
    finally:
        other.close()


def told_of(cluster: Cluster, what: str = "snapshot") -> list[dict[str, Any]]:
    """
    Return what the journal tells of snapshots that were made, or that weren't.
    """
    lines = (cluster.directory / "scheduler.log").read_text().splitlines()
    return [told for told in map(json.loads, lines) if told["what"] == what]


def snapshots_of(cluster: Cluster) -> list[Path]:
    return list((cluster.directory / "snapshots").glob("*.snapshot"))


def test_a_scheduler_goes_on_while_the_making_of_a_snapshot_stands_still(cluster: Cluster) -> None:
    """
    Nothing in the scheduler waits for it but the answer to who asked; and it is as of the commit at
    which it was asked for, whatever came afterwards.
    """
    cluster.submit("true")
    with ThreadPoolExecutor(1) as asking:
        answer = asking.submit(asked, cluster)
        process = maker(cluster)
        last = [cluster.submit("true") for _ in range(20)][-1]
        head = cluster.get("/v1/status")["position"]
        before = (answer.done(), snapshots_of(cluster))
        process.resume()
        status, made = answer.result(60)

    assert (False, []) == before
    assert (200, [Path(made["file"])]) == (status, snapshots_of(cluster))
    assert made["position"] < head
    assert "PEND" == cluster.job(last)["state"]
    with EventLog.open(cluster.directory, writable=False) as log:
        store = SnapshotStore(cluster.directory / "snapshots", log_id=log.log_id)
        state = Engine.recover(log, upto=made["position"]).core.snapshot()
        assert state == kept(store, log, made["position"])


def test_many_that_wait_for_a_snapshot_keep_nobody_else_waiting(cluster: Cluster) -> None:
    """
    Stories are read in threads too, of which there are few; and of one commit one snapshot is made.
    """
    job = cluster.submit("true")
    with ThreadPoolExecutor(21) as asking:
        answers = [asking.submit(asked, cluster) for _ in range(20)]
        process = maker(cluster)
        story = asking.submit(cluster.get, f"/v1/jobs/{job}/history")
        try:
            is_told = bool(story.result(20))
        finally:
            process.resume()
        told = [answer.result(60) for answer in answers]

    assert is_told
    assert {200} == {status for status, _ in told}
    assert len({made["position"] for _, made in told}) == len(snapshots_of(cluster)) <= 2
    assert 1 <= len(told_of(cluster)) <= 2


def test_a_snapshot_whose_process_is_killed_is_an_error_and_no_harm(cluster: Cluster) -> None:
    """
    The scheduler serves on, and the next one is made.
    """
    with ThreadPoolExecutor(1) as asking:
        answer = asking.submit(asked, cluster)
        maker(cluster).kill()
        status, told = answer.result(60)
    again, made = asked(cluster)

    assert 503 == status
    assert "snapshot" == told["error"]["resource"]
    assert "status -9" in told["error"]["text"]
    assert (200, [Path(made["file"])]) == (again, snapshots_of(cluster))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_scheduler_that_ends_leaves_no_process_that_makes_a_snapshot(
    cluster: Cluster, number: signal.Signals
) -> None:
    """
    However it ends; one that ends in good order keeps the last state by itself.
    """
    cluster.submit("true")
    with ThreadPoolExecutor(1) as asking:
        answer = asking.submit(asked, cluster)
        process = maker(cluster)
        cluster.stop() if number is signal.SIGTERM else cluster.kill()
        with suppress(psutil.NoSuchProcess):
            process.resume()
        answer.exception(60)

    until(lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE, "it ends")
    with EventLog.open(cluster.directory, writable=False) as log:
        positions = [int(path.name[:20]) for path in snapshots_of(cluster)]
        assert [log.head()] * (number is signal.SIGTERM) == positions


def test_a_snapshot_that_is_due_is_made_while_the_scheduler_runs(tmp_path: Path) -> None:
    """
    The journal tells of it.
    """
    options = ("--snapshot-every", "30")
    with live_cluster.running(tmp_path / "cluster", workers=0, options=options) as cluster:

        def made() -> list[dict[str, Any]]:
            cluster.submit("true")
            return told_of(cluster)

        told = until(lambda: found if len(found := made()) >= 3 else None, "three snapshots")
        gaps = [b["position"] - a["position"] for a, b in pairwise(told)]

        assert min(gaps) >= 30
