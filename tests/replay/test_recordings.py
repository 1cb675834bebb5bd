"""
A window of a log replays by itself, exactly as it does within the log.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from domain.errors import Refused
from domain.event import event_classes
from replay.at import Ladder, ladder_of
from replay.entities import digest_of
from replay.moments import NamedMoment, position_of
from replay.recording_schema import recording_schema
from replay.recordings import open_history, record
from replay.verify import verify
from store.log import EventLog
from store.recordings import Recording, SnapshotLine
from store.transfer import export_log, import_log

DOCUMENT = Path("docs/recording.schema.json")


def written(log, place, **options):
    """
    Record a window of a log in a directory; return the file.
    """
    with EventLog.open(log, writable=False) as opened:
        record(opened, place, **options)
    return place


def verified(file, **options):
    with Recording(file) as recording:
        after = recording.first_position - 1
        return verify(
            recording, after=after, start=ladder_of(recording).start, states=recording.snapshots,
            **options,
        )  # fmt: skip


@pytest.mark.needs_traces
@pytest.mark.slow
def test_a_window_verifies_by_itself(kth_log, tmp_path):
    """
    The state at its beginning is all that it needs; states on the way are compared.
    """
    file = written(kth_log, tmp_path / "w.jsonl.zst", after=500, upto=1500, every=200)
    result = verified(file)

    assert result.is_same
    assert 950 < result.events <= 1001
    assert 4 <= result.states
    assert result.decisions > 100


@pytest.mark.needs_traces
@pytest.mark.slow
def test_a_window_has_the_states_of_its_log(kth_log, tmp_path):
    """
    State at a position, at a time, and a window of a window: all the same.
    """
    file = written(kth_log, tmp_path / "w.jsonl", after=500, upto=1500)
    with EventLog.open(kth_log, writable=False) as log, Recording(file) as window:
        for position in (900, 1300):
            expected = digest_of(ladder_of(log, may_write=False).at(position).core)
            assert expected == digest_of(ladder_of(window).at(position).core)
        moment = NamedMoment(time_us=log.time_at(1000))
        assert position_of(log, moment) == position_of(window, moment)
        record(window, tmp_path / "v.jsonl", after=800, upto=1200)
    assert verified(tmp_path / "v.jsonl").is_same
    with EventLog.open(kth_log, writable=False) as log:
        record(log, tmp_path / "u.jsonl", after=800, upto=1200)
    ours, theirs = ((tmp_path / name).read_text().splitlines() for name in ("u.jsonl", "v.jsonl"))
    assert ours[2:] == theirs[2:]


def test_a_window_ends_and_begins_between_steps(small_log, tmp_path):
    """
    Only there is a state.
    """
    with EventLog.open(small_log, writable=False) as log:
        session = next(one.position for one in log.read() if not one.ends_step)
    file = written(small_log, tmp_path / "w.jsonl", after=session, upto=session + 3)
    with Recording(file) as window:
        assert session == window.first_position
        assert next(iter(window.read(window.head() - 1))).ends_step
    assert verified(file).is_same


def test_an_altered_decision_or_state_of_a_recording_is_found(small_log, tmp_path):
    """
    Verify looks at what the recording says, not only at whether it can be read.
    """
    file = written(small_log, tmp_path / "w.jsonl", every=5)
    whole = file.read_text()
    altered = whole.replace('"attempt":1,"allocation"', '"attempt":2,"allocation"', 1)
    assert altered != whole
    file.write_text(altered)
    assert not verified(file).is_same

    lines = whole.encode().splitlines(keepends=True)
    with Recording(file) as recording:
        place = recording.snapshots.positions[-1]
    index = next(n for n, line in enumerate(lines) if b'"SNAPSHOT":{"position":%d,' % place in line)
    file.write_bytes(b"".join(lines))
    with Recording(file) as recording:
        state = recording.snapshots.newest_good(
            schema=ladder_schema(), head=0, digest_at=recording.digest_at
        ).state
    wrong = state.replace(b'"session_number":', b'"session_number":1', 1)
    lines[index] = SnapshotLine(place, 0, ladder_schema(), "", wrong).line()
    file.write_bytes(b"".join(lines))
    result = verified(file)

    assert [place] == [one.position for one in result.differences]


def ladder_schema():
    from projections.scheduling.core import SCHEMA

    return SCHEMA


def test_a_window_without_a_usable_state_is_refused(small_log, tmp_path):
    """
    A state of another version of the core is dropped, and what is missing is named.
    """
    file = written(small_log, tmp_path / "w.jsonl", after=20, upto=40)
    file.write_text(file.read_text().replace(f'"schema":"{ladder_schema()}"', '"schema":"old"'))
    with Recording(file) as window, pytest.raises(Refused, match="SNAPSHOT"):
        Ladder(window, kept=(window.snapshots,)).at(30)


def test_a_whole_log_with_states_can_be_imported(small_log, tmp_path):
    """
    One format for all: the head digest comes back too.
    """
    file = written(small_log, tmp_path / "w.jsonl", every=5)
    import_log(file, tmp_path / "again")
    export_log(small_log, tmp_path / "one.jsonl")
    export_log(tmp_path / "again", tmp_path / "two.jsonl")

    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()


def test_histories_are_logs_and_recordings(small_log, tmp_path):
    """
    The commands don't care which.
    """
    file = written(small_log, tmp_path / "w.jsonl")
    with open_history(small_log) as log, open_history(file) as recording:
        assert list(log.read()) == list(recording.read())


# ------------------------------------------------------------------------------------------ schema


@pytest.fixture(scope="module")
def schema():
    return Draft202012Validator(json.loads(DOCUMENT.read_text()))


@pytest.mark.slow
def test_the_published_schema_is_that_of_this_program(schema):
    """
    Make it again: xce log schema > docs/recording.schema.json.
    """
    Draft202012Validator.check_schema(schema.schema)

    assert recording_schema() == schema.schema


@pytest.mark.needs_traces
@pytest.mark.slow
def test_real_files_are_as_the_schema_says(schema, kth_log, small_log, tmp_path):
    """
    Whole logs, windows and states.
    """
    export_log(small_log, tmp_path / "whole.jsonl")
    part = written(kth_log, tmp_path / "part.jsonl", after=500, upto=900, every=100)
    for file in (tmp_path / "whole.jsonl", part):
        for line in file.read_text().splitlines():
            schema.validate(json.loads(line))


def test_a_live_log_is_as_the_schema_says(schema, live, tmp_path):
    """
    Also what only agents and administrators bring about.
    """
    with EventLog.create(tmp_path / "log") as log:
        log.append(list(live.stamped()))
    export_log(tmp_path / "log", tmp_path / "live.jsonl")
    for line in (tmp_path / "live.jsonl").read_text().splitlines():
        schema.validate(json.loads(line))


def test_the_schema_refuses_what_is_no_recording(schema, small_log, tmp_path):
    """
    A wrong kind, a missing field, a payload of another event, an unknown field.
    """
    export_log(small_log, tmp_path / "whole.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "whole.jsonl").read_text().splitlines()]
    decision = next(line["DECISION"] for line in lines if "DECISION" in line)
    for bad in (
        {}, {"EVENT": decision}, {"DECISION": {**decision, "payload": {"number": "x"}}},
        {"DECISION": {**decision, "more": 1}}, {"HEADER": {"format": 2}},
        {"DECISION": {name: value for name, value in decision.items() if name != "position"}},
    ):  # fmt: skip
        assert not schema.is_valid(bad), bad
    assert schema.is_valid({"DECISION": decision})


@pytest.mark.slow
def test_the_schema_names_every_event():
    """
    Nobody has to remember a new one.
    """
    text = json.dumps(recording_schema())
    missing = [code for code in event_classes() if f'"{code}"' not in text]

    assert [] == missing
