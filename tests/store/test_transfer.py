"""
Export and import are exact inverses, and a damaged file gives no log at all.
"""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.envelope import Stamped
from domain.errors import Corrupt, NotFound, Refused, StoreUnavailable, UnknownEventType
from domain.events.jobs import JobFinished
from store.log import EventLog
from store.rebuild import LogBuilder
from store.repair import repair
from store.transfer import event_line, export_log, import_log, read_event_line
from store.verify import verify_here
from tools.torture.workload import fill, job_events, jobs_events

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    with EventLog.create(tmp_path / "log", log_id="the-log") as log:
        fill(log, commits=3)
        log.append(jobs_events(1000, 1500))
    with EventLog.open(tmp_path / "log", writable=True) as log:
        log.append(job_events(9000))
    return tmp_path / "log"


@pytest.mark.parametrize("name", ["log.jsonl", "log.jsonl.gz", "log.jsonl.zst"])
def test_export_then_import_is_the_identity(tmp_path: Path, directory: Path, name: str) -> None:
    """
    Log id, positions, commits, epochs and head digest come back, so snapshots and heads stay good.
    """
    export_log(directory, tmp_path / name)
    import_log(tmp_path / name, tmp_path / "again")
    with (
        EventLog.open(directory, writable=False) as one,
        EventLog.open(tmp_path / "again", writable=False) as two,
    ):
        assert list(one.read()) == list(two.read())
        assert one.log_id == two.log_id
        assert one.epoch == two.epoch
        assert one.head_digest() == two.head_digest()
        assert list(one.read_stream("job:0000001001")) == list(two.read_stream("job:0000001001"))
    assert verify_here(directory).commits == verify_here(tmp_path / "again").commits
    assert verify_here(tmp_path / "again").is_good
    export_log(tmp_path / "again", tmp_path / "second.jsonl")
    if name == "log.jsonl":
        assert (tmp_path / name).read_bytes() == (tmp_path / "second.jsonl").read_bytes()


def test_lines_are_plain_json_and_tell_decisions_apart(tmp_path: Path, directory: Path) -> None:
    """
    Other programs read them.
    """
    export_log(directory, tmp_path / "log.jsonl")
    header, *lines = map(json.loads, (tmp_path / "log.jsonl").read_text().splitlines())

    assert ("the-log", 6124) == (header["HEADER"]["log_id"], header["HEADER"]["events"])
    assert ["EVENT", "DECISION", "EVENT", "EVENT"] == [next(iter(line)) for line in lines[:4]]
    first = lines[0]["EVENT"]
    assert (1, "job:0000000001", 1, "job.submitted") == (
        first["position"],
        first["stream"],
        first["version"],
        first["type"],
    )
    assert "u1" == first["payload"]["spec"]["user"]


@given(
    stream=TEXT, version=st.integers(1, 2**40), actor=TEXT, cause=TEXT, why=TEXT,
    ends=st.booleans(),
    position=st.integers(1, 2**40), epoch=st.integers(0, 99), ends_commit=st.booleans(),
)  # fmt: skip
def test_any_event_comes_back_byte_for_byte(
    stream, version, actor, cause, why, ends, position, epoch, ends_commit
) -> None:
    """
    A payload text may hold anything, also what looks like the line's own fields.
    """
    from store.codec import encode

    event = JobFinished(attempt=1, why=why + ',"payload":{}')
    row = encode(Stamped(stream, version, 7, actor, cause, event, ends))
    line = event_line((position, *row), epoch=epoch, ends_commit=ends_commit)
    again = read_event_line(line, position=position)

    assert 1 == line.count(b"\n")
    assert (position, row, epoch, ends_commit) == (
        again.position,
        again.row,
        again.epoch,
        again.ends_commit,
    )


@given(st.binary(max_size=60))
def test_a_state_of_another_shape_is_exported_all_the_same(state: bytes) -> None:
    """
    An application of the library may keep anything in its states.
    """
    line = event_line((5, "s", 1, "x", state), epoch=1, ends_commit=True)

    assert ("s", 1, "x", state) == read_event_line(line, position=5).row


