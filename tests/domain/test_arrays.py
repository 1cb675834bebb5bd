"""
Array names and the elements named on the command line.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.arrays import (
    ArraySpec,
    IndexRange,
    JobSelection,
    parse_job_name,
    parse_name_change,
    parse_selection,
)
from domain.errors import Refused
from domain.texts import NotUnderstood

indices = st.integers(1, 1000)


def range_of(a, b, step):
    start, end = min(a, b), max(a, b)
    return IndexRange(start=start, end=end, step=step if start + step <= end else 1)


ranges = st.builds(range_of, indices, indices, indices)
arrays = st.builds(
    lambda ranges, most: ArraySpec(ranges=tuple(ranges), started_max=most),
    st.lists(ranges, min_size=1, max_size=3),
    st.none() | indices,
)


def refusal_of(parse, text):
    with pytest.raises(Refused) as refused:
        parse(text)
    return refused.value


def test_a_name_without_brackets_is_no_array():
    """
    Whatever else it holds.
    """
    assert ("a%5", None) == parse_job_name("a%5")


def test_a_list_has_indices_ranges_and_steps():
    """
    Each index counts once, in rising order.
    """
    name, array = parse_job_name("sim[1-10:3,5, 2-3]%2")

    assert "sim" == name
    assert (1, 2, 3, 4, 5, 7, 10) == array.indices()
    assert 2 == array.started_max


def test_a_bound_of_zero_is_none():
    """
    As at LSF.
    """
    assert parse_job_name("a[1-3]") == parse_job_name("a[1-3]%0")


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("a[", 3),
        ("a[1-3", 6),
        ("a[]", 3),
        ("a[0-3]", 3),
        ("a[1,3-2]", 5),
        ("a[1-3:0]", 3),
        ("a[1-1001]", 3),
        ("a[x]", 3),
        ("a[1--3]", 3),
        ("a[1,,2]", 5),
        ("a[1-3]%", 7),
        ("a[1-3]%x", 7),
        ("a[1-3]b", 7),
        ("a[99999999999]", 3),
    ],
)
def test_a_wrong_array_is_refused_with_a_caret(text, column):
    """
    The caret stands under the range that breaks the rule.
    """
    refusal = refusal_of(parse_job_name, text)

    assert isinstance(refusal, NotUnderstood)
    assert column == refusal.column


def test_the_highest_index_is_the_clusters():
    """
    1000 unless MAX_JOB_ARRAY_SIZE says otherwise.
    """
    assert parse_job_name("a[1-2000]", index_max=2000)[1] is not None


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("%2", ("", 2)),
        ("%0", ("", 0)),
        ("new%2", ("new", 2)),
        (" new %12 ", ("new", 12)),
        ("a%b%3", ("a%b", 3)),
        ("new", ("new", None)),
        ("100%cpu", ("100%cpu", None)),
        ("", ("", None)),
    ],
)
def test_a_change_names_a_name_or_a_bound_or_both(text, change):
    """
    As LSF's ``bmod -J``; where no number follows, % is a letter like others.
    """
    assert change == parse_name_change(text)


@pytest.mark.parametrize(("text", "column"), [("a[1-3]%2", 2), ("[1]", 1), ("%x", 1), ("%", 1)])
def test_a_change_of_indices_or_of_no_bound_is_refused(text, column):
    """
    An array has the elements that it has; it would be renamed to what was meant otherwise.
    """
    refusal = refusal_of(parse_name_change, text)

    assert isinstance(refusal, NotUnderstood)
    assert column == refusal.column


@given(arrays)
def test_parse_is_the_inverse_of_the_text(array):
    """
    What bjobs shows can be submitted again.
    """
    assert ("n", array) == parse_job_name(f"n{array.text()}")


def test_elements_are_named_in_brackets_or_after_a_dot():
    """
    The dot spares users the quotes of their shell.
    """
    assert JobSelection(number=4711) == parse_selection("4711")
    assert JobSelection(number=4711, ranges=(IndexRange(start=3, end=3),)) == parse_selection(
        "4711[3]"
    )
    assert parse_selection("4711[1-5,7]") == parse_selection("4711.1-5,7")


@pytest.mark.parametrize(
    "text", ["", "0", "x", "4711[", "4711[]", "4711[0]", "4711.", "4711.x", "-1"]
)
def test_what_names_no_job_is_refused(text):
    """
    Job 0 means "all own jobs" to some commands, and is theirs to handle.
    """
    assert "job_id" == refusal_of(parse_selection, text).field
