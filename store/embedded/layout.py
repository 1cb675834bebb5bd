"""
Key spaces and key encodings: the only file that builds or reads keys of the embedded log.

The bytes are described in ``store/FORMAT.md``; a change here is a change of the log format.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache
from typing import NamedTuple
from uuid import UUID

from eventsourcing.persistence import DataError

FORMAT = 1
"""Version of the key spaces and of everything in them."""

ID_BYTES_MAX = 480
"""An LMDB key holds 511 bytes; version and terminator take up to 10."""

VERSION_MAX = 2**64 - 1
INDEX_VALUE_SOFT_MAX = 48
"""An index row longer than this is not extended any more: the next commit begins a new one."""

META = b"meta"
KEY_FORMAT = b"format"
KEY_LOG_ID = b"log_id"
KEY_EPOCH = b"epoch"
KEY_DICTIONARY = b"dictionary:"
KEY_AHEAD = b"ahead"

TEXT_TAG = b"s"
NUMBERED_TAG = b"t"
UUID_TAG = b"u"
NUMBER_BYTES = 5
NUMBER_END = 10**10
IDS_REMEMBERED = 1 << 14
"""A stream's id is needed for the frame and for the index, and again when it goes on."""
DIGITS = 10
FIGURES = b"0123456789"
KIND_MAX = 40
KINDS_REMEMBERED = 64
_kinds: dict[str, bytes] = {}
"""Kinds of numbered streams, with what the ids of their streams begin with."""
_kinds_decoded: dict[bytes, str] = {}
"""The same the other way round."""
SURELY_FITS = ID_BYTES_MAX // 2
"""An id of so many bytes isn't too long even if every one of them is a NUL, which counts double."""
ESCAPE = 0xFF
VERSION_BYTES_MAX = 8
SMALL_VERSIONS = 0x100
_SMALL_VERSIONS = tuple(bytes((1, version)) for version in range(SMALL_VERSIONS))
_numbered = re.compile(r"([^0-9\x00]*)([0-9]{10})(?![0-9])(.*)", re.DOTALL).fullmatch


class SpaceNames(NamedTuple):
    """
    Name the named databases that hold one log, or the tracking of one application.
    """

    frames: bytes
    streams: bytes
    anchors: bytes


def space_names(name: str, purpose: str) -> SpaceNames:
    """
    Return the named databases of one application's recorder.
    """
    base = f"{name.lower()}_{purpose}" if name else purpose
    encoded = base.encode()
    return SpaceNames(encoded + b".log", encoded + b".index", encoded + b".anchors")


def unmatched_names(names: Collection[bytes]) -> list[bytes]:
    """
    Return the named databases that no log of this format has: others, and those whose log lacks
    its frames or its index.
    """
    unmatched = []
    for name in names:
        base, _, kind = name.rpartition(b".")
        if kind in (b"log", b"index", b"anchors"):
            is_known = base + b".log" in names and base + b".index" in names
        else:
            is_known = name == META or name.endswith(b"tracking")
        if not is_known:
            unmatched.append(name)
    return unmatched


def tracking_name(name: str) -> bytes:
    """
    Return the named database of one application's tracking positions.
    """
    return (f"{name.lower()}_tracking" if name else "tracking").encode()


def number_bytes(number: int) -> bytes:
    """
    Encode a number below 2**64 so that the bytes sort as the numbers do.
    """
    return number.to_bytes(8, "big")


def number_of(key: bytes) -> int:
    """
    Decode what `number_bytes` encoded.
    """
    return int.from_bytes(key, "big")


def id_bytes(stream: str | UUID) -> bytes:
    """
    Encode a stream's id: a tag byte, then the text or the sixteen bytes of the UUID.

    A text with a number of ten digits is encoded with the number as five bytes. Its tag is greater
    than that of other texts, so that entities which come in thousands are at the end of the index,
    where pages get full.

    Raises:
        DataError: The id is too long for a key, or isn't encodable text.
    """
    return encoded_stream(stream)[0]


def index_prefix(stream: str | UUID) -> bytes:
    """
    Return what all index keys of a stream begin with, and no key of another stream does.
    """
    return encoded_stream(stream)[1]


