"""
Build the frames that a log's writer puts.

Durable answers wait for a frame of one event, and behind a sync the processor's caches are cold: a
call that isn't made, or a table that isn't looked at, counts several times what it does in a loop.
"""

from __future__ import annotations

import struct
import zlib
from functools import lru_cache

from store.chain import frame_digest
from store.compression import LEVEL, SMALL, own_compressor
from store.dictionaries import current
from store.embedded.frames import (
    COMPRESS_MIN,
    CRC,
    DICTIONARY_MAX,
    FRAME_FORMAT,
    HEADER,
    MAGIC,
    RAW,
    TOPICS_REMEMBERED,
    ZSTD_DICTIONARY,
    pack,
    topic_bit,
)

_BEGIN = struct.Struct(">BHHBH")
_ID_LENGTH = struct.Struct(">H")
_MIDDLE, _WIDE_MIDDLE = struct.Struct(">HHII"), struct.Struct(">HHQI")
_NARROW, _WIDE = 4, 8
WIDE_FROM = 1 << 32


class FrameBuilder:
    """
    Build frames for one writer, never for two threads at once.
    """

    def __init__(self) -> None:
        self._number, dictionary = current()
        self._compress = own_compressor(SMALL, dictionary)

    def build(
        self,
        raw: bytes,
        mask: int,
        events: int,
        first_position: int,
        epoch: int,
        flags: int,
        previous: bytes,
    ) -> tuple[bytes, bytes, int]:
        """
        Return a frame's bytes, its digest, and the number of the dictionary that it needs, 0 for
        none, given its uncompressed payload and what its header says.

        Equivalent to: `pack` and `join_frame`. Differs in: small payloads have a compressor at
        hand.
        """
        length = len(raw)
        digest = frame_digest(previous, flags, first_position, events, epoch, mask, raw)
        if COMPRESS_MIN <= length <= DICTIONARY_MAX:
            codec, dictionary, stored = ZSTD_DICTIONARY, self._number, self._compress(raw)
            if len(stored) >= length:
                codec, dictionary, stored = RAW, 0, raw
        else:
            codec, dictionary, stored = pack(raw, level=LEVEL)
        head = HEADER.pack(
            MAGIC, FRAME_FORMAT, flags, codec, first_position, events, length, epoch, mask,
            dictionary, len(stored), previous, digest,
        )  # fmt: skip
        crc = CRC.pack(zlib.crc32(stored, zlib.crc32(head)))
        return b"".join((head, crc, stored)), digest, dictionary


def encode_row(topic: str, encoded_id: bytes, version: int, state: bytes) -> tuple[bytes, int]:
    """
    Return the uncompressed payload of a frame with one row, as most of a live scheduler's are, and
    the mask of its topic.

    Equivalent to: `encode_columns`. Differs in: the planes of one number are its bytes, so all
    that stands between topic, id and state is written at once.

    Raises:
        DataError: No frame can hold the topic.
    """
    middle, width = (_MIDDLE, _NARROW) if version < WIDE_FROM else (_WIDE_MIDDLE, _WIDE)
    begin, mask = _row_begin(topic, width)
    rest = middle.pack(0, 0, version, len(state))
    return b"".join((begin, _ID_LENGTH.pack(len(encoded_id)), encoded_id, rest, state)), mask


@lru_cache(maxsize=TOPICS_REMEMBERED)
def _row_begin(topic: str, width: int) -> tuple[bytes, int]:
    """
    Return what a payload of one row begins with, up to its id, and the mask of the topic.
    """
    mask, name = topic_bit(topic), topic.encode()
    return _BEGIN.pack(0, 1, 1, width, len(name)) + name, mask
