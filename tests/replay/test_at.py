"""
The state at any moment: the same from every snapshot, never inside a step, by position and by time.
"""

from __future__ import annotations

from itertools import pairwise

import pytest

from domain.errors import Refused
from projections.scheduling.core import Core
from replay import at as at_module
from replay.at import Ladder, ladder_of
from replay.entities import changes, digest_of, entity, whole
from replay.moments import NamedMoment, parse_moment, position_of, show_utc
from store.log import EventLog
from store.snapshots import SnapshotStore

S = 1_000_000


def folded(log, position):
    """
    Return the digest of the state that a plain fold gives.
    """
    core = Core()
    for envelope in log.read(0, position):
        core.apply(envelope.stamped())
    return digest_of(core)


def boundaries(log):
    """
    Return the positions at which steps end.
    """
    return [one.position for one in log.read() if one.ends_step]


@pytest.mark.needs_traces
@pytest.mark.slow
def test_every_rung_gives_the_state_that_a_plain_fold_gives(kth_log, tmp_path):
    """
    The ladder is a cache: with it, without it and from a rung in the middle the state is the same.
    """
    with EventLog.open(kth_log, writable=False) as log:
        rungs = SnapshotStore(tmp_path, log_id=log.log_id)
        ends = boundaries(log)
        first = Ladder(log, rungs=rungs, every=300)
        first.at(log.head())
        assert len(rungs.entries()) >= 5

        for position in (ends[7], ends[len(ends) // 2], ends[-1]):
            found = Ladder(log, rungs=rungs, every=300).at(position)
            assert (position, folded(log, position)) == (found.position, digest_of(found.core))


@pytest.mark.needs_traces
def test_a_rung_spares_the_events_before_it(kth_log, tmp_path):
    """
    What makes any position of a long log quick: only the events after the rung are read.
    """
    with EventLog.open(kth_log, writable=False) as log:
        rungs = SnapshotStore(tmp_path, log_id=log.log_id)
        Ladder(log, rungs=rungs, every=300).at(log.head())
        counting = CountingLog(log)

        Ladder(counting, rungs=rungs, every=300).at(log.head())

    assert 0 < counting.count <= 300 + 50


class CountingLog:
    """
    Hand a log through, and count the events that are read.
    """

    def __init__(self, log):
        self.log, self.count = log, 0
        self.head, self.digest_at = log.head, log.digest_at

    def read(self, after=0, upto=None):
        for envelope in self.log.read(after, upto):
            self.count += 1
            yield envelope


def test_a_position_inside_a_step_means_the_boundary_before_it(small_log):
    """
    A state exists only between steps (specification 3, section 1).
    """
    with EventLog.open(small_log, writable=False) as log:
        ends = boundaries(log)
        inside = next(end + 1 for end, after in pairwise(ends) if after > end + 1)

        found = ladder_of(log, may_write=False).at(inside)

        assert (inside - 1, inside) == (found.position, found.asked)
        assert folded(log, inside - 1) == digest_of(found.core)


def test_a_time_means_the_last_event_that_is_not_after_it(small_log):
    """
    At a moment with several events all of them have happened; before the first nothing has.
    """
    with EventLog.open(small_log, writable=False) as log:
        stamps = [one.time_us for one in log.read()]
        for time_us in (stamps[0] - 1, stamps[0], 10 * S, 10 * S + 1, stamps[-1], stamps[-1] + 9):
            expected = sum(stamp <= time_us for stamp in stamps)
            assert expected == position_of(log, NamedMoment(time_us=time_us))


def test_a_bad_rung_is_passed_over(small_log, tmp_path):
    """
    A cache never decides anything: a rung with a flipped byte is as if it weren't there.
    """
    with EventLog.open(small_log, writable=False) as log:
        rungs = SnapshotStore(tmp_path / "rungs", log_id=log.log_id)
        Ladder(log, rungs=rungs, every=10).at(log.head())
        for rung in rungs.entries():
            data = bytearray(rung.path.read_bytes())
            data[-5] ^= 1
            rung.path.write_bytes(data)

        found = Ladder(log, rungs=rungs, every=10).at(log.head())

        assert folded(log, log.head()) == digest_of(found.core)


def test_a_log_whose_place_can_not_be_written_has_no_ladder_and_the_same_state(
    small_log, monkeypatch
):
    """
    Looking at somebody else's log must work without the right to leave a cache there.
    """
    monkeypatch.setattr(at_module, "LADDER", "LOCK/ladder")
    (small_log / "LOCK").write_text("a file where the folder would be")
    with EventLog.open(small_log, writable=False) as log:
        found = ladder_of(log).at(log.head())

        assert folded(log, log.head()) == digest_of(found.core)


def test_what_differs_is_named_with_its_path():
    """
    Every value that was added, removed or changed is named once, with both sides.
    """
    before = {"same": 1, "gone": [1], "deep": {"a": [{"x": 1}, {"x": 2}]}, "kind": 1}
    after = {"same": 1, "deep": {"a": [{"x": 1}, {"x": 3}]}, "kind": True, "new": None}

    found = [(one.path, one.before, one.after) for one in changes(before, after)]

    assert [
        ("gone", "[1]", None), ("deep.a[1].x", "2", "3"), ("kind", "1", "true"),
        ("new", None, "null"),
    ] == found  # fmt: skip


def test_an_entity_is_named_by_kind_or_barely(small_log):
    """
    The same job, host or queue whichever way it is named; an unknown one isn't silently empty.
    """
    with EventLog.open(small_log, writable=False) as log:
        core = ladder_of(log, may_write=False).at(log.head()).core

    assert entity(core, "1") == entity(core, "job:1") == entity(core, "job:0000000001")
    assert 1 == entity(core, "host0001")["number"] + 1
    assert entity(core, "host:host0001") == entity(core, "worker:host0001")
    assert {"DONE": 4, "EXIT": 1} == entity(core, "normal")["jobs"]
    assert set(whole(core)["accounts"]) == {"host0001", "host0002"}
    for text in ("99", "job:99", "nobody", "host:nobody", "thing:1"):
        with pytest.raises(Refused) as caught:
            entity(core, text)
        assert caught.value.rule


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4711", NamedMoment(position=4711)),
        ("end", NamedMoment()),
        ("@12.5", NamedMoment(time_us=12_500_000)),
        ("1970-01-01T00:00:12Z", NamedMoment(time_us=12 * S)),
        ("1970-01-01 00:00:12", NamedMoment(time_us=12 * S)),
        ("1970-01-01T01:00:12+01:00", NamedMoment(time_us=12 * S)),
    ],
)
def test_a_moment_is_a_position_or_a_time_in_utc(text, expected):
    """
    A naive time is UTC, so that the same words mean the same everywhere.
    """
    assert expected == parse_moment("at", text)


@pytest.mark.parametrize("text", ["", "x", "-1", "12.5", "2026-13-01"])
def test_what_is_no_moment_is_refused(text):
    """
    A typing mistake must not become some other moment.
    """
    with pytest.raises(Refused) as caught:
        parse_moment("at", text)
    assert "at" == caught.value.field


def test_a_moment_is_shown_as_it_can_be_read_again():
    """
    What is printed can be pasted back.
    """
    for time_us in (0, 12 * S, 12_500_000, 1_790_000_000_123_456):
        assert time_us == parse_moment("at", show_utc(time_us)).time_us
