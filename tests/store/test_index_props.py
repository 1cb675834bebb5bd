"""
Safety: the index of streams knows every version once, whatever a commit holds.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import lmdb
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from store.embedded.environment import Environment, acquire
from store.embedded.errors import VersionsTakenError
from store.embedded.index import RUN_MAX, insert_index
from store.embedded.journal import Journal
from store.embedded.layout import (
    INDEX_VALUE_SOFT_MAX,
    index_prefix,
    run_length,
    run_value,
    version_bytes,
    version_of,
)
from store.embedded.rows import Row, columns_of
from store.embedded.settings import Settings

Stream = str | UUID
Commit = list[tuple[Stream, int]]

JOBS = ["job:0000000001", "job:0000000002", "job:0000000002[000001]"]
STREAMS: list[Stream] = [*JOBS, "session", "a\0", "a", UUID(int=7)]
ANY = st.tuples(st.sampled_from(STREAMS), st.integers(0, 12) | st.integers(250, 260))
COMMITS = st.lists(st.lists(ANY, min_size=1, max_size=25, unique=True), min_size=1, max_size=6)


@contextmanager
def opened() -> Iterator[Environment]:
    with tempfile.TemporaryDirectory(prefix="xce-index-") as place:
        environment = acquire(Settings(Path(place), durability="none"), log_id="the-log")
        try:
            yield environment
        finally:
            environment.release()


def plainly(rows: dict[bytes, bytes], commit: Commit, first: int) -> None:
    """
    Enter a commit of versions that are new into a dict of rows, the runs one after the other.
    """
    for stream in {stream for stream, _ in commit}:
        prefix = index_prefix(stream)
        pairs = sorted((v, p) for p, (s, v) in enumerate(commit, first) if s == stream)
        runs = [[pairs[0]]]
        for version, position in pairs[1:]:
            before = runs[-1][-1]
            follows = version == before[0] + 1 and position > before[1]
            if follows and len(runs[-1]) < RUN_MAX:
                runs[-1].append((version, position))
            else:
                runs.append([(version, position)])
        for at, run in enumerate(runs):
            version, positions = run[0][0], [position for _, position in run]
            key, value = prefix + version_bytes(version), b""
            keys = [k for k in rows if k < key and k.startswith(prefix) and k[len(prefix)] <= 8]
            is_new = at > 0 and version == runs[at - 1][-1][0] + 1
            if keys and not is_new:
                row = rows[max(keys)]
                end = version_of(max(keys), len(prefix)) + run_length(row)
                if end == version and len(row) <= INDEX_VALUE_SOFT_MAX:
                    key, value = max(keys), row
            rows[key] = run_value(positions, value)


@settings(max_examples=60)
@given(COMMITS)
def test_a_commit_is_entered_as_each_of_its_runs_would_be(commits: list[Commit]) -> None:
    """
    What is put behind all rows in one go isn't looked for: the rows must be the same.
    """
    expected: dict[bytes, bytes] = {}
    taken: set[tuple[Stream, int]] = set()
    first = 1
    with opened() as environment:
        index = environment.database(b"index")
        for commit in commits:
            streams, versions = zip(*commit, strict=True)

            def insert(
                transaction: lmdb.Transaction, at=first, streams=streams, versions=versions
            ) -> None:
                insert_index(transaction.cursor(db=index), streams, versions, at)

            again = taken & set(commit)
            if again:
                with pytest.raises(VersionsTakenError) as caught:
                    environment.write(insert)
                assert again == set(caught.value.conflicts)
                continue
            environment.write(insert)
            plainly(expected, commit, first)
            taken |= set(commit)
            first += len(commit)
        with environment.read() as transaction:
            found = dict(transaction.cursor(db=index))

    assert expected == found


@settings(max_examples=40)
@given(COMMITS)
def test_every_version_is_found_in_whatever_order_it_came(commits: list[Commit]) -> None:
    """
    An application of the library may record versions of a stream in any order.
    """
    positions: dict[tuple[Stream, int], int] = {}
    with opened() as environment:
        journal = Journal(environment)
        for commit in commits:
            fresh = [each for each in commit if each not in positions]
            if fresh:
                rows = [(stream, version, "tick", b"x") for stream, version in fresh]
                positions.update(zip(fresh, journal.insert_rows(rows), strict=True))
        for stream in STREAMS:
            expected = sorted((v, p) for (s, v), p in positions.items() if s == stream)
            assert expected == [(row[2], row[0]) for row in journal.stream_rows(stream)]


ROWS = st.tuples(
    st.sampled_from(STREAMS), st.integers(0, 12) | st.just(2**40),
    st.sampled_from(["tick", "tock"]), st.binary(max_size=200),
)  # fmt: skip


@settings(max_examples=40)
@given(st.lists(ROWS, min_size=1, max_size=8, unique_by=lambda row: row[:2]))
def test_a_commit_of_one_row_is_what_it_would_be_by_columns(rows: list[Row]) -> None:
    """
    Most commits of a live scheduler go that shorter way.
    """
    with opened() as environment, opened() as another:
        journal, plain = Journal(environment), Journal(another)
        for row in rows:
            journal.insert_rows([row])
            columns, head = columns_of([row]), plain.head()
            another.write(
                lambda transaction, columns=columns, head=head: plain._put_rows(  # type: ignore[misc]
                    transaction, columns, head, 0
                )
            )
        found = []
        for each in (journal, plain):
            with each.environment.read() as transaction:
                databases = (each._log, each._index)
                found.append([list(transaction.cursor(db=database)) for database in databases])

    assert found[1] == found[0]


JOB_1, *_, JOB_8 = MANY_JOBS = [f"job:{at:010d}" for at in range(1, 9)]
SINGLES = st.tuples(
    st.integers(0, 1), st.sampled_from([*MANY_JOBS, "session"]), st.integers(1, 3), st.booleans()
)


@settings(max_examples=60)
@given(st.lists(SINGLES, min_size=4, max_size=30))
@example([(0, JOB_8, 1, True), (0, JOB_8, 2, True)])
@example([(0, JOB_1, 1, True), (1, JOB_8, 1, True), (0, JOB_8, 2, True)])
@example([(0, JOB_1, 1, True), (0, JOB_8, 1, False), (0, JOB_8, 2, True)])
def test_what_is_behind_the_last_key_is_only_what_is_behind_that_of_all_writers(
    commits: list[tuple[int, str, int, bool]],
) -> None:
    """
    A writer that knows the last key doesn't look for a stream behind it: after another's commit,
    or one of several rows, it has to learn that key again.
    """
    expected: dict[bytes, bytes] = {}
    taken: set[tuple[Stream, int]] = set()
    with opened() as environment:
        writers = Journal(environment), Journal(environment)
        for who, stream, version, is_alone in commits:
            extra = [] if is_alone else [("session", 1000 + len(taken))]
            commit: Commit = [(stream, version), *extra]
            rows: list[Row] = [(*each, "tick", b"x") for each in commit]
            if (stream, version) in taken:
                with pytest.raises(VersionsTakenError):
                    writers[who].insert_rows(rows)
                continue
            (first, *_) = writers[who].insert_rows(rows)
            plainly(expected, commit, first)
            taken |= set(commit)
        with environment.read() as transaction:
            found = dict(transaction.cursor(db=writers[0]._index))

    assert expected == found


def test_a_version_that_comes_twice_in_a_commit_is_refused() -> None:
    """
    Neither was there before; still only one of them can be that version.
    """
    rows = [("s", 1, "tick", b"x"), ("t", 1, "tick", b"x"), ("s", 1, "tick", b"y")]
    with opened() as environment:
        journal = Journal(environment)
        with pytest.raises(VersionsTakenError) as caught:
            journal.insert_rows(rows)
        assert [("s", 1)] == caught.value.conflicts
        assert 0 == journal.head().position


def test_a_run_longer_than_a_row_is_cut() -> None:
    """
    The session stream of a simulation has a thousand versions a commit.
    """
    count = 2 * RUN_MAX + 3
    with opened() as environment:
        journal = Journal(environment)
        journal.insert_rows([("session", version, "tick", b"") for version in range(1, count + 1)])
        with environment.read() as transaction:
            runs = [run_length(value) for _, value in transaction.cursor(db=journal._index)]
        assert [RUN_MAX, RUN_MAX, 3] == runs
        assert count == journal.last_version("session")
