"""
Compress and decompress with zstandard: the one place that knows its contexts, caps and
dictionaries.

A context used by two threads at once crashes the process, so every thread has its own.
"""

from __future__ import annotations

import threading

import zstandard

LEVEL = 3
"""Default level: 1 is hardly faster on our frames, 10 takes five times as long for a tenth less."""

_local = threading.local()


def compress(data: bytes, *, level: int = LEVEL, dictionary: bytes | None = None) -> bytes:
    """
    Compress into one zstandard frame that states its content size.
    """
    try:
        context = _local.compressors[level, dictionary]
    except (AttributeError, KeyError):
        context = _new_compressor(level, dictionary)
    packed: bytes = context.compress(data)
    return packed


def decompress(data: bytes, *, size: int, dictionary: bytes | None = None) -> bytes:
    """
    Decompress one frame whose content must have exactly *size* bytes.

    Nothing is allocated for a frame that states another size, or none.

    Raises:
        ValueError: The frame is damaged, or of another size.
    """
    try:
        stated = zstandard.frame_content_size(data)
        if stated != size:
            message = f"content size {stated} where the header says {size}"
            raise ValueError(message)
        plain = _decompressor(dictionary).decompress(data)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from None
    if len(plain) != size:
        message = f"{len(plain)} bytes where the header says {size}"
        raise ValueError(message)
    return plain


def _new_compressor(level: int, dictionary: bytes | None) -> zstandard.ZstdCompressor:
    """
    Return this thread's compressor for a level and dictionary, which it hasn't had yet.
    """
    shared = None if dictionary is None else zstandard.ZstdCompressionDict(dictionary)
    if shared is not None:
        # Once, and before any compressor has it: later it may crash.
        shared.precompute_compress(level=level)
    context = zstandard.ZstdCompressor(
        level=level, dict_data=shared, write_content_size=True, write_dict_id=False
    )
    _local.__dict__.setdefault("compressors", {})[level, dictionary] = context
    return context


def _decompressor(dictionary: bytes | None) -> zstandard.ZstdDecompressor:
    """
    Return this thread's decompressor for a dictionary.
    """
    contexts: dict[bytes | None, zstandard.ZstdDecompressor]
    contexts = _local.__dict__.setdefault("decompressors", {})
    context = contexts.get(dictionary)
    if context is None:
        shared = None if dictionary is None else zstandard.ZstdCompressionDict(dictionary)
        context = zstandard.ZstdDecompressor(dict_data=shared, max_window_size=1 << 27)
        contexts[dictionary] = context
    return context
