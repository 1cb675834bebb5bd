"""
Keys and frames: every encoding comes back, and sorts as it must.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from domain.errors import Corrupt
from store.chain import frame_digest
from store.embedded import layout
from store.embedded.builder import FrameBuilder, encode_row
from store.embedded.frames import (
    FLAG_LAST,
    Columns,
    encode_columns,
    open_frame,
    topic_mask,
)
from store.embedded.rows import streams_of

NUMBERED = st.builds(
    "{}{:010d}{}".format,
    st.sampled_from(["job:", "", "x\0", "é"]),
    st.integers(0, 10**10 - 1),
    st.sampled_from(["", "[000003]", "\0", "7", "\0\xff"]),
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
IDS = TEXT | NUMBERED | st.uuids()
VERSIONS = st.integers(0, 300) | st.integers(0, layout.VERSION_MAX)


@given(IDS)
def test_an_id_comes_back_with_its_type(stream: str | UUID) -> None:
    """
    The library promises the type that went in.
    """
    assert stream == layout.id_of(layout.id_bytes(stream))


@given(st.lists(IDS | st.from_regex(r"(job:)?[0-9\u0664\u00b2]{0,11}", fullmatch=True), min_size=1))
def test_an_id_is_encoded_the_same_whichever_came_before(streams: list[str | UUID]) -> None:
    """
    Kinds are remembered; what only looks like a number of a kind that is known must not be one.
    """
    for stream in ["job:0000000001", "0000000001", *streams]:
        assert layout.encoded_plainly(stream) == layout.encoded_stream.__wrapped__(stream)


NUMBERS = st.integers(0, layout.NUMBER_END + 9).map(lambda number: number.to_bytes(5))
NEARLY_IDS = (
    st.tuples(st.sampled_from([b"s", b"t", b"u", b"x", b""]), st.binary(max_size=20))
    | st.tuples(st.just(b"s"), NUMBERED.map(str.encode))
    | st.tuples(st.just(b"t"), st.sampled_from([b"job:", b"", b"j0b", b"\xff"]), st.just(b"\0"),
                NUMBERS, st.sampled_from([b"", b"[03]", b"7", b"\xff", b"\0" * 300, b"x" * 600]))
    | st.tuples(st.just(b"s"), st.sampled_from([b"x" * 479, b"x" * 480, b"\0" * 240]))
).map(b"".join)  # fmt: skip


@example(b"sjob:0000000001")
@example(b"tj0b\0\0\0\0\0\1")
@example(b"tjob:\0\0\0\0\0\x017")
@example(b"s" + b"x" * layout.ID_BYTES_MAX)
@given(NEARLY_IDS)
def test_bytes_that_no_id_is_encoded_as_are_a_value_error_and_nothing_else(encoded: bytes) -> None:
    """
    A second encoding of an id would be read as events of it that its index knows nothing of.
    """
    for decode in (layout.id_of, layout.id_of, layout.decoded_plainly):
        try:
            stream = decode(encoded)
        except ValueError:
            with pytest.raises(ValueError):
                layout.decoded_plainly(encoded)
        else:
            assert encoded == layout.id_bytes(stream)


def test_a_frame_that_names_a_stream_in_other_bytes_is_damage() -> None:
    """
    What isn't the encoding of an id is told with its position, like all other damage.
    """
    with pytest.raises(Corrupt, match=r"position 7, expected ids of streams, found .* isn't how"):
        streams_of([layout.id_bytes("job:0000000001"), b"sjob:0000000001"], 7)


@given(IDS, VERSIONS)
def test_an_index_key_is_taken_apart_again(stream: str | UUID, version: int) -> None:
    """
    Verifying goes from the index to the rows.
    """
    key = layout.index_prefix(stream) + layout.version_bytes(version)

    assert (layout.id_bytes(stream), version) == layout.split_index_key(key)


@given(IDS, IDS, VERSIONS, VERSIONS)
def test_keys_of_two_streams_never_mix(
    one: str | UUID, two: str | UUID, low: int, high: int
) -> None:
    """
    A stream's rows lie together, by version, whatever bytes its id has.
    """
    low, high = sorted((low, high))
    first = layout.index_prefix(one) + layout.version_bytes(low)
    last = layout.index_prefix(one) + layout.version_bytes(high)
    other = layout.index_prefix(two) + layout.version_bytes(low)

    assert first <= last
    assert one == two or not first <= other <= last


@given(st.lists(st.integers(1, 2**40), min_size=1, unique=True), st.lists(st.integers(1, 9)))
def test_a_runs_positions_come_back_also_when_it_was_extended(positions: list[int], steps) -> None:
    """
    The value is newest first, so that extending it reads one number only.
    """
    positions = sorted(positions)
    value = layout.run_value(positions)
    for step in steps:
        positions = [*positions, positions[-1] + step]
        value = layout.run_value(positions[-1:], value)

    assert positions == layout.run_positions(value)
    assert len(positions) == layout.run_length(value)


@given(TEXT, IDS, VERSIONS, st.binary(max_size=300))
def test_one_row_is_encoded_as_columns_are(topic: str, stream, version: int, state: bytes) -> None:
    """
    Most commits of a live scheduler have one; it is written without columns.
    """
    encoded = layout.id_bytes(stream)
    columns = Columns([topic], [encoded], [0], [0], [version], [state])

    assert (encode_columns(columns), topic_mask([topic])) == encode_row(
        topic, encoded, version, state
    )


def frame_of(columns: Columns, **said: Any) -> tuple[bytes, bytes]:
    """
    Return bytes and digest of a frame with these rows.
    """
    given = {"epoch": 1, "flags": FLAG_LAST, "previous": bytes(32), **said}
    mask, events = topic_mask(columns.topic_names), len(columns.states)
    return FrameBuilder().build(encode_columns(columns), mask, events, **given)[:2]


ROWS = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 4), VERSIONS, st.binary(max_size=40)), min_size=1
)


@given(ROWS, st.lists(TEXT, min_size=5, max_size=9), st.integers(1, 2**50), st.booleans())
def test_a_frame_comes_back(rows, topics: list[str], first: int, is_last: bool) -> None:
    """
    Column by column, whatever the widths.
    """
    columns = Columns(
        topics,
        [layout.id_bytes(f"s{number}") for number in range(10)],
        [row[1] for row in rows],
        [row[0] for row in rows],
        [row[2] for row in rows],
        [row[3] for row in rows],
    )
    frame, digest = frame_of(
        columns, first_position=first, epoch=3, flags=int(is_last), previous=b"p" * 32
    )
    header, again = open_frame(frame, position=first)

    assert columns == Columns(*map(list, again))
    assert (first, len(rows), 3, b"p" * 32, digest) == (
        header.first_position,
        header.events,
        header.epoch,
        header.previous,
        header.digest,
    )
    assert is_last == header.is_last_of_commit


def test_every_flipped_bit_of_a_frame_is_found() -> None:
    """
    LMDB returns a flipped bit without a word; of 1,000 tried, 508 changed data silently.
    """
    columns = Columns(["a"], [b"sx"], [0] * 9, [0] * 9, list(range(9)), [b'{"t":1}' * 9] * 9)
    frame, _ = frame_of(columns, first_position=5)
    for bit in range(len(frame) * 8):
        damaged = bytearray(frame)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(Corrupt):
            open_frame(bytes(damaged), position=5)


def test_the_digest_covers_every_field_that_it_is_given() -> None:
    """
    A field left out could be changed unseen.
    """
    fields: list[object] = [b"p" * 32, 1, 5, 9, 3, 7, b"payload"]
    changes: list[object] = [b"q" * 32, 0, 6, 8, 4, 6, b"payloae"]
    digests = {frame_digest(*fields)}
    for at, change in enumerate(changes):
        digests.add(frame_digest(*fields[:at], change, *fields[at + 1 :]))

    assert len(changes) + 1 == len(digests)


def test_every_truncated_frame_is_found() -> None:
    """
    A value may be cut by a damaged page.
    """
    columns = Columns(["a"], [b"sx"], [0], [0], [1], [b'{"t":1}' * 30])
    frame, _ = frame_of(columns, first_position=5)
    for length in range(len(frame)):
        with pytest.raises(Corrupt):
            open_frame(frame[:length], position=5)
