"""
Make a golden log of the core: python -m tests.golden.make_core tests/golden/core-N.

It is made once for each set of rules that decides otherwise, or with events that are new, and never
changed again; the tests read all of them for ever.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from domain.envelope import Stamped
from store.log import EventLog
from store.transfer import export_log
from tests.golden.core_story import decision_digest, tell

LOG_ID = "golden-core"


def expected_of(events: list[Stamped]) -> dict[str, object]:
    """
    Return what a golden log must give again, but for the state.
    """
    return {
        "events": len(events),
        "decisions": decision_digest(events),
        "types": dict(sorted(Counter(each.event.TYPE_CODE for each in events).items())),
    }


def write_log(directory: Path, events: Iterable[Stamped]) -> None:
    """
    Write a story's events to a log, each step as a commit of its own.
    """
    with EventLog.create(directory, log_id=LOG_ID) as log:
        step: list[Stamped] = []
        for each in events:
            step.append(each)
            if each.ends_step:
                log.append(step)
                step = []


def main(target: Path) -> None:
    """
    Make the files: the log as JSON lines, the state at its end, and the expectations.
    """
    scenario = tell()
    with tempfile.TemporaryDirectory() as place:
        write_log(Path(place) / "log", scenario.log)
        target.mkdir(parents=True)
        export_log(Path(place) / "log", target / "log.jsonl.zst")
    state = gzip.compress(scenario.core.snapshot(), 9, mtime=0)
    (target / "state.json.gz").write_bytes(state)
    expected = expected_of(scenario.log)
    (target / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
