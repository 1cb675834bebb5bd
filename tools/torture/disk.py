"""
Hold what a disk has for certain, and rebuild what may be found on it after its power was lost.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

SECTOR = 512


@dataclass(slots=True)
class Call:
    """
    One recorded system call that changes what is on the disk, or an acknowledgement.
    """

    kind: str
    path: str = ""
    target: str = ""
    offset: int = 0
    data: bytes = b""
    is_synced: bool = False


@dataclass(slots=True)
class Disk:
    """
    What a disk holds for certain, and what it may or may not hold.

    Args:
        durable: Content of each file by its first name.
        pending: Unsynced writes of each file: offset and bytes, or a new length and None.
        names: Durable names, each with the file that it leads to.
        changes: Unsynced changes of names, in order: name and file, or name and None.
    """

    durable: dict[str, bytes] = field(default_factory=dict)
    pending: dict[str, list[tuple[int, bytes | None]]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    changes: list[tuple[str, str | None]] = field(default_factory=list)
    current: dict[str, str] = field(default_factory=dict)
    files: int = 0

    def create(self, path: str) -> None:
        """
        Make a new file under a name.
        """
        self.files += 1
        name = f"file{self.files}"
        self.durable[name], self.pending[name] = b"", []
        self.rename_to(path, name)

    def rename_to(self, path: str, file: str | None) -> None:
        """
        Let a name lead to a file, or to none.
        """
        self.changes.append((path, file))
        if file is None:
            self.current.pop(path, None)
        else:
            self.current[path] = file

    def sync_file(self, path: str) -> None:
        """
        Make a file's content durable.
        """
        file = self.current.get(path)
        if file is not None:
            self.durable[file] = _applied(self.durable[file], self.pending[file])
            self.pending[file] = []

    def sync_directory(self, path: str) -> None:
        """
        Make the names in a directory durable.
        """
        left = []
        for name, file in self.changes:
            if name.rpartition("/")[0] != path:
                left.append((name, file))
            elif file is None:
                self.names.pop(name, None)
            else:
                self.names[name] = file
        self.changes = left

    def image(self, chance: random.Random) -> dict[str, bytes]:
        """
        Return files by name as they may be found after a power loss now.
        """
        names = dict(self.names)
        for name, file in self.changes[: chance.randint(0, len(self.changes))]:
            if file is None:
                names.pop(name, None)
            else:
                names[name] = file
        contents = {}
        for file in set(names.values()):
            survivors = [write for write in self.pending[file] if chance.random() < 0.5]
            chance.shuffle(survivors)
            torn = [part for write in survivors for part in _torn(write, chance)]
            contents[file] = _applied(self.durable[file], torn)
        return {name: contents[file] for name, file in names.items()}


def _torn(
    write: tuple[int, bytes | None], chance: random.Random
) -> Iterator[tuple[int, bytes | None]]:
    """
    Yield a write whole, or only some of its sectors.
    """
    offset, data = write
    if data is None or chance.random() < 0.5:
        yield write
        return
    for at in range(0, len(data), SECTOR):
        if chance.random() < 0.5:
            yield offset + at, data[at : at + SECTOR]


def _applied(content: bytes, writes: Iterable[tuple[int, bytes | None]]) -> bytes:
    """
    Return content with writes done.
    """
    result = bytearray(content)
    for offset, data in writes:
        if data is None:
            del result[offset:]
            result.extend(bytes(offset - len(result)))
            continue
        if len(result) < offset + len(data):
            result.extend(bytes(offset + len(data) - len(result)))
        result[offset : offset + len(data)] = data
    return bytes(result)


def apply(disk: Disk, call: Call, *, without_syncs: bool) -> None:
    """
    Do a call to a disk.

    Args:
        disk: Changed in place.
        call: What to do.
        without_syncs: Be the sabotage: a disk, or a program, that doesn't sync.
    """
    file = disk.current.get(call.path)
    if call.kind == "create":
        disk.create(call.path)
    elif call.kind == "write" and file is not None:
        disk.pending[file].append((call.offset, call.data))
        if call.is_synced and not without_syncs:
            # Written through: this write is durable, the others aren't by it.
            disk.pending[file].pop()
            disk.durable[file] = _applied(disk.durable[file], [(call.offset, call.data)])
    elif call.kind == "truncate" and file is not None:
        disk.pending[file].append((call.offset, None))
    elif call.kind == "sync" and not without_syncs:
        disk.sync_file(call.path)
        disk.sync_directory(call.path)
    elif call.kind in ("rename", "link"):
        disk.rename_to(call.target, file)
        if call.kind == "rename":
            disk.rename_to(call.path, None)
    elif call.kind == "unlink":
        disk.rename_to(call.path, None)
