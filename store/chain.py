"""
The hash chain: what makes a position and a digest identify a whole history.

The digest of a frame covers what the frame means (the uncompressed payload and every header field
that isn't a matter of storage) and the digest before it. Recompressing a frame leaves it as it is;
changing an event, its order, its commit or its epoch doesn't.
"""

from __future__ import annotations

import hashlib
import struct

_GENESIS = b"xce log genesis 1\0"
_FRAME = b"xce log frame 1\0"
_WITHIN = b"xce log within a frame 1\0"
_FIELDS = struct.Struct(">BQIQQI")
JOINED_BELOW = 4096
"""Shorter payloads are copied to be digested in one call: quicker than two."""
# To look the algorithm up takes longer than to digest a frame of one event.
_begun_frame = hashlib.sha256(_FRAME)


def genesis(log_id: str, space: bytes) -> bytes:
    """
    Return the digest that a log begins with, before its first event.
    """
    return hashlib.sha256(b"".join((_GENESIS, _sized(log_id.encode()), _sized(space)))).digest()


def frame_digest(
    previous: bytes, flags: int, first_position: int, count: int, epoch: int, mask: int, raw: bytes
) -> bytes:
    """
    Return the digest of the log up to the end of a frame.
    """
    length = len(raw)
    fields = _FIELDS.pack(flags, first_position, count, epoch, mask, length)
    digest = _begun_frame.copy()
    if length < JOINED_BELOW:
        digest.update(b"".join((previous, fields, raw)))
    else:
        digest.update(previous + fields)
        digest.update(raw)
    return digest.digest()


def digest_within(previous: bytes, rows: list[tuple[str, int, str, bytes]]) -> bytes:
    """
    Return the digest of the log up to a position inside a frame.

    Args:
        previous: The digest before that frame.
        rows: The frame's rows up to and with that position.
    """
    digest = hashlib.sha256(b"".join((_WITHIN, previous)))
    for stream, version, topic, state in rows:
        parts = (str(stream).encode(), str(version).encode(), topic.encode(), state)
        digest.update(b"".join(map(_sized, parts)))
    return digest.digest()


def _sized(part: bytes) -> bytes:
    """
    Put a length before a part, so that two lists of parts never give the same bytes.
    """
    return len(part).to_bytes(8, "big") + part
