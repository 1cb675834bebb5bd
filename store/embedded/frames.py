"""
Frames: the rows of (part of) a commit as bytes, with header, checksum and chain digest.

A frame is checked every time it is read: LMDB has no checksum of its own. ``store/FORMAT.md``
describes each byte.
"""

from __future__ import annotations

import struct
import sys
import zlib
from array import array
from collections.abc import Iterable, Sequence
from functools import lru_cache
from io import BytesIO
from typing import NamedTuple

from eventsourcing.persistence import DataError

from domain.errors import Corrupt
from store.chain import frame_digest
from store.compression import compress, decompress
from store.dictionaries import current, known

MAGIC = b"XF"
FRAME_FORMAT = 1
FLAG_LAST = 1
"""This frame is the last one of its commit."""
KNOWN_FLAGS = FLAG_LAST

RAW, ZSTD, ZSTD_DICTIONARY = 0, 1, 2

EVENTS_MAX = 4096
"""Larger frames compress hardly better and make reading a single event slower."""
PAYLOAD_SOFT_MAX = 1 << 20
"""A frame is closed before its states pass this size; one larger event has a frame of its own."""
STATE_MAX = 32 << 20
PAYLOAD_MAX = 64 << 20
"""Nothing larger is ever decompressed."""

COMPRESS_MIN = 64
"""Smaller payloads are stored as they are."""
DICTIONARY_MAX = 8 << 10
"""Payloads up to this length are compressed with a dictionary; larger ones hardly gain by it."""

HEADER = struct.Struct(">2sBBBxxxQIIQQII32s32s")
CRC = struct.Struct(">I")
PREFIX = struct.Struct(">BHHB")
"""Extra columns (none are defined yet), distinct topics, distinct ids, bytes of a version."""
HEADER_SIZE = HEADER.size + CRC.size
_WIDTHS = {"H": 2, "I": 4, "Q": 8}

TOPICS_REMEMBERED = 1024
TOPIC_BYTES_MAX = 0xFFFF


class Header(NamedTuple):
    """
    What stands before a frame's payload, behind magic and frame format, in this order.
    """

    flags: int
    codec: int
    first_position: int
    events: int
    raw_length: int
    epoch: int
    topic_mask: int
    dictionary_id: int
    stored_length: int
    previous: bytes
    digest: bytes

    @property
    def last_position(self) -> int:
        """
        Return the position of the frame's last event.
        """
        return self.first_position + self.events - 1

    @property
    def is_last_of_commit(self) -> bool:
        """
        Say whether the commit ends with this frame.
        """
        return bool(self.flags & FLAG_LAST)


class Columns(NamedTuple):
    """
    The rows of one frame, column by column.

    Fields: the distinct topics in order of first appearance; the distinct stream ids, encoded, in
    order of first appearance; then per row the index of its topic, the index of its stream id, its
    version and state.
    """

    topic_names: Sequence[str]
    ids: Sequence[bytes]
    topics: Sequence[int]
    id_indexes: Sequence[int]
    versions: Sequence[int]
    states: Sequence[bytes]


class Frame(NamedTuple):
    """
    A frame as read and checked.
    """

    header: Header
    columns: Columns


def topic_mask(topics: Iterable[str]) -> int:
    """
    Return a set of topics as bits: what lets a filtered read pass over a frame.
    """
    mask = 0
    for topic in topics:
        mask |= topic_bit(topic)
    return mask


@lru_cache(maxsize=TOPICS_REMEMBERED)
def topic_bit(topic: str) -> int:
    """
    Return a topic's bit.

    Raises:
        DataError: No frame can hold the topic.
    """
    try:
        encoded = topic.encode()
    except UnicodeEncodeError:
        message = f"topic {topic[:40]!r} is not text that UTF-8 can hold"
        raise DataError(message) from None
    if len(encoded) > TOPIC_BYTES_MAX:
        message = f"topic longer than {TOPIC_BYTES_MAX} bytes: {topic[:40]!r}..."
        raise DataError(message)
    return 1 << (zlib.crc32(encoded) & 63)


def pack(raw: bytes, *, level: int) -> tuple[int, int, bytes]:
    """
    Return codec, number of the dictionary and bytes of a payload as it is stored.
    """
    if len(raw) < COMPRESS_MIN:
        return RAW, 0, raw
    codec, number, dictionary = ZSTD, 0, None
    if len(raw) <= DICTIONARY_MAX:
        codec, (number, dictionary) = ZSTD_DICTIONARY, current()
    packed = compress(raw, level=level, dictionary=dictionary)
    return (codec, number, packed) if len(packed) < len(raw) else (RAW, 0, raw)


