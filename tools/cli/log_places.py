"""
Where the parts of a log are that is named on the command line.
"""

from __future__ import annotations

from pathlib import Path

from domain.errors import NotFound, Refused
from store.info import is_log, log_directory, may_begin
from store.lock import is_held
from tools.cli.client import SOCKET_NAME

NEW_OR_EMPTY = "must be new or empty; there are files in it"


def check_new(place: Path, field: str = "--log") -> None:
    """
    Do nothing, or refuse a place where no new log may be begun.

    Raises:
        Refused: It is a file, or a directory with something in it.
    """
    if place.exists() and not place.is_dir():
        raise Refused(field, "must be a directory, not a file", str(place))
    if place.is_dir() and not may_begin(place):
        rule = "must be new or empty; there is a log in it" if is_log(place) else NEW_OR_EMPTY
        raise Refused(field, rule, str(place), "Name another directory.")


def serving_cluster(log: Path) -> Path | None:
    """
    Return the directory of the cluster that a log belongs to, None when no scheduler serves it.
    """
    directory = log_directory(log).resolve()
    cluster = directory.parent
    if directory.name != "log" or not is_held(directory):
        return None
    return cluster if (cluster / SOCKET_NAME).exists() else None


def snapshot_directory(log: Path) -> Path:
    """
    Return where the snapshots of a log are: beside it in a cluster directory, otherwise in it.

    Raises:
        NotFound: There is no log.
    """
    directory = log_directory(log)
    if not is_log(directory):
        raise NotFound("log", "must be the directory of a log, or of a cluster", str(log))
    beside = directory.resolve().parent / "snapshots"
    return beside if directory.name == "log" and beside.is_dir() else directory / "snapshots"