@pytest.mark.parametrize(
    "damage", ["cut", "half a line", "missing", "doubled", "swapped", "changed", "type", "header"]
)
def test_a_damaged_file_gives_no_log(tmp_path: Path, directory: Path, damage: str) -> None:
    """
    Half an import that looks like a log would be worse than none.
    """
    export_log(directory, tmp_path / "log.jsonl")
    lines = (tmp_path / "log.jsonl").read_bytes().splitlines(keepends=True)
    if damage == "cut":
        del lines[-3:]
    elif damage == "half a line":
        lines[-1] = lines[-1][:30]
    elif damage == "missing":
        del lines[7]
    elif damage == "doubled":
        lines.insert(7, lines[7])
    elif damage == "swapped":
        lines[7], lines[8] = lines[8], lines[7]
    elif damage == "changed":
        lines[4] = lines[4].replace(b'"cpu_us":1000', b'"cpu_us":1001')
    elif damage == "type":
        lines[4] = lines[4].replace(b'"job.finished"', b'"os:system"')
    else:
        lines[0] = lines[0].replace(b'"format":1', b'"format":2')
    (tmp_path / "damaged.jsonl").write_bytes(b"".join(lines))

    with pytest.raises(Corrupt) as caught:
        import_log(tmp_path / "damaged.jsonl", tmp_path / "again")
    assert str(tmp_path / "damaged.jsonl") == caught.value.path
    assert caught.value.hint
    assert (damage == "header") == (caught.value.position is None)
    left = {path.name for path in tmp_path.iterdir()}
    assert {"log", "log.jsonl", "damaged.jsonl"} == left


@pytest.mark.parametrize("row", [
    ("s", 1, "os:system", b"{}"), ("worker:a", 1, "job.held", b"rubbish"),
], ids=["unknown type", "no event"])  # fmt: skip
def test_an_event_that_cannot_be_decoded_is_not_imported(
    tmp_path: Path, row: tuple[str, int, str, bytes]
) -> None:
    """
    A file whose digests are right may still hold what no start of a scheduler would survive.
    """
    with LogBuilder(tmp_path / "bad", log_id="bad") as builder:
        builder.add_commit([row], epoch=1)
        builder.finish(epoch=1)
    export_log(tmp_path / "bad", tmp_path / "bad.jsonl")

    with pytest.raises((Corrupt, UnknownEventType)) as caught:
        import_log(tmp_path / "bad.jsonl", tmp_path / "log")
    assert "position 1" in caught.value.text()
    assert not (tmp_path / "log").exists()


def test_nothing_is_written_over(tmp_path: Path, directory: Path) -> None:
    """
    A log or an export that exists stays.
    """
    export_log(directory, tmp_path / "log.jsonl")
    with pytest.raises(Refused):
        export_log(directory, tmp_path / "log.jsonl")
    with pytest.raises(Refused):
        import_log(tmp_path / "log.jsonl", directory)


@pytest.mark.parametrize("there", ["a file in it", "a file"])
def test_a_log_is_only_put_where_nothing_is(tmp_path: Path, directory: Path, there: str) -> None:
    """
    A mistyped target became a log among other files, were it the root of the system.
    """
    export_log(directory, tmp_path / "log.jsonl")
    target = tmp_path / "full"
    if there == "a file":
        target.touch()
    else:
        target.mkdir()
        (target / "letter").touch()
    for put in (
        lambda: import_log(tmp_path / "log.jsonl", target), lambda: repair(directory, target),
    ):  # fmt: skip
        with pytest.raises(Refused) as caught:
            put()
        assert str(target) == caught.value.value
    left = {path.name for path in tmp_path.rglob("*") if path.parent != directory}
    assert left == {"log", "log.jsonl", "full"} | ({"letter"} if target.is_dir() else set())


@settings(max_examples=30)
@given(st.binary(max_size=300))
def test_no_line_crashes_the_reader(line: bytes) -> None:
    """
    An imported file may come from anywhere.
    """
    for given_line in (line, b'{"EVENT":{"position":1,' + line + b"}}"):
        with pytest.raises(Corrupt):
            read_event_line(given_line, position=1)


def test_what_can_not_be_written_is_told_by_the_name_that_was_given(
    tmp_path: Path, directory: Path
) -> None:
    """
    The file is made under a temporary name, which means nothing to anyone.
    """
    export_log(directory, tmp_path / ("x" * 249 + ".jsonl"))
    target = tmp_path / ("x" * 250 + ".jsonl")

    with pytest.raises(StoreUnavailable) as told:
        export_log(directory, target)

    assert str(target) in told.value.text()
    assert ".new" not in told.value.text()
    with pytest.raises(NotFound, match="directory that is there"):
        export_log(directory, tmp_path / "none" / "x.jsonl")


def test_an_import_of_a_bomb_is_refused_by_its_first_line(tmp_path: Path) -> None:
    """
    A file of some kilobytes may decompress to anything, and all of it on one line.
    """
    bomb = tmp_path / "bomb.jsonl.zst"
    bomb.write_bytes(zstandard.ZstdCompressor().compress(bytes(256 << 20)))
    assert bomb.stat().st_size < 64 << 10
    tracemalloc.start()
    try:
        with pytest.raises(Corrupt) as caught:
            import_log(bomb, tmp_path / "log")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert "foreign" == caught.value.kind
    assert peak < 8 << 20
    assert ["bomb.jsonl.zst"] == [path.name for path in tmp_path.iterdir()]
