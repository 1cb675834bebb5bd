"""
What a reservation is worth while its job runs.
"""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.resreq import parse
from domain.resreq.timing import next_step_us, reserved_milli_at
from domain.units import MINUTE_US

MB = 1_024_000


def term_of(text):
    return parse(f"rusage[{text}]").only.rusage[0][0]


def worth(text, *minutes):
    term = term_of(text)
    return [reserved_milli_at(term, minute * MINUTE_US) / MB for minute in minutes]


def test_without_a_duration_it_lasts_to_the_end():
    """
    Decay means nothing then.
    """
    assert [100, 100] == worth("mem=100", 0, 10**6)
    assert [100, 100] == worth("mem=100:decay=1", 0, 10**6)
    assert next_step_us(term_of("mem=100"), 0) is None


def test_a_duration_ends_it():
    """
    At that very moment.
    """
    assert [100, 100, 0, 0] == worth("mem=100:duration=10", 0, 9, 10, 11)
    assert 10 * MINUTE_US == next_step_us(term_of("mem=100:duration=10"), 9 * MINUTE_US)
    assert next_step_us(term_of("mem=100:duration=10"), 10 * MINUTE_US) is None


def test_decay_falls_linearly_to_nothing():
    """
    100 MB over 10 minutes are 50 MB after 5.
    """
    assert [100, 90, 50, 0] == worth("mem=100:duration=10:decay=1", 0, 1, 5, 10)


def test_phases_follow_each_other():
    """
    A decaying phase falls to the next one's amount, a constant one steps down to it.
    """
    assert [50, 50, 10, 10] == worth("mem=(50 10):duration=(10):decay=(0)", 0, 9, 10, 10**6)
    assert [50, 30, 10, 10] == worth("mem=(50 10):duration=(10):decay=(1)", 0, 5, 10, 10**6)
    assert [50, 10, 5, 0] == worth("mem=(50 10):duration=(10 10):decay=(0 1)", 0, 10, 15, 20)


def test_what_is_left_is_rounded_up():
    """
    Never less than what was promised.
    """
    assert 2 == reserved_milli_at(
        parse("rusage[lic=0.002:duration=3:decay=1]").only.rusage[0][0], 1
    )


terms = st.sampled_from(
    [
        "mem=100",
        "mem=100:duration=7",
        "mem=100:duration=7:decay=1",
        "mem=(9 4 4):duration=(3 5 6):decay=(1 0 1)",
    ]
)


@pytest.mark.parametrize("with_steps", [True, False])
@given(terms, st.lists(st.integers(0, 20 * MINUTE_US), min_size=2))
def test_it_never_rises(with_steps, text, times):
    """
    Reservations only become smaller, also right at the steps.
    """
    term = term_of(text)
    if with_steps:
        steps = [next_step_us(term, each) for each in times]
        times = times + [each for each in steps if each] + [each - 1 for each in steps if each]
    found = [reserved_milli_at(term, each) for each in sorted(times)]

    assert all(later <= earlier for earlier, later in pairwise(found))
    assert all(0 <= each <= term.milli for each in found)
