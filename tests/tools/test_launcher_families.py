"""
What a job started ends with it, wherever it went; and a launcher that nobody needs ends itself.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import REPO
from tests.tools import launcher_harness as harness
from tools.agent import measure, processes
from tools.agent.files import WorkerFiles
from tools.agent.messages import (
    AttemptKey,
    OrderKind,
    OrderRequest,
    ToLauncher,
)

pytestmark = pytest.mark.slow

FIRST = AttemptKey("1", 1)
KILL = ToLauncher(order=[OrderRequest(1, OrderKind.KILL, "1", 1, 5000)])

LEAVES = {
    "setsid": "setsid sleep 1000 &",
    "setsid with its own environment": "env -i /usr/bin/setsid /bin/sleep 1000 &",
    "twice forked": "(setsid sh -c 'sleep 1000 & echo $!; exec sleep 0.01' &)",
    "twice forked, own environment": (
        "(/usr/bin/env -i /usr/bin/setsid /bin/sh -c '/bin/sleep 1000 & :' &)"
    ),
}
"""Ways for a program to leave its group; each keeps a process `sleep 1000` alive."""


def sleepers(directory: Path) -> list[int]:
    """
    Return the living processes `sleep 1000` that run in a directory.
    """
    found = []
    for one in processes.living():
        with contextlib.suppress(OSError):
            line = Path(f"/proc/{one.pid}/cmdline").read_bytes()
            is_here = Path(f"/proc/{one.pid}/cwd").readlink() == directory
            if is_here and line.split(b"\0")[-2:] == [b"1000", b""]:
                found.append(one.pid)
    return found


def wait_for(holds: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + harness.DEADLINE_S
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


@pytest.fixture
def files(tmp_path: Path) -> Iterator[WorkerFiles]:
    with harness.running(tmp_path) as found:
        yield found


@pytest.fixture
def client(files: WorkerFiles) -> Iterator[harness.Client]:
    client = harness.Client(files)
    yield client
    client.close()


def shell(job_id: str, text: str, files: WorkerFiles, **changes: object):
    """
    Return the start of a script with the variables that every job of a worker has.
    """
    env = {
        "PATH": "/usr/bin:/bin",
        processes.JOB_VARIABLE: job_id,
        processes.ATTEMPT_VARIABLE: "1",
        processes.WORKER_VARIABLE: str(files.directory),
    }
    return harness.request(
        job_id, "sh", "-c", text, directory=files.cluster, **({"env": env} | changes)
    )


@pytest.mark.parametrize("way", list(LEAVES))
def test_a_kill_reaches_a_program_that_left_its_group(
    client: harness.Client, files: WorkerFiles, tmp_path: Path, way: str
) -> None:
    """
    A daemon that calls setsid, forks twice or clears its environment would hold the slot's
    resources for ever. Another job that was there before keeps running.
    """
    other = tmp_path / "other"
    other.mkdir()
    client.start(shell("1", f"{LEAVES[way]}\nsleep 1000", files))
    client.wait_running(FIRST)
    wait_for(lambda: len(sleepers(tmp_path)) == 2, "the program has left its group")
    script = f"{LEAVES['twice forked']}\nsleep 1000"
    client.start(shell("2", script, files, cwd=str(other)))
    wait_for(lambda: len(sleepers(other)) == 2, "the other job runs")

    client.send(KILL)
    (ended,) = client.wait_ended(FIRST)

    wait_for(lambda: not sleepers(tmp_path), "nothing of the job is left")
    assert (signal.SIGTERM, 2) == (ended.signal, len(sleepers(other)))


@pytest.mark.parametrize("way", list(LEAVES))
def test_what_a_job_leaves_outside_its_group_ends_with_it(
    client: harness.Client, files: WorkerFiles, tmp_path: Path, way: str
) -> None:
    """
    A job that ends by itself and leaves a daemon behind has given its slot back.
    """
    client.start(shell("1", f"{LEAVES[way]}\nsleep 0.3", files))
    wait_for(lambda: sleepers(tmp_path), "the program has left its group")

    (ended,) = client.wait_ended(FIRST)

    wait_for(lambda: not sleepers(tmp_path), "nothing of the job is left")
    assert 0 == ended.exit_code


@pytest.mark.parametrize("way", ["setsid", "setsid with its own environment", "twice forked"])
def test_what_left_the_group_of_an_attempt_is_measured_with_it(
    client: harness.Client, files: WorkerFiles, tmp_path: Path, way: str
) -> None:
    """
    Otherwise a program would escape its memory limit by calling setsid.
    """
    client.start(shell("1", f"{LEAVES[way]}\nsleep 1000", files))
    attempt = client.wait_running(FIRST)
    wait_for(lambda: len(sleepers(tmp_path)) == 2, "the program has left its group")

    usage = measure.Meter(str(files.directory)).measure([attempt])

    assert usage is not None
    (seen,) = usage.jobs
    assert (3, 3) == (seen.processes, seen.threads)


def test_a_successor_ends_what_was_left_outside_the_group_of_an_adopted_attempt(
    files: WorkerFiles, client: harness.Client, tmp_path: Path
) -> None:
    """
    After kill -9 of the launcher its orphans hang elsewhere; they are known by their environment.
    """
    script = f"{LEAVES['twice forked']}\nsleep 1000"
    client.start(shell("1", script, files))
    client.wait_running(FIRST)
    wait_for(lambda: len(sleepers(tmp_path)) == 2, "the program has left its group")
    harness.crash(files)
    client.close()
    successor = harness.start_process(files)
    late = harness.Client(files)
    late.send(KILL)
    late.wait_ended(FIRST)

    wait_for(lambda: not sleepers(tmp_path), "nothing of the job is left")
    late.close()
    harness.end(files)
    successor.wait(harness.DEADLINE_S)


def test_quit_ends_what_left_its_group(
    files: WorkerFiles, client: harness.Client, tmp_path: Path
) -> None:
    """
    Taking a cluster down leaves nothing running, wherever it went.
    """
    script = f"{LEAVES['twice forked, own environment']}\nsleep 1000"
    client.start(shell("1", script, files))
    wait_for(lambda: len(sleepers(tmp_path)) == 2, "the program has left its group")
    client.send(ToLauncher(quit=True))
    client.wait_ended(FIRST)
    harness.wait_gone(files)

    assert [] == sleepers(tmp_path)


SWEEPING = """
import os, subprocess, sys
from tools.agent import processes
from tools.agent.families import Families
from tools.agent.messages import Attempt, Phase

