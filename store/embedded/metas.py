"""
Read the two meta pages of a data file, one of which the engine takes as the present.

It takes the one with the greater transaction number without a question. Were the newer page's
number changed, the log would silently be what it was one commit ago; so the numbers are held
against each other and against what else stands in the file.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO, NamedTuple

from domain.errors import Corrupt
from store.os_errors import unavailable

_MAGIC = 0xBEEFC0DE
_DATA_VERSION = 1
_HEADER = struct.Struct("=QHHHH")
_META = struct.Struct("=IIQQ48s48sQQ")
_ROOT_OFFSET = 40
_NODE = struct.Struct("=HHHHQ")
_PAGE_SIZES = (4096, 8192, 16384, 32768, 65536, 2048, 1024, 512)
_LEAF = 2
_DEPTH_MAX = 16
_READS_MAX = 10

BLANK_BYTES_MAX = 64 << 10
"""No creation writes more before the marker is there."""
_BOTH_METAS_BYTES = 8192


class MetaPage(NamedTuple):
    """
    What one of the two meta pages says about the file.
    """

    page_size: int
    map_size: int
    last_page: int
    transaction: int
    free_root: int


def is_blank(data_file: Path) -> bool:
    """
    Say whether a data file is there and holds nothing, as after a power loss at its creation.
    """
    size = data_file.stat().st_size if data_file.exists() else BLANK_BYTES_MAX + 1
    if size > BLANK_BYTES_MAX:
        return False
    head = data_file.read_bytes()[:_BOTH_METAS_BYTES]
    # Both meta pages are written at the creation, and the engine takes no file without either.
    half = _BOTH_METAS_BYTES // 2
    return size < _BOTH_METAS_BYTES or not any(head[:half]) or not any(head[half:])


def newest_meta(path: Path) -> MetaPage:
    """
    Return the meta page that the engine would choose.

    Raises:
        Corrupt: There is no sound one, or a transaction number can't be right.
        StoreUnavailable: The file can't be read.
    """
    try:
        with path.open("rb", buffering=0) as file:
            metas, problem = _settled(file, path)
    except OSError as error:
        raise unavailable(path, error) from None
    if not metas:
        raise Corrupt("foreign", None, "an LMDB data file", "no meta page", str(path))
    if problem is not None:
        raise Corrupt("structure", None, *problem, str(path), "Use xce log repair.")
    return max(metas, key=lambda meta: meta.transaction)


def _settled(file: BinaryIO, path: Path) -> tuple[list[MetaPage], tuple[str, str] | None]:
    """
    Return the meta pages and what is wrong with their numbers, read while nobody committed.
    """
    for _ in range(_READS_MAX):
        metas = _both(file, path)
        problem = _wrong_numbers(file, metas)
        if problem is None or metas == _both(file, path):
            return metas, problem
    # Somebody commits faster than we read, and so has looked at the numbers himself.
    return metas, None


def _both(file: BinaryIO, path: Path) -> list[MetaPage]:
    """
    Read both meta pages, or those that are there.
    """
    file.seek(0)
    head = file.read(max(_PAGE_SIZES) + _HEADER.size + _META.size)
    first = _meta_at(head, 0, path)
    sizes = (first.page_size,) if first else _PAGE_SIZES
    others = (_meta_at(head, size, path) for size in sizes)
    return [meta for meta in (first, *others) if meta is not None]


def _meta_at(head: bytes, offset: int, path: Path) -> MetaPage | None:
    """
    Read a meta page, None when there is none.
    """
    start = offset + _HEADER.size
    if len(head) < start + _META.size:
        return None
    magic, version, _, map_size, free, _, last_page, transaction = _META.unpack_from(head, start)
    if magic != _MAGIC:
        return None
    if version != _DATA_VERSION:
        raise Corrupt("newer", None, f"LMDB data version {_DATA_VERSION}", version, str(path))
    (page_size,) = struct.unpack_from("=I", free)
    if page_size not in _PAGE_SIZES:
        return None
    (free_root,) = struct.unpack_from("=Q", free, _ROOT_OFFSET)
    return MetaPage(page_size, map_size, last_page, transaction, free_root)


def _wrong_numbers(file: BinaryIO, metas: list[MetaPage]) -> tuple[str, str] | None:
    """
    Return what is expected and found where a transaction number can't be right.

    Commit n writes meta page n modulo 2, and enters the pages that it freed under n. Both pages'
    trees are whole: the engine reuses nothing of the last two commits.
    """
    if len(metas) != 2:
        return None
    first, second = (meta.transaction for meta in metas)
    if first == second == 0:
        return None
    if abs(first - second) != 1 or first % 2 != 0:
        return "meta pages of two commits in a row", f"{first} and {second}"
    for meta in metas:
        freed = _last_freed(file, meta)
        if freed is not None and freed != meta.transaction:
            return f"pages freed by commit {meta.transaction}", f"pages freed by {freed}"
    return None


def _last_freed(file: BinaryIO, meta: MetaPage) -> int | None:
    """
    Return the greatest transaction number among the entries of freed pages, None without any or
    where that can't be read: then the walk over the structure says more.
    """
    number = meta.free_root
    for _ in range(_DEPTH_MAX):
        if number > meta.last_page:
            return None
        file.seek(number * meta.page_size)
        page = file.read(meta.page_size)
        if len(page) < meta.page_size:
            return None
        _, _, flags, lower, _ = _HEADER.unpack_from(page)
        if not _HEADER.size + 2 <= lower <= len(page):
            return None
        (at,) = struct.unpack_from("=H", page, lower - 2)
        if at + _NODE.size > len(page):
            return None
        low, middle, high, _, key = _NODE.unpack_from(page, at)
        if flags & _LEAF:
            return int(key)
        number = low | middle << 16 | high << 32
    return None
