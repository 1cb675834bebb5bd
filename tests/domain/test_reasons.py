"""
Reasons in words.
"""

from __future__ import annotations

from domain.reasons import PendReason, ReasonCode


def test_an_index_that_nobody_reports_is_told_as_that() -> None:
    """
    "No load information" sounds like a host that isn't heard.
    """
    reason = PendReason(code=ReasonCode.LOAD_UNAVAIL, detail="r15s")

    assert "its worker doesn't report the load index r15s" == reason.text()
    assert "no load information" == PendReason(code=ReasonCode.LOAD_UNAVAIL).text()
