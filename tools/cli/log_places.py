"""
Where the parts of a log are that is named on the command line.
"""

from __future__ import annotations

from pathlib import Path

from domain.errors import NotFound
from store.info import is_log, log_directory
from store.lock import is_held
from tools.cli.client import SOCKET_NAME


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
        raise NotFound("log", "there is none in this directory", str(log))
    beside = directory.resolve().parent / "snapshots"
    return beside if directory.name == "log" and beside.is_dir() else directory / "snapshots"
