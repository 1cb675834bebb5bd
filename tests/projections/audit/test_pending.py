"""
Why a job waited, at any moment of the past, from what was recorded.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from domain.errors import NotFound
from domain.events.jobs import JobFinished, JobHeld
from domain.events.session import ListHeldBack
from projections.audit.pending import hosts_short, reason_history, why_at
from projections.audit.reading import Reading
from tests.projections.audit.logs import (
    SECOND_US,
    a_cluster,
    dispatched,
    pended,
    short_of_memory,
    short_of_slots,
)
from tests.projections.audit.making import made


@pytest.fixture
def reading(tmp_path: Path):
    """
    Return the tables of: 1 waits for slots, then memory, then runs; 2 is behind it, then held; 3
    can never run.
    """
    log = a_cluster()
    first, second, third = log.job(1), log.job(2), log.job(3)
    log.session(
        ("reasons", short_of_slots()), (first, pended()), ("cluster", ListHeldBack(blocker="1"))
    )
    log.add(second, JobHeld(), "ann")
    log.session(("reasons", short_of_memory()))
    log.session((first, dispatched(1)))
    log.session(("reasons", short_of_slots(2, never=True)), (third, pended(2)))
    log.add(first, JobFinished(attempt=1, exit_code=0))
    with made(tmp_path / "a.db", log.envelopes) as opened:
        yield opened


def test_the_verdict_of_each_moment_is_the_one_that_held_then(reading: Reading) -> None:
    """
    Also for a job that ended long ago (B22), and "never" is told from "not now" (B20).
    """
    positions = [
        reading.value("SELECT min(position) FROM events WHERE type = ?", (code,))
        for code in ("job.submitted", "job.pended", "job.held", "job.dispatched", "job.finished")
    ]

    told = [(why.verdict, why.code) for why in (why_at(reading, "1", p) for p in positions)]

    assert [
        ("waits", "JOB_NEW"),
        ("waits", "HOST_SLOTS"),
        ("waits", "HOST_SLOTS"),
        ("runs", ""),
        ("ended", ""),
    ] == told
    assert ("never", "never") == (
        why_at(reading, "3").verdict,
        why_at(reading, "3").plain()["satisfiable"],
    )
    assert "held" == why_at(reading, "2").verdict


def test_the_limiting_factor_has_amounts_units_and_the_nearest_host(reading: Reading) -> None:
    """
    "Not enough" without which, where and how much helps nobody (B02, B08, B12).
    """
    changed = reading.rows("SELECT from_position FROM reason_sets WHERE set_number = 1 ORDER BY 1")

    slots, memory = (why_at(reading, "1", row["from_position"] + 1) for row in changed)

    assert (
        "not enough slots: 2 hosts; 2 slots asked for there at least, 1 free on h1, which has "
        "most: 1 short" == slots.shortages[0].words()
    )
    assert (
        "not enough mem: 1 host; 100MB asked for there at least, 60MB free on h2, which has "
        "most: 40MB short" == memory.shortages[0].words()
    )


def test_who_held_it_back_and_what_ran_instead_is_told(reading: Reading) -> None:
    """
    Waiting behind others is no fault of the request: who they are must be said (B01, B14).
    """
    blocked = reading.value("SELECT position FROM events WHERE type = 'list.held_back'")

    before, after = why_at(reading, "2", blocked), why_at(reading, "3")

    assert ("JOB_BEHIND", "1") == (before.code, before.blocker)
    assert (1, ("1",)) == (after.dispatched_instead, after.instead)


def test_hosts_are_told_one_by_one_on_request(reading: Reading) -> None:
    """
    The whole table of who was short of what.
    """
    short = hosts_short(reading, why_at(reading, "3"))

    assert [("h1", "HOST_SLOTS", 2000, 1000), ("h2", "HOST_SLOTS", 2000, 1000)] == [
        (row["host"], row["code"], row["requested_milli"], row["available_milli"]) for row in short
    ]


def test_intervals_sum_to_the_whole_wait(reading: Reading) -> None:
    """
    Blocked by one thing, then by another, then it runs (B04).
    """
    intervals = reason_history(reading, "1")
    waited = reading.value("SELECT wait_us FROM job_figures WHERE job_id = '1'")

    assert ["JOB_NEW", "HOST_SLOTS", "HOST_JOB_RUSAGE"] == [one.code for one in intervals]
    assert waited == sum(one.to_us - one.from_us for one in intervals)
    assert 6 * SECOND_US == waited


def test_before_its_submission_there_is_nothing_to_tell(reading: Reading) -> None:
    """
    And an unknown job is named, not answered with an empty reason.
    """
    with pytest.raises(NotFound, match="not yet submitted"):
        why_at(reading, "3", 2)
    with pytest.raises(NotFound, match="must name a job"):
        why_at(reading, "99")
    with pytest.raises(NotFound):
        reason_history(reading, "99")
