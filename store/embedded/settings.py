"""
Settings of the embedded store, and where they come from.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

DURABILITIES = ("full", "relaxed", "none")
RISKS = {"relaxed": "lose the last commit", "none": "lose commits or damage the log"}
"""What a power failure can do without full durability."""
MAP_SIZE = 1 << 40
"""Address space, not disk: the file grows with what is written."""
READERS_MAX = 1024
MODE = 0o600


@dataclass(frozen=True, slots=True)
class Settings:
    """
    Say how a store is opened; all openers in one process must agree.

    Args:
        path: The directory, absolute and without symbolic links.
        map_size: Upper bound of the file in bytes.
        durability: full (synced twice a commit), relaxed (the last commit may be lost), none (tests
            and imports).
        readers_max: Slots for concurrent read transactions of all processes.
        readonly: Never write, not even the marker.
        allow_network: Don't refuse a network file system.
        mode: Permission bits of the files.
    """

    path: Path
    map_size: int = MAP_SIZE
    durability: str = "full"
    readers_max: int = READERS_MAX
    readonly: bool = False
    allow_network: bool = False
    mode: int = MODE


def settings_from(get: Callable[[str], str | None], describe: Callable[[str], str]) -> Settings:
    """
    Read the settings ``LMDB_PATH`` and so on.

    Args:
        get: Returns the value of a setting, None or "" without one.
        describe: Returns the names under which a setting was looked for.

    Raises:
        OSError: A setting is missing or isn't what it must be (the library's convention).

    Warns:
        RuntimeWarning: A power failure can do harm.
    """
    path = get("LMDB_PATH")
    if not path:
        message = f"LMDB path not found in environment with keys: {describe('LMDB_PATH')}"
        raise OSError(message)
    durability = get("LMDB_DURABILITY") or "full"
    if durability not in DURABILITIES:
        message = f"LMDB_DURABILITY must be one of {', '.join(DURABILITIES)}, not {durability!r}"
        raise OSError(message)
    if durability in RISKS:
        message = f"LMDB_DURABILITY={durability}: a power failure can {RISKS[durability]}"
        warnings.warn(message, RuntimeWarning, stacklevel=3)
    return Settings(
        path=Path(path).resolve(),
        map_size=_whole(get, "LMDB_MAP_SIZE", MAP_SIZE),
        durability=durability,
        readers_max=_whole(get, "LMDB_MAX_READERS", READERS_MAX),
        readonly=_truth(get, "LMDB_READONLY"),
        allow_network=_truth(get, "LMDB_ALLOW_NETWORK_FS"),
        mode=_whole(get, "LMDB_MODE", MODE),
    )


def _whole(get: Callable[[str], str | None], name: str, default: int) -> int:
    """
    Read a whole number above 0; 0o and 0x prefixes are understood.
    """
    text = get(name)
    if not text:
        return default
    try:
        number = int(text, 0)
    except ValueError:
        number = 0
    if number <= 0:
        message = f"{name} must be a whole number above 0, not {text!r}"
        raise OSError(message)
    return number


_TRUTHS = {"": False, "0": False, "n": False, "no": False, "f": False, "false": False, "off": False,
           "1": True, "y": True, "yes": True, "t": True, "true": True, "on": True}  # fmt: skip


def _truth(get: Callable[[str], str | None], name: str) -> bool:
    """
    Read a yes or no; no is the default.
    """
    text = (get(name) or "").strip().lower()
    if text not in _TRUTHS:
        message = f"{name} must be yes or no, not {text!r}"
        raise OSError(message)
    return _TRUTHS[text]
