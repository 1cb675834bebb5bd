"""
Errors of the operating system, named by what is missing.
"""

from __future__ import annotations

import errno
from pathlib import Path

from domain.errors import StoreUnavailable

_RESOURCES = {
    errno.ENOSPC: ("disk full", "Free some space; nothing acknowledged is lost."),
    errno.EDQUOT: ("disk quota reached", "Free some space; nothing acknowledged is lost."),
    errno.EFBIG: ("file size limit reached", "Raise ulimit -f."),
    errno.EACCES: ("permission", "Run as the owner of the files."),
    errno.EPERM: ("permission", "Run as the owner of the files."),
    errno.EROFS: ("file system is read-only", "Mount it for writing."),
    errno.EMFILE: ("too many open files", "Raise ulimit -n."),
    errno.ENFILE: ("too many open files on this machine", None),
    errno.ENOMEM: ("memory", "Raise ulimit -v, or lower the map size."),
    errno.EIO: ("I/O error", "Look at the kernel's messages about this disk."),
    errno.ENOENT: ("file is not there", None),
    errno.ENOTDIR: ("path leads through a file", None),
}


def unavailable(path: str | Path, error: BaseException) -> StoreUnavailable:
    """
    Return our error for one of the operating system's, with what is missing and what to do.

    Args:
        path: The file or directory concerned.
        error: With an `errno`, or a `code` as the engine's errors have.
    """
    number = getattr(error, "errno", None) or getattr(error, "code", None)
    resource, hint = _RESOURCES.get(number or 0, ("file", None))
    # Its words without a file's name: that may be a temporary one, which nobody asked for.
    words = getattr(error, "strerror", None) or str(error)
    return StoreUnavailable(resource, str(path), words, hint)
