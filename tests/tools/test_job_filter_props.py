"""
Names of jobs that fit a pattern.
"""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from tools.daemon.job_filter import matches

TEXT = st.text("ab[", max_size=6)


@given(st.text("ab[*", max_size=6), TEXT)
def test_safety_each_star_stands_for_any_text_and_nothing_else_for_anything(pattern, text):
    """
    LSF's names have * anywhere; brackets are those of arrays, not a set of letters.
    """
    expected = re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text) is not None

    assert expected == matches(pattern, text)
