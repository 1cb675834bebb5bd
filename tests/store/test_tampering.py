"""
Reading a log that was tampered with, by somebody who makes the checksums right.
"""

from __future__ import annotations

import random
from pathlib import Path

import lmdb
import pytest

from domain.errors import Corrupt
from store.embedded.frames import decode_columns, encode_columns, raw_payload, read_header
from store.embedded.layout import index_prefix, run_positions, run_value, version_bytes
from store.log import EventLog
from store.repair import repair
from store.verify import verify_here
from tools.torture.tampering import KINDS, Kind, rewrite, with_payload
from tools.torture.workload import fill

SHOWN_BY_READING = [
    name for name, kind in KINDS.items() if not kind.needs_anchor and name != "insert"
]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    with EventLog.create(tmp_path / "log", log_id="the-log") as log:
        fill(log, commits=12, jobs=5)
    return tmp_path / "log"


@pytest.mark.parametrize("name", SHOWN_BY_READING)
@pytest.mark.parametrize("seed", range(3))
def test_whoever_reads_past_it_is_told(directory: Path, name: str, seed: int) -> None:
    """
    A changed event must not lead to a decision, whether or not somebody verifies.
    """
    rewrite(directory, KINDS[name], random.Random(seed))
    with EventLog.open(directory, writable=False) as log, pytest.raises(Corrupt):
        list(log.read())


def test_a_reader_that_begins_in_a_gap_is_told(directory: Path) -> None:
    """
    It must not take the gap for the end of the log.
    """
    rewrite(directory, KINDS["remove"], random.Random(1))
    with EventLog.open(directory, writable=False) as log:
        there = set()
        for first in range(1, log.head(), 20):
            try:
                assert log.digest_at(first)
                there.add(first)
            except Corrupt:
                continue
        (gap,) = set(range(1, log.head(), 20)) - there
        with pytest.raises(Corrupt) as caught:
            list(log.read(after=gap - 1))
        with pytest.raises(Corrupt):
            list(log.read(after=gap + 3))
        assert list(log.read(after=gap + 19))
    assert ("gap", gap) == (caught.value.kind, caught.value.position)


def test_an_index_that_leads_elsewhere_is_told(directory: Path) -> None:
    """
    The row it leads to says whose it is.
    """
    key = index_prefix("job:0000000003") + version_bytes(1)
    with (
        lmdb.open(str(directory), max_dbs=16, map_size=1 << 30) as environment,
        environment.begin(write=True) as transaction,
    ):
        index = environment.open_db(b"events.index", txn=transaction)
        positions = run_positions(bytes(transaction.get(key, db=index)))
        transaction.put(key, run_value([at + 1 for at in positions]), db=index)
    with EventLog.open(directory, writable=False) as log, pytest.raises(Corrupt):
        list(log.read_stream("job:0000000003"))
    problem = verify_here(directory).first_problem
    assert problem is not None
    assert ("order", "job:0000000003") == (problem.kind, problem.stream)


IDS_THAT_ARE_NONE = [
    pytest.param(b"s\xff\xfeob:0000000002", id="no UTF-8"),
    pytest.param(b"x" + b"j" * 9, id="unknown tag"),
    pytest.param(b"tjob:\x00\xff\xff\xff\xff\xff", id="number of thirteen digits"),
    pytest.param(b"tjob:\x00\x00\x00\x00\x02", id="number cut short"),
    pytest.param(b"u" + b"j" * 9, id="UUID cut short"),
]


@pytest.mark.parametrize("encoded", IDS_THAT_ARE_NONE)
def test_an_id_of_a_stream_that_is_none_is_told(
    directory: Path, tmp_path: Path, encoded: bytes
) -> None:
    """
    Checksum and chain are right: whoever reads the frame must not end with an error of the standard
    library, nor take it for a stream of another name.
    """
    position = 21

    def change(frames: dict[int, bytes], _: random.Random) -> None:
        header = read_header(frames[position])
        columns = decode_columns(raw_payload(frames[position], header), header.events)
        ids = [encoded, *columns.ids[1:]]
        raw = encode_columns(columns._replace(ids=ids))
        frames[position] = with_payload(frames[position], raw, rehash=True)

    rewrite(directory, Kind(change), random.Random(1))
    with EventLog.open(directory, writable=False) as log:
        assert 20 == len(list(log.read(upto=20)))
        with pytest.raises(Corrupt) as caught:
            list(log.read())
    report = verify_here(directory)
    repair(directory, tmp_path / "saved")

    assert ("structure", position) == (caught.value.kind, caught.value.position)
    assert ("structure", position) in {(each.kind, each.position) for each in report.problems}
    assert verify_here(tmp_path / "saved").is_good


def test_an_index_row_of_no_stream_is_told(directory: Path) -> None:
    """
    It leads nowhere, and has no name that could be told.
    """
    with (
        lmdb.open(str(directory), max_dbs=16, map_size=1 << 30) as environment,
        environment.begin(write=True) as transaction,
    ):
        index = environment.open_db(b"events.index", txn=transaction)
        transaction.put(b"s\xff\xfe\x00\x01\x01", run_value([7]), db=index)
    problem = verify_here(directory).first_problem

    assert problem is not None
    assert ("structure", 7, "ids of streams") == (problem.kind, problem.position, problem.expected)
