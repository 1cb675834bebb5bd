"""
One LMDB environment per directory and process, shared by all recorders and guarded.

LMDB refuses to be opened twice in a process and notices neither a fork nor a fork's writes, so
every recorder takes its environment from the registry here. Transactions are short and never leave
the function that began them.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import lmdb
from eventsourcing.persistence import (
    NotSupportedError,
    OperationalError,
    PersistenceError,
    ProgrammingError,
)

from domain.errors import Corrupt, StoreUnavailable, XceError
from store.embedded.errors import translated, translation
from store.embedded.identity import identify
from store.embedded.layout import KEY_EPOCH, META, number_bytes
from store.embedded.marker import read_marker
from store.embedded.metas import is_blank
from store.embedded.opening import ENGINE_LOCK_FILE, open_engine
from store.embedded.preflight import (
    DATA_FILE,
    check_data_file,
    refuse_loose_permissions,
    refuse_network_file_system,
)
from store.embedded.settings import Settings
from store.os_errors import unavailable

Database = lmdb._Database  # noqa: SLF001 - the binding exports its type under this name alone

NO_EPOCH = number_bytes(0)
RESIZE_WAIT_S = 5
"""How long the other transactions of this process are waited for, which are all short."""

Result = TypeVar("Result")

_registry: dict[Path, Environment] = {}
_inherited: dict[Path, Environment] = {}
_registry_lock = threading.RLock()


def acquire(
    settings: Settings, *, create: bool = True, log_id: str | None = None, thorough: bool = False
) -> Environment:
    """
    Return this process's environment of a directory, opened if need be; give it back with
    `release`.

    Args:
        settings: As all openers in this process have them; a reader may share a writer's.
        create: Begin a new store when there is none.
        log_id: Identity of a new store (a random one when None), or the one that an existing store
            must have.
        thorough: Walk the file's whole structure first.

    Raises:
        Corrupt, StoreUnavailable: The files can't or mustn't be opened.
        ProgrammingError: It is open in this process with other settings.
    """
    with _registry_lock:
        environment = _registry.get(settings.path)
        if environment is None:
            inherited = _inherited.pop(settings.path, None)
            if inherited is not None:
                inherited.handle.close()
            environment = Environment(settings, create=create, log_id=log_id, thorough=thorough)
            _registry[settings.path] = environment
        elif not environment.serves(settings):
            there = environment.settings
            message = f"{settings.path} is open in this process with other settings: {there}"
            raise ProgrammingError(message)
        elif log_id is not None and log_id != environment.log_id:
            raise Corrupt(
                "foreign",
                None,
                f"the log {log_id}",
                f"the log {environment.log_id}",
                str(settings.path),
            )
        environment.references += 1
        return environment


class Environment:
    """
    An open LMDB environment: its databases, transactions, identity and the listeners for commits.
    """

    def __init__(
        self, settings: Settings, *, create: bool, log_id: str | None, thorough: bool
    ) -> None:
        self.settings = settings
        self.path = str(settings.path)
        self.references = 0
        self.is_dead = False
        self._databases: dict[bytes, Database] = {}
        self._listeners: set[threading.Event] = set()
        self._writer = threading.Lock()
        self._writing_thread: int | None = None
        self._gate = threading.Condition()
        self._readers = self._resizers = 0
        with _alone_in(settings, create=create):
            marked = self._prepare(create=create, log_id=log_id, thorough=thorough)
            self.handle = open_engine(settings)
            try:
                self.log_id = identify(self, marked, log_id)
            except PersistenceError as error:
                self.handle.close()
                raise self._unopenable(error) from error
            except BaseException:
                self.handle.close()
                raise

    def serves(self, settings: Settings) -> bool:
        """
        Say whether an opener with other settings can share it: equal ones, or a reader of a writer.
        """
        return self.settings == settings or (settings.readonly and not self.settings.readonly)

    def _prepare(self, *, create: bool, log_id: str | None, thorough: bool) -> str | None:
        """
        Check the directory and its files before the engine sees them; return the marked log id.
        """
        directory = self.settings.path
        if not directory.is_dir():
            raise StoreUnavailable("no log", self.path, "no such directory")
        if not self.settings.allow_network:
            refuse_network_file_system(directory)
        if not self.settings.readonly:
            refuse_loose_permissions(directory)
        marked = read_marker(directory)
        if marked is not None and log_id is not None and marked != log_id:
            raise Corrupt("foreign", None, f"the log {log_id}", f"the log {marked}", self.path)
        data = directory / DATA_FILE
        if marked is None and not data.exists() and (not create or self.settings.readonly):
            raise StoreUnavailable("no log", self.path, "there is no data file")
        if marked is None and create and is_blank(data):
            # A creation cut short: with an event in it there would be a marker.
            data.replace(data.with_suffix(".unfinished"))
        check_data_file(directory, log_id=marked, thorough=thorough)
        return marked

    def _unopenable(self, error: PersistenceError) -> XceError:
        """
        Return our error for one of the engine's while the store was opened.
        """
        if isinstance(error, OperationalError | NotSupportedError):
            return unavailable(self.path, error.__cause__ or error)
        return Corrupt("structure", None, "a sound data file", str(error), self.path)

    def database(self, name: bytes, *, create: bool = True) -> Database | None:
        """
        Return a named database, created if need be; None when there is none and it can't or mustn't
        be created.
        """
        self.check_usable()
        found = self._databases.get(name)
        if found is None:
            create = create and not self.settings.readonly
            # Opening a database is a write transaction of the engine's own.
            self._refuse_within_write()
            with self._writer, translated(self.path, self.settings.map_size):
                try:
                    found = self.handle.open_db(name, create=create)
                except (lmdb.NotFoundError, lmdb.ReadonlyError):
                    return None
            self._databases[name] = found
        return found

    @contextmanager
    def read(self) -> Iterator[lmdb.Transaction]:
        """
        Open a read transaction; keep it short and copy what leaves it.
        """
        self.check_usable()
        transaction = self._begin_read()
        try:
            with transaction:
                yield transaction
        except lmdb.Error as error:
            raise translation(error, self.path, self.settings.map_size) from error
        finally:
            self._uncount()

    # Work instead of a context, which in Python is made of generators, and few calls: each durable
    # answer waits for them, and behind a sync the processor's caches are cold.
    def write(self, work: Callable[[lmdb.Transaction], Result]) -> Result:
        """
        Do some work in the write transaction and return what it returns; all of it is committed at
        the end, or undone by an error.
        """
        thread = threading.get_ident()
        if self._writing_thread == thread:
            self._refuse_within_write()
        with self._writer:
            self._writing_thread = thread
            try:
                if self.is_dead:
                    self.check_usable()
                if self._resizers:
                    self._pass_resizers()
                try:
                    transaction: lmdb.Transaction = self.handle.begin(write=True)
                except lmdb.Error as error:
                    transaction = self._begin_again(error, write=True)
                try:
                    with transaction:
                        result = work(transaction)
                except lmdb.Error as error:
                    raise translation(error, self.path, self.settings.map_size) from error
            finally:
                self._writing_thread = None
                if self._resizers:
                    self._pass_resizers()
        if self._listeners:
            self.notify()
        return result

    def _refuse_within_write(self) -> None:
        """
        Refuse to wait for a write transaction that this very thread has.
        """
        if self._writing_thread == threading.get_ident():
            message = "a write transaction inside a write transaction of the same thread"
            raise ProgrammingError(message)

    def _begin_read(self) -> lmdb.Transaction:
        """
        Begin a read transaction, and count it, so that the map is only resized between two.
        """
        with self._gate:
            self._readers += 1
        try:
            try:
                return self.handle.begin()
            except lmdb.Error as error:
                return self._begin_again(error, write=False)
        except BaseException:
            self._uncount()
            raise

    def _begin_again(self, error: lmdb.Error, *, write: bool) -> lmdb.Transaction:
        """
        Begin a transaction that was refused: adopt the map size when another process has raised it,
        and let slots of dead readers go.
        """
        try:
            if isinstance(error, lmdb.MapResizedError):
                return self._begin_resized(write=write)
            if isinstance(error, lmdb.ReadersFullError):
                self.handle.reader_check()
                return self.handle.begin(write=write)
            raise error
        except lmdb.Error as refused:
            raise translation(refused, self.path, self.settings.map_size) from refused

    def _begin_resized(self, *, write: bool) -> lmdb.Transaction:
        """
        Adopt the map's size as soon as ours is the only transaction, and begin it before the next.
        """
        with self._gate:
            self._resizers += 1
            try:
                self._gate.wait_for(self._is_alone, timeout=RESIZE_WAIT_S)
                self.handle.set_mapsize(0)
                return self.handle.begin(write=write)
            finally:
                self._resizers -= 1

    def _is_alone(self) -> bool:
        """
        Say whether all that are open or about to be wait for the map too. The writer's needs no
        lock: it looks for resizers once its thread is told, and they for it once they are counted.
        """
        return self._readers + (self._writing_thread is not None) == self._resizers

    def _pass_resizers(self) -> None:
        """
        Wait while the map is being resized, and have those that wait for it look again.
        """
        with self._gate:
            self._gate.notify_all()

    def _uncount(self) -> None:
        """
        Take a read transaction that has ended, or never began, from the count.
        """
        with self._gate:
            self._readers -= 1
            if self._resizers:
                self._gate.notify_all()

    def epoch(self, transaction: lmdb.Transaction) -> int:
        """
        Return the epoch of the store, raised by every new writer.
        """
        return int.from_bytes(transaction.get(KEY_EPOCH, NO_EPOCH, self._databases[META]))

    def raise_epoch(self) -> int:
        """
        Raise the epoch by one, durably; return the new one.
        """

        def add_one(transaction: lmdb.Transaction) -> int:
            epoch = self.epoch(transaction) + 1
            transaction.put(KEY_EPOCH, number_bytes(epoch), db=self._databases[META])
            return epoch

        return self.write(add_one)

    def last_transaction(self) -> int:
        """
        Return the number of the last commit of any process: a doorbell that costs no system call.
        """
        self.check_usable()
        with translated(self.path, self.settings.map_size):
            return int(self.handle.info()["last_txnid"])

    def used_bytes(self) -> int:
        """
        Return how many bytes of the data file are in use or were.
        """
        self.check_usable()
        return (int(self.handle.info()["last_pgno"]) + 1) * self.page_size

    def free_pages(self) -> int:
        """
        Return how many pages of the data file hold nothing of the databases that are open here:
        free ones, and the few with which the engine keeps track of them.
        """
        with self.read() as transaction:
            trees = [transaction.stat(db=each) for each in tuple(self._databases.values())]
            pages = int(self.handle.info()["last_pgno"]) + 1
        trees.append(self.handle.stat())
        return pages - sum(
            tree["branch_pages"] + tree["leaf_pages"] + tree["overflow_pages"] for tree in trees
        )

    @property
    def page_size(self) -> int:
        """
        Return how many bytes a page of the data file has.
        """
        return int(self.handle.stat()["psize"])

    def check_readers(self) -> int:
        """
        Let the slots of readers go whose processes have died; return how many there were.
        """
        self.check_usable()
        with translated(self.path, self.settings.map_size):
            return int(self.handle.reader_check())

    def map_size(self) -> int:
        """
        Return how large the data file may get, as the engine has it now.
        """
        self.check_usable()
        return int(self.handle.info()["map_size"])

    def readers(self) -> tuple[int, int]:
        """
        Return how many read transactions of all processes are open, and how many commits ago the
        oldest began.
        """
        self.check_usable()
        lines = str(self.handle.readers()).splitlines()[1:]
        numbers = [fields[2] for fields in map(str.split, lines) if len(fields) == 3]
        began = [int(number) for number in numbers if number.isdigit()]
        return len(began), self.last_transaction() - min(began) if began else 0

    def check_usable(self) -> None:
        """
        Refuse use after a fork or after closing.
        """
        if self.is_dead:
            message = (
                f"event store {self.path} was opened before fork() or is closed; open it again"
            )
            raise ProgrammingError(message)

    def add_listener(self, event: threading.Event) -> None:
        """
        Have an event set after every commit of this process.
        """
        self._listeners.add(event)

    def remove_listener(self, event: threading.Event) -> None:
        """
        Undo `add_listener`; harmless when it was undone already.
        """
        self._listeners.discard(event)

    def notify(self) -> None:
        """
        Set the events of all listeners.
        """
        for event in tuple(self._listeners):
            event.set()

    def retain(self) -> Environment:
        """
        Take one more reference.
        """
        with _registry_lock:
            self.references += 1
        return self

    def release(self) -> None:
        """
        Give a reference back; the last one closes the environment.
        """
        with _registry_lock:
            if self.references > 0:
                self.references -= 1
            if self.references == 0 and not self.is_dead:
                self.is_dead = True
                _registry.pop(self.settings.path, None)
                with self._writer:
                    self.handle.close()


@contextmanager
def _alone_in(settings: Settings, *, create: bool) -> Iterator[None]:
    """
    Let one process at a time open a directory's store: two that begin one would each give it an
    identity.
    """
    if settings.readonly:
        yield
        return
    if create:
        try:
            settings.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise unavailable(str(settings.path), error) from None
    try:
        handle = os.open(settings.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        # What is wrong is told by whoever looks at the directory next.
        yield
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _mark_inherited() -> None:
    """
    Mark every environment dead in a forked child, where its locks and maps are the parent's.
    """
    global _registry_lock  # noqa: PLW0603 - another thread of the parent may have held it
    _registry_lock = threading.RLock()
    for path, environment in _registry.items():
        environment.is_dead = True
        _inherited[path] = environment
    _registry.clear()


def is_open_elsewhere(directory: Path) -> bool:
    """
    Say whether any process, this one included, has the store of a directory open.

    The engine holds a lock on the first byte of its lock file for as long as that.
    """
    with _registry_lock:
        if directory in _registry:
            return True
        try:
            with (directory / ENGINE_LOCK_FILE).open("rb+") as file:
                # Closing would drop this process's own locks; it has none, as the registry says.
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
    return False


os.register_at_fork(after_in_child=_mark_inherited)
