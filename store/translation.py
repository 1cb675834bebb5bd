"""
The persistence module's errors in our words, told apart by who must act.
"""

from __future__ import annotations

from eventsourcing.persistence import DataError, IntegrityError, InternalError, PersistenceError

from domain.errors import (
    Conflict,
    Corrupt,
    OutcomeUnknown,
    Refused,
    StoreUnavailable,
    XceError,
)
from store.embedded.errors import (
    CommitUnknownError,
    DiskFullError,
    EpochPassedError,
    MapFullError,
    VersionsTakenError,
)


def translated() -> _Translating:
    """
    Turn the library's errors into ours, within the context that this returns.
    """
    return _TRANSLATING


class _Translating:
    """
    Be that context: a generator would take longer, and every durable answer waits for it.
    """

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, _: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        if isinstance(error, PersistenceError):
            raise translated_error(error) from error


_TRANSLATING = _Translating()


def translated_error(error: PersistenceError) -> XceError:
    """
    Return our error for one of the persistence module's.
    """
    if isinstance(error, VersionsTakenError):
        taken = ", ".join(f"{stream} version {version}" for stream, version in error.conflicts[:3])
        return Conflict("stream version", "a version that isn't there yet", taken)
    if isinstance(error, EpochPassedError):
        return Conflict(
            "writer of the log",
            f"epoch {error.ours}",
            f"epoch {error.found}",
            "Another writer took over; this one must stop.",
        )
    if isinstance(error, MapFullError):
        return StoreUnavailable(
            "map full", None, str(error), "Raise the map size, or archive old events."
        )
    if isinstance(error, DiskFullError):
        return StoreUnavailable(
            "disk full", None, str(error), "Free some space; nothing acknowledged is lost."
        )
    if isinstance(error, CommitUnknownError):
        return OutcomeUnknown(
            "I/O error", None, str(error), "Restart; the log then tells what was recorded."
        )
    if isinstance(error, IntegrityError):
        return Conflict("stream version", "a version that isn't there yet", str(error))
    if isinstance(error, DataError):
        return Refused("event", f"must fit into the log: {error}")
    if isinstance(error, InternalError):
        return Corrupt("structure", None, "a sound data file", str(error))
    return StoreUnavailable("log", None, str(error))