number = int(sys.argv[1])
orphan = subprocess.Popen(["/bin/sleep", "1000"], env={})
seen = next(one for one in processes.living() if one.pid == orphan.pid)
other = Attempt("2", 1, Phase.RUNNING, pid=orphan.pid + number, born_ticks=seen.born)
print(Families("/nowhere").sweep({other.key: other}, ()))
orphan.kill()
orphan.wait()
"""


@pytest.mark.parametrize(
    ("number", "killed"), [(1, 1), (300, 1), (-1, 0), (1 << 14, 0), (-(1 << 14), 0)]
)
def test_an_orphan_without_a_mark_is_told_from_attempts_of_the_same_tick(number, killed) -> None:
    """
    A job that starts within the same hundredth of a second must not keep it alive; where numbers
    began again at the lowest nobody can tell, and nothing is killed.
    """
    done = subprocess.run(
        [sys.executable, "-c", SWEEPING, str(number)],
        cwd=REPO, capture_output=True, text=True, check=True,
    )  # fmt: skip

    assert str(killed) == done.stdout.strip()


SIGNALLING = """
import os, signal, subprocess, time
from tools.agent import processes
from tools.agent.families import Families
from tools.agent.messages import Attempt, Phase

script = "/usr/bin/env -i /usr/bin/setsid /bin/sleep 1000 & echo $!; wait"
shell = subprocess.Popen(["/bin/sh", "-c", script], stdout=subprocess.PIPE, process_group=0)
left = int(shell.stdout.readline())
while next(one.group for one in processes.living() if one.pid == left) == shell.pid:
    time.sleep(0.001)
send = os.killpg

def killpg(group, number):
    send(group, number)
    while processes.born_ticks(shell.pid):  # Until it is dead and its children hang elsewhere.
        time.sleep(0.001)

os.killpg = killpg
Families("/nowhere").signal(Attempt("1", 1, Phase.RUNNING, pid=shell.pid), signal.SIGKILL)
for _ in range(200):
    is_left = processes.born_ticks(left)
    if not is_left:
        break
    time.sleep(0.01)
print(bool(is_left))
if is_left:
    os.kill(left, signal.SIGKILL)
"""


def test_what_hangs_below_an_attempt_is_found_before_its_group_is_gone() -> None:
    """
    A shell that a signal ends at once leaves its children to another parent.
    """
    done = subprocess.run(
        [sys.executable, "-c", SIGNALLING], cwd=REPO, capture_output=True, text=True, check=True
    )

    assert "False" == done.stdout.strip()


def test_a_launcher_without_programs_ends_when_its_agent_is_gone_for_good(tmp_path: Path) -> None:
    """
    Otherwise one would stay for ever on each host whose worker ended while no scheduler was there.
    What it must remember is in its journal.
    """
    files = WorkerFiles(tmp_path, "w1")
    process = harness.start_process(files, lonely_s=0.4)
    client = harness.Client(files)
    client.start(shell("1", f"while [ ! -e {tmp_path}/go ]; do sleep 0.01; done", files))
    client.wait_running(FIRST)
    client.close()
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1.0)  # A program runs: it must not end.
    back = harness.Client(files)
    (tmp_path / "go").touch()
    back.wait_ended(FIRST)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1.0)  # An agent is there: it must not end.
    back.close()

    assert 0 == process.wait(harness.DEADLINE_S)
    with harness.running(tmp_path):
        late = harness.Client(files)
        late.close()
    assert [("1", 0)] == [(one.job_id, one.exit_code) for one in late.greeting.attempts]
