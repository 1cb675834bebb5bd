"""
The harnesses in their short forms: each must find nothing, and must find its sabotage.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.torture import bad_snapshots, damage, kills, power, system_calls, tampering
from tools.torture.__main__ import REPO, table


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
    outcome = system_calls.run(tmp_path, step=60)

    assert 0 == outcome.violations, outcome.first
    assert outcome.tries >= 2


def test_the_published_page_is_what_the_program_writes_around_its_rows() -> None:
    """
    What was found and how to run it must survive the next run, which writes the page anew.
    """
    published = (REPO / "RELIABILITY.md").read_text()
    rows = [line for line in published.splitlines() if line.startswith("| P")]

    assert published == table(rows)
