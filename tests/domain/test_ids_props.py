"""
Ids of jobs and their streams say the same, short cuts or not.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import Refused
from domain.ids import (
    JOB_DIGITS,
    job_id_of,
    job_of_stream,
    job_stream,
    job_stream_of,
    number_of_stream,
)

numbers = st.integers(1, 10**JOB_DIGITS - 1)
indices = st.integers(0, 999_999)


@given(number=numbers, index=indices)
def test_id_and_stream_of_a_job_give_each_other(number: int, index: int) -> None:
    """
    Both are written without reading the number where that can be done.
    """
    stream, job_id = job_stream_of(number, index), job_id_of(number, index)

    assert (stream, job_id) == (job_stream(job_id), job_of_stream(stream))
    assert (number, index) == number_of_stream(stream)


NO_JOB_IDS = ["", "0", "007", "-1", "1.5", "٣", "12345678901", "1[0]", "1[", "x"]


@pytest.mark.parametrize("text", NO_JOB_IDS)
def test_what_is_no_job_id_has_no_stream(text: str) -> None:
    """
    The short cut must not take what the pattern refuses.
    """
    with pytest.raises(Refused):
        job_stream(text)


@pytest.mark.parametrize("stream", ["worker:h12345", "queue:normal12", "cluster", "job:12345678x9"])
def test_what_is_no_stream_of_a_job_has_no_job_id(stream: str) -> None:
    """
    Streams of other things may be just as long.
    """
    with pytest.raises(ValueError, match="invalid literal"):
        job_of_stream(stream)
