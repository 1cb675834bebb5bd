"""
The launcher starts each attempt once, tells each end once it is safe, and outlives whoever asked.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from domain.errors import Corrupt
from tests.tools import launcher_harness as harness
from tools.agent import processes
from tools.agent.files import WorkerFiles
from tools.agent.messages import (
    Attempt,
    AttemptKey,
    OrderKind,
    OrderRequest,
    Phase,
    ToLauncher,
)
from tools.agent.spool import Spool

pytestmark = pytest.mark.slow


@pytest.fixture
def files(tmp_path: Path) -> Iterator[WorkerFiles]:
    with harness.running(tmp_path) as found:
        yield found


@pytest.fixture
def client(files: WorkerFiles) -> Iterator[harness.Client]:
    client = harness.Client(files)
    yield client
    client.close()


def key(job_id: str) -> AttemptKey:
    return AttemptKey(job_id, 1)


def shell(job_id: str, text: str, directory: Path, **changes: object):
    return harness.request(job_id, "sh", "-c", text, directory=directory, **changes)


def test_exit_code_signal_and_output_arrive(client: harness.Client, tmp_path: Path) -> None:
    """
    The three ways to end are told apart: a code, a signal, never started.
    """
    client.start(
        shell("1", "echo out; echo err >&2; exit 7", tmp_path),
        shell("2", "kill -9 $$", tmp_path),
        harness.request("3", "no-such-program", directory=tmp_path),
    )

    coded, killed, failed = client.wait_ended(key("1"), key("2"), key("3"))

    assert (7, None, None, 9) == (coded.exit_code, coded.signal, killed.exit_code, killed.signal)
    assert ("out\n", "err\n") == (
        (tmp_path / "1.out").read_text(),
        (tmp_path / "1.err").read_text(),
    )
    assert "no-such-program: not found" in failed.failed
    assert failed.exit_code is None


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"cwd": "/no/such"}, "cwd /no/such"),
        ({"stdin": "/no/such/in"}, "stdin /no/such/in"),
        ({"stdout": "/no/such/out"}, "stdout /no/such/out"),
        ({"stderr": "/no/such/err"}, "stderr /no/such/err"),
        ({"argv": ("/etc/passwd",)}, "program /etc/passwd"),
        ({"argv": ("a\0b",)}, "program a"),
        ({"env": {"a=b": "c", "PATH": "/bin"}}, "program /bin/true"),
    ],
)
def test_what_bars_a_start_is_named(
    client: harness.Client, tmp_path: Path, change: dict[str, object], named: str
) -> None:
    """
    Whoever reads why a job couldn't start must see which of its paths is wrong.
    """
    client.start(harness.request("1", "true", directory=tmp_path, **change))

    (ended,) = client.wait_ended(key("1"))

    assert ended.failed.startswith(named), ended


def test_a_job_gets_its_own_group_default_signals_and_only_its_environment(
    client: harness.Client, tmp_path: Path
) -> None:
    """
    Nothing of the launcher leaks into a job: not its group, ignored signals, files or variables.
    """
    script = "cat /proc/$$/status | grep SigIgn; ps -o pgid= -p $$; echo $$; env; ls /proc/$$/fd"
    client.start(shell("1", script, tmp_path, env={"PATH": "/usr/bin:/bin", "ONLY": "this"}))

    client.wait_ended(key("1"))

    ignored, group, pid, *rest = (tmp_path / "1.out").read_text().split("\n")
    # The C library keeps two real-time signals, 32 and 33, for itself.
    assert 0 == int(ignored.split()[1], 16) & ~(0b11 << 31)
    assert int(group) == int(pid)
    assert {"ONLY=this"} <= set(rest)
    assert [] == [line for line in rest if line.startswith(("VIRTUAL_ENV", "HOME", "PYTHON"))]
    assert {"0", "1", "2"} == {line for line in rest if line.isdigit()}


def test_umask_and_directory_are_the_jobs_own(client: harness.Client, tmp_path: Path) -> None:
    """
    The launcher changes its own for a moment only: the next job isn't touched by it.
    """
    folder = tmp_path / "made"
    client.start(
        shell(
            "1", "umask; pwd", tmp_path, umask=0o027, cwd=str(folder), make_directory=str(folder)
        ),
        shell("2", "umask; pwd", tmp_path, cwd="/"),
    )

    client.wait_ended(key("1"), key("2"))

    assert f"0027\n{folder}\n" == (tmp_path / "1.out").read_text()
    assert f"{os.umask(os.umask(0o022)):04o}"[-4:] == (tmp_path / "2.out").read_text()[:4]
    assert 0o640 == (tmp_path / "1.out").stat().st_mode & 0o777


def test_a_repeated_start_of_one_attempt_starts_nothing(
    client: harness.Client, tmp_path: Path
) -> None:
    """
    Assignments come at least once; the program must run exactly once, also after its end, after it
    was forgotten, and when both wishes come in one line.
    """
    witness = shell("1", f"echo ran >> {tmp_path}/witness", tmp_path)
    client.start(witness, witness)
    client.wait_ended(key("1"))
    client.start(witness)
    client.send(ToLauncher(forget=[key("1")]))
    client.start(witness, harness.request("2", "true", directory=tmp_path))
    client.wait_ended(key("2"))

    assert "ran\n" == (tmp_path / "witness").read_text()


def test_a_job_that_ignores_sigterm_is_killed_after_the_grace_time(
    client: harness.Client, tmp_path: Path
) -> None:
    """
    The order is carried out by the launcher, so it holds when the agent has ended meanwhile.
    """
    client.start(shell("1", "trap '' TERM; echo up; while :; do sleep 1; done", tmp_path))
    client.wait_running(key("1"))
    while not (tmp_path / "1.out").read_text():
        time.sleep(0.005)
    client.send(ToLauncher(order=[OrderRequest(5, OrderKind.KILL, "1", 1, 100)]))

    (ended,) = client.wait_ended(key("1"))

    assert (signal.SIGKILL, [(5, "signalled")]) == (
        ended.signal,
        [(one.order_number, one.outcome) for one in client.orders],
    )


def order(number: int, kind: OrderKind, grace_ms: int = 5000) -> ToLauncher:
    return ToLauncher(order=[OrderRequest(number, kind, "1", 1, grace_ms)])


def outcomes(client: harness.Client, count: int) -> list[tuple[int, str]]:
    while len(client.orders) < count:
        client.hear()
    return [(one.order_number, one.outcome) for one in client.orders]


@pytest.mark.parametrize(
    "script", ["exec sleep 1000", "trap '' TSTP; while :; do sleep 0.01; done"]
)
def test_a_job_is_stopped_and_goes_on_whether_it_heeds_the_signal_or_not(
    client: harness.Client, tmp_path: Path, script: str
) -> None:
    """
    SIGTSTP lets a program prepare; one that runs on all the same is stopped by SIGSTOP.
    """
    client.start(shell("1", f"echo up; {script}", tmp_path))
    pid = client.wait_running(key("1")).pid
    while not (tmp_path / "1.out").read_text():
        time.sleep(0.005)
    client.send(order(1, OrderKind.SUSPEND, 300))
    stopped = outcomes(client, 1)
    while not processes.is_stopped(pid):
        time.sleep(0.005)
    client.send(order(2, OrderKind.RESUME))
    resumed = outcomes(client, 2)
    while processes.is_stopped(pid):
        time.sleep(0.005)
    client.send(order(3, OrderKind.SUSPEND, 300))
    outcomes(client, 3)
    client.send(order(4, OrderKind.KILL))
    (ended,) = client.wait_ended(key("1"))

    assert [(1, "stopped")] == stopped
    assert (2, "signalled") == resumed[1]
    assert (signal.SIGTERM, 4) == (ended.signal, len(outcomes(client, 4)))


def test_a_resume_overtakes_a_stop_that_is_under_way(
    client: harness.Client, tmp_path: Path
) -> None:
    """
    The SIGSTOP of an order that was taken back must not come after it.
    """
    script = "trap '' TSTP; echo up; while [ ! -e go ]; do sleep 0.01; done"
    client.start(shell("1", script, tmp_path))
    client.wait_running(key("1"))
    while not (tmp_path / "1.out").read_text():
        time.sleep(0.005)
    client.send(order(1, OrderKind.SUSPEND, 200))
    client.send(order(2, OrderKind.RESUME))

    assert [(1, "overtaken"), (2, "signalled")] == outcomes(client, 2)
    time.sleep(0.3)  # The time of the SIGSTOP that must not come.
    (tmp_path / "go").touch()
    (ended,) = client.wait_ended(key("1"))
    assert 0 == ended.exit_code


def test_an_order_is_carried_out_once_and_bars_an_attempt_that_never_came(
    client: harness.Client, tmp_path: Path
) -> None:
    """
    A kill that overtakes its assignment must win, and a repeated order must do nothing.
    """
    client.send(ToLauncher(order=[OrderRequest(1, OrderKind.KILL, "1", 1, 100)]))
    client.start(harness.request("1", "true", directory=tmp_path))
    client.send(ToLauncher(order=[OrderRequest(1, OrderKind.KILL, "1", 1, 100)]))

    (ended,) = client.wait_ended(key("1"))
    while len(client.orders) < 2:
        client.hear()

    assert "killed before it started" == ended.failed
    assert ["not running", "carried out before"] == [one.outcome for one in client.orders]


def test_what_a_job_leaves_in_its_group_ends_with_it(
    client: harness.Client, tmp_path: Path
) -> None:
    """
    A slot is free when its job has ended; what would go on in the background would use it twice.
    """
    client.start(shell("1", "sleep 1000 & echo $!", tmp_path))

    client.wait_ended(key("1"))

    left = int((tmp_path / "1.out").read_text())
    deadline = time.monotonic() + harness.DEADLINE_S
    while processes.born_ticks(left) and time.monotonic() < deadline:
        time.sleep(0.005)
    assert 0 == processes.born_ticks(left)


def test_ends_wait_for_the_next_agent(
    client: harness.Client, files: WorkerFiles, tmp_path: Path
) -> None:
    """
    An agent may be away when a job ends; the next one hears of it in the greeting.
    """
    client.start(shell("1", f"while [ ! -e {tmp_path}/go ]; do sleep 0.01; done; exit 3", tmp_path))
    client.wait_running(key("1"))
    client.close()
    (tmp_path / "go").touch()

    late = harness.Client(files)

    (ended,) = late.wait_ended(key("1"))
    late.close()
    assert 3 == ended.exit_code


def test_a_second_launcher_of_a_worker_ends_at_once(
    files: WorkerFiles, client: harness.Client
) -> None:
    """
    Two of them would start everything twice.
    """
    second = harness.start_process(files)

    assert 0 == second.wait(harness.DEADLINE_S)
    assert int(files.launcher_lock.read_text()) != second.pid


def test_a_killed_launcher_loses_no_attempt_and_its_successor_adopts_what_runs(
    files: WorkerFiles, client: harness.Client, tmp_path: Path
) -> None:
    """
    After kill -9 of the launcher: an end that was written is told, a running job is watched and
    not started again; only its exit status can't be known.
    """
    go = tmp_path / "go"
    runs = f"echo ran >> {tmp_path}/witness; while [ ! -e {go} ]; do sleep 0.01; done"
    client.start(shell("1", "exit 4", tmp_path), shell("2", runs, tmp_path))
    client.wait_ended(key("1"))
    client.wait_running(key("2"))
    harness.crash(files)
    client.close()
    successor = harness.start_process(files)
    late = harness.Client(files)

    late.start(shell("2", runs, tmp_path))
    before = {one.job_id: (one.phase, one.exit_code) for one in late.greeting.attempts}
    go.touch()
    (ended,) = late.wait_ended(key("2"))

    late.close()
    harness.end(files)
    successor.wait(harness.DEADLINE_S)
    assert {"1": (Phase.ENDED, 4), "2": (Phase.RUNNING, None)} == before
    assert (None, None) == (ended.exit_code, ended.signal)
    assert "ran\n" == (tmp_path / "witness").read_text()


def test_quit_ends_every_job_and_keeps_their_ends(
    files: WorkerFiles, client: harness.Client, tmp_path: Path
) -> None:
    """
    Taking a cluster down must leave nothing running, and no job without an end.
    """
    client.start(shell("1", "sleep 1000", tmp_path))
    pid = client.wait_running(key("1")).pid
    client.send(ToLauncher(quit=True))

    (ended,) = client.wait_ended(key("1"))

    harness.wait_gone(files)
    assert (signal.SIGKILL, 0) == (ended.signal, processes.born_ticks(pid))
    successor = harness.start_process(files)
    late = harness.Client(files)
    late.close()
    harness.end(files)
    successor.wait(harness.DEADLINE_S)
    assert [signal.SIGKILL] == [one.signal for one in late.greeting.attempts]


@pytest.mark.needs_program("strace")
def test_a_start_is_synced_before_the_program_runs_and_an_end_before_it_is_told(
    tmp_path: Path,
) -> None:
    """
    A power cut after an end was told must not bring the job back; strace sees the order of calls.
    """
    files = WorkerFiles(tmp_path, "w1")
    trace = tmp_path / "trace"
    files.directory.mkdir(parents=True)
    traced = subprocess.Popen(
        [
            "strace",
            "-f",
            "-s",
            "500",
            "-o",
            str(trace),
            "-e",
            "trace=fdatasync,execve,vfork,clone,clone3,sendto",
            sys.executable,
            "-P",
            "-m",
            "tools.agent.launcher",
            "--dir",
            str(tmp_path),
            "--name",
            "w1",
        ]
    )
    client = harness.Client(files)
    client.start(harness.request("1", "true", directory=tmp_path))
    client.wait_ended(key("1"))
    client.close()
    harness.end(files)
    traced.wait(harness.DEADLINE_S)

    calls = trace.read_text().splitlines()
    start = next(n for n, call in enumerate(calls) if 'bin/true"' in call)
    told = next(n for n, call in enumerate(calls) if "sendto" in call and "exit_code" in call)
    synced = [n for n, call in enumerate(calls) if "fdatasync" in call]
    assert any(n < start for n in synced[1:])
    assert any(start < n < told for n in synced)


def test_a_torn_tail_is_dropped_and_damage_before_it_is_refused(tmp_path: Path) -> None:
    """
    What a power cut tears was never told; what is damaged further up was, and can't be guessed.
    """
    path = tmp_path / "spool"
    spool = Spool(path)
    spool.put(Attempt("1", 1, Phase.INTENDED), Attempt("2", 1, Phase.ENDED, exit_code=0))
    spool.close()
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])

    torn = Spool(path)
    kept = list(torn.attempts)
    torn.put(Attempt("3", 1, Phase.ENDED, exit_code=1))
    torn.close()

    assert [key("1")] == kept
    assert [key("1"), key("3")] == list(Spool(path).attempts)
    path.write_bytes(whole.replace(b"intended", b"intendet"))
    with pytest.raises(Corrupt) as failed:
        Spool(path)
    assert ("checksum", str(path)) == (failed.value.kind, failed.value.path)


def test_a_compacted_spool_says_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The journal must not grow for ever, and writing it anew must change nothing of what it says.
    """
    monkeypatch.setattr("tools.agent.spool.COMPACT_BYTES_MIN", 1000)
    monkeypatch.setattr("tools.agent.spool.FORGOTTEN_KEPT", 8)
    spool = Spool(tmp_path / "spool")
    spool.booted("boot")
    spool.order_done(9)
    spool.put(Attempt("7", 1, Phase.RUNNING, pid=5, born_ticks=6))
    for number in range(100, 200):
        spool.put(Attempt(str(number), 1, Phase.ENDED, exit_code=0))
        spool.forget([AttemptKey(str(number), 1)])
    size = (tmp_path / "spool").stat().st_size
    spool.close()

    again = Spool(tmp_path / "spool")

    assert size < 3000
    assert (spool.attempts, 9, "boot") == (again.attempts, again.last_order, again.boot_id)
    assert again.knows(key("199"))


