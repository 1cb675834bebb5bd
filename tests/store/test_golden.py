"""
Old logs: what was written by any released format is read by the present program, for ever.

To add a format: ``python -m tools.dev.golden tests/golden/log-format-N``, and never change it
again.
"""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from store.embedded.frames import ZSTD, ZSTD_DICTIONARY
from store.log import EventLog
from store.snapshots import SnapshotStore
from store.transfer import export_log, import_log, opened
from store.verify import verify_here
from tools.dev.golden import LOG_ID, STATE, write_log
from tools.torture.workload import job_events, jobs_events

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
FORMATS = sorted(GOLDEN.glob("log-format-*"))


@pytest.fixture(params=FORMATS, ids=lambda path: path.name)
def golden(request, tmp_path: Path) -> tuple[Path, dict[str, object], Path]:
    for packed in request.param.glob("*.gz"):
        path = tmp_path / packed.name.removesuffix(".gz").replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.decompress(packed.read_bytes()))
    expected = json.loads((request.param / "expected.json").read_text())
    return tmp_path, expected, request.param


def test_there_is_a_golden_log() -> None:
    """
    Without one the tests below would pass by not running.
    """
    assert FORMATS


def test_small_and_large_frames_of_both_kinds_are_in_golden_logs() -> None:
    """
    Frames compressed with a dictionary came later, and needed no new format.
    """
    codecs = set()
    for path in FORMATS:
        data = gzip.decompress((path / "log__data.mdb.gz").read_bytes())
        codecs |= {data[found.end() + 1] for found in re.finditer(rb"XF\x01", data)}
    assert {ZSTD, ZSTD_DICTIONARY} <= codecs


def test_an_old_log_is_read_whole(golden) -> None:
    """
    Positions, digests, archive, snapshot and every event.
    """
    place, expected, _ = golden
    truth = [*jobs_events(1, 50), *jobs_events(100, 1100), *jobs_events(5000, 1)]
    with EventLog.open(place, writable=False) as log:
        info = log.info()
        assert truth == [envelope.stamped() for envelope in log.read()]
        digests = {at: log.digest_at(int(at)).hex() for at in expected["digests"]}
        assert expected["digests"] == digests
        snapshots = SnapshotStore(place / "snapshots", log_id=LOG_ID)
        found = snapshots.newest_good(schema="golden", head=log.head(), digest_at=log.digest_at)
    assert found is not None
    assert STATE == found.state
    assert (expected["log_id"], expected["events"], expected["epoch"]) == (
        info.log_id,
        info.events,
        info.epoch,
    )
    assert verify_here(place / "log").is_good


def test_an_old_log_goes_on(golden) -> None:
    """
    Upgrading a program is no reason to convert a log.
    """
    place, expected, _ = golden
    with EventLog.open(place, writable=True) as log:
        assert expected["events"] + 4 == log.append(job_events(9000))
    assert verify_here(place / "log").is_good


def test_an_old_log_is_archived_further(golden) -> None:
    """
    Its small frames are compressed anew, with a dictionary that it didn't have.
    """
    place, expected, _ = golden
    with EventLog.open(place, writable=True) as log:
        assert log.archive(expected["events"], segment_events=40)
        assert expected["digests"][str(expected["events"])] == log.head_digest().hex()
    assert verify_here(place / "log").is_good


def test_an_old_export_is_imported_and_exported_the_same(golden, tmp_path: Path) -> None:
    """
    The lines are a format too.
    """
    _, expected, source = golden
    import_log(source / "log.jsonl.zst", tmp_path / "imported")
    export_log(tmp_path / "imported", tmp_path / "again.jsonl")
    with EventLog.open(tmp_path / "imported", writable=False) as log:
        assert expected["digests"][str(expected["events"])] == log.head_digest().hex()
    with opened(source / "log.jsonl.zst") as lines:
        assert lines.read() == (tmp_path / "again.jsonl").read_bytes()


def test_the_present_program_writes_the_present_format(tmp_path: Path) -> None:
    """
    A change of a byte without a new format number would show here.
    """
    expected = json.loads((FORMATS[-1] / "expected.json").read_text())

    assert expected == write_log(tmp_path)
