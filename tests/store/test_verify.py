"""
Verifying names the first bad position of a log, and what is wrong there.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from domain.errors import NEWER_PROGRAM
from store.embedded.frames import decode_columns, encode_columns, raw_payload, read_header
from store.log import EventLog
from store.verify import verify_here
from tools.cli.main import run
from tools.torture.tampering import KINDS, Frames, Kind, edited, rewrite, with_payload
from tools.torture.workload import fill

FRAME = 101
"""Position of a frame of twenty events in the middle."""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    with EventLog.create(tmp_path / "log", log_id="the-log") as log:
        fill(log, commits=12, jobs=5)
    return tmp_path / "log"


def flip_a_stored_bit(frames: Frames) -> None:
    frames[FRAME] = frames[FRAME][:-9] + bytes((frames[FRAME][-9] ^ 4,)) + frames[FRAME][-8:]


def edit_an_event(frames: Frames) -> None:
    frames[FRAME] = edited(frames[FRAME], random.Random(1), rehash=False)


def break_the_link(frames: Frames) -> None:
    header = read_header(frames[FRAME])
    there = header._replace(previous=bytes(32))
    raw = raw_payload(frames[FRAME], header)
    frames[FRAME] = with_payload(frames[FRAME], raw, rehash=True, header=there)


def take_a_frame_out(frames: Frames) -> None:
    del frames[FRAME]


def take_the_first_out(frames: Frames) -> None:
    del frames[1]


def put_a_frame_in_anothers_place(frames: Frames) -> None:
    frames[FRAME] = frames[FRAME - 20]


def open_the_last_commit(frames: Frames) -> None:
    last = max(frames)
    header = read_header(frames[last])
    raw = raw_payload(frames[last], header)
    there = header._replace(flags=0)
    frames[last] = with_payload(frames[last], raw, rehash=True, header=there)


def cut_a_frame_short(frames: Frames) -> None:
    frames[FRAME] = frames[FRAME][:100]


def changed_state(before: bytes, after: bytes) -> Callable[[Frames], None]:
    """
    Return a change of the fourth event of the frame that checksum and chain don't show.
    """

    def change(frames: Frames) -> None:
        header = read_header(frames[FRAME])
        columns = decode_columns(raw_payload(frames[FRAME], header), header.events)
        states = list(columns.states)
        assert before in states[3]
        states[3] = states[3].replace(before, after)
        raw = encode_columns(columns._replace(states=states))
        frames[FRAME] = with_payload(frames[FRAME], raw, rehash=True)
        digest = read_header(frames[FRAME]).digest
        for first in sorted(first for first in frames if first > FRAME):
            header = read_header(frames[first])
            there = header._replace(previous=digest)
            raw = raw_payload(frames[first], header)
            frames[first] = with_payload(frames[first], raw, rehash=True, header=there)
            digest = read_header(frames[first]).digest

    return change


CASES = [
    (flip_a_stored_bit, "checksum", FRAME),
    (edit_an_event, "chain", FRAME),
    (break_the_link, "chain", FRAME),
    (take_a_frame_out, "gap", FRAME),
    (take_the_first_out, "gap", 1),
    (put_a_frame_in_anothers_place, "order", FRAME),
    (open_the_last_commit, "truncated", 241),
    (cut_a_frame_short, "truncated", FRAME),
    pytest.param(changed_state(b'"e":{', b'"e":{"z":1,'), "newer", FRAME + 3, id="unknown field"),
    pytest.param(changed_state(b'"e":', b'"v":2,"e":'), "newer", FRAME + 3, id="newer schema"),
    pytest.param(changed_state(b'"t":', b'"T":'), "schema", FRAME + 3, id="no state"),
]


@pytest.mark.parametrize(("change", "kind", "position"), CASES)
def test_the_first_bad_position_is_named_with_its_kind(
    directory: Path, change: Callable[[Frames], None], kind: str, position: int
) -> None:
    """
    Whoever has to decide what to do must know which events are good and what happened to the rest.
    """
    assert verify_here(directory).is_good

    rewrite(directory, Kind(lambda frames, _: change(frames)), random.Random(1))
    problem = verify_here(directory).first_problem

    assert problem is not None
    assert (kind, position) == (problem.kind, problem.position)


def test_a_bad_record_does_not_keep_verifying_from_the_rest(directory: Path) -> None:
    """
    Every bad place is named, not only the first.
    """

    def change(frames: Frames, _: random.Random) -> None:
        for first in (21, FRAME, 181):
            frames[first] = frames[first][:-1] + bytes((frames[first][-1] ^ 1,))

    rewrite(directory, Kind(change), random.Random(1))
    report = verify_here(directory)

    found = [each.position for each in report.problems if each.kind == "checksum"]
    assert [21, FRAME, 181] == found
    assert 240 == report.last_position


def test_what_a_plain_verifying_can_not_see_needs_a_head_kept_elsewhere(directory: Path) -> None:
    """
    The bound of verifying alone: a history that was computed anew, or cut, is a good history.
    """
    for name in ("cut tail", "compute anew"):
        assert KINDS[name].needs_anchor
    rewrite(directory, KINDS["compute anew"], random.Random(1))

    assert verify_here(directory).is_good


def test_what_a_newer_program_wrote_is_not_called_damaged(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    Who reads "corrupt" and "repair" after going back to an old program would throw good events out.
    """
    change = changed_state(b'"e":{', b'"e":{"z":1,')
    rewrite(directory, Kind(lambda frames, _: change(frames)), random.Random(1))

    assert 4 == run(["log", "verify", str(directory)])

    told = capsys.readouterr().out
    assert f"Nothing is damaged; a newer program wrote this. {NEWER_PROGRAM}\n" in told
    assert "repair" not in told
