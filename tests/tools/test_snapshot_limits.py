"""
Snapshots that aren't made in time, and what is made of one commit once: a process or a disk that
hangs holds up nothing but its own snapshot.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from domain.errors import StoreUnavailable
from tests.tools import live_cluster
from tests.tools.live_cluster import Cluster, until
from tests.tools.test_engine_thread import Harness
from tests.tools.test_snapshotter import asked, maker, snapshots_of, stopped_maker, told_of
from tools.daemon.config import ClusterFiles
from tools.daemon.snapshotter import Snapshotter

pytestmark = pytest.mark.slow

LIMIT_S = 4.0
# Of the kernel's interface, for those who trace processes.
PTRACE_SEIZE, WALL = 0x4206, 0x40000000


@pytest.fixture
def hasty(tmp_path: Path) -> Iterator[Cluster]:
    """
    Give a cluster whose snapshots must be made in a few seconds; the first that is due is the one
    that a test asks for.
    """
    options = ("--snapshot-limit-s", str(LIMIT_S), "--snapshot-every", "300")
    with live_cluster.running(tmp_path / "cluster", workers=0, options=options) as found:
        yield found


def listed(cluster: Cluster) -> str:
    """
    Return what the command line lists.
    """
    command = [sys.executable, "-m", "tools.cli", "snapshot", "list", str(cluster.directory)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_a_snapshot_that_hangs_is_given_up_and_told_and_the_next_due_one_is_made(
    hasty: Cluster,
) -> None:
    """
    A process that stands still, or waits for a disk that does, would hold up all later ones; also
    whoever waits behind it is told, without waiting as long once more.
    """
    with ThreadPoolExecutor(3) as asking:
        answers = [asking.submit(asked, hasty)]
        process = maker(hasty)
        making = hasty.get("/v1/status")["snapshots"]["making"]
        shown = listed(hasty)
        answers += [asking.submit(asked, hasty) for _ in range(2)]
        told = [answer.result(60)[1]["error"]["text"] for answer in answers]
    failed, last = listed(hasty), hasty.get("/v1/status")["snapshots"]

    assert not process.is_running()
    assert f"being made, of position {making['position']}; it may take 4s." in shown
    assert "wasn't ready after 4s and was killed" in told[0]
    assert 2 == sum("the one before it wasn't made in time" in text for text in told)
    assert f"of position {making['position']}, wasn't made: {told[0]}" in failed
    assert (None, told[0]) == (last["making"], last["last"]["problem"])
    assert [told[0]] == [line["why"] for line in told_of(hasty, "snapshot failed")]
    assert [] == snapshots_of(hasty)

    def made() -> list[Path]:
        hasty.submit("true")
        return snapshots_of(hasty)

    until(made, "the next one is due and is made")
    assert "made" not in listed(hasty)


def test_no_more_are_begun_while_one_that_was_given_up_cannot_be_ended(tmp_path: Path) -> None:
    """
    A process that waits for a disk outlives its kill; each further one would hang there too. Here
    one does as long as this process traces it: its parent isn't told of its end before.
    """
    options = ("--snapshot-limit-s", "1")
    with live_cluster.running(tmp_path / "cluster", workers=0, options=options) as cluster:
        with ThreadPoolExecutor(1) as asking:
            answer = asking.submit(asked, cluster)
            process = maker(cluster)
            trace(process.pid)
            late = answer.result(60)[1]["error"]["text"]
        at_once = asked(cluster)[1]["error"]["text"]
        wait_traced(process.pid)

        assert "wasn't ready after 1s" in late
        assert f"process {process.pid} of an earlier one can't be ended" in at_once
        # Each gets twice the time of the one before it.
        until(lambda: asked(cluster)[0] == 200, "the next one is made")


def trace(pid: int) -> None:
    """
    Trace a process that somebody else began, without stopping it.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long] * 4
    assert 0 == libc.ptrace(PTRACE_SEIZE, pid, 0, 0), os.strerror(ctypes.get_errno())


def wait_traced(pid: int) -> None:
    """
    Wait for the end of a traced process, of which its parent is told then.
    """
    while not os.WIFSIGNALED(os.waitpid(pid, WALL)[1]):
        pass


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Harness]:
    found = Harness(tmp_path)
    yield found
    found.close()


def test_more_time_is_given_after_one_that_was_late_and_after_one_that_took_long(
    harness: Harness, tmp_path: Path
) -> None:
    """
    A log that has grown long would never have a snapshot again; nor would one on a slow disk.
    """
    snapshotter = Snapshotter(ClusterFiles(tmp_path), harness.journal, 0.05)
    late = [0.05]
    while "took_us" not in (snapshotter.status()["last"] or {}):
        with suppress(StoreUnavailable):
            snapshotter.make(harness.log.head())
        late.append(2 * late[-1])
        if "problem" in snapshotter.status()["last"]:
            assert late[-1] == snapshotter.status()["limit_s"]
    told = snapshotter.status()

    assert len(late) > 2
    assert max(0.05, 10 * told["last"]["took_us"] / 1e6) == told["limit_s"]


def stopped_child() -> psutil.Process:
    """
    Return the process that makes a snapshot for this one, stopped.
    """
    return until(lambda: stopped_maker(psutil.Process()), "a snapshot is being made")


def test_none_is_begun_while_one_is_being_made(harness: Harness, tmp_path: Path) -> None:
    """
    Else each commit at which one is due would add one to a queue, while they are made more slowly.
    """
    snapshotter = Snapshotter(ClusterFiles(tmp_path), harness.journal)
    first, second = harness.log.head() - 1, harness.log.head()
    begun = [snapshotter.begin(first)]
    process = stopped_child()
    begun.append(snapshotter.begin(second))
    process.resume()
    snapshotter.make(first)

    assert [True, False] == begun
    assert [first] == [entry.position for entry in harness.snapshots.entries()]
    assert snapshotter.begin(second)
    snapshotter.make(second)
    assert [first, second] == [entry.position for entry in harness.snapshots.entries()]


def test_the_newest_snapshot_will_do_again_unless_somebody_has_removed_it(
    harness: Harness, tmp_path: Path
) -> None:
    """
    An answer never names a file that isn't there.
    """
    snapshotter = Snapshotter(ClusterFiles(tmp_path), harness.journal)
    path = snapshotter.make(harness.log.head())
    first = snapshotter.status()["last"]
    again, still = snapshotter.make(harness.log.head()), snapshotter.status()["last"]
    path.unlink()
    anew = snapshotter.make(harness.log.head())

    assert (path, first) == (again, still)
    assert path == anew
    assert anew.exists()
