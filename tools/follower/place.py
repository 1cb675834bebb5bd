"""
Where the read model of a log is, and how a new one takes the old one's place.

The name that people open, ``audit.db``, is a link to the present file, ``audit.db.N``. A new file
can't simply be moved over the old one: what SQLite keeps beside a database (``-wal``, ``-shm``) is
found by its name, and the old one's would be taken for the new one's. Through the link each file
keeps its own, also for those who still read the old one.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from domain.errors import Conflict, NotFound, Refused, StoreUnavailable
from store.info import is_log, log_directory

NAME = "audit.db"
BESIDE = ("", "-wal", "-shm", "-journal")


class Busy(Conflict):
    """
    Say that another process does just now what only one may do.
    """


def place_of(path: Path | str) -> Place:
    """
    Return where the read model of a log is.

    Args:
        path: A cluster directory (the read model is in it), or a log's own (it is beside it).

    Raises:
        NotFound: There is no log.
    """
    given = Path(path)
    directory = log_directory(given)
    if not is_log(directory):
        raise NotFound("log", "must be the directory of a log, or of a cluster", str(given))
    if directory != given:
        return Place(given / NAME)
    whole = directory.resolve()
    if whole.name == "log":
        return Place(whole.parent / NAME)
    return Place(whole.with_name(f"{whole.name}.{NAME}"))


class Place:
    """
    Hold the name of a read model.

    Args:
        link: The name that people open.
    """

    def __init__(self, link: Path) -> None:
        self.link = link

    def current(self) -> Path | None:
        """
        Return the present file, None when there is none.
        """
        return self.link.resolve() if self.link.exists() else None

    def files(self) -> list[tuple[int, Path]]:
        """
        Return every file that is or was a read model here, with its number, in order.
        """
        found = []
        for path in self.link.parent.glob(f"{self.link.name}.*"):
            number = path.name.removeprefix(f"{self.link.name}.")
            if number.isdigit():
                found.append((int(number), path))
        return sorted(found)

    def next_file(self) -> Path:
        """
        Return a name for a new file.
        """
        files = self.files()
        return self.link.with_name(f"{self.link.name}.{files[-1][0] + 1 if files else 1}")

    def swap_in(self, new: Path) -> None:
        """
        Make a new file the present one, at once, and remove the others.

        Whoever has an older one open reads on in it; its space comes back when they are done.
        """
        if self.link.exists() and not self.link.is_symlink():
            raise Refused(
                "read model",
                "is a file of its own, no link to one",
                str(self.link),
                "Move it away: XCE doesn't overwrite it.",
            )
        beside = self.link.with_name(f"{self.link.name}.link")
        with suppress(FileNotFoundError):
            beside.unlink()
        beside.symlink_to(new.name)
        beside.replace(self.link)
        self.remove_others(new)

    def remove_others(self, kept: Path | None) -> None:
        """
        Remove the files that aren't the present one: older ones, and new ones that were never
        finished.
        """
        for _, path in self.files():
            if kept is None or path.name != kept.name:
                remove_database(path)

    @contextmanager
    def filling(self) -> Iterator[None]:
        """
        Be the one process that fills this read model.

        Raises:
            Busy: Another process does.
        """
        with self._locked("lock", "another process fills the read model"):
            yield

    @contextmanager
    def making(self) -> Iterator[None]:
        """
        Be the one process that makes this read model anew.

        Raises:
            Busy: Another process does.
        """
        with self._locked("making", "another process makes the read model anew"):
            yield

    @contextmanager
    def _locked(self, ending: str, rule: str) -> Iterator[None]:
        name = self.link.with_name(f"{self.link.name}.{ending}")
        descriptor = None
        while descriptor is None:
            descriptor = self._lock(name, rule)
        try:
            yield
        finally:
            # Nobody who waits for it is harmed: a lock on a file that is gone counts for nothing.
            with suppress(OSError):
                name.unlink()
            os.close(descriptor)

    def _lock(self, name: Path, rule: str) -> int | None:
        """
        Return the open file of a lock, held; None when whoever had it removed it just now.
        """
        try:
            descriptor = os.open(
                name, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, stat.S_IRUSR | stat.S_IWUSR
            )
        except OSError as error:
            raise StoreUnavailable("read model", str(name), str(error)) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(descriptor), name.stat()):
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            raise Busy(rule, found=str(self.link)) from None
        except FileNotFoundError:
            pass
        os.close(descriptor)
        return None


def remove_database(path: Path) -> None:
    """
    Remove a database and what SQLite keeps beside it.
    """
    for ending in BESIDE:
        with suppress(FileNotFoundError):
            path.with_name(path.name + ending).unlink()
