"""
Find frames in a data file without the engine, and thread them into a history again.

A frame says what it is, where it belongs and what it follows, and carries its checksum; so it can
be found in a file whose structure is lost, cut or overwritten.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from domain.errors import Corrupt
from store.chain import frame_digest
from store.embedded.frames import (
    HEADER_SIZE,
    MAGIC,
    Columns,
    Header,
    decode_columns,
    raw_payload,
    read_header,
)
from store.embedded.rows import PlacedRow, streams_of
from store.os_errors import unavailable

MARK = MAGIC + b"\x01"


@dataclass(frozen=True, slots=True)
class Found:
    """
    A frame that checks in itself.
    """

    header: Header
    frame: bytes

    def columns(self) -> Columns:
        """
        Return the frame's rows by column.
        """
        return decode_columns(raw_payload(self.frame, self.header), self.header.events)

    def rows(self) -> Iterator[PlacedRow]:
        """
        Yield the frame's rows with their positions.
        """
        columns = self.columns()
        streams = streams_of(columns.ids, self.header.first_position)
        for at, index in enumerate(columns.topics):
            stream = streams[columns.id_indexes[at]]
            position, topic = self.header.first_position + at, columns.topic_names[index]
            yield position, stream, columns.versions[at], topic, columns.states[at]


@dataclass(slots=True)
class Salvage:
    """
    Say what could be found of a log.

    Args:
        prefix: The frames of whole commits from the first one on, without a break.
        rest: The other good frames, behind the first break, by position.
        lost: Positions from and to which nothing good was found, up to the last good one.
    """

    prefix: list[Found] = field(default_factory=list)
    rest: list[Found] = field(default_factory=list)
    lost: list[tuple[int, int]] = field(default_factory=list)

    @property
    def last_position(self) -> int:
        """
        Return where the good prefix ends, 0 when there is none.
        """
        return self.prefix[-1].header.last_position if self.prefix else 0


def salvage(files: Iterable[Path], origin: bytes) -> Salvage:
    """
    Look for frames everywhere in some files and put them in order.

    Args:
        files: The engine's file and segment files, in any state.
        origin: The digest before the first event.

    Raises:
        StoreUnavailable: A file can't be read.
    """
    candidates: dict[int, list[Found]] = {}
    for found in chain.from_iterable(map(frames_in, files)):
        at = candidates.setdefault(found.header.first_position, [])
        if all(other.header.digest != found.header.digest for other in at):
            at.append(found)
    result = Salvage()
    position, digest = 1, origin
    while (follower := _best(candidates, position, digest)) is not None:
        result.prefix.append(follower)
        position, digest = follower.header.last_position + 1, follower.header.digest
    while result.prefix and not result.prefix[-1].header.is_last_of_commit:
        result.prefix.pop()
    _collect_rest(result, candidates)
    return result


def _best(candidates: dict[int, list[Found]], position: int, digest: bytes) -> Found | None:
    """
    Return the frame at a position that follows a digest; of several, the one with most behind it.

    Several are there when a commit was undone and its pages were left in the file.
    """
    fitting = [each for each in candidates.get(position, ()) if each.header.previous == digest]
    if len(fitting) < 2:
        return fitting[0] if fitting else None
    return max(fitting, key=lambda each: (_reach(candidates, each), each.header.epoch))


def _reach(candidates: dict[int, list[Found]], start: Found) -> int:
    """
    Return how far a thread can be followed from a frame.
    """
    ends = [start]
    furthest = start.header.last_position
    while ends:
        header = ends.pop().header
        furthest = max(furthest, header.last_position)
        following = candidates.get(header.last_position + 1, ())
        ends.extend(each for each in following if each.header.previous == header.digest)
    return furthest


def _collect_rest(result: Salvage, candidates: dict[int, list[Found]]) -> None:
    """
    Enter the good frames behind the prefix, and what is missing between them.
    """
    position = result.last_position + 1
    for first in sorted(candidates):
        if first < position:
            continue
        found = max(candidates[first], key=lambda each: _reach(candidates, each))
        if first > position:
            result.lost.append((position, first - 1))
        result.rest.append(found)
        position = found.header.last_position + 1


def frames_in(data_file: Path) -> Iterator[Found]:
    """
    Yield every frame in a file whose checksum, digest and columns are right, wherever it lies.

    Raises:
        StoreUnavailable: The file can't be read.
    """
    try:
        with data_file.open("rb") as file:
            size = data_file.stat().st_size
            if size == 0:
                return
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                yield from _frames_in(content)
    except OSError as error:
        raise unavailable(data_file, error) from None


def _frames_in(content: mmap.mmap) -> Iterator[Found]:
    """
    Yield the frames in a mapped file.
    """
    at = content.find(MARK)
    while at >= 0:
        found = frame_at(content, at)
        if found is not None:
            yield found
        at = content.find(MARK, at + (len(found.frame) if found else 1))


def frame_at(content: mmap.mmap | bytes, at: int) -> Found | None:
    """
    Return the frame that begins at an offset, None when none does that checks.
    """
    try:
        head = content[at : at + HEADER_SIZE]
        length = read_header(head).stored_length
        frame = bytes(content[at : at + HEADER_SIZE + length])
        header = read_header(frame)
        raw = raw_payload(frame, header)
        streams_of(decode_columns(raw, header.events).ids, header.first_position)
    except Corrupt:
        return None
    digest = frame_digest(
        header.previous, header.flags, header.first_position, header.events, header.epoch,
        header.topic_mask, raw,
    )  # fmt: skip
    return Found(header, frame) if digest == header.digest else None
