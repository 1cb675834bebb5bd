"""
Traps of the engine and of the compressor that were measured once: each would show here.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest
from eventsourcing.persistence import OperationalError

from domain.errors import StoreUnavailable, XceError
from store.compression import compress, decompress
from store.dictionaries import current
from store.embedded import preflight
from store.embedded.environment import Environment, acquire
from store.embedded.frames import STATE_MAX
from store.embedded.layout import ID_BYTES_MAX
from store.embedded.recorder import EmbeddedApplicationRecorder
from store.embedded.settings import Settings
from store.log import EventLog
from store.verify import verify_here
from tools.torture.workload import fill, job_events, jobs_events

REPO = Path(__file__).resolve().parents[2]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    with EventLog.create(tmp_path / "log", log_id="the-log") as log:
        fill(log, commits=3)
    return tmp_path / "log"


def hold_many(environment: Environment, held: ExitStack) -> None:
    for _ in range(10):
        held.enter_context(environment.read())


def test_threads_never_share_a_context_of_the_compressor() -> None:
    """
    One that two threads use at once ends the process.
    """
    _, dictionary = current()
    texts = [random.Random(job).randbytes(2000) for job in range(1, 9)]
    wrong: list[bytes] = []

    def work(text: bytes) -> None:
        for number in range(2000):
            chosen = dictionary if number % 2 else None
            packed = compress(text, dictionary=chosen)
            if decompress(packed, size=len(text), dictionary=chosen) != text:
                wrong.append(text)

    threads = [threading.Thread(target=work, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [] == wrong


def test_an_id_too_long_for_a_key_is_refused_by_name_and_the_log_goes_on(directory: Path) -> None:
    """
    The engine would say BadValsizeError, in the middle of a commit.
    """
    first = job_events(500)[0]
    with EventLog.open(directory, writable=True) as log:
        head = log.head()
        with pytest.raises(XceError) as caught:
            log.append([first._replace(stream="x" * ID_BYTES_MAX)])
        assert str(ID_BYTES_MAX) in caught.value.text()
        assert head == log.head()
        assert head + 1 == log.append([first._replace(stream="x" * (ID_BYTES_MAX - 1))])


def test_a_state_too_large_is_refused_by_name_and_the_log_goes_on(directory: Path) -> None:
    """
    All of a frame is in memory when it is read, so no event may make it arbitrarily large.
    """
    first = job_events(500)[0]
    large = first._replace(cause="c" * (STATE_MAX + 1))
    with EventLog.open(directory, writable=True) as log:
        head = log.head()
        with pytest.raises(XceError) as caught:
            log.append([large])
        assert str(STATE_MAX) in caught.value.text()
        assert head + 1 == log.append([first])
    assert verify_here(directory).is_good


def test_a_reader_that_rests_between_two_events_holds_no_pages_back(directory: Path) -> None:
    """
    With an open transaction the file would grow with every commit, and never shrink again.
    """
    with EventLog.open(directory, writable=True) as log:
        reading = log.read()
        next(reading)
        assert (0, 0) == (log.info().readers, log.info().oldest_reader_lag)
        log.append(jobs_events(500, 5))
        assert log.head() - 1 == sum(1 for _ in reading)


def test_a_full_reader_table_names_the_setting(tmp_path: Path) -> None:
    """
    MDB_READERS_FULL says nothing to whoever runs a cluster.
    """
    environment = acquire(Settings(tmp_path / "log", readers_max=3))
    try:
        EmbeddedApplicationRecorder(environment)
        with ExitStack() as held, pytest.raises(OperationalError, match="LMDB_MAX_READERS"):
            hold_many(environment, held)
        with environment.read() as transaction:
            assert transaction.id() > 0
    finally:
        environment.release()


def test_a_network_file_system_is_refused_by_its_type_unless_allowed(monkeypatch) -> None:
    """
    Locks and shared maps don't work there. A file system in memory stands for one here.
    """
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
        assert "tmpfs" == preflight.file_system_of(Path(place))
        monkeypatch.setattr(preflight, "NETWORK_FILE_SYSTEMS", frozenset({"tmpfs"}))
        with pytest.raises(StoreUnavailable) as caught:
            EventLog.create(Path(place) / "log", log_id="the-log")
        assert "is on tmpfs" in caught.value.text()
        EventLog.create(Path(place) / "log", log_id="the-log", allow_network=True).close()


def test_the_file_systems_of_clusters_are_known() -> None:
    """
    Home and scratch directories are on these.
    """
    assert {"nfs", "nfs4", "cifs", "lustre", "gpfs", "beegfs", "ceph", "9p", "fuse.sshfs"} <= (
        preflight.NETWORK_FILE_SYSTEMS
    )


@pytest.mark.needs_root
def test_containers_that_have_one_number_for_their_processes_are_told(directory: Path) -> None:
    """
    Both readers are process 1 of their own; the engine only says that something is unavailable.
    """
    code = (
        "import sys\nfrom domain.errors import XceError\nfrom store.log import EventLog\n"
        "try: log = EventLog.open(sys.argv[1], writable=False)\n"
        "except XceError as error: print(error.text(), flush=True)\n"
        "else: print(log.head(), flush=True); sys.stdin.read()\n"
    )
    command = ["unshare", "--pid", "--fork", "--kill-child", sys.executable, "-c", code]
    with subprocess.Popen(
        [*command, str(directory)], cwd=REPO, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as first:  # fmt: skip
        assert first.stdout is not None
        assert "120\n" == first.stdout.readline()
        second = subprocess.run(
            [*command, str(directory)], cwd=REPO, text=True, stdin=subprocess.DEVNULL,
            capture_output=True, check=True, timeout=60,
        )  # fmt: skip
        first.communicate("")
    assert "pid namespaces" in second.stdout