def test_after_a_reboot_no_process_is_taken_for_a_job(tmp_path: Path) -> None:
    """
    Process numbers begin anew at each boot: what runs under a job's former number isn't the job.
    """
    files = WorkerFiles(tmp_path, "w1")
    files.directory.mkdir(parents=True)
    spool = Spool(files.spool)
    spool.booted("another boot")
    spool.put(Attempt("1", 1, Phase.RUNNING, pid=os.getpid()), Attempt("2", 1, Phase.INTENDED))
    spool.close()

    with harness.running(tmp_path) as found:
        client = harness.Client(found)
        client.close()

    told = {one.job_id: (one.phase, one.exit_code, one.failed) for one in client.greeting.attempts}
    assert {"1": (Phase.ENDED, None, ""), "2": (Phase.ENDED, None, "")} == told


def test_a_start_whose_record_was_lost_is_found_by_its_environment(tmp_path: Path) -> None:
    """
    Killed between the start and its record, the launcher's successor must find the program: it
    would otherwise run unseen, and its slot be given away.
    """
    files = WorkerFiles(tmp_path, "w1")
    files.directory.mkdir(parents=True)
    env = {"XCE_JOB_ID": "1", "XCE_ATTEMPT": "1", "XCE_WORKER_DIR": str(files.directory)}
    orphan = subprocess.Popen(["sleep", "1000"], env=env, process_group=0)
    spool = Spool(files.spool)
    spool.booted(processes.boot_id())
    spool.put(Attempt("1", 1, Phase.INTENDED), Attempt("2", 1, Phase.INTENDED))
    spool.close()
    try:
        with harness.running(tmp_path) as found:
            client = harness.Client(found)
            told = {one.job_id: (one.phase, one.pid) for one in client.greeting.attempts}
            orphan.kill()
            orphan.wait()
            client.wait_ended(key("1"))
            client.close()
    finally:
        orphan.kill()

    assert {"1": (Phase.RUNNING, orphan.pid), "2": (Phase.ENDED, 0)} == told