# hot: each job of a simulation comes here once.
def encode_stream(stream: str | UUID) -> tuple[bytes, bytes]:
    """
    Return what `id_bytes` and `index_prefix` do.

    Equivalent to: `encoded_plainly`. Differs in: a number behind a kind that had one before needs
    no search for where it begins.
    """
    if isinstance(stream, str):
        begin, digits = _kinds.get(stream[:-DIGITS]), stream[-DIGITS:]
        if begin and len(digits) == DIGITS and digits.isascii() and digits.isdigit():
            encoded = begin + int(digits).to_bytes(NUMBER_BYTES)
            return encoded, encoded + b"\x00"
    return encoded_plainly(stream)


encoded_stream = lru_cache(maxsize=IDS_REMEMBERED)(encode_stream)
"""The same, remembered; for a commit of one event, whose stream is mostly new or was long ago, to
remember takes longer than to encode."""


def encoded_plainly(stream: str | UUID) -> tuple[bytes, bytes]:
    """
    Encode a stream's id, and what its index keys begin with.
    """
    if isinstance(stream, UUID):
        encoded = UUID_TAG + stream.bytes
        return encoded, encoded
    numbered = _numbered(stream)
    try:
        if numbered is None:
            bare, rest = TEXT_TAG, stream.encode()
        else:
            kind, digits, behind = numbered.groups()
            begin = b"%b%b\x00" % (NUMBERED_TAG, kind.encode())
            bare, rest = begin + int(digits).to_bytes(NUMBER_BYTES), behind.encode()
            if len(kind) <= KIND_MAX and len(_kinds) < KINDS_REMEMBERED:
                _kinds[kind] = begin
    except UnicodeEncodeError:
        message = f"originator id {stream!r} is not text that UTF-8 can hold"
        raise DataError(message) from None
    if len(bare) + len(rest) + bare.count(0) + rest.count(0) > ID_BYTES_MAX:
        message = f"originator id longer than {ID_BYTES_MAX} bytes: {stream[:40]!r}..."
        raise DataError(message)
    # The bare part ends where its form says; in the rest a NUL would look like the end.
    return bare + rest, b"%b%b\x00" % (bare, rest.replace(b"\x00", b"\x00\xff"))


# hot: each stream of each frame that is read comes here.
def id_of(encoded: bytes) -> str | UUID:
    """
    Decode what `id_bytes` encoded, and nothing else: what is read under an id must be found under
    it.

    Equivalent to: `decoded_plainly`. Differs in: what is surely short enough, and its kind known,
    isn't encoded anew to be compared.

    Raises:
        ValueError: It stands for no id, or isn't the encoding of the one that it seems to be.
    """
    tag = encoded[:1]
    if len(encoded) > SURELY_FITS:
        return decoded_plainly(encoded)
    if tag == NUMBERED_TAG:
        begin = encoded.find(0) + 1
        kind, end = _kinds_decoded.get(encoded[:begin]), begin + NUMBER_BYTES
        number = int.from_bytes(encoded[begin:end])
        if kind is not None and number < NUMBER_END:
            if len(encoded) == end:
                return f"{kind}{number:010d}"
            if len(encoded) > end and encoded[end] not in FIGURES:
                return f"{kind}{number:010d}{encoded[end:].decode()}"
    elif tag == TEXT_TAG:
        text = encoded[1:].decode()
        if len(text) < DIGITS or _numbered(text) is None:
            return text
    return decoded_plainly(encoded)


def decoded_plainly(encoded: bytes) -> str | UUID:
    """
    Decode an id, and see that it is encoded so.
    """
    tag, stream = encoded[:1], ""
    if tag == UUID_TAG:
        return UUID(bytes=encoded[1:])
    begin, nul, behind = encoded.partition(b"\x00")
    if tag == NUMBERED_TAG:
        number = int.from_bytes(behind[:NUMBER_BYTES])
        kind, rest = begin[1:].decode(), behind[NUMBER_BYTES:].decode()
        stream = f"{kind}{number:010d}{rest}"
    elif tag == TEXT_TAG:
        stream = encoded[1:].decode()
    else:
        message = f"a stream's id with the tag {tag!r}"
        raise ValueError(message)
    try:
        is_canonical = encoded_plainly(stream)[0] == encoded
    except DataError as error:
        raise ValueError(str(error)) from None
    if not is_canonical:
        message = f"a stream's id {encoded[:60]!r}, which isn't how {stream[:60]!r} is encoded"
        raise ValueError(message)
    if tag == NUMBERED_TAG and len(begin) <= KIND_MAX and len(_kinds_decoded) < KINDS_REMEMBERED:
        _kinds_decoded[begin + nul] = kind
    return stream