def join_frame(header: tuple[int | bytes, ...], stored: bytes) -> bytes:
    """
    Return the bytes of a frame from its header, or a tuple of the same fields, and its payload as
    it is stored.
    """
    head = HEADER.pack(MAGIC, FRAME_FORMAT, *header)
    return b"".join((head, CRC.pack(zlib.crc32(stored, zlib.crc32(head))), stored))


def read_header(frame: bytes | memoryview, *, position: int | None = None) -> Header:
    """
    Read a frame's header without checking its checksum.

    Raises:
        Corrupt: It is too short, no frame, or of a newer format.
    """
    if len(frame) < HEADER_SIZE:
        raise Corrupt("truncated", position, f"at least {HEADER_SIZE} bytes", f"{len(frame)} bytes")
    magic, version, flags, codec, *rest = HEADER.unpack_from(frame)
    if magic != MAGIC:
        raise Corrupt("checksum", position, f"a frame beginning with {MAGIC!r}", repr(magic))
    if version != FRAME_FORMAT or flags & ~KNOWN_FLAGS or codec > ZSTD_DICTIONARY:
        # Only a frame that checks can claim to be newer: a flipped bit is no new format.
        check_crc(frame, position=position)
        found = f"frame format {version}, flags {flags:#x}, codec {codec}"
        raise Corrupt("newer", position, f"frame format {FRAME_FORMAT}", found)
    return Header(flags, codec, *rest)


def check_crc(frame: bytes | memoryview, *, position: int | None = None) -> None:
    """
    Compare a frame's checksum.

    Raises:
        Corrupt: Of the kind checksum.
    """
    (recorded,) = CRC.unpack_from(frame, HEADER.size)
    found = zlib.crc32(frame[HEADER_SIZE:], zlib.crc32(frame[: HEADER.size]))
    if recorded != found:
        raise Corrupt("checksum", position, f"{recorded:08x}", f"{found:08x}")


def raw_payload(frame: bytes, header: Header) -> bytes:
    """
    Return the checked, uncompressed payload of a frame.

    Raises:
        Corrupt: Of the kind checksum, truncated or, without its dictionary, newer.
    """
    position = header.first_position
    check_crc(frame, position=position)
    stored = frame[HEADER_SIZE:]
    if len(stored) != header.stored_length:
        raise Corrupt(
            "truncated", position, f"{header.stored_length} bytes", f"{len(stored)} bytes"
        )
    if header.raw_length > PAYLOAD_MAX or header.events > PAYLOAD_MAX:
        raise Corrupt(
            "checksum", position, f"at most {PAYLOAD_MAX} bytes", f"{header.raw_length} bytes"
        )
    if header.codec == RAW:
        return stored
    dictionary = None
    if header.codec == ZSTD_DICTIONARY:
        dictionary = known(header.dictionary_id)
        if dictionary is None:
            found = f"dictionary {header.dictionary_id:08x}"
            raise Corrupt("newer", position, "a dictionary that is in the log or known", found)
    try:
        return decompress(stored, size=header.raw_length, dictionary=dictionary)
    except ValueError as error:
        raise Corrupt("checksum", position, "a payload that decompresses", str(error)) from None


def open_frame(frame: bytes, *, position: int) -> Frame:
    """
    Check and decode a frame that the log keeps at a position.

    Raises:
        Corrupt: Anything about it is wrong, the position it says it has included.
    """
    header = read_header(frame, position=position)
    raw = raw_payload(frame, header)
    if header.first_position != position:
        raise Corrupt("order", position, position, header.first_position)
    check_digest(header, raw)
    return Frame(header, decode_columns(raw, header.events, position=position))


def check_follows(header: Header, raw: bytes, last_position: int, last_digest: bytes) -> None:
    """
    Check that a frame follows a history and that its digest covers what it holds.

    Raises:
        Corrupt: Of the kind gap, order or chain.
    """
    first = header.first_position
    if first != last_position + 1:
        kind = "gap" if first > last_position + 1 else "order"
        raise Corrupt(kind, min(first, last_position + 1), last_position + 1, first)
    if header.previous != last_digest:
        raise Corrupt("chain", first, last_digest.hex(), header.previous.hex())
    check_digest(header, raw)


