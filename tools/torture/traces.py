"""
Read strace's record of what a process did to its files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.torture.disk import Call

CALLS = (
    "openat,lseek,write,pwrite64,writev,pwritev,ftruncate,fdatasync,fsync,"
    "rename,renameat,renameat2,link,linkat,unlink,unlinkat,mkdir,close"
)
TOO_LONG = 2_000_000

_LINE = re.compile(r"(\w+)\((.*)\)\s+= (-?\d+)(?:<(.*)>)?")
_STRING = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_FD = re.compile(r"^(\d+)<([^>]*)>")


def _plain(text: str) -> str:
    """
    Return a path that strace wrote, in hexadecimal or not.
    """
    if "\\x" not in text:
        return text
    return bytes.fromhex(text.replace("\\x", "")).decode(errors="replace")


def calls_of(lines: list[str], root: str) -> Iterator[Call]:
    """
    Read strace's lines.
    """
    handles = Handles(root)
    for line in lines:
        found = _LINE.match(line)
        if found is not None and int(found[3]) >= 0:
            name, arguments, result, opened = found[1], found[2], int(found[3]), found[4]
            yield from handles.read(name, arguments, result, _plain(opened or ""))


class Handles:
    """
    Know what the traced process has open: places in files, and which are written through.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._offsets: dict[int, int] = {}
        self._through: set[int] = set()
        self._known: set[str] = set()

    def read(self, name: str, arguments: str, result: int, opened: str) -> Iterator[Call]:
        """
        Yield what a traced call did to the disk.
        """
        strings = [bytes.fromhex(text.replace("\\x", "")) for text in _STRING.findall(arguments)]
        handle = _FD.match(arguments)
        number, path = (int(handle[1]), _plain(handle[2])) if handle else (-1, "")
        if name == "openat":
            yield from self._open(result, opened, arguments)
        elif name == "write" and number == 1:
            yield Call("say", data=strings[0])
        elif name == "lseek":
            self._offsets[number] = result
        elif "write" in name and path.startswith(self._root):
            yield self._write(number, path, b"".join(strings)[:result], name, arguments)
        elif name == "ftruncate" and path.startswith(self._root):
            yield Call("truncate", path, offset=int(arguments.rpartition(",")[2]))
        elif "sync" in name and path.startswith(self._root):
            yield Call("sync", path)
        elif strings and strings[0].decode(errors="replace").startswith(self._root):
            yield from self._names(name, [text.decode() for text in strings])

    def _open(self, number: int, path: str, arguments: str) -> Iterator[Call]:
        """
        Remember a handle, and yield the making of a file.
        """
        self._offsets[number] = 0
        self._through.discard(number)
        if "O_DSYNC" in arguments:
            self._through.add(number)
        is_new = "O_CREAT" in arguments and path not in self._known
        if is_new and path.startswith(self._root):
            self._known.add(path)
            yield Call("create", path)

    def _write(self, number: int, path: str, data: bytes, name: str, arguments: str) -> Call:
        """
        Return a write at its place.
        """
        if name.startswith("pwrite"):
            at = int(arguments.rpartition(",")[2])
        else:
            at = self._offsets.get(number, 0)
            self._offsets[number] = at + len(data)
        return Call("write", path, offset=at, data=data, is_synced=number in self._through)

    def _names(self, name: str, paths: list[str]) -> Iterator[Call]:
        """
        Yield a change of names.
        """
        if name.startswith(("rename", "link")):
            self._known.add(paths[1])
            yield Call("rename" if name.startswith("rename") else "link", paths[0], paths[1])
        if name.startswith(("rename", "unlink")):
            self._known.discard(paths[0])
        if name.startswith("unlink"):
            yield Call("unlink", paths[0])
