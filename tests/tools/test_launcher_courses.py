"""
What runs before and after a job's command, by the launcher.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.tools import launcher_harness as harness
from tools.agent import processes
from tools.agent.files import WorkerFiles
from tools.agent.messages import AttemptKey, OrderKind, OrderRequest, Phase, ToLauncher

pytestmark = pytest.mark.slow

FIRST = AttemptKey("1", 1)


@pytest.fixture
def files(tmp_path: Path) -> Iterator[WorkerFiles]:
    with harness.running(tmp_path) as found:
        yield found


@pytest.fixture
def client(files: WorkerFiles) -> Iterator[harness.Client]:
    client = harness.Client(files)
    yield client
    client.close()


def started(files: WorkerFiles, text: str, *before: tuple[str, str], after: tuple[str, ...] = ()):
    env = {
        "PATH": "/usr/bin:/bin",
        processes.JOB_VARIABLE: "1",
        processes.ATTEMPT_VARIABLE: "1",
        processes.WORKER_VARIABLE: str(files.directory),
    }
    return harness.request(
        "1", "sh", "-c", text, directory=files.cluster, env=env, before=before, after=after
    )


def wait_for(holds: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + harness.DEADLINE_S
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def test_the_texts_before_run_in_order_and_then_the_command(
    client: harness.Client, files: WorkerFiles, tmp_path: Path
) -> None:
    """
    Each must have succeeded before the next; what they print goes to the job's errors.
    """
    client.start(
        started(files, "echo command >> order", ("queue", "echo q >> order; echo said"),
                ("job", "sleep 0.1; echo j >> order"))
    )  # fmt: skip
    (ended,) = client.wait_ended(FIRST)

    assert (0, "q\nj\ncommand\n") == (ended.exit_code, (tmp_path / "order").read_text())
    assert "said\n" == (tmp_path / "1.err").read_text()
    assert "" == (tmp_path / "1.out").read_text()


@pytest.mark.parametrize(("text", "code"), [("exit 3", 3), ("exit 99", 99), ("kill -9 $$", 137)])
def test_a_text_before_that_fails_is_told_and_nothing_follows(
    client: harness.Client, files: WorkerFiles, tmp_path: Path, text: str, code: int
) -> None:
    """
    The command must not run where its host isn't prepared, nor what follows it.
    """
    request = started(
        files, "touch ran", ("queue", "true"), ("job", text), ("job", "touch ran"),
        after=("touch ran",),
    )  # fmt: skip
    client.start(request)

    (ended,) = client.wait_ended(FIRST)

    assert ("job", code) == (ended.pre_exec_of, ended.pre_exec_exit)
    assert f"pre-exec of the job: it ended with {code}" == ended.failed
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("text", "status"), [("exit 0", 0), ("exit 3", 3 << 8), ("kill -9 $$", signal.SIGKILL)]
)
def test_the_texts_after_run_however_the_command_ended_and_nobody_waits_for_them(
    client: harness.Client, files: WorkerFiles, tmp_path: Path, text: str, status: int
) -> None:
    """
    The job's end is told at once; they know how it ended, and a failing one stops no other.
    """
    waits = "while [ ! -e go ]; do sleep 0.01; done; echo $LSB_JOBEXIT_STAT > status; exit 1"
    client.start(started(files, text, after=(waits, "touch second")))
    client.wait_ended(FIRST)
    (tmp_path / "go").touch()

    wait_for((tmp_path / "second").exists, "both have run")
    assert f"{status}\n" == (tmp_path / "status").read_text()


def test_a_kill_reaches_what_runs_before_the_command(
    client: harness.Client, files: WorkerFiles, tmp_path: Path
) -> None:
    """
    The job never runs, and isn't tried elsewhere.
    """
    client.start(started(files, "touch ran", ("queue", "echo up; sleep 1000")))
    wait_for(lambda: "up" in _text(tmp_path / "1.err"), "it prepares")
    client.send(ToLauncher(order=[OrderRequest(1, OrderKind.KILL, "1", 1, 5000)]))

    (ended,) = client.wait_ended(FIRST)

    assert (signal.SIGTERM, "", 0) == (ended.signal, ended.failed, ended.pid)
    assert not (tmp_path / "ran").exists()


def test_a_successor_tells_that_nobody_saw_the_end_of_a_text_before(
    client: harness.Client, files: WorkerFiles, tmp_path: Path
) -> None:
    """
    After kill -9 of the launcher the command can't follow: the job is tried elsewhere, and what
    still runs of it is ended.
    """
    client.start(started(files, "touch ran", ("queue", "echo $$; exec sleep 1000")))
    wait_for(lambda: _text(tmp_path / "1.err").endswith("\n"), "it prepares")
    harness.crash(files)
    client.close()
    successor = harness.start_process(files)
    late = harness.Client(files)

    (ended,) = late.greeting.attempts
    wait_for(lambda: not processes.born_ticks(int(_text(tmp_path / "1.err"))), "it is ended")
    late.close()
    harness.end(files)
    successor.wait(harness.DEADLINE_S)
    assert (Phase.ENDED, "queue", 137) == (ended.phase, ended.pre_exec_of, ended.pre_exec_exit)
    assert not (tmp_path / "ran").exists()


def test_quit_ends_what_runs_after_a_command(
    client: harness.Client, files: WorkerFiles, tmp_path: Path
) -> None:
    """
    Taking a cluster down leaves nothing running, and starts nothing new.
    """
    client.start(started(files, "true", after=("echo $$; exec sleep 1000", "touch second")))
    client.wait_ended(FIRST)
    wait_for(lambda: _text(tmp_path / "1.err").endswith("\n"), "it runs")
    client.send(ToLauncher(quit=True))
    harness.wait_gone(files)

    assert 0 == processes.born_ticks(int(_text(tmp_path / "1.err")))
    assert not (tmp_path / "second").exists()


def test_what_runs_after_a_command_outlives_the_sweep_of_what_the_job_left(
    client: harness.Client, files: WorkerFiles, tmp_path: Path
) -> None:
    """
    It belongs to the job and is wanted; what it leaves behind itself isn't.
    """
    script = "setsid sleep 1000 & echo $!; sleep 1; touch second"
    client.start(started(files, "true", after=(script,)))
    client.wait_ended(FIRST)

    wait_for((tmp_path / "second").exists, "it has run to its end")
    left = int(_text(tmp_path / "1.err"))
    wait_for(lambda: not processes.born_ticks(left), "what it left is ended")


def test_a_file_limit_and_a_priority_hold_for_the_program_and_not_for_the_launcher(
    client: harness.Client, files: WorkerFiles, tmp_path: Path
) -> None:
    """
    A limit that nobody carries out would be worse than none; the next job isn't bound by it.
    """
    script = "ulimit -f; sleep 0.2; ulimit -Hf; nice; head -c 100000 /dev/zero > big"
    bound = replace(started(files, script), file_kib=64, nice=5)
    client.start(bound)
    client.wait_ended(FIRST)
    free = started(files, "ulimit -f; nice; head -c 100000 /dev/zero > other")
    client.start(replace(free, job_id="2", stdout=f"{tmp_path}/2.out"))
    client.wait_ended(AttemptKey("2", 1))

    usual = os.getpriority(os.PRIO_PROCESS, 0)
    soft, hard, priority = _text(tmp_path / "1.out").split()
    # Shells count in blocks of 512 bytes, or of 1 KiB.
    assert soft in ("128", "64")
    assert (soft, usual + 5) == (hard, int(priority))
    assert 64 * 1024 == (tmp_path / "big").stat().st_size
    assert ["unlimited", str(usual)] == _text(tmp_path / "2.out").split()
    assert 100_000 == (tmp_path / "other").stat().st_size


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""
