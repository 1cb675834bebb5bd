"""
A crash at any instruction loses nothing that was acknowledged and leaves no half commit.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from domain.errors import Corrupt
from store.embedded.marker import MARKER_FILE
from store.embedded.preflight import DATA_FILE
from store.log import EventLog
from store.verify import verify_here
from tools.torture import kills
from tools.torture.workload import job_events


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_when_the_writer_is_killed(tmp_path: Path) -> None:
    """
    Promise 1 and 3, the short form; `make torture` kills ten thousand times.
    """
    outcome = kills.run(tmp_path / "log", kills=12, seed=1)

    assert (12, 0) == (outcome.tries, outcome.violations), outcome.first
    assert outcome.counts["acknowledged"] > 50


@pytest.mark.slow
def test_the_kill_loop_catches_an_acknowledgement_before_the_commit(tmp_path: Path) -> None:
    """
    A harness counts only if it has been seen to fail.
    """
    for attempt in range(20):
        directory = tmp_path / str(attempt)
        if kills.run(directory, kills=4, seed=attempt * 100, sabotage=True).violations:
            return
    pytest.fail("the sabotage was never caught")


@pytest.mark.parametrize(
    "left",
    [
        lambda whole: whole[:100],
        lambda whole: bytes(len(whole)),
        lambda whole: bytes(4096) + whole[4096:],
        lambda whole: whole[:4096] + bytes(4096) + whole[8192:],
    ],
    ids=["beginning", "nothing", "second meta page", "first meta page"],
)
def test_what_a_power_loss_left_of_a_creation_is_set_aside(
    tmp_path: Path, left: Callable[[bytes], bytes]
) -> None:
    """
    There is no event in it before there is a marker; with one the same file is a log's that is
    damaged, and stays where it is.
    """
    directory = tmp_path / "log"
    EventLog.create(directory, log_id="the-log").close()
    content = left((directory / DATA_FILE).read_bytes())
    (directory / DATA_FILE).write_bytes(content)
    with pytest.raises(Corrupt):
        EventLog.open(directory, writable=True)
    assert content == (directory / DATA_FILE).read_bytes()
    (directory / MARKER_FILE).unlink()

    with EventLog.create(directory, log_id="the-log") as log:
        log.append(job_events(1))
    assert verify_here(directory).is_good
    assert content == (directory / "data.unfinished").read_bytes()
