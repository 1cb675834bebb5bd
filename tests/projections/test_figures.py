"""
The figures of a schedule: their definitions, and that the running sums agree with them.
"""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections.figures import (
    SECOND_US,
    SLOWDOWN_PARTS,
    Figures,
    bounded_slowdown,
    shown,
    wait_us,
)

S = SECOND_US


def figures_of(*jobs: tuple[int, int, int, int], slots: int = 10) -> Figures:
    """
    Return the figures of jobs given as submit, start, finish (seconds) and tasks.
    """
    figures = Figures(slots)
    for submit, start, finish, tasks in jobs:
        figures.add(
            submit_us=submit * S, start_us=start * S, finish_us=finish * S, tasks=tasks
        )
    return figures


@pytest.mark.parametrize(
    ("wait_s", "run_s", "slowdown"),
    [
        (0, 100, Fraction(1)),
        (100, 100, Fraction(2)),
        (5, 1, Fraction(1)),
        (19, 1, Fraction(2)),
        (20, 0, Fraction(2)),
        (1, 3 * 10**6, Fraction(3 * 10**6 + 1, 3 * 10**6)),
    ],
)
def test_slowdown_is_bounded_by_ten_seconds_and_never_below_one(
    wait_s: int, run_s: int, slowdown: Fraction
) -> None:
    """
    Without the bound a job of a second that waited a minute would outweigh all others.
    """
    assert slowdown == bounded_slowdown(wait_us=wait_s * S, run_us=run_s * S)


def test_one_schedule_worked_by_hand() -> None:
    """
    Ten slots, two jobs: the second waits 40 s for the first's slots.
    """
    figures = figures_of((10, 10, 60, 8), (20, 60, 80, 4))

    assert figures.job_count == 2
    assert figures.mean_wait_us == 20 * S
    assert figures.mean_bounded_slowdown == Fraction(1 + 3, 2)
    assert figures.makespan_us == 70 * S
    assert figures.start_sum_us == 70 * S
    assert figures.utilisation == Fraction(50 * 8 + 20 * 4, 10 * 70)


def test_no_jobs_give_no_figures_instead_of_zeros() -> None:
    """
    A mean of nothing isn't 0.
    """
    figures = Figures(4)

    assert (None, None, None, None) == (
        figures.mean_wait_us, figures.mean_bounded_slowdown, figures.makespan_us,
        figures.utilisation,
    )  # fmt: skip


def test_jobs_of_zero_seconds_alone_offer_no_slot_time() -> None:
    """
    A makespan of 0 has no utilisation, and must not divide by it.
    """
    figures = figures_of((5, 5, 5, 1))

    assert (0, None) == (figures.makespan_us, figures.utilisation)


times = st.integers(0, 10**14)
schedules = st.lists(st.tuples(times, times, times, st.integers(1, 10**6)), min_size=1)


@given(schedules, st.randoms(use_true_random=False))
def test_the_sums_agree_with_the_definitions_of_one_job_safety(schedule, random) -> None:
    """
    Adding is written out for speed; the functions of one job are what it means, in any order.
    """
    jobs = [(a, a + b, a + b + c, tasks) for a, b, c, tasks in schedule]
    random.shuffle(jobs)
    figures = Figures(7)
    for submit, start, finish, tasks in jobs:
        figures.add(submit_us=submit, start_us=start, finish_us=finish, tasks=tasks)

    waits = [wait_us(submit_us=a, start_us=b) for a, b, _, _ in jobs]
    slowdowns = [bounded_slowdown(wait_us=b - a, run_us=c - b) for a, b, c, _ in jobs]
    assert Fraction(sum(waits), len(jobs)) == figures.mean_wait_us
    assert max(c for _, _, c, _ in jobs) - min(a for a, *_ in jobs) == figures.makespan_us
    assert sum((c - b) * t for _, b, c, t in jobs) == figures.used_slot_us
    short = sum(slowdowns) / len(jobs) - figures.mean_bounded_slowdown
    assert 0 <= short < Fraction(1, SLOWDOWN_PARTS)


@pytest.mark.parametrize(
    ("figure", "decimals", "text"),
    [
        (Fraction(2, 3), 4, "0.6667"),
        (Fraction(-1, 8), 2, "-0.12"),
        (Fraction(1, 8), 2, "0.12"),
        (7, 0, "7"),
        (Fraction(1, 1000), 2, "0.00"),
        (10**20, 1, f"{10**20}.0"),
    ],
)
def test_a_figure_is_shown_rounded_without_floats(
    figure: Fraction | int, decimals: int, text: str
) -> None:
    """
    The same figure must be shown with the same digits everywhere.
    """
    assert text == shown(figure, decimals)
