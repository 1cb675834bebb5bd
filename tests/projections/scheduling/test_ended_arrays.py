"""
An array can be forgotten when all its elements have ended, and its end costs each of them one look.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import projections.scheduling.forgetting
from domain.arrays import ArraySpec, IndexRange
from domain.commands import KillJob
from domain.ids import job_stream_of
from domain.job_states import JobState
from projections.scheduling.forgetting import Forgetting
from projections.scheduling.records import ArrayRecord
from tests.scenario import Scenario

ELEMENTS = 6
STEPS = st.lists(st.tuples(st.integers(0, ELEMENTS - 1), st.booleans()), max_size=40)


@given(STEPS)
def test_an_array_is_over_whenever_all_its_elements_are(steps: list[tuple[int, bool]]) -> None:
    """
    In whatever order they end, and though some are put back meanwhile.
    """
    jobs: dict[str, Any] = {
        job_stream_of(1, at + 1): SimpleNamespace(
            number=1, index=at + 1, state=JobState.PEND, requeue_why="", finish_us=None
        )
        for at in range(ELEMENTS)
    }
    array = ArrayRecord(number=1, elements=tuple(jobs), started_max=None)
    forgetting = Forgetting(SimpleNamespace(jobs=jobs, arrays={1: array}))  # type: ignore[arg-type]
    expected: list[tuple[int, int]] = []
    for moment, (at, ends) in enumerate(steps):
        job = jobs[job_stream_of(1, at + 1)]
        job.state, job.finish_us = (JobState.DONE, moment) if ends else (JobState.PEND, None)
        if ends:
            forgetting.note_ended(job)
            if all(each.state is JobState.DONE for each in jobs.values()):
                expected.append((max(each.finish_us for each in jobs.values()), 1))

    assert sorted(expected) == sorted(forgetting.ended)


def test_killing_an_array_looks_at_each_element_a_few_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """
    A look at all of them at each one's end kept a scheduler from answering for minutes.
    """
    looked = 0
    is_at_its_end = projections.scheduling.forgetting._is_at_its_end

    def look(job: Any) -> bool:
        nonlocal looked
        looked += 1
        return is_at_its_end(job)

    monkeypatch.setattr(projections.scheduling.forgetting, "_is_at_its_end", look)
    scenario, size = Scenario(), 500
    scenario.hosts("h1 slots=1 mem_mb=1000")
    scenario.submit("big", array=ArraySpec(ranges=(IndexRange(start=1, end=size),)))
    scenario.session()
    for index in range(1, size + 1):
        scenario.command(KillJob(job_id=f"1[{index}]"))
    scenario.session()
    waiting = [job for job in scenario.state.stored.jobs.values() if job.state is JobState.PEND]

    assert [] == waiting
    assert looked <= 5 * size
