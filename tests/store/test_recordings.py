"""
A recording is read like a log, whatever packs it; and what is missing or damaged in it is named.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from domain.errors import Corrupt, InvariantBroken, Refused
from store.log import EventLog
from store.recordings import (
    LogLines,
    Recording,
    SnapshotLine,
    is_recording,
    line_of,
    read_snapshot_line,
    write_recording,
)
from store.transfer import RECORDING_FORMAT, RecordingHeader, export_log, import_log
from tools.torture.workload import jobs_events

STATE = b'{"name":"\\u00e9 \xe2\x80\xa8","SNAPSHOT":{"state":{}}}'


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    with EventLog.create(tmp_path / "log", log_id="the-log") as log:
        log.append(jobs_events(1, 30))
        log.append(jobs_events(100, 300))
    return tmp_path / "log"


def written(directory: Path, target: Path, *, after=0, upto=None, states=(), events=-1) -> Path:
    """
    Write a window of a log with states at some positions; return the file.
    """
    with LogLines(directory) as lines:
        last = lines.head() if upto is None else upto
        count = last - after if events == -1 else events
        header = RecordingHeader(RECORDING_FORMAT, lines.log_id, after + 1, count, 1, "")
        snapshots = [SnapshotLine(place, 5, "s1", "", STATE) for place in states]
        write_recording(target, header, lines.events(after, last), snapshots)
    return target


@pytest.mark.parametrize("name", ["part.jsonl", "part.jsonl.gz", "part.jsonl.zst"])
def test_a_recording_gives_what_the_log_gives(tmp_path: Path, directory: Path, name: str) -> None:
    """
    Every command reads it as it reads a log: in order, by position, by stream, by time.
    """
    file = written(directory, tmp_path / name, after=40, upto=140, states=(40, 90, 140))
    with EventLog.open(directory, writable=False) as log, Recording(file) as recording:
        assert (41, 140, "the-log") == (
            recording.first_position, recording.head(), recording.log_id,
        )  # fmt: skip
        assert list(log.read(40, 140)) == list(recording.read(40))
        assert list(log.read(89, 91)) == list(recording.read(89, 91))
        assert list(log.rows(60, 70)) == list(recording.rows(60, 70))
        stream = next(iter(log.read(99))).stream
        assert [one for one in log.read_stream(stream) if 40 < one.position <= 140] == list(
            recording.read_stream(stream)
        )
        assert log.time_at(140) == recording.last_time_us()
    assert is_recording(file)
    assert not is_recording(directory)


def test_a_window_that_begins_later_says_so(tmp_path: Path, directory: Path) -> None:
    """
    Nobody gets the events from 41 on when they ask for those from 5 on.
    """
    file = written(directory, tmp_path / "part.jsonl", after=40)
    with Recording(file) as recording, pytest.raises(Refused, match="first, 41"):
        list(recording.read(4))


def test_states_come_back_byte_for_byte_and_by_schema(tmp_path: Path, directory: Path) -> None:
    """
    A state of another schema is passed over, never misread.
    """
    file = written(directory, tmp_path / "part.jsonl", after=40, states=(40, 90))
    with Recording(file) as recording:
        assert (40, 90) == recording.snapshots.positions
        asked = {"head": 0, "digest_at": recording.digest_at}
        newest = recording.snapshots.newest_good(schema="s1", upto=100, **asked)
        assert newest is not None
        assert (90, STATE) == (newest.position, newest.state)
        assert 40 == recording.snapshots.newest_good(schema="s1", upto=89, **asked).position
        assert recording.snapshots.newest_good(schema="s2", **asked) is None
        assert recording.snapshots.at(91, "s1") is None


def test_a_changed_byte_of_a_state_is_found(tmp_path: Path) -> None:
    """
    A state decides everything after it.
    """
    line = SnapshotLine(4, 5, "s1", "", STATE).line()
    assert STATE == read_snapshot_line(line).state
    with pytest.raises(Corrupt, match="checksum"):
        read_snapshot_line(line.replace(b'"name"', b'"nome"'))
    for bad in (b"", b"{}\n", b'{"SNAPSHOT":{}}\n', line[:-9] + b"\n"):
        with pytest.raises(Corrupt):
            read_snapshot_line(bad)
    with pytest.raises(InvariantBroken):
        SnapshotLine(4, 5, "s1", "", b"[1\n]").line()


def test_a_recording_that_lacks_events_is_refused(tmp_path: Path, directory: Path) -> None:
    """
    Its header says how many there are.
    """
    file = written(directory, tmp_path / "whole.jsonl")
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:-1]))
    with pytest.raises(Corrupt, match="truncated"):
        Recording(file)
    file.write_bytes(b"".join([*lines[:7], *lines[8:], lines[7]]))
    with Recording(file) as recording, pytest.raises(Corrupt, match="gap"):
        list(recording.read())


def test_an_unfinished_recording_ends_with_its_last_whole_commit(
    tmp_path: Path, directory: Path
) -> None:
    """
    A scheduler that was killed while it wrote leaves half a line, or half a step.
    """
    file = written(directory, tmp_path / "whole.jsonl", events=None)
    content = file.read_bytes()
    with Recording(file) as recording:
        ends = [event.position for event in recording.events() if event.ends_commit]
        assert ends[-1] == recording.head()
    file.write_bytes(content[:-5])
    with Recording(file) as recording:
        assert ends[-2] == recording.head()
        assert ends[-2] == len(list(recording.read()))


def test_import_passes_states_over_and_refuses_a_part(tmp_path: Path, directory: Path) -> None:
    """
    Export, import and export are the identity, with states in the file or without.
    """
    export_log(directory, tmp_path / "plain.jsonl")
    header, *lines = (tmp_path / "plain.jsonl").read_bytes().splitlines(keepends=True)
    lines.insert(70, SnapshotLine(70, 5, "s1", "", STATE).line())
    (tmp_path / "states.jsonl").write_bytes(b"".join([header, *lines]))
    import_log(tmp_path / "states.jsonl", tmp_path / "again")
    export_log(tmp_path / "again", tmp_path / "second.jsonl")

    assert (tmp_path / "plain.jsonl").read_bytes() == (tmp_path / "second.jsonl").read_bytes()
    part = written(directory, tmp_path / "part.jsonl", after=40)
    with pytest.raises(Refused, match="a part of one, from position 41"):
        import_log(part, tmp_path / "third")
    assert not (tmp_path / "third").exists()


def test_lines_are_those_of_the_export(tmp_path: Path, directory: Path) -> None:
    """
    One format for all.
    """
    export_log(directory, tmp_path / "plain.jsonl")
    with LogLines(directory) as lines:
        made = [line_of(event) for event in lines.events(0, lines.head())]

    assert (tmp_path / "plain.jsonl").read_bytes().splitlines(keepends=True)[1:] == made
    assert "EVENT" in json.loads(made[0])
