"""
Curves of schedules: means over spans are exact, and nothing is lost at the borders.
"""

from __future__ import annotations

from fractions import Fraction

from replay.diff import Course, Schedule
from replay.series import span_of, used, waiting, waits
from tools.cli.plots import page


def a_schedule(*rows):
    """
    Return a schedule of (submit, start, finish, tasks), in microseconds.
    """
    jobs = {
        f"job:{number:010d}": Course(f"job:{number:010d}", submit, "q", "u", tasks, start, finish)
        for number, (submit, start, finish, tasks) in enumerate(rows, 1)
    }
    return Schedule("", jobs, 4)


def test_means_over_spans_are_exact():
    """
    A change within a span counts in proportion, one at a border belongs to the later span.
    """
    schedule = a_schedule((0, 5, 20, 2), (10, 25, 40, 1))

    assert (0, 40) == span_of([schedule])
    assert (Fraction(1, 2), 1, Fraction(1, 2), 0) == waiting(schedule, 0, 40, 4).means
    assert (1, 2, Fraction(1, 2), 1) == used(schedule, 0, 40, 4).means


def test_what_is_not_over_counts_to_the_end():
    """
    A job without a start waits on, one without an end runs on; one that ended unstarted stops.
    """
    schedule = a_schedule((0, None, None, 1), (0, 10, None, 3), (0, None, 20, 1))

    assert (3, 2, 1, 1) == waiting(schedule, 0, 40, 4).means
    assert (0, 3, 3, 3) == used(schedule, 0, 40, 4).means


def test_the_area_under_the_curve_is_all_slot_time():
    """
    However the spans lie, their sum is what the jobs used.
    """
    schedule = a_schedule((0, 3, 17, 2), (1, 8, 31, 1), (30, 31, 99, 4))
    whole = 14 * 2 + 23 + 68 * 4

    for spans in (1, 7, 99, 1000):
        curve = used(schedule, 0, 99, spans)
        assert whole == sum(curve.means) * curve.span_us


def test_waits_are_told_by_rank():
    """
    From the shortest to the longest, both among them; a job that never started has none.
    """
    schedule = a_schedule((0, 9, 10, 1), (0, 1, 10, 1), (0, 4, 10, 1), (0, None, None, 1))

    assert (1, 4, 9) == waits(schedule, 3)
    assert (1, 1, 4, 4, 9) == waits(schedule, 5)
    assert () == waits(a_schedule(), 5)


def test_a_page_is_whole_and_lets_no_name_out():
    """
    It has the three charts and both names, escaped; nothing is loaded from elsewhere.
    """
    schedule = a_schedule((0, 3, 17, 2), (1, 8, 31, 1))

    made = page([schedule, a_schedule()], ["<b>one", "two"])

    assert 3 == made.count("<svg") == made.count("</svg>")
    assert "&lt;b&gt;one" in made
    assert "<b>" not in made
    assert "http" not in made