def check_digest(header: Header, raw: bytes) -> None:
    """
    Check that a frame's digest covers what it holds: a checksum alone anybody can make right.

    Raises:
        Corrupt: Of the kind chain.
    """
    first = header.first_position
    digest = frame_digest(
        header.previous, header.flags, first, header.events, header.epoch, header.topic_mask, raw
    )
    if digest != header.digest:
        raise Corrupt("chain", first, digest.hex(), header.digest.hex())


def encode_columns(columns: Columns) -> bytes:
    """
    Return the uncompressed payload of a frame.
    """
    topics = [topic.encode() for topic in columns.topic_names]
    wide = max(columns.versions) >= 1 << 32
    parts = [
        PREFIX.pack(0, len(topics), len(columns.ids), 8 if wide else 4),
        _planes("H", list(map(len, topics))),
        *topics,
        _planes("H", list(map(len, columns.ids))),
        *columns.ids,
        _planes("H", columns.topics),
        _planes("H", columns.id_indexes),
        _planes("Q" if wide else "I", columns.versions),
        _planes("I", list(map(len, columns.states))),
        *columns.states,
    ]
    return b"".join(parts)


def decode_columns(raw: bytes, count: int, *, position: int | None = None) -> Columns:
    """
    Decode the uncompressed payload of a frame with *count* rows.

    Raises:
        Corrupt: The columns don't fill the payload exactly, or there are some that we don't know.
    """
    try:
        return _decode_columns(raw, count)
    except (struct.error, IndexError, ValueError) as error:
        raise Corrupt("structure", position, "columns that fill the payload", str(error)) from None


def _decode_columns(raw: bytes, count: int) -> Columns:
    """
    Decode, raising what comes when the bytes are no such payload.
    """
    extras, topic_count, id_count, width = PREFIX.unpack_from(raw)
    if extras:
        raise Corrupt("newer", None, "rows without extra columns", f"extra columns {extras:#x}")
    at = PREFIX.size
    lengths, at = _numbers("H", raw, at, topic_count)
    topic_names, at = _slices(raw, at, lengths)
    lengths, at = _numbers("H", raw, at, id_count)
    ids, at = _slices(raw, at, lengths)
    topics, at = _numbers("H", raw, at, count)
    id_indexes, at = _numbers("H", raw, at, count)
    versions, at = _numbers("Q" if width == 8 else "I", raw, at, count)
    lengths, at = _numbers("I", raw, at, count)
    states, at = _slices(raw, at, lengths)
    if at != len(raw) or not count or max(id_indexes) >= id_count or max(topics) >= topic_count:
        message = f"{at} of {len(raw)} bytes"
        raise ValueError(message)
    return Columns(
        [topic.decode() for topic in topic_names], ids, topics, id_indexes, versions, states
    )


def _planes(code: str, numbers: Sequence[int]) -> bytes:
    """
    Encode numbers byte plane by byte plane, the highest first: all the zeros side by side compress
    best.
    """
    try:
        # Small numbers, as most columns have: all planes but the last are zero.
        low = bytes(numbers)
    except ValueError:
        pass
    else:
        return bytes(len(low) * (_WIDTHS[code] - 1)) + low
    column = array(code, numbers)
    if sys.byteorder == "big":
        column.byteswap()
    size, data = column.itemsize, column.tobytes()
    return b"".join([data[plane::size] for plane in range(size - 1, -1, -1)])


def _numbers(code: str, raw: bytes, at: int, count: int) -> tuple[list[int], int]:
    """
    Decode *count* numbers from their planes; return them and where they end.
    """
    column = array(code)
    size = column.itemsize
    end = at + size * count
    if end > len(raw):
        message = f"a column to byte {end} of {len(raw)}"
        raise ValueError(message)
    low = end - count
    if raw.count(0, at, low) == low - at:
        # Small numbers, as most columns have: only the last plane says anything.
        return list(raw[low:end]), end
    data = bytearray(size * count)
    for plane in range(size):
        data[size - 1 - plane :: size] = raw[at + plane * count : at + (plane + 1) * count]
    column.frombytes(data)
    if sys.byteorder == "big":
        column.byteswap()
    return column.tolist(), end


def _slices(raw: bytes, at: int, lengths: list[int]) -> tuple[list[bytes], int]:
    """
    Cut consecutive pieces of the given lengths; return them and where they end.
    """
    end = at + sum(lengths)
    if end > len(raw):
        message = f"pieces to byte {end} of {len(raw)}"
        raise ValueError(message)
    # Half the time of slicing.
    file = BytesIO(raw)
    file.seek(at)
    return list(map(file.read, lengths)), end
