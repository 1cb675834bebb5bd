"""
Keep free pages that lie side by side ahead of what is written.

For each page that a commit changes the engine takes the free page with the lowest number. When only
a few are free, they are those that the commits before gave back, from all over the file: the six
pages of a commit then are four to six requests to the disk instead of one or two, and a durable
answer waits for each. So the file grows by a chunk at a time: a value as long as that is put and
taken out again, and the commits that follow use its pages in order.
"""

from __future__ import annotations

import os
from pathlib import Path

import lmdb
from eventsourcing.persistence import OperationalError

from store.embedded.cursors import get
from store.embedded.environment import Environment
from store.embedded.errors import CommitUnknownError, EpochPassedError, free_bytes
from store.embedded.layout import KEY_AHEAD, META
from store.embedded.preflight import DATA_FILE

CHUNK_PAGES = 128
LOW_PAGES = 96
"""With fewer free pages a chunk is added. More would make the file larger for little: with 128 and
96 a commit takes 3.4 requests on average, without 5.4, with 256 and 128 it takes 2.9."""
SPARE_CHUNKS = 64
"""Nothing is added unless disk and map have room for so many chunks: what is left is for events."""
OVERFLOW_HEADER_BYTES = 16


def keep_ahead(environment: Environment, epoch: int | None = None) -> bool:
    """
    Add a chunk of free pages to a data file that has few; say whether one was added.

    Only where durable answers wait for the disk, and only while there is plenty of room.

    Args:
        environment: The writer's.
        epoch: The writer's, None when there is no such rule; one that was passed writes nothing.

    Raises:
        CommitUnknownError: The disk failed.
    """
    settings = environment.settings
    if settings.readonly or settings.durability != "full":
        return False
    meta = environment.database(META)

    def put(transaction: lmdb.Transaction) -> None:
        _check_epoch(environment, transaction, epoch)
        size = CHUNK_PAGES * environment.page_size
        _reserve_blocks(settings.path / DATA_FILE, environment.used_bytes(), size)
        transaction.put(KEY_AHEAD, bytes(size - OVERFLOW_HEADER_BYTES), db=meta)

    def take_out(transaction: lmdb.Transaction) -> None:
        _check_epoch(environment, transaction, epoch)
        transaction.delete(KEY_AHEAD, db=meta)

    try:
        with environment.read() as transaction:
            is_left = get(transaction, KEY_AHEAD, meta) is not None
        if is_left:
            # By a kill between the two commits.
            environment.write(take_out)
        if environment.free_pages() >= LOW_PAGES or not _has_room(environment):
            return False
        environment.write(put)
        environment.write(take_out)
    except CommitUnknownError:
        raise
    except (OSError, OperationalError):
        # No room after all, or none of ours. Nothing is lost: this only makes commits quicker.
        return False
    return True


def _check_epoch(
    environment: Environment, transaction: lmdb.Transaction, epoch: int | None
) -> None:
    """
    Refuse a writer whose log another one has taken over.
    """
    if epoch is not None and (found := environment.epoch(transaction)) != epoch:
        raise EpochPassedError(epoch, found)


def _reserve_blocks(path: Path, begin: int, size: int) -> None:
    """
    Give a data file the disk blocks for new pages at its end.

    What doesn't fit is told here as what it is (full, quota, limit of a file's size); the engine
    would call a value that was written in part an I/O error, after which nobody may go on.

    Raises:
        OSError: There is no room for them.
    """
    handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.posix_fallocate(handle, begin, size)
    finally:
        os.close(handle)


def _has_room(environment: Environment) -> bool:
    """
    Say whether disk and map have plenty.
    """
    wanted = SPARE_CHUNKS * CHUNK_PAGES * environment.page_size
    in_map = environment.map_size() - environment.used_bytes()
    return min(in_map, free_bytes(environment.path)) >= wanted
