"""
Traps of the engine and of the compressor that were measured once: each would show here.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import lmdb
import pytest
from eventsourcing.persistence import (
    DataError,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    StoredEvent,
    Tracking,
)

from domain.errors import Conflict, Corrupt, OutcomeUnknown, Refused, StoreUnavailable, XceError
from store.compression import compress, decompress
from store.dictionaries import current
from store.embedded import preflight
from store.embedded.environment import Environment, acquire
from store.embedded.frames import EVENTS_MAX, STATE_MAX
from store.embedded.index import append_rows
from store.embedded.kept import kept
from store.embedded.layout import ID_BYTES_MAX, number_bytes
from store.embedded.opening import DATABASES_MAX
from store.embedded.recorder import EmbeddedApplicationRecorder
from store.embedded.settings import Settings
from store.embedded.tracking import EmbeddedProcessRecorder
from store.log import EventLog
from store.translation import translated_error
from store.verify import verify_here
from tools.torture.workload import fill, job_events, jobs_events

NODE_BYTES = 8 + 2
"""What a row takes of a page beside key and value."""
PAGE_BYTES = 4096
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


PAGES_KEPT = 1 << 17
"""So many changed pages the engine keeps in memory; then it says MDB_TXN_FULL, or writes some."""


@pytest.mark.parametrize("topic", ["x" * 65_536, "\ud800"], ids=["too long", "no text"])
@pytest.mark.parametrize("count", [1, 2])
def test_a_topic_that_no_frame_can_hold_is_refused(tmp_path: Path, topic: str, count: int) -> None:
    """
    It would be an error of the standard library, of another kind for one row than for two.
    """
    environment = acquire(Settings(tmp_path, durability="none"))
    recorder = EmbeddedApplicationRecorder(environment)
    try:
        with pytest.raises(DataError):
            recorder.insert_rows([("s", version, topic, b"x") for version in range(1, count + 1)])
        assert recorder.max_notification_id() is None
        assert range(1, 2) == recorder.insert_rows([("s", 1, "x" * 65_535, b"x")])
        assert ["x" * 65_535] == [row[3] for row in recorder.iter_rows()]
    finally:
        environment.release()


@pytest.mark.slow
def test_a_commit_of_more_pages_than_the_engine_keeps_is_taken() -> None:
    """
    A store whose transactions keep all changed pages would refuse it (MDB_TXN_FULL), in the middle
    of an import.
    """
    value = bytes(2100)

    def put_all(transaction: lmdb.Transaction) -> None:
        for number in range(PAGES_KEPT + 100):
            transaction.put(number_bytes(number), value, db=database, append=True)

    with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
        environment = acquire(Settings(Path(place), durability="none"))
        try:
            database = environment.database(b"many")
            environment.write(put_all)
            with environment.read() as transaction:
                assert PAGES_KEPT + 100 == transaction.stat(database)["entries"]
        finally:
            environment.release()


HELD = PAGES_KEPT - 600
"""So many pages of two values each, and those above them, are just below what the engine keeps."""


@pytest.mark.slow
def test_a_transaction_whose_cursors_hold_all_pages_is_refused_and_the_next_one_is_taken() -> None:
    """
    Changed pages at which a cursor stands can't be written out early: that is when the engine says
    MDB_TXN_FULL. Nothing of the transaction is kept, and the log serves on.
    """
    value, turns = bytes(1800), iter(range(2 * HELD, 3 * HELD))
    cursors = []

    def hold(transaction: lmdb.Transaction, number: int) -> None:
        cursors.append(transaction.cursor(database))
        cursors[-1].set_key(number_bytes(number))

    def hold_all(transaction: lmdb.Transaction) -> None:
        for number in range(2 * HELD):
            transaction.put(number_bytes(number), value, db=database, append=True)
        for number in range(0, 2 * HELD, 2):
            hold(transaction, number)
        for number in turns:
            transaction.put(number_bytes(number), value, db=database, append=True)
            hold(transaction, number)

    with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
        environment = acquire(Settings(Path(place), durability="none"))
        try:
            database = environment.database(b"many")
            with pytest.raises(OperationalError, match="MDB_TXN_FULL"):
                environment.write(hold_all)
            assert next(turns) < 2 * HELD + 1200
            cursors.clear()
            environment.write(lambda transaction: transaction.put(b"k", b"v", db=database))
            with environment.read() as transaction:
                assert 1 == transaction.stat(database)["entries"]
        finally:
            environment.release()


@pytest.mark.parametrize("count", [1, 2, 3 * EVENTS_MAX])
def test_no_commit_has_more_than_a_few_cursors(tmp_path: Path, count: int) -> None:
    """
    So no commit can hold more pages than the engine keeps, however large it is.
    """
    opened: list[str] = []

    def note(_frame: object, event: str, called: object) -> None:
        if event == "c_call" and getattr(called, "__qualname__", "") == "Transaction.cursor":
            opened.append(event)

    rows = [(f"job:{number:010d}", 1, "t", b"x" * 40) for number in range(count)]
    again = [(stream, 2, topic, state) for stream, _, topic, state in rows]
    environment = acquire(Settings(tmp_path, durability="none"))
    try:
        recorder = EmbeddedApplicationRecorder(environment)
        for commit in (rows, again):
            opened.clear()
            sys.setprofile(note)
            try:
                recorder.insert_rows(commit)
            finally:
                sys.setprofile(None)
            assert len(opened) <= 4
        assert opened
    finally:
        environment.release()


FAMILIES = [
    (lmdb.MapFullError, OperationalError, StoreUnavailable),
    (lmdb.TxnFullError, OperationalError, StoreUnavailable),
    (lmdb.ReadersFullError, OperationalError, StoreUnavailable),
    (lmdb.LockError, OperationalError, StoreUnavailable),
    (lmdb.MemoryError, OperationalError, StoreUnavailable),
    (lmdb.BadValsizeError, DataError, Refused),
    (lmdb.KeyExistsError, IntegrityError, Conflict),
    (lmdb.CorruptedError, InternalError, Corrupt),
    (lmdb.PageNotFoundError, InternalError, Corrupt),
    (lmdb.PanicError, OperationalError, OutcomeUnknown),
    (lmdb.VersionMismatchError, InterfaceError, StoreUnavailable),
    (lmdb.ReadonlyError, NotSupportedError, StoreUnavailable),
    (lmdb.BadTxnError, ProgrammingError, StoreUnavailable),
    (lmdb.DbsFullError, ProgrammingError, StoreUnavailable),
]


@pytest.mark.parametrize(("kind", "family", "ours"), FAMILIES, ids=lambda each: each.__name__)
def test_every_error_of_the_engine_is_one_of_the_librarys_and_one_of_ours(
    tmp_path: Path, kind: type[lmdb.Error], family: type[Exception], ours: type[XceError]
) -> None:
    """
    Who must act is told by the family: an I/O error ends the scheduler, a full map doesn't.
    """
    environment = acquire(Settings(tmp_path, durability="none"))

    def fail(transaction: lmdb.Transaction) -> None:
        transaction.put(b"key", b"value", environment.database(b"some"))
        raise kind("what", kind.__name__)

    try:
        some = environment.database(b"some")
        with pytest.raises(family) as caught:
            environment.write(fail)
        assert isinstance(translated_error(caught.value), ours)
        assert str(tmp_path) in str(caught.value)
        with environment.read() as transaction:
            assert transaction.get(b"key", db=some) is None
        assert 1 == environment.write(lambda _: 1)
    finally:
        environment.release()


def test_too_many_databases_is_a_fault_of_the_program(tmp_path: Path) -> None:
    """
    Each application and purpose takes three names of a fixed number.
    """
    environment = acquire(Settings(tmp_path, durability="none"))
    try:
        first = EmbeddedApplicationRecorder(environment, name="first")
        # One is taken by the identity, two by the recorder.
        for number in range(DATABASES_MAX - 3):
            environment.database(b"%d" % number)
        with pytest.raises(ProgrammingError, match="DBS_FULL"):
            environment.database(b"one too many")
        assert range(1, 2) == first.insert_rows([("s", 1, "tick", b"x")])
    finally:
        environment.release()


def test_a_handle_of_a_closed_store_is_a_fault_of_the_program(tmp_path: Path) -> None:
    """
    The engine's error has the code 0 then, and looks like any other.
    """
    environment = acquire(Settings(tmp_path, durability="none"))
    recorder = EmbeddedApplicationRecorder(environment)
    environment.release()

    with pytest.raises(ProgrammingError, match="open it again"):
        recorder.max_notification_id()


def test_nothing_is_remembered_of_a_commit_that_was_undone(tmp_path: Path) -> None:
    """
    A cache that is filled within a transaction outlives its end: the first small frame would say
    that the log has its dictionary, and the next would build on a head that isn't there.
    """
    environment = acquire(Settings(tmp_path, durability="none"))
    recorder = EmbeddedProcessRecorder(environment)
    another = EmbeddedApplicationRecorder(environment)
    try:
        recorder.insert_tracking(Tracking("up", 5))
        before = recorder.journal.head()
        event = StoredEvent("s", 1, "tick", b"x" * 100)
        with pytest.raises(IntegrityError):
            recorder.insert_events([event], tracking=Tracking("up", 5))
        assert (before, {}) == (recorder.journal.head(), kept(environment))
        # The next commit gets the number of the one that was undone.
        assert range(1, 3) == another.insert_rows([("t", 1, "tick", b""), ("t", 2, "tick", b"")])
        assert {} == kept(environment)
        assert [3] == recorder.insert_events([event], tracking=Tracking("up", 6))
        assert [current()[0]] == list(kept(environment))
        assert [1, 2, 3] == [each.id for each in recorder.select_notifications(1, 9)]
    finally:
        environment.release()


def test_commits_that_are_undone_keep_no_waiting_writer_waiting(tmp_path: Path) -> None:
    """
    An abort while other threads wait for the write transaction was a deadlock once.
    """
    environment = acquire(Settings(tmp_path, durability="none"))
    recorder = EmbeddedApplicationRecorder(environment)
    recorder.insert_rows([("taken", 1, "tick", b"x")])
    refused: list[int] = []

    def work(thread: int) -> None:
        for version in range(1, 101):
            recorder.insert_rows([(f"s{thread}", version, "tick", b"x")])
            try:
                recorder.insert_rows([("taken", 1, "tick", b"x")])
            except IntegrityError:
                refused.append(thread)

    threads = [threading.Thread(target=work, args=(each,), daemon=True) for each in range(8)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 30
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))

    assert [] == [thread for thread in threads if thread.is_alive()]
    assert (800, 801) == (len(refused), recorder.max_notification_id())
    environment.release()


def test_a_frame_that_would_not_be_the_last_is_not_put(directory: Path) -> None:
    """
    The engine only returns False then, and the commit would be gone without a word.
    """
    with (
        lmdb.open(str(directory), max_dbs=16, map_size=1 << 30) as environment,
        environment.begin(write=True) as transaction,
    ):
        frames = environment.open_db(b"events.log", txn=transaction)
        (_, last) = list(transaction.cursor(db=frames))[-1]
        transaction.put(number_bytes(1000), last, db=frames)
    with EventLog.open(directory, writable=True) as log, pytest.raises(Corrupt) as caught:
        log.append(job_events(500))

    assert ("order", 121) == (caught.value.kind, caught.value.position)


def test_an_index_row_that_would_not_be_the_last_is_not_put_behind_all(tmp_path: Path) -> None:
    """
    The engine passes over such rows, and says so in a count only.
    """
    environment = acquire(Settings(tmp_path, durability="none"))
    try:
        index = environment.database(b"index")
        with pytest.raises(Corrupt, match="order"):
            environment.write(
                lambda transaction: append_rows(
                    transaction.cursor(index), [(b"b", b"1"), (b"a", b"1"), (b"c", b"1")]
                )
            )
        with environment.read() as transaction:
            assert [] == list(transaction.cursor(index))
    finally:
        environment.release()


def test_an_index_of_streams_that_come_in_order_has_full_pages(tmp_path: Path) -> None:
    """
    Names without an order write 17 times as much: every commit touches pages all over the index.
    """
    with EventLog.create(tmp_path / "log", log_id="the-log", durability="none") as log:
        for number in range(1, 2001):
            log.append(job_events(number)[:1])
    with lmdb.open(str(tmp_path / "log"), max_dbs=16, readonly=True) as environment:
        index = environment.open_db(b"events.index", create=False)
        with environment.begin() as transaction:
            rows = list(transaction.cursor(db=index))
            pages = transaction.stat(index)["leaf_pages"]
    used = sum(len(key) + len(value) + NODE_BYTES for key, value in rows)

    assert 2000 == len(rows)
    assert used > 0.9 * pages * PAGE_BYTES
