"""
A real scheduler while the machine fails it: after an I/O error at a commit it ends and a new start
tells the truth; through everything else it stays up, and serves again when the cause is gone.
"""

from __future__ import annotations

import resource
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from store.verify import verify_here
from tests.tools import acknowledges_too_early, live_cluster
from tests.tools.live_cluster import Cluster, until
from tools.agent import sockets
from tools.agent.files import SOCKET_NAME
from tools.daemon.engine_thread import STATUS_UNAVAILABLE

pytestmark = pytest.mark.slow


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with live_cluster.running(tmp_path / "cluster", workers=0) as found:
        yield found


def pid_of(cluster: Cluster) -> int:
    assert cluster.process is not None
    return cluster.process.pid


def submitted(cluster: Cluster, key: str) -> tuple[int, dict[str, Any]]:
    return cluster.ask("POST", "/v1/jobs", {"key": key, "program": {"argv": ["true"]}})


@contextmanager
def limited(cluster: Cluster, which: int, soft: int) -> Iterator[None]:
    """
    Lower a limit of the running scheduler.
    """
    before = resource.prlimit(pid_of(cluster), which)
    resource.prlimit(pid_of(cluster), which, (soft, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid_of(cluster), which, before)


@contextmanager
def injected(cluster: Cluster, inject: str) -> Iterator[None]:
    """
    Have system calls on the data file of the running scheduler fail.
    """
    data = cluster.directory / "log" / "data.mdb"
    call = inject.partition(":")[0]
    with subprocess.Popen(
        ["strace", "-f", "-o", "/dev/null", "-P", str(data), "-e", f"trace={call}",
         "-e", f"inject={inject}", "-p", str(pid_of(cluster))],
        stderr=subprocess.PIPE, text=True,
    ) as tracer:  # fmt: skip
        assert tracer.stderr is not None
        try:
            assert "attached" in tracer.stderr.readline()
            until(lambda: all_traced(pid_of(cluster)), "every thread is traced")
            yield
        finally:
            tracer.terminate()
            tracer.communicate()


def all_traced(pid: int) -> bool:
    tasks = Path(f"/proc/{pid}/task").glob("*/status")
    return all("TracerPid:\t0\n" not in task.read_text() for task in tasks)


def jobs_by_key(cluster: Cluster, keys: list[str]) -> list[tuple[str, bool]]:
    """
    Return the job of each key and whether it was there.
    """
    answers = [submitted(cluster, key)[1] for key in keys]
    return [(answer["job_id"], answer.get("replayed", False)) for answer in answers]


@pytest.mark.needs_root
@pytest.mark.needs_program("strace")
@pytest.mark.parametrize("inject", ["fdatasync:error=EIO:when=1", "pwrite64:error=EIO:when=1"])
def test_an_io_error_at_a_commit_ends_the_scheduler_and_a_start_tells_what_became_of_it(
    tmp_path: Path, inject: str
) -> None:
    """
    The answer is that nobody knows, the sync isn't tried again; all that was acknowledged is there,
    and the key of the failed one gives one job.
    """
    with live_cluster.running(tmp_path, workers=0) as cluster:
        known = [submitted(cluster, f"k{number}")[1]["job_id"] for number in range(5)]
        with injected(cluster, inject):
            status, answer = submitted(cluster, "lost")
            assert cluster.process is not None
            ended = cluster.process.wait(30)
        assert (503, "unknown", STATUS_UNAVAILABLE) == (status, answer["outcome"], ended)
        assert verify_here(tmp_path / "log").is_good
        cluster.stop()

        cluster.start()
        again = jobs_by_key(cluster, ["lost", "lost", "k0", "k1", "k2", "k3", "k4"])
        assert again[0][0] == again[1][0]
        assert [(job_id, True) for job_id in known] == again[2:]
        assert 6 == len(cluster.get("/v1/jobs")["jobs"])


@pytest.mark.needs_root
@pytest.mark.needs_program("strace")
@pytest.mark.parametrize("program", [None, acknowledges_too_early], ids=["right", "sabotaged"])
def test_a_slow_disk_makes_answers_wait_and_nothing_else(
    tmp_path: Path, program: ModuleType | None
) -> None:
    """
    No answer comes before its sync has ended; one that does is seen.
    """
    named = None if program is None else [str(program.__file__)]
    with live_cluster.running(tmp_path, workers=0, program=named) as cluster:
        submitted(cluster, "first")
        cluster.get("/v1/status")  # The sabotaged one commits only now.
        with injected(cluster, "fdatasync:delay_enter=2000000"):
            began = time.monotonic()
            status, _ = submitted(cluster, "slow")
            took_s = time.monotonic() - began
        again = jobs_by_key(cluster, ["first", "slow", "later"])

    assert 201 == status
    assert (program is None) == (took_s >= 2)
    assert [("1", True), ("2", True), ("3", False)] == again


def serves_through(
    cluster: Cluster, which: int, soft: int, meanwhile: Callable[[list[str]], None]
) -> None:
    """
    Hold that a scheduler under a limit stays the same process, loses nothing, and serves when the
    limit is lifted.
    """
    pid, known = pid_of(cluster), [submitted(cluster, "first")[1]["job_id"]]
    with limited(cluster, which, soft):
        meanwhile(known)
    known.append(cluster.submit("true"))
    assert pid == cluster.get("/v1/status")["pid"]
    assert set(known) == {job["job_id"] for job in cluster.get("/v1/jobs")["jobs"]}


def test_a_limit_of_files_sizes_is_told_and_service_comes_back(cluster: Cluster) -> None:
    """
    Nothing of a refused submission stays, also not in the state.
    """
    size = (cluster.directory / "log" / "data.mdb").stat().st_size

    def meanwhile(known: list[str]) -> None:
        for number in range(2000):
            status, answer = submitted(cluster, f"k{number}")
            if status == 503:
                assert "none" == answer["outcome"]
                assert "ulimit -f" in answer["error"]["text"]
                return
            known.append(answer["job_id"])
        raise AssertionError("the limit was never reached")

    serves_through(cluster, resource.RLIMIT_FSIZE, size + 8192, meanwhile)
    assert verify_here(cluster.directory / "log").is_good


def is_turned_away(cluster: Cluster) -> bool:
    """
    Say whether somebody new gets no answer.
    """
    with sockets.connect(cluster.directory / SOCKET_NAME, timeout_s=1.0) as connection:
        try:
            connection.sendall(b"GET /v1/status HTTP/1.1\r\nHost: xce\r\n\r\n")
            return not connection.recv(1)
        except OSError:
            return True


def test_without_descriptors_those_who_are_connected_are_served_and_others_afterwards(
    cluster: Cluster,
) -> None:
    """
    A commit needs none; a snapshot does, and says so.
    """
    cluster.get("/v1/status")

    def meanwhile(known: list[str]) -> None:
        known += [submitted(cluster, f"k{number}")[1]["job_id"] for number in range(5)]
        status, answer = cluster.ask("POST", "/v1/snapshot")
        assert (503, "snapshot") == (status, answer["error"]["resource"])
        assert "Too many open files" in answer["error"]["text"]
        assert is_turned_away(cluster)

    count = len(list(Path(f"/proc/{pid_of(cluster)}/fd").iterdir()))
    serves_through(cluster, resource.RLIMIT_NOFILE, count, meanwhile)
    other = Cluster(cluster.directory)
    assert 7 == len(until(lambda: other.get("/v1/jobs"), "it answers")["jobs"])
    other.close()
