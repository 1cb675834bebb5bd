"""
The marker file beside the data file: it says which log ought to be there.

LMDB takes an emptied file for a new one. The marker is written and synced before the first commit,
so a lost or swapped data file is noticed.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from domain.errors import Corrupt
from store.embedded.layout import FORMAT
from store.os_errors import unavailable

MARKER_FILE = "STORE"
NEW_MARKER_FILE = ".STORE.new"


def read_marker(directory: Path) -> str | None:
    """
    Return the log id that the marker file gives, None without a marker.

    Raises:
        Corrupt: It is no marker of ours, or of a newer format.
        StoreUnavailable: It can't be read.
    """
    path = directory / MARKER_FILE
    try:
        text = path.read_text()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise unavailable(path, error) from None
    try:
        fields = json.loads(text)
        version, log_id = int(fields["format"]), str(fields["log_id"])
    except (ValueError, KeyError, TypeError) as error:
        hint = "If it is lost: remove it, and xce log repair LOG NEW --log-id ID."
        raise Corrupt(
            "foreign", None, "a marker of an XCE log", str(error), str(path), hint
        ) from None
    if version > FORMAT:
        raise Corrupt("newer", None, f"log format {FORMAT}", version, str(path))
    return log_id


def write_marker(directory: Path, log_id: str) -> None:
    """
    Write the marker and sync it and its directory.

    Raises:
        StoreUnavailable: It can't be written.
    """
    text = json.dumps({"format": FORMAT, "engine": "lmdb 0.9", "log_id": log_id}) + "\n"
    temporary = directory / NEW_MARKER_FILE
    try:
        temporary.touch(mode=0o600)
        with temporary.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(directory / MARKER_FILE)
        sync_directory(directory)
    except OSError as error:
        raise unavailable(directory / MARKER_FILE, error) from None


def sync_directory(directory: Path) -> None:
    """
    Make the names in a directory durable.
    """
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
