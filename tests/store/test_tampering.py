"""
Reading a log that was tampered with, by somebody who makes the checksums right.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from domain.errors import Corrupt
from store.log import EventLog
from tools.torture.tampering import KINDS, rewrite
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
    import lmdb

    from store.embedded.layout import index_prefix, run_positions, run_value, version_bytes
    from store.verify import verify_here

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
