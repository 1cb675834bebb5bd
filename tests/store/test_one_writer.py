"""
One writer: who comes second is refused by name, and who was passed can't write any more.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from eventsourcing.persistence import ProgrammingError

from domain.errors import Conflict
from store.embedded.environment import acquire
from store.embedded.settings import Settings
from store.lock import LOCK_FILE, is_held, read_holder, take_over
from store.log import EventLog
from store.verify import verify_here
from tools.torture.workload import job_events

REPO = Path(__file__).resolve().parent.parent.parent

# Appends job N for every line N it gets, and says what came of it.
WRITER = """
import sys
from domain.errors import XceError
from store.log import EventLog
from tools.torture.workload import job_events
log = EventLog.open(sys.argv[1], writable=True)
print("ready", flush=True)
for line in sys.stdin:
    try:
        print("position", log.append(job_events(int(line))), flush=True)
    except XceError as error:
        print(type(error).__name__, error, flush=True)
"""


@contextmanager
def writer(directory: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(directory)], cwd=REPO, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert "ready\n" == process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def ask(process: subprocess.Popen[str], number: int) -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{number}\n")
    process.stdin.flush()
    return process.stdout.readline()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    EventLog.create(tmp_path / "log", log_id="the-log").close()
    return tmp_path / "log"


def test_the_second_is_refused_at_once_naming_the_first(directory: Path) -> None:
    """
    Promise 17: within two seconds, also through another name of the directory.
    """
    (directory.parent / "alias").symlink_to(directory)
    with writer(directory) as first:
        for name in ("log", "alias"):
            began = time.monotonic()
            with pytest.raises(Conflict) as caught:
                EventLog.open(directory.parent / name, writable=True)
            assert time.monotonic() - began < 2
            assert f"process {first.pid} " in str(caught.value.found)


def test_a_dead_writer_keeps_nobody_out(directory: Path) -> None:
    """
    The kernel lets the lock go; nobody has to remove a file by hand.
    """
    with writer(directory) as first:
        assert "position 4\n" == ask(first, 1)
        first.kill()
        first.wait()
        with EventLog.open(directory, writable=True) as log:
            assert 8 == log.append(job_events(2))
            assert 3 == log.epoch


def test_a_child_that_outlives_its_parent_keeps_nobody_out(directory: Path) -> None:
    """
    A forked child inherits the file lock, and would hold it as long as it lives.
    """
    code = (
        "import multiprocessing, os, signal, sys, time\nfrom store.log import EventLog\n"
        "log = EventLog.open(sys.argv[1], writable=True)\n"
        "child = multiprocessing.get_context('fork').Process(target=time.sleep, args=(60,))\n"
        "child.start()\nprint(child.pid, flush=True)\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(directory)], cwd=REPO, text=True, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        try:
            parent.wait(timeout=30)
            deadline = time.monotonic() + 10
            while is_held(directory) and time.monotonic() < deadline:
                pass
            with EventLog.open(directory, writable=True) as log:
                assert 4 == log.append(job_events(1))
        finally:
            os.kill(child, signal.SIGKILL)


def test_one_that_was_stopped_and_wakes_up_later_cannot_write(directory: Path) -> None:
    """
    The epoch is compared inside the write transaction, so even a broken lock lets no stale event
    in.
    """
    with writer(directory) as first:
        assert "position 4\n" == ask(first, 1)
        os.kill(first.pid, signal.SIGSTOP)
        (directory / LOCK_FILE).unlink()
        with EventLog.open(directory, writable=True) as log:
            assert 8 == log.append(job_events(2))
            os.kill(first.pid, signal.SIGCONT)
            assert ask(first, 3).startswith("Conflict")
            assert 12 == log.append(job_events(4))
    assert (12, True) == (verify_here(directory).events, verify_here(directory).is_good)


def test_taking_over_ends_a_stopped_holder_first(directory: Path) -> None:
    """
    It may sit on the engine's own lock, on which the newcomer would wait for ever.
    """
    with writer(directory) as first:
        os.kill(first.pid, signal.SIGSTOP)
        holder = read_holder(directory)
        ended = take_over(directory)
        assert holder == ended
        assert -signal.SIGKILL == first.wait(timeout=5)
    assert not is_held(directory)
    with (
        writer(directory) as second,
        EventLog.open(directory, writable=True, takes_over=True) as log,
    ):
        assert -signal.SIGKILL == second.wait(timeout=5)
        assert 4 == log.append(job_events(1))


def test_taking_over_spares_a_process_that_only_has_the_number(directory: Path) -> None:
    """
    Process numbers are given out again.
    """
    sleeper = subprocess.Popen(["sleep", "60"])
    try:
        with EventLog.open(directory, writable=True):
            holder = read_holder(directory)
            assert holder is not None
            text = (directory / LOCK_FILE).read_text()
            pid = f'"pid": {holder.pid}'
            (directory / LOCK_FILE).write_text(text.replace(pid, f'"pid": {sleeper.pid}'))
            with pytest.raises(Conflict):
                take_over(directory)
        assert sleeper.poll() is None
    finally:
        sleeper.kill()
        sleeper.wait()


def test_nobody_is_ended_when_nobody_writes(directory: Path) -> None:
    """
    The file names the last holder for ever.
    """
    assert read_holder(directory) is not None
    assert take_over(directory) is None


def test_many_threads_append_one_after_the_other(directory: Path) -> None:
    """
    Another thread could commit someone's write transaction without any error: they never meet.
    """
    with EventLog.open(directory, writable=True) as log:
        threads = [
            threading.Thread(
                target=lambda n=n: [log.append(job_events(n * 10 + m)) for m in range(9)]
            )
            for n in range(1, 9)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert 8 * 9 * 4 == log.head()
    assert verify_here(directory).is_good


def test_a_transaction_within_a_transaction_raises_instead_of_waiting_for_itself(
    directory: Path,
) -> None:
    """
    The engine has no timeout.
    """
    environment = acquire(Settings(directory.resolve()))
    with pytest.raises(ProgrammingError):
        environment.write(lambda _: environment.write(lambda _: None))
    with pytest.raises(ProgrammingError):
        environment.write(lambda _: environment.database(b"new"))
    assert 1 == environment.write(lambda _: 1)
    environment.release()


def test_a_new_boot_after_a_crash_has_the_structure_walked(directory: Path, monkeypatch) -> None:
    """
    Only then may pages have been lost; the walk takes time in proportion to the file.
    """
    walked = []
    import store.log

    real = store.log.acquire
    monkeypatch.setattr(
        store.log, "acquire", lambda *a, **k: walked.append(k.get("thorough")) or real(*a, **k)
    )
    text = (directory / LOCK_FILE).read_text()
    EventLog.open(directory, writable=True).close()
    crashed = text.replace('"is_clean": true', '"is_clean": false')
    (directory / LOCK_FILE).write_text(crashed)
    EventLog.open(directory, writable=True).close()
    holder = read_holder(directory)
    assert holder is not None
    (directory / LOCK_FILE).write_text(crashed.replace(holder.boot_id, "another boot"))
    EventLog.open(directory, writable=True).close()

    assert [False, False, True] == walked


BEGINNERS = """
import multiprocessing, sys
from pathlib import Path
from uuid import NAMESPACE_OID, uuid5
from eventsourcing.persistence import StoredEvent
from store.embedded.factory import EmbeddedFactory
from eventsourcing.utils import Environment

def begin(folder, me, barrier):
    for at in range(ROUNDS):
        barrier.wait(60)
        factory = EmbeddedFactory(Environment("", {"LMDB_PATH": f"{folder}/{at}"}))
        event = StoredEvent(uuid5(NAMESPACE_OID, str(me)), 1, "t", b"{}")
        factory.application_recorder().insert_events([event])
        factory.close()

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(3)
    processes = [context.Process(target=begin, args=(sys.argv[1], me, barrier)) for me in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    sys.exit(max(process.exitcode for process in processes))
"""


def test_several_processes_that_begin_one_log_begin_the_same(tmp_path: Path) -> None:
    """
    Each would give it an identity, from which the chain of those before it doesn't follow.
    """
    rounds = 30
    script = tmp_path / "beginners.py"
    script.write_text(BEGINNERS.replace("ROUNDS", str(rounds)))

    subprocess.run([sys.executable, script, tmp_path], check=True, timeout=180)

    for at in range(rounds):
        with EventLog.open(tmp_path / str(at), writable=False) as log:
            assert 3 == len(list(log.rows())), f"round {at}"
