"""
What a reservation is worth while its job runs: durations end it, decay and phases let it fall.

Run time doesn't count suspension. Everything is whole thousandths, rounded up, so that a
reservation is never less than what was promised.
"""

from __future__ import annotations

from collections.abc import Iterator

from domain.resreq.syntax import RusageTerm


def reserved_milli_at(term: RusageTerm, run_us: int) -> int:
    """
    Return what a term still reserves after so much run time.
    """
    for start_us, end_us, milli, milli_after in _pieces(term):
        if end_us is None:
            return milli
        if run_us < end_us:
            passed_us, whole_us = run_us - start_us, end_us - start_us
            fallen = (milli - milli_after) * passed_us // whole_us
            return milli - fallen
    return 0


def next_step_us(term: RusageTerm, run_us: int) -> int | None:
    """
    Return the run time at which the next phase begins or the reservation ends, None when it lasts.

    What decays falls all the time in between; whoever needs that asks `reserved_milli_at` when it
    decides.
    """
    ends = (end_us for _, end_us, _, _ in _pieces(term))
    return next((end_us for end_us in ends if end_us is not None and end_us > run_us), None)


def _pieces(term: RusageTerm) -> Iterator[tuple[int, int | None, int, int]]:
    """
    Yield each phase: from and up to which run time, its amount, and the amount that it reaches at
    its end.

    A phase that doesn't decay keeps its amount; the last one of a duration decays to nothing.
    """
    phases = [(term.milli, term.duration_us, bool(term.is_decaying))]
    phases += [(phase.milli, phase.duration_us, phase.is_decaying) for phase in term.phases]
    start_us = 0
    for place, (milli, duration_us, is_decaying) in enumerate(phases):
        end_us = None if duration_us is None else start_us + duration_us
        after = phases[place + 1][0] if place + 1 < len(phases) else 0
        yield start_us, end_us, milli, after if is_decaying else milli
        if end_us is None:
            return
        start_us = end_us
