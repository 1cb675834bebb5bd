"""
Pages ahead: commits of a log whose answers wait for the disk find free pages that lie side by side.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import lmdb
import pytest

import store.engines
from store.embedded.ahead import CHUNK_PAGES, LOW_PAGES, keep_ahead
from store.embedded.cursors import get
from store.embedded.environment import Environment, acquire
from store.embedded.layout import KEY_AHEAD, META
from store.embedded.preflight import DATA_FILE
from store.embedded.settings import Settings
from store.log import EventLog
from store.verify import verify_here
from tools.torture.workload import job_events

REPO = Path(__file__).resolve().parent.parent.parent
COMMITS, EVENTS_PER_UPKEEP = 300, 60
APPENDER = (
    "import sys\nimport store.engines\nfrom store.log import EventLog\n"
    "from tools.torture.workload import job_events\n"
    f"store.engines.EVENTS_PER_UPKEEP = {EVENTS_PER_UPKEEP}\n"
    "if sys.argv[2] == 'without': store.engines.keep_ahead = lambda *_: None\n"
    "with EventLog.create(sys.argv[1], log_id='the-log') as log:\n"
    f"    for number in range({COMMITS}): log.append(job_events(number + 1)[:1])\n"
)


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[Environment]:
    found = acquire(Settings(tmp_path / "log"), log_id="the-log")
    yield found
    found.release()


def writes_of(directory: Path, how: str) -> int:
    """
    Return how many requests to write pages some commits of one event make.
    """
    trace = directory.with_suffix(".strace")
    subprocess.run(
        ["strace", "-f", "-qq", "-o", trace, "-P", directory / DATA_FILE, "-e",
         "trace=pwrite64,writev", sys.executable, "-c", APPENDER, directory, how],
        cwd=REPO, check=True, timeout=120,
    )  # fmt: skip
    calls = re.findall(r"= (\d+)$", trace.read_text(), re.MULTILINE)
    return sum(int(written) >= 4096 for written in calls)


@pytest.mark.needs_program("strace")
def test_the_pages_of_a_commit_are_fewer_requests_to_the_disk(tmp_path: Path) -> None:
    """
    Each of them is something that a durable answer waits for.
    """
    directories = tmp_path / "with", tmp_path / "without"
    ahead, without = (writes_of(each, each.name) for each in directories)

    assert ahead < 0.75 * without
    assert verify_here(directories[0]).is_good
    with (
        EventLog.open(directories[0], writable=False) as one,
        EventLog.open(directories[1], writable=False) as two,
    ):
        assert list(one.read()) == list(two.read())


def test_a_chunk_is_added_when_few_pages_are_free_and_only_then(environment: Environment) -> None:
    """
    The file is never further ahead than by what was left and one chunk.
    """
    assert environment.free_pages() < LOW_PAGES
    assert keep_ahead(environment)
    assert CHUNK_PAGES <= environment.free_pages() < CHUNK_PAGES + LOW_PAGES
    assert not keep_ahead(environment)

    meta = environment.database(META)
    environment.write(lambda transaction: transaction.put(b"small", b"x", db=meta))
    size = (environment.settings.path / DATA_FILE).stat().st_size
    pages = (CHUNK_PAGES - LOW_PAGES // 2) * environment.page_size
    environment.write(lambda transaction: transaction.put(b"large", bytes(pages), db=meta))
    assert size == (environment.settings.path / DATA_FILE).stat().st_size, "out of the chunk"
    assert keep_ahead(environment)


def test_what_a_kill_left_between_the_two_commits_is_taken_out(environment: Environment) -> None:
    """
    Its pages would be lost to the log.
    """
    meta = environment.database(META)
    left = bytes(CHUNK_PAGES * environment.page_size)
    environment.write(lambda transaction: transaction.put(KEY_AHEAD, left, db=meta))

    keep_ahead(environment)

    with environment.read() as transaction:
        assert get(transaction, KEY_AHEAD, meta) is None
    assert CHUNK_PAGES <= environment.free_pages()


def test_a_writer_that_was_passed_adds_nothing(environment: Environment) -> None:
    """
    It was stopped behind its last commit, and the log is another's when it wakes up.
    """
    epoch = environment.raise_epoch()
    environment.raise_epoch()
    size = environment.used_bytes()

    assert not keep_ahead(environment, epoch)
    assert size == environment.used_bytes()
    assert keep_ahead(environment, epoch + 1)


@pytest.mark.parametrize("settings", [{"durability": "none"}, {"map_size": 4 << 20}])
def test_nothing_is_added_where_nobody_waits_or_room_is_short(
    tmp_path: Path, settings: dict[str, str | int]
) -> None:
    """
    What is left of a map or disk is for events.
    """
    environment = acquire(Settings(tmp_path / "log", **settings), log_id="the-log")  # type: ignore[arg-type]
    try:
        size = environment.used_bytes()
        assert not keep_ahead(environment)
        assert size == environment.used_bytes()
    finally:
        environment.release()


def test_a_disk_without_room_for_a_chunk_refuses_no_event(tmp_path: Path) -> None:
    """
    The limit of a file's size is met by the chunk long before events meet it.
    """
    code = (
        "import os, resource, sys\nfrom store.log import EventLog\n"
        "from tools.torture.workload import job_events\n"
        "log = EventLog.create(sys.argv[1], log_id='the-log')\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (300 << 10, resource.RLIM_INFINITY))\n"
        "for number in range(260): log.append(job_events(number + 1)[:1])\n"
        "print(log.head(), os.stat(sys.argv[1] + '/data.mdb').st_size < 300 << 10)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "log"], cwd=REPO, text=True, check=False,
        capture_output=True, timeout=60,
    )  # fmt: skip

    assert ["260", "True"] == done.stdout.split(), done.stderr


def test_a_writer_looks_for_pages_ahead_now_and_then(tmp_path: Path, monkeypatch) -> None:
    """
    A log that few events are written to stays small.
    """
    monkeypatch.setattr(store.engines, "EVENTS_PER_UPKEEP", 20)
    with EventLog.create(tmp_path / "log", log_id="the-log") as log:
        for number in range(1, 20):
            log.append(job_events(number)[:1])
        small = log.info().bytes
        assert small < CHUNK_PAGES * 4096
        log.append(job_events(20)[:1])
        assert log.info().bytes >= small + CHUNK_PAGES * 4096


def test_a_full_table_of_readers_denies_no_commit(tmp_path: Path, monkeypatch) -> None:
    """
    A look for free pages needs a place in it, a commit none: an error behind one would deny it.
    """
    monkeypatch.setattr(store.engines, "EVENTS_PER_UPKEEP", 2)
    with EventLog.create(tmp_path / "log", log_id="the-log") as log:
        numbers = iter(range(1, 9))
        for number in (next(numbers), next(numbers)):
            log.append(job_events(number)[:1])
        environment = acquire(Settings(tmp_path / "log", readonly=True), create=False)
        held = []
        with contextlib.suppress(lmdb.ReadersFullError):
            while True:
                held.append(environment.handle.begin())

        assert list(range(3, 9)) == [log.append(job_events(number)[:1]) for number in numbers]

        for transaction in held:
            transaction.abort()
        environment.release()
