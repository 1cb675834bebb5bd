"""
Make a cluster's directory, or see that the one there may be used as one.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Final

from domain.errors import Refused, StoreUnavailable
from store.info import is_log
from tools.daemon.config import ClusterFiles

# What a directory may hold in which no scheduler ever began: what one leaves that was killed at it,
# the directory of a worker that came before its scheduler, and what a file system brings.
OF_A_BEGINNING: Final = frozenset({"log", "lost+found", "scheduler.log", "workers"})

MEANT: Final = "Name a new or empty directory, or that of a cluster."

# Where the path itself is wrong another try won't help; all else may pass.
WRONG_PATH: Final = (
    errno.ENOENT, errno.ENOTDIR, errno.EEXIST, errno.EACCES, errno.EPERM, errno.EROFS,
    errno.ENAMETOOLONG, errno.ELOOP,
)  # fmt: skip


def prepare(files: ClusterFiles) -> None:
    """
    Make the directory, for its owner alone.

    Raises:
        Refused: It can't be made; it is the directory of a log or of something else, another
            user's, or open to others.
        StoreUnavailable: It can't be made just now.
    """
    directory = files.directory
    if is_log(directory):
        raise Refused(
            "--dir",
            "must be a cluster's directory, not the directory of a log",
            str(directory),
            "Name another one; a cluster keeps its log in DIR/log.",
        )
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = directory.stat()
        strangers = _strangers(files)
    except OSError as error:
        raise _unusable(directory, error) from error
    if found.st_uid != os.geteuid():
        raise Refused("--dir", "must belong to the user that runs the scheduler", str(directory))
    if found.st_mode & 0o022:
        raise Refused(
            "--dir", "must not be writable by others", str(directory), f"chmod go-w {directory}"
        )
    if strangers:
        more = f" and {len(strangers) - 1} more" if len(strangers) > 1 else ""
        rule = f"must not hold anything but a cluster, and holds {strangers[0]}{more}"
        raise Refused("--dir", rule, str(directory), MEANT)


def _strangers(files: ClusterFiles) -> list[str]:
    """
    Return what is in a directory that is no cluster's yet and doesn't belong to one.
    """
    if files.identity.exists() or files.key.exists() or is_log(files.log):
        return []
    return sorted({path.name for path in files.directory.iterdir()} - OF_A_BEGINNING)


def _unusable(directory: Path, error: OSError) -> Refused | StoreUnavailable:
    said = (error.strerror or str(error)).lower()
    if error.errno not in WRONG_PATH:
        return StoreUnavailable("cluster directory", str(directory), said)
    return Refused("--dir", f"can't be made or read: {said}", str(directory), MEANT)
