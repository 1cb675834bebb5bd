"""
The trace of a dispatch that nobody traced: what the log has of it.
"""

from __future__ import annotations

from collections.abc import Callable

from domain.allocations import Allocation
from projections.scheduling.trace import DecisionTrace, Level, SessionMark, Verdict
from projections.scheduling.trace_outcomes import placed_outcome


def rebuilt_trace(
    job_id: str,
    allocation: Allocation,
    *,
    session_number: int,
    time_us: int,
    name_of: Callable[[int], str],
    is_forced: bool = False,
) -> DecisionTrace:
    """
    Return what a recorded dispatch tells: when, where, by which allocator; not how it came about.
    """
    mark = SessionMark(session_number, time_us, is_recorded=True)
    outcome = placed_outcome(allocation, name_of, Verdict.REBUILT, is_forced=is_forced)
    return DecisionTrace(job_id, mark, Level.SUMMARY, outcome=outcome)
