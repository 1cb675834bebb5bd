"""
Look at a data file before the engine maps it: the engine would be killed by a truncated one.

Only plain reading of bytes happens here; nothing can crash. The full walk over the structure is
`lmdb.verify`, pure Python as well, in time proportional to the file.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

import lmdb.verify

from domain.errors import Corrupt, StoreUnavailable
from store.embedded.metas import MetaPage, newest_meta
from store.os_errors import unavailable

DATA_FILE = "data.mdb"

NETWORK_FILE_SYSTEMS = frozenset(
    "nfs nfs4 cifs smb3 smbfs ncpfs afs ceph lustre gpfs beegfs glusterfs pvfs2 orangefs 9p sshfs "
    "fuse fuse.sshfs fuse.glusterfs fuse.ceph fuse.s3fs fuse.rclone fuse.beegfs ocfs2 gfs gfs2 "
    "panfs wekafs".split()
)


def check_data_file(
    directory: Path, *, log_id: str | None, thorough: bool = False
) -> MetaPage | None:
    """
    Refuse a data file that the engine must not see; return its newest meta page, or None when there
    is no file.

    Args:
        directory: Where the data file is.
        log_id: The identity that the marker file beside it gives, None without one.
        thorough: Walk the whole structure, not only when the size is suspicious.

    Raises:
        Corrupt: Empty, foreign, newer, truncated or structure.
        StoreUnavailable: It can't be read.
    """
    path = directory / DATA_FILE
    try:
        size = path.stat().st_size if path.exists() else 0
    except OSError as error:
        raise unavailable(path, error) from None
    if size == 0:
        _refuse_lost_file(path, log_id)
        return None
    meta = newest_meta(path)
    is_short = size < (meta.last_page + 1) * meta.page_size
    if is_short or thorough:
        problems = structure_problems(path)
        if problems:
            kind = "truncated" if is_short else "structure"
            expected = (
                f"{(meta.last_page + 1) * meta.page_size} bytes" if is_short else "a sound file"
            )
            found = f"{size} bytes" if is_short else str(problems[0])
            raise Corrupt(kind, None, expected, found, str(path), "Use xce log repair.")
    return meta


def structure_problems(path: Path) -> list[str]:
    """
    Walk the whole structure of a data file, in time proportional to it; return what is wrong.
    """
    try:
        found = lmdb.verify.verify(str(path))  # type: ignore[no-untyped-call]
    except lmdb.verify.VerifyError as error:
        return [str(error)]
    return [str(problem) for problem in found]


def _refuse_lost_file(path: Path, log_id: str | None) -> None:
    """
    Refuse to begin a new log where the marker says that there was one, or over an empty file.
    """
    if log_id is not None:
        raise Corrupt("empty", None, f"the log {log_id}", "a missing or empty data file", str(path),
                      "Restore a backup, or remove the marker file to begin anew.")  # fmt: skip
    if path.exists():
        raise Corrupt(
            "empty",
            None,
            "an LMDB data file",
            "0 bytes",
            str(path),
            "Remove it to begin a new log.",
        )


def refuse_network_file_system(directory: Path) -> None:
    """
    Refuse a directory on a network or cluster file system: locks and shared maps don't work there.

    Raises:
        StoreUnavailable: It is on one.
    """
    kind = file_system_of(directory)
    if kind in NETWORK_FILE_SYSTEMS:
        hint = "The log needs a local file system (or LMDB_ALLOW_NETWORK_FS=1)."
        raise StoreUnavailable("file system", str(directory), f"is on {kind}", hint)


def file_system_of(directory: Path) -> str:
    """
    Return the type of the file system of a directory, "" when the system doesn't tell.
    """
    try:
        device = directory.stat().st_dev
        wanted = f"{os.major(device)}:{os.minor(device)}"
        mounts = Path("/proc/self/mountinfo").read_text()
    except OSError:
        return ""
    for line in mounts.splitlines():
        fields, _, rest = line.partition(" - ")
        if fields.split()[2] == wanted:
            return rest.split()[0]
    return ""


def is_read_only_medium(directory: Path) -> bool:
    """
    Say whether the file system is mounted read-only: then nobody writes, and no lock file can be
    opened.
    """
    try:
        return bool(os.statvfs(directory).f_flag & os.ST_RDONLY)
    except OSError:
        return False


def refuse_loose_permissions(directory: Path) -> None:
    """
    Refuse a directory in which everybody may write.

    Raises:
        StoreUnavailable: It is one.
    """
    mode = directory.stat().st_mode
    if mode & stat.S_IWOTH:
        detail = f"mode {stat.S_IMODE(mode):o} lets everybody write"
        hint = "Take the right to write from others."
        raise StoreUnavailable("permission", str(directory), detail, hint)