def split_index_key(key: bytes) -> tuple[bytes, int]:
    """
    Return the encoded id and the version of an index key.

    Raises:
        ValueError, IndexError: It isn't what `index_prefix` and `version_bytes` make, and so would
            not be found where it is looked for.
    """
    head = _bare_length(key)
    if key[:1] == UUID_TAG:
        end, encoded = head, key[:head]
    else:
        # The version's length stands behind the id's end, and is 1 to 8; an id's own NUL has 0xff.
        end = key.index(0, head)
        while key[end + 1] == ESCAPE:
            end = key.index(0, end + 2)
        encoded = key[:end]
        if end > head:
            encoded = key[:head] + key[head:end].replace(b"\x00\xff", b"\x00")
        end += 1
    length = len(key) - end - 1
    if key[end] != length or not 1 <= length <= VERSION_BYTES_MAX:
        message = "a version that isn't as long as it says"
        raise ValueError(message)
    if length > 1 and key[end + 1] == 0:
        message = "a version with a leading zero"
        raise ValueError(message)
    return encoded, version_of(key, end)


def _bare_length(encoded: bytes) -> int:
    """
    Return how many bytes at the beginning of an id stand in a key as they are.
    """
    tag = encoded[:1]
    if tag == UUID_TAG:
        return 17
    return encoded.index(0) + 1 + NUMBER_BYTES if tag == NUMBERED_TAG else 1


def version_bytes(version: int) -> bytes:
    """
    Encode a stream's version in two to nine bytes that sort as the numbers do.

    Raises:
        DataError: The version is negative or too large.
    """
    if 0 <= version < SMALL_VERSIONS:
        return _SMALL_VERSIONS[version]
    if not 0 <= version <= VERSION_MAX:
        message = f"originator version {version} is not from 0 to {VERSION_MAX}"
        raise DataError(message)
    length = (version.bit_length() + 7) // 8
    return bytes((length,)) + version.to_bytes(length, "big")


def version_of(key: bytes, prefix_length: int) -> int:
    """
    Decode the version at the end of an index key.
    """
    return int.from_bytes(key[prefix_length + 1 :], "big")


def varint(number: int) -> bytes:
    """
    Encode a number of any size, seven bits a byte, lowest first, the last byte below 0x80.
    """
    if number < 0x80:
        return bytes((number,))
    if number < 0x4000:
        return bytes((number & 0x7F | 0x80, number >> 7))
    if number < 0x20_0000:
        return bytes((number & 0x7F | 0x80, number >> 7 & 0x7F | 0x80, number >> 14))
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def varints(encoded: bytes) -> list[int]:
    """
    Decode a sequence of what `varint` encoded.
    """
    if encoded.isascii():
        # Every byte is a number of its own: steps between events that lie close together.
        return list(encoded)
    numbers: list[int] = []
    number = shift = 0
    for byte in encoded:
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            numbers.append(number)
            number, shift = 0, 0
        else:
            shift += 7
    return numbers


def first_varint(encoded: bytes) -> tuple[int, int]:
    """
    Decode the first number, and say how many bytes it takes.
    """
    number, shift = 0, 0
    for length, byte in enumerate(encoded, 1):
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, length
        shift += 7
    message = "a number without an end"
    raise ValueError(message)


_CONTINUED = bytes(range(0x80, 0x100))


def run_length(value: bytes) -> int:
    """
    Return how many versions an index row covers.
    """
    return len(value.translate(None, _CONTINUED))


def run_value(positions: list[int], before: bytes = b"") -> bytes:
    """
    Encode the positions of a run of versions, newest first: the last one, then the way back from
    each.

    Args:
        positions: Ascending, at least one.
        before: The row's value so far, when the run continues it.
    """
    newer = positions[-1]
    if len(positions) == 1 and not before:
        return varint(newer)
    value = bytearray(varint(newer))
    # hot: every stream of every commit comes here. The rest is `varint` of each step, spelled out.
    for position in positions[-2::-1]:
        step = newer - position
        newer = position
        if step < 0x80:
            value.append(step)
        elif step < 0x4000:
            value.append(step & 0x7F | 0x80)
            value.append(step >> 7)
        else:
            value += varint(step)
    if before:
        older, length = first_varint(before)
        value += varint(newer - older)
        value += before[length:]
    return bytes(value)


def run_positions(value: bytes) -> list[int]:
    """
    Decode the positions of a run of versions, ascending.
    """
    newest, length = first_varint(value)
    positions = [newest]
    # hot: verifying goes over every row.
    for step in varints(value[length:]):
        newest -= step
        positions.append(newest)
    positions.reverse()
    return positions
