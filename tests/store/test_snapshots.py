"""
Snapshots: whole or not at all, checked, and never taken for those of another log, position or
schema.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
import zstandard
from eventsourcing.persistence import IntegrityError, StoredEvent
from eventsourcing.tests import persistence as tp

from domain.errors import Corrupt
from store.snapshot_files import read_header
from store.snapshots import SnapshotRecorder, SnapshotStore, schema_key
from tests.store.test_library_suites import TextIds

SCHEMA = "core:1"
STATE = b'{"jobs":[1,2,3],"time":"1000"}' * 50


class TestAggregateRecorderTestCase(tp.AggregateRecorderTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.directory = Path(tempfile.mkdtemp(prefix="xce-snapshots-"))
        self.addCleanup(shutil.rmtree, self.directory)

    def create_recorder(self) -> SnapshotRecorder:
        return SnapshotRecorder(Path(tempfile.mkdtemp(dir=self.directory)))


class TestAggregateRecorderTestCaseText(TextIds, TestAggregateRecorderTestCase):
    pass


def digest_at(position: int) -> bytes:
    return position.to_bytes(32, "big")


def put(store: SnapshotStore, position: int, state: bytes = STATE, schema: str = SCHEMA) -> Path:
    return store.put(
        position=position, schema=schema, state=state, chain_digest=digest_at(position), time_us=7
    )


@pytest.fixture
def store(tmp_path: Path) -> SnapshotStore:
    return SnapshotStore(tmp_path / "snapshots", log_id="the-log")


def newest(store: SnapshotStore, head: int = 100, upto: int | None = None) -> int | None:
    found = store.newest_good(schema=SCHEMA, head=head, digest_at=digest_at, upto=upto)
    return None if found is None else found.position


def test_the_newest_at_or_before_a_position_is_found(store: SnapshotStore) -> None:
    """
    Recovery wants the newest, time travel the newest before its moment.
    """
    for position in (10, 20, 30):
        put(store, position, b"%d" % position)

    found = store.newest_good(schema=SCHEMA, head=100, digest_at=digest_at, upto=29)

    assert found is not None
    assert (20, b"20", 7) == (found.position, found.state, found.time_us)
    assert [30, 10, None] == [newest(store), newest(store, upto=10), newest(store, upto=9)]
    assert 30 == newest(store, head=30), "that of a good end is of the log's end"
    assert [] == store.problems


def test_any_flipped_bit_is_named_and_the_one_before_is_taken(store: SnapshotStore) -> None:
    """
    Zstandard alone lets most flips in an incompressible frame through.
    """
    put(store, 10)
    path = put(store, 20)
    whole = path.read_bytes()
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << (at % 8)
        path.write_bytes(damaged)

        assert 10 == newest(store), at
        assert str(path) == store.problems[0].path


def test_a_truncated_one_is_skipped(store: SnapshotStore) -> None:
    """
    A disk that lost the tail of a file must cost time, not the state.
    """
    put(store, 10)
    path = put(store, 20)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert 10 == newest(store), length


def test_problems_are_those_of_the_last_look(store: SnapshotStore) -> None:
    """
    A scheduler that recovers again names what is bad now.
    """
    put(store, 10)
    put(store, 20).write_bytes(b"rubbish")

    assert [10, 10] == [newest(store), newest(store)]
    assert 1 == len(store.problems)
    assert 10 == newest(store, upto=10)
    assert [] == store.problems


def test_one_of_another_log_or_history_or_schema_is_not_taken(
    tmp_path: Path, store: SnapshotStore
) -> None:
    """
    A log restored from an older copy has another history behind the same positions.
    """
    other = SnapshotStore(store.directory, log_id="another-log")
    put(other, 50)
    put(store, 40, schema="core:2")
    store.put(position=30, schema=SCHEMA, state=STATE, chain_digest=b"x" * 32, time_us=0)
    put(store, 25)

    assert 25 == newest(store)
    assert ["foreign", "chain"] == [problem.kind for problem in store.problems]
    assert newest(store, head=24) is None
    assert "foreign" == store.problems[-1].kind


def test_one_under_the_name_of_another_is_not_taken(store: SnapshotStore) -> None:
    """
    A state of another schema would be misread; each file says itself what it is.
    """
    other = put(store, 10, schema="core:2")
    shutil.copy(
        other, store.directory / other.name.replace(schema_key("core:2"), schema_key(SCHEMA))
    )

    assert newest(store) is None
    assert ["order"] == [problem.kind for problem in store.problems]
    found = store.check(head=100, digest_at=digest_at)
    assert [False, True] == sorted(problem == "" for _, problem in found)


def test_a_newer_format_is_refused_by_name(store: SnapshotStore) -> None:
    """
    An unknown shape must not be guessed at.
    """
    path = put(store, 10)
    path.write_bytes(path.read_bytes().replace(b'"format": 1', b'"format": 9'))

    assert newest(store) is None
    assert "newer" == store.problems[0].kind


def test_a_bomb_allocates_no_more_than_the_header_states(store: SnapshotStore) -> None:
    """
    A gibibyte of zeros compresses to 32 KiB.
    """
    path = put(store, 10, b"0" * 1000)
    whole = path.read_bytes()
    header_end = 8 + int.from_bytes(whole[4:8], "little")
    bomb = zstandard.ZstdCompressor(write_checksum=True).compress(bytes(64 << 20))
    path.write_bytes(whole[:header_end] + bomb)

    assert newest(store) is None
    assert store.problems[0].kind in ("truncated", "checksum")


def test_the_file_is_readable_without_us(store: SnapshotStore) -> None:
    """
    ``zstd -dc`` passes over the header by itself.
    """
    path = put(store, 10)

    with path.open("rb") as file:
        reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
        assert STATE == reader.read()
    frame = path.read_bytes()[-read_header(path).stored_size :]
    parameters = zstandard.get_frame_parameters(frame)
    assert parameters.has_checksum
    assert len(STATE) == parameters.content_size


def test_pruning_keeps_the_newest_and_the_pinned(store: SnapshotStore) -> None:
    """
    The newest few are what recovery falls back on.
    """
    for position in range(1, 8):
        put(store, position)
    assert 1 == len(store.pin(2))

    removed = store.prune(keep=3)

    assert 3 == len(removed)
    assert [2, 5, 6, 7] == [entry.position for entry in store.entries()]
    assert 1 == len(store.pin(2, is_pinned=False))
    assert 0 == len(store.pin(3)), "there is none"
    store.prune(keep=3)
    assert [5, 6, 7] == [entry.position for entry in store.entries()]


def test_the_last_of_each_day_stays_as_long_as_is_wanted(store: SnapshotStore) -> None:
    """
    Time travel into last week must not fold the whole log.
    """
    hour_us = 3_600_000_000
    for hour in range(0, 24 * 5, 6):
        store.put(
            position=hour + 1, schema=SCHEMA, state=b"", chain_digest=b"", time_us=hour * hour_us
        )

    store.prune(keep=2, daily=3)

    assert [67, 91, 109, 115] == [entry.position for entry in store.entries()]


def test_a_store_that_is_told_to_keeps_only_so_many(tmp_path: Path) -> None:
    """
    A scheduler that runs for years must not fill its disk with old states.
    """
    keeping = SnapshotStore(tmp_path, log_id="the-log", keep=2, daily=1)
    put(keeping, 1)
    keeping.pin(1)

    for position in range(2, 7):
        put(keeping, position)
    put(keeping, 3, schema="another")

    assert [1, 3, 5, 6] == [entry.position for entry in keeping.entries()]


def test_only_those_of_its_own_schema_go(tmp_path: Path) -> None:
    """
    Those of another version of the program are what it starts from when it is put back.
    """
    old = SnapshotStore(tmp_path, log_id="the-log")
    for position in range(1, 5):
        put(old, position, schema="old")
    keeping = SnapshotStore(tmp_path, log_id="the-log", keep=2)
    for position in range(5, 9):
        put(keeping, position)

    assert [1, 2, 3, 4, 7, 8] == [entry.position for entry in keeping.entries()]


def test_checking_names_the_bad_ones_of_every_schema(store: SnapshotStore) -> None:
    """
    Before one is needed.
    """
    put(store, 10)
    put(store, 20, schema="another").write_bytes(b"rubbish")
    put(store, 30)
    found = store.check(head=25, digest_at=digest_at)

    assert [True, False, False] == [problem == "" for _, problem in found]


def test_putting_the_same_again_is_harmless_and_a_bad_one_is_replaced(store: SnapshotStore) -> None:
    """
    A restart may take a snapshot where one was already taken.
    """
    path = put(store, 10)
    changed_ns = path.stat().st_ctime_ns
    assert path == put(store, 10)
    assert changed_ns == path.stat().st_ctime_ns, "it is left as it is"
    path.write_bytes(b"rubbish")
    put(store, 10)

    assert 10 == newest(store)


@pytest.mark.parametrize(("log_id", "state", "digest"), [
    ("the-log", b"another", digest_at(10)), ("the-log", STATE, digest_at(11)),
    ("a-log", STATE, digest_at(10)),
])  # fmt: skip
def test_what_isnt_the_same_is_replaced(
    store: SnapshotStore, log_id: str, state: bytes, digest: bytes
) -> None:
    """
    A log that was put back from a backup went on otherwise, to the same position.
    """
    other = SnapshotStore(store.directory, log_id=log_id)
    other.put(position=10, schema=SCHEMA, state=state, chain_digest=digest, time_us=7)
    assert newest(store) == (10 if state != STATE else None)

    put(store, 10)

    found = store.newest_good(schema=SCHEMA, head=100, digest_at=digest_at)
    assert found is not None
    assert STATE == found.state


def test_of_several_that_are_written_together_all_or_none_are_there(store: SnapshotStore) -> None:
    """
    One of them is there already.
    """
    put(store, 20)
    recorder = SnapshotRecorder(store.directory, log_id="the-log")
    events = [StoredEvent(SCHEMA, position, "snapshot", STATE) for position in (10, 20, 30)]
    with pytest.raises(IntegrityError):
        recorder.insert_events(events)

    assert [20] == recorder.positions(SCHEMA)


@pytest.mark.parametrize("schema", [SCHEMA, "core:2"])
def test_a_recorder_takes_none_under_the_name_of_another(store: SnapshotStore, schema: str) -> None:
    """
    Of another position or of another schema: each file says itself what it is.
    """
    recorder = SnapshotRecorder(store.directory, log_id="the-log")
    position = 20 if schema == SCHEMA else 10
    shutil.copy(put(store, 10, schema=schema), recorder.path_of(SCHEMA, position))

    with pytest.raises(Corrupt, match=f"at {position}"):
        recorder.select_events(SCHEMA, gt=position - 1)


def test_a_killed_writer_leaves_nothing_that_counts(store: SnapshotStore) -> None:
    """
    Only the link to the final name makes a snapshot.
    """
    (store.directory / ".00000000000000000099-0123456789abcdef.snapshot.1.new").write_bytes(b"half")
    again = SnapshotStore(store.directory, log_id="the-log")

    assert [] == list(again.directory.iterdir())


def test_what_a_writer_is_still_at_stays(tmp_path: Path) -> None:
    """
    A check beside a scheduler removed the file that a snapshot was being written to.
    """
    from store.snapshot_files import _opened_new

    path = tmp_path / ".00000000000000000099-0123456789abcdef.snapshot.1.new"
    with _opened_new(path):
        SnapshotStore(tmp_path, log_id="the-log")
        assert path.exists()
    SnapshotStore(tmp_path, log_id="the-log")

    assert not path.exists()


def test_reading_a_missing_file_is_a_named_problem(tmp_path: Path) -> None:
    """
    Another process may have pruned it in between.
    """
    from store.snapshot_files import read_snapshot

    with pytest.raises(Corrupt) as caught:
        read_snapshot(tmp_path / "none")
    assert "truncated" == caught.value.kind
