"""
Amounts, memory, durations and times are whole numbers, exact in both directions.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import Refused
from domain.units import (
    AMOUNT_MAX_MILLI,
    DURATION_MAX_US,
    MemoryUnit,
    memory_limit_kib,
    parse_duration_us,
    parse_lsf_duration_us,
    parse_memory_milli,
    parse_milli,
    parse_run_limit_us,
    parse_time_us,
    show_duration,
    show_duration_rounded,
    show_lsf_duration,
    show_memory,
    show_memory_rounded,
    show_milli,
    show_time,
)


@given(st.integers(0, AMOUNT_MAX_MILLI))
def test_parse_is_the_inverse_of_show_for_amounts(milli):
    """
    What is shown back to a user must mean the same when it is submitted again.
    """
    assert milli == parse_milli(show_milli(milli))
    assert milli == parse_memory_milli(show_memory(milli), unit=MemoryUnit.GB)


@given(st.integers(0, DURATION_MAX_US))
def test_parse_is_the_inverse_of_show_for_durations(duration_us):
    """
    As for amounts.
    """
    assert duration_us == parse_duration_us(show_duration(duration_us))
    assert duration_us == parse_lsf_duration_us(show_lsf_duration(duration_us))


@given(st.integers(0, DURATION_MAX_US))
def test_a_rounded_duration_can_be_given_too_and_is_no_longer(duration_us):
    """
    Whatever a screen shows can be typed, and nobody is told of more than there is.
    """
    rounded_us = parse_duration_us(show_duration_rounded(duration_us))

    assert 0 <= duration_us - rounded_us <= duration_us // 10


@pytest.mark.parametrize(
    ("duration_us", "shown"),
    [
        (90, "90us"), (1_112, "1.112ms"), (1_500_000, "1.5s"), (247_000_000, "4m7s"),
        (5_400_000_000, "1h30m"), (86_400_000_000, "1d"), (266_647_500_000, "3d2h4m7.5s"),
    ],
)  # fmt: skip
def test_a_duration_is_shown_in_units_that_are_read_at_a_glance(duration_us, shown):
    """
    Neither 0.00009s nor 9433s says anything to people.
    """
    assert shown == show_duration(duration_us)


@pytest.mark.parametrize("text", ["1d", "1w", "250ms"])
def test_a_duration_of_a_requirement_has_the_units_of_lsf_alone(text):
    """
    A requirement is a text of LSF's language: what it doesn't take isn't taken here.
    """
    with pytest.raises(Refused, match="end in h, m or s"):
        parse_lsf_duration_us(text)


@given(st.integers(0, 2**57))
def test_parse_is_the_inverse_of_show_for_times(time_us):
    """
    As for amounts.
    """
    assert time_us == parse_time_us(show_time(time_us))


@pytest.mark.parametrize(
    ("text", "kib"),
    [
        ("1", 1024),
        ("1K", 1),
        ("1kb", 1),
        ("2G", 2 * 1024**2),
        ("2GB", 2 * 1024**2),
        ("0.5T", 1024**3 // 2),
        ("1P", 1024**4),
        ("1E", 1024**5),
        (" 3 MB ", 3 * 1024),
    ],
)
def test_suffixes_are_binary_and_a_bare_number_is_in_the_cluster_unit(text, kib):
    """
    LSF's megabyte has 1024 kilobytes; sites differ only in what a bare number means.
    """
    assert kib * 1000 == parse_memory_milli(text, unit=MemoryUnit.MB)


def test_memory_is_rounded_up_to_a_thousandth():
    """
    A reservation is never smaller than what was asked for.
    """
    assert 1 == parse_memory_milli("0.0001", unit=MemoryUnit.KB)


def test_memory_limits_round_up_to_the_cluster_unit():
    """
    LSF rounds limits up to an integer of the unit, while rusage keeps fractions.
    """
    assert 1024**2 == memory_limit_kib("500MB", unit=MemoryUnit.GB)
    assert 1024**3 == memory_limit_kib("1TB", unit=MemoryUnit.GB)


@pytest.mark.parametrize("text", ["", "x", "-1", "1.2.3", "1e3", "1 G B", "1Q", "9" * 30, "٣"])
def test_what_is_no_amount_is_refused(text):
    """
    Nothing is guessed: a mistyped amount must not become another amount.
    """
    with pytest.raises(Refused) as refused:
        parse_memory_milli(text, unit=MemoryUnit.MB, field="mem")

    assert "mem" == refused.value.field


def test_a_number_has_at_most_three_decimals():
    """
    Amounts are thousandths; a finer one would silently change.
    """
    assert 1500 == parse_milli("1.500")
    with pytest.raises(Refused, match="three decimals"):
        parse_milli("0.0001")


def test_an_amount_too_large_to_store_is_refused():
    """
    The refusal comes before anything is stored, not from the codec.
    """
    with pytest.raises(Refused, match="at most"):
        parse_memory_milli("9999ZB", unit=MemoryUnit.MB)


@pytest.mark.parametrize(
    ("text", "seconds"), [("10", 600), ("10m", 600), ("1h", 3600), ("30s", 30), ("0.5h", 1800),
     ("1h 30m", 5400), ("2d1s", 172_801)],
)
def test_a_bare_duration_is_in_minutes(text, seconds):
    """
    LSF's unit of time is the minute.
    """
    assert seconds * 1_000_000 == parse_duration_us(text)


@pytest.mark.parametrize(("text", "minutes"), [("90", 90), ("1:30", 90), ("0:05", 5), ("2h", 120)])
def test_a_run_limit_is_hours_and_minutes(text, minutes):
    """
    -W takes [hours:]minutes.
    """
    assert minutes * 60_000_000 == parse_run_limit_us(text)


@pytest.mark.parametrize("text", ["", "5y", "1:2:3", "-5", "1.00000001s", "1m1h", "1h1h", "h"])
def test_what_is_no_duration_is_refused(text):
    """
    As for amounts.
    """
    with pytest.raises(Refused):
        parse_run_limit_us(text)


@pytest.mark.parametrize(
    "text", ["2026-11-29", "2026-11-29T18:00:00", "1969-12-31T00:00:00Z", "now"]
)
def test_a_time_says_its_offset_and_lies_after_1970(text):
    """
    A time without an offset would depend on the machine that reads it.
    """
    with pytest.raises(Refused):
        parse_time_us(text)


@pytest.mark.parametrize(
    ("milli", "shown"),
    [
        (0, "0KB"), (1, "0.001KB"), (512_000, "512KB"), (1_500_000, "1.4MB"),
        (22_947_582_000, "21.8GB"), (1024 * 1024 * 1000, "1GB"),
    ],
)  # fmt: skip
def test_memory_for_people_is_rounded_down(milli: int, shown: str) -> None:
    """
    Who reads that 21.8GB are free must not be promised more than there is.
    """
    assert shown == show_memory_rounded(milli)
