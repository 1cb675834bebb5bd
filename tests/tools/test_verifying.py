"""
Deciding again over the cores finds what one process finds.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from replay.at import ladder_of, states_kept
from store.log import EventLog
from tests.conftest import REPO
from tests.replay.conftest import simulate_into
from tests.tools.cli_harness import XCE
from tools import verifying
from tools.verifying import Span, spans_of, verify_span, verify_spans


def test_spans_begin_at_kept_states_and_leave_nothing_out():
    """
    About equal ones, as many as are worth it; one where no state is kept.
    """
    place = Path("log")
    assert [Span(place, 0, 0, 200_000)] == spans_of(place, 0, 200_000, [], 4)
    assert [Span(place, 0, 0, 60_000)] == spans_of(place, 0, 60_000, [30_000], 4)
    assert [
        Span(place, 0, 10, 90_000, has_next=True), Span(place, 1, 90_000, 200_000)
    ] == spans_of(place, 10, 200_000, [5, 90_000, 150_000, 300_000], 2)  # fmt: skip
    assert [(0, 80_000), (80_000, 200_000)] == [
        (span.after, span.upto) for span in spans_of(place, 0, 200_000, [80_000], 4)
    ]


@pytest.fixture
def laddered(trace_folder, tmp_path, monkeypatch):
    """
    Return the log of some jobs of KTH with a state every 300 events beside it.
    """
    monkeypatch.setattr(verifying, "EVENTS_EACH", 300)
    file = trace_folder / "pwa-swf" / "KTH-SP2-1996-2.1-cln.swf.gz"
    place = simulate_into(tmp_path / "log", file, cluster="100x1", jobs=200)
    monkeypatch.setattr("replay.at.LADDER_EVENTS", 300)
    with EventLog.open(place, writable=False) as log:
        ladder = ladder_of(log)
        ladder._every = 300
        ladder.at(log.head())
    return place


@pytest.mark.needs_traces
@pytest.mark.slow
def test_spans_one_after_the_other_give_what_one_gives(laddered):
    """
    Each event, session and decision is counted once.
    """
    with EventLog.open(laddered, writable=False) as log:
        head, kept = log.head(), states_kept(log)
    whole = verify_span(Span(laddered, 0, 0, head))
    spans = spans_of(laddered, 0, head, kept, 3)
    parts = verifying._together([verify_span(span) for span in spans])

    assert 3 == len(spans)
    assert whole.is_same
    assert whole == parts


@pytest.mark.needs_traces
@pytest.mark.slow
def test_a_kept_state_that_is_another_one_is_a_difference(laddered, monkeypatch):
    """
    A span may begin with a kept state only because the span before it ends with the same.
    """
    with EventLog.open(laddered, writable=False) as log:
        kept = states_kept(log)
    monkeypatch.setattr("replay.at.Ladder.kept_at", lambda _self, _position: b"{}")
    found = verify_span(Span(laddered, 0, 0, kept[0], has_next=True))

    assert [kept[0]] == [difference.position for difference in found.differences]


@pytest.mark.needs_traces
@pytest.mark.slow
def test_processes_of_their_own_give_the_same(laddered):
    """
    By the real command: the whole log with one process and with three.
    """
    program = (
        "from tools import verifying; verifying.EVENTS_EACH = 300; "
        "from tools.cli.main import main; main()"
    )
    told = []
    for jobs in ("1", "3"):
        done = subprocess.run(
            [XCE[0], "-c", program, "replay", "verify", str(laddered), "--json", "--jobs", jobs],
            env={**os.environ, "PYTHONPATH": str(REPO)}, text=True, capture_output=True,
            timeout=120, check=False,
        )  # fmt: skip
        assert (0, "") == (done.returncode, done.stderr), done
        told.append(json.loads(done.stdout))

    assert told[0] == told[1]
    assert told[0]["is_same"]
    assert verify_spans([Span(laddered, 0, 0, told[0]["events"])]).is_same
