"""
The harnesses in their short forms: each must find nothing, and must find its sabotage.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.torture import bad_snapshots, damage, kills, power, system_calls, tampering
from tools.torture.__main__ import LEDGER, REPO, Harness, page, row_of, run_harness
from tools.torture.batches import Ledger
from tools.torture.outcome import Outcome


@pytest.mark.slow
def test_a_damaged_file_never_misleads_and_a_cut_one_never_kills(tmp_path: Path) -> None:
    """
    Promises 10 and 12.
    """
    outcome = damage.run(tmp_path, tries=42, seed=5)

    assert (42, 0) == (outcome.tries, outcome.violations), outcome.first


@pytest.mark.slow
def test_reading_without_checksums_is_caught(tmp_path: Path) -> None:
    """
    The sabotage of the harness above.
    """
    assert damage.run(tmp_path, tries=80, seed=1, kinds=("bit",), sabotage=True).violations


def test_tampering_is_shown(tmp_path: Path) -> None:
    """
    Promise 13.
    """
    outcome = tampering.run(tmp_path, tries=22, seed=1)

    assert (22, 0) == (outcome.tries, outcome.violations), outcome.first


def test_verifying_without_the_chain_is_caught(tmp_path: Path) -> None:
    """
    The sabotage of the harness above.
    """
    assert tampering.run(tmp_path, tries=11, seed=1, sabotage=True).violations


def test_bad_snapshots_are_skipped_by_name(tmp_path: Path) -> None:
    """
    Promise 11.
    """
    outcome = bad_snapshots.run(tmp_path, tries=100, seed=1)

    assert (100, 0) == (outcome.tries, outcome.violations), outcome.first


def test_trusting_every_snapshot_is_caught(tmp_path: Path) -> None:
    """
    The sabotage of the harness above.
    """
    assert bad_snapshots.run(tmp_path, tries=150, seed=1, sabotage=True).violations


@pytest.mark.slow
def test_of_two_writers_at_once_one_wins(tmp_path: Path) -> None:
    """
    Promise 17.
    """
    outcome = kills.race(tmp_path / "log", tries=4)

    assert (4, 0) == (outcome.tries, outcome.violations), outcome.first
    assert 4 == outcome.counts["1 won"]


@pytest.mark.slow
def test_a_lock_that_everybody_gets_is_caught(tmp_path: Path) -> None:
    """
    The sabotage of the harness above.
    """
    assert kills.race(tmp_path / "log", tries=12, sabotage=True).violations


@pytest.mark.slow
@pytest.mark.needs_program("strace")
def test_a_power_loss_at_any_moment_loses_nothing(tmp_path: Path) -> None:
    """
    Promises 1 and 3.
    """
    outcome = power.run(tmp_path, images=25, seed=3)

    assert (25, 0) == (outcome.tries, outcome.violations), outcome.first


@pytest.mark.slow
@pytest.mark.needs_program("strace")
def test_a_disk_that_does_not_sync_is_caught(tmp_path: Path) -> None:
    """
    The sabotage of the harness above.
    """
    assert power.run(tmp_path, images=8, seed=3, sabotage=True).violations


@pytest.mark.slow
@pytest.mark.needs_program("strace")
def test_a_kill_at_a_system_call_loses_nothing(tmp_path: Path) -> None:
    """
    Promises 1 and 3; `make torture` kills at every call.
    """
    outcome = system_calls.run(tmp_path, tries=6)

    assert 0 == outcome.violations, outcome.first
    assert outcome.tries >= 2


def test_the_published_page_is_what_the_program_writes_around_its_rows() -> None:
    """
    What was found and how to run it must survive the next run, which writes the page anew.
    """
    assert (REPO / "RELIABILITY.md").read_text() == page(Ledger(LEDGER))


def test_an_interrupted_run_goes_on_where_it_was(tmp_path: Path) -> None:
    """
    The long forms take hours; what has been tried counts, and nothing is tried twice.
    """
    asked = []

    def run(_place: Path, tries: int, first: int, is_sabotaged: bool) -> Outcome:
        asked.append((first, tries, is_sabotaged))
        if len(asked) == 3:
            raise KeyboardInterrupt
        return Outcome(tries=tries, violations=int(is_sabotaged))

    harness = Harness("each", "P0", "nothing", run, short=5, long=25, batch=10)
    with pytest.raises(KeyboardInterrupt):
        run_harness(harness, 25, Ledger(tmp_path / "ledger"))
    assert run_harness(harness, 25, Ledger(tmp_path / "ledger"))

    assert [(0, 5, True), (0, 10, False), (10, 10, False)] == asked[:3]
    assert [(10, 10, False), (20, 5, False)] == asked[3:]
    row = row_of(harness, Ledger(tmp_path / "ledger"))
    assert "| P0 | nothing | 25 | 0 | < 12 % | caught |" in row
