"""
How a commit is cut into the parts that become frames.
"""

from __future__ import annotations

import pytest
from eventsourcing.persistence import DataError
from hypothesis import example, given
from hypothesis import strategies as st

from store.embedded import rows
from store.embedded.rows import CommitRows

EVENTS, SIZE, LARGEST = 4, 10, 14


def one_by_one(lengths: list[int]) -> list[list[int]]:
    """
    Cut greedily, row by row: what a frame may hold goes into it.
    """
    parts: list[list[int]] = [[]]
    for length in lengths:
        is_full = len(parts[-1]) >= EVENTS or sum(parts[-1]) + length > SIZE
        if parts[-1] and is_full:
            parts.append([])
        parts[-1].append(length)
    return parts


def commit_of(lengths: list[int]) -> CommitRows:
    numbers = range(len(lengths))
    names = [f"job:{number}" for number in numbers]
    return CommitRows(names, list(numbers), ["t"] * len(lengths), [b"x" * n for n in lengths])


def cut(lengths: list[int]) -> list[CommitRows]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "EVENTS_MAX", EVENTS)
        patch.setattr(rows, "PAYLOAD_SOFT_MAX", SIZE)
        patch.setattr(rows, "STATE_MAX", LARGEST)
        return list(commit_of(lengths).cut())


@given(st.lists(st.integers(0, LARGEST), min_size=1, max_size=30))
@example([SIZE, 0, 0, 1])
@example([0, LARGEST, 0])
@example([1] * (3 * EVENTS))
def test_a_commit_is_cut_as_if_row_by_row(lengths: list[int]) -> None:
    """
    Where frames begin is part of the log's digest, so it must never depend on how it is worked out.
    """
    parts = cut(lengths)

    assert one_by_one(lengths) == [list(map(len, part.states)) for part in parts]
    assert [f"job:{n}" for n in range(len(lengths))] == [s for part in parts for s in part.streams]


@given(st.lists(st.integers(0, LARGEST + 3), min_size=EVENTS + 1, max_size=12))
def test_the_first_row_that_no_frame_holds_is_refused_by_name(lengths: list[int]) -> None:
    """
    Its writer must learn which one it is.
    """
    found = next((n for n, length in enumerate(lengths) if length > LARGEST), None)
    if found is None:
        assert cut(lengths)
        return
    with pytest.raises(DataError, match=f"state of job:{found} version {found} has"):
        cut(lengths)
