"""
Why a job is stopped, in words for each suspend reason that the core gives.
"""

from __future__ import annotations

import pytest

from domain.suspensions import show_suspension
from projections.scheduling import loads, orders, preemption, status

CODES = sorted(
    {
        value
        for module in (loads, orders, preemption, status)
        for name, value in vars(module).items()
        if name.startswith("SUSP_")
    }
)


def test_every_reason_of_the_core_is_looked_at():
    """
    The test of the test below: there are these seven.
    """
    assert 7 == len(CODES)


@pytest.mark.parametrize("code", CODES)
def test_every_suspend_reason_has_words_of_its_own(code):
    """
    People read what happened, programs the code.
    """
    shown = show_suspension(code)

    assert shown.endswith(f" ({code})")
    assert "the system stopped it" not in shown


@pytest.mark.parametrize(
    ("why", "preemptor", "words"),
    [
        ("", "", ""),
        ("SUSP_PREEMPT", "12", "it makes room for job 12 (SUSP_PREEMPT)"),
        ("SUSP_LOAD(r1m)", "", "the load index r1m of a host of it is beyond its threshold"),
        ("SUSP_RES_RESERVE", "12", "it made room for job 12, and what it gave back isn't free"),
        ("SUSP_SOMETHING_NEW", "", "the system stopped it (SUSP_SOMETHING_NEW)"),
    ],
)
def test_what_is_known_of_a_stop_is_told(why, preemptor, words):
    """
    For whom, and by which load.
    """
    assert show_suspension(why, preemptor).startswith(words)
