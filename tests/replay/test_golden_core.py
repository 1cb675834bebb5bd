"""
Golden logs of the core: what was decided once is read, folded and decided the same for ever.

To add one: ``python -m tests.golden.make_core tests/golden/core-N``, and never change it again.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from domain.event import event_class
from projections.scheduling.core import Core
from replay.verify import verify
from store.log import EventLog
from store.transfer import import_log
from tests.golden.core_story import decision_digest, tell
from tests.golden.make_core import expected_of

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
STORIES = sorted(GOLDEN.glob("core-*"))


@pytest.fixture(params=STORIES, ids=lambda path: path.name)
def golden(request, tmp_path: Path) -> tuple[Path, Path]:
    """
    Return a golden log's directory, and where its log was imported to.
    """
    import_log(request.param / "log.jsonl.zst", tmp_path / "log")
    return request.param, tmp_path / "log"


def lacking(golden: Any, present: Any, where: str = "") -> list[str]:
    """
    Return where the present state doesn't say what the golden one says; it may say more.
    """
    if isinstance(golden, dict) and isinstance(present, dict):
        missing = [f"{where}/{key}" for key in golden if key not in present]
        shared = [key for key in golden if key in present]
        return missing + [
            line for key in shared for line in lacking(golden[key], present[key], f"{where}/{key}")
        ]
    if isinstance(golden, list) and isinstance(present, list) and len(golden) == len(present):
        pairs = enumerate(zip(golden, present, strict=True))
        return [line for at, (a, b) in pairs for line in lacking(a, b, f"{where}/{at}")]
    return [] if golden == present else [f"{where}: {golden!r} became {present!r}"[:200]]


def test_there_is_a_golden_log_of_the_core() -> None:
    """
    Without one the tests below would pass by not running.
    """
    assert STORIES


def test_an_old_log_gives_the_state_and_the_decisions_that_it_gave(golden) -> None:
    """
    Every event is understood as it was; new fields of the state may be there beside.
    """
    source, place = golden
    expected = json.loads((source / "expected.json").read_text())
    core = Core()
    with EventLog.open(place, writable=False) as log:
        events = [envelope.stamped() for envelope in log.read()]
    for stamped in events:
        core.apply(stamped)
    told = json.loads(gzip.decompress((source / "state.json.gz").read_bytes()))

    assert [] == lacking(told, json.loads(core.snapshot()))
    assert expected == expected_of(events)


def test_an_old_log_is_decided_the_same_again(golden) -> None:
    """
    The present rules give every decision of it; other rules would have other versions.
    """
    with EventLog.open(golden[1], writable=False) as log:
        result = verify(log)

    assert 0 == result.difference_count, result
    assert result.decisions > 100


def test_the_present_program_tells_the_newest_story_the_same() -> None:
    """
    From the commands alone: no event is more, less or other.
    """
    scenario = tell()
    expected = json.loads((STORIES[-1] / "expected.json").read_text())

    assert expected["decisions"] == decision_digest(scenario.log)


def test_the_newest_story_has_every_decision() -> None:
    """
    A decision that no golden log holds could change without a sign.
    """
    types = json.loads((STORIES[-1] / "expected.json").read_text())["types"]
    decisions = {code for code in types if event_class(code).IS_DECISION}

    assert {
        "job.dispatched", "job.ended", "job.kill_ordered", "job.pended", "job.preemption_ended",
        "job.preemption_planned", "job.requeued", "job.resume_ordered", "job.start_promised",
        "job.signal_ordered", "job.suspend_ordered", "jobs.forgotten", "list.held_back",
        "reasons.set_changed", "session.held",
    } <= decisions  # fmt: skip


def test_what_lacks_is_found() -> None:
    """
    A comparison that can't fail says nothing.
    """
    assert [] == lacking({"a": [1, {"b": 2}]}, {"a": [1, {"b": 2, "c": 3}], "d": 4})
    assert ["/a/1/b: 2 became 5"] == lacking({"a": [1, {"b": 2}]}, {"a": [1, {"b": 5}]})
    assert ["/a"] == lacking({"a": 1}, {})
