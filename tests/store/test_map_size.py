"""
A map that another process has raised is taken over between two transactions of this one, never
under one that is open.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import lmdb
import pytest

import store.embedded.environment
from store.embedded.environment import Environment, acquire
from store.embedded.layout import META
from store.embedded.settings import Settings

REPO = Path(__file__).resolve().parent.parent.parent
GROWER = (
    "import sys\nfrom pathlib import Path\nfrom store.embedded.environment import acquire\n"
    "from store.embedded.layout import META\nfrom store.embedded.settings import Settings\n"
    "environment = acquire(Settings(Path(sys.argv[1]), map_size=64 << 20), create=False)\n"
    "meta = environment.database(META)\n"
    "environment.write(lambda transaction: transaction.put(b'big', bytes(8 << 20), db=meta))\n"
    "environment.release()\n"
)


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[Environment]:
    settings = Settings(tmp_path / "log", map_size=1 << 20)
    found = acquire(settings, log_id="the-log")
    yield found
    found.release()


def read(environment: Environment) -> int:
    with environment.read() as transaction:
        return len(transaction.get(b"big", b"", environment.database(META)))


def write(environment: Environment) -> int:
    meta = environment.database(META)
    environment.write(lambda transaction: transaction.put(b"small", b"x", db=meta))
    return read(environment)


@pytest.mark.parametrize("work", [read, write])
def test_a_raised_map_is_taken_over_when_no_other_transaction_is_open(
    environment: Environment, work: Callable[[Environment], int]
) -> None:
    """
    The map moves: what an open transaction points at would be gone.
    """
    results: list[int] = []
    thread = threading.Thread(target=lambda: results.append(work(environment)))
    environment.database(META)
    with environment.read() as transaction:
        subprocess.run(
            [sys.executable, "-c", GROWER, environment.path], cwd=REPO, check=True, timeout=60
        )
        thread.start()
        thread.join(timeout=0.5)
        assert thread.is_alive(), "it waits for this transaction"
        assert b"the-log" == transaction.get(b"log_id", db=environment.database(META))
    thread.join(timeout=4)

    assert [8 << 20] == results
    assert environment.map_size() >= 8 << 20


def test_nobody_begins_while_the_map_is_taken_over(environment: Environment, monkeypatch) -> None:
    """
    A writer says that it is there without taking a lock; it must see that somebody waits.
    """
    meta = environment.database(META)
    subprocess.run(
        [sys.executable, "-c", GROWER, environment.path], cwd=REPO, check=True, timeout=60
    )
    resizing, go_on, begun = threading.Event(), threading.Event(), threading.Event()
    adopt = environment.handle.set_mapsize

    class Slow:
        """
        Be the engine's handle, but take a while to come back from adopting the map's size.
        """

        def __getattr__(self, name: str) -> object:
            return getattr(handle, name)

        def set_mapsize(self, size: int) -> None:
            adopt(size)
            resizing.set()
            go_on.wait(timeout=20)

        def begin(self, *, write: bool = False) -> lmdb.Transaction:
            if write:
                begun.set()
            return handle.begin(write=write)

    handle = environment.handle
    monkeypatch.setattr(environment, "handle", Slow())
    reader = threading.Thread(target=lambda: read(environment))

    writer = threading.Thread(
        target=lambda: environment.write(
            lambda transaction: transaction.put(b"small", b"x", db=meta)
        )
    )
    reader.start()
    assert resizing.wait(timeout=20)
    writer.start()
    assert not begun.wait(timeout=0.5), "it waits for the map"
    go_on.set()
    reader.join(timeout=20)
    writer.join(timeout=20)

    assert begun.is_set()
    assert 8 << 20 == read(environment)


def test_two_that_find_a_raised_map_at_once_do_not_wait_for_each_other(
    environment: Environment, monkeypatch
) -> None:
    """
    Neither has a transaction open: both are refused, and one after the other begins.
    """
    environment.database(META)
    subprocess.run(
        [sys.executable, "-c", GROWER, environment.path], cwd=REPO, check=True, timeout=60
    )
    refused = threading.Barrier(2)
    begin_resized = environment._begin_resized

    def begin_together(*, write: bool) -> lmdb.Transaction:
        refused.wait(timeout=20)
        return begin_resized(write=write)

    monkeypatch.setattr(environment, "_begin_resized", begin_together)
    monkeypatch.setattr(store.embedded.environment, "RESIZE_WAIT_S", 60)
    results: list[int] = []
    threads = [
        threading.Thread(target=lambda: results.append(read(environment)), daemon=True)
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)

    assert [8 << 20] * 2 == results
