"""
Where a log is, and what there is to say about it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from domain.errors import NotFound, Refused
from store.embedded.marker import MARKER_FILE, NEW_MARKER_FILE
from store.embedded.opening import ENGINE_LOCK_FILE
from store.embedded.preflight import DATA_FILE
from store.lock import LOCK_FILE
from store.os_errors import unavailable

_FIRST_FILES = frozenset((LOCK_FILE, ENGINE_LOCK_FILE, NEW_MARKER_FILE))
"""What a full disk may leave of a log that was never there."""


@dataclass(frozen=True, slots=True)
class LogInfo:
    """
    Describe a log: what ``xce log info`` shows.

    Args:
        path: Where it is, "" when the engine isn't embedded.
        engine: What keeps it.
        log_id: Its identity.
        epoch: How many writers it has had, 0 when the engine doesn't count them.
        events: Its last position.
        frames: How many records they take.
        bytes: Size of the data file in use, index included.
        archived_events: How many of the events are in segment files.
        archived_bytes: Size of these.
        first_position: Where the log begins, behind what was pruned.
        head_digest: Digest of the whole history, in hexadecimal.
        first_time_us: Time of the first event, None when empty.
        last_time_us: Time of the last event, None when empty.
        writer: Who writes, or wrote last, "" when nobody is known.
        readers: Read transactions open now, of all processes.
        oldest_reader_lag: Commits since the oldest of them began: pages it keeps from being used
            again.
    """

    path: str
    engine: str
    log_id: str
    epoch: int
    events: int
    frames: int
    bytes: int
    archived_events: int
    archived_bytes: int
    first_position: int
    head_digest: str
    first_time_us: int | None
    last_time_us: int | None
    writer: str
    readers: int
    oldest_reader_lag: int


def log_directory(path: str | Path) -> Path:
    """
    Return the directory of a log that is named by itself or by the cluster directory around it.
    """
    given = Path(path)
    return given / "log" if is_log(given / "log") and not is_log(given) else given


def is_log(directory: Path) -> bool:
    """
    Say whether a directory has files of a log, sound or not.

    Raises:
        StoreUnavailable: The directory can't be looked into.
    """
    try:
        return (directory / MARKER_FILE).exists() or (directory / DATA_FILE).exists()
    except OSError as error:
        raise unavailable(directory, error) from None


def found_log(path: str | Path) -> Path:
    """
    Return the directory of a log that is there, whole; named as in `log_directory`.

    Raises:
        NotFound: There is no log.
        StoreUnavailable: The directory can't be looked into.
    """
    directory = log_directory(path).resolve()
    if not is_log(directory):
        raise NotFound("log", "must be the directory of a log, or of a cluster", str(directory))
    return directory


def may_begin(directory: Path) -> bool:
    """
    Say whether a new log may be begun in a directory: it is empty, or holds no more than what is
    left of a beginning that failed.
    """
    return all(path.name in _FIRST_FILES for path in directory.iterdir())


def refuse_used(directory: Path) -> None:
    """
    Refuse to put a log where something is already.

    Raises:
        Refused: There is a log, another file, or a directory with something in it.
    """
    if is_log(directory):
        raise Refused("log", "must not exist yet", str(directory))
    if directory.exists() and not directory.is_dir():
        raise Refused("log", "must be a directory, not a file", str(directory))
    if directory.is_dir() and not may_begin(directory):
        rule = "must be new or empty; there are files in it"
        raise Refused("log", rule, str(directory), "Name another directory.")
