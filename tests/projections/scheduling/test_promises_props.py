"""
What pickers promise is recorded where it differs from what is recorded, and nowhere else.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from domain.ids import job_stream_of
from domain.reservations import BackfillReservation, KeptRun
from projections.scheduling.promises import promised_anew
from tests.examples import examples


def reservation(start_us: int) -> BackfillReservation:
    """
    Return a promise, each time another object.
    """
    return BackfillReservation(policy="easy", start_us=start_us, runs=(KeptRun(first=0, slots=1),))


KEPT = [reservation(1), reservation(2), reservation(1)]
"""Promises of which the first and the last are equal, but not the same object."""

RECORDED = st.lists(st.tuples(st.sampled_from([None, *KEPT]), st.booleans()), max_size=4)
PROMISED = st.lists(st.sampled_from([None, *KEPT]), min_size=4, max_size=4)


@settings(max_examples=examples(300))
@given(RECORDED, PROMISED, st.booleans())
def test_promises_are_recorded_where_they_differ_from_what_is_recorded(
    recorded: list[Any], promised: list[Any], is_as_before: bool
) -> None:
    """
    Mostly a picker promises what it has promised before, which is seen at once; also then nobody
    may be left with a promise that isn't made any more.
    """
    jobs = {
        job_stream_of(number): SimpleNamespace(
            stream=job_stream_of(number), number=number, index=0, promise=promise
        )
        for number, (promise, _) in enumerate(recorded, 1)
    }
    kept = {stream: job for stream, job in jobs.items() if job.promise is not None}
    gathers = {s for s, (_, gathers) in zip(jobs, recorded, strict=True) if gathers and s in kept}
    state = SimpleNamespace(
        promised=kept,
        gatherers={stream: kept[stream] for stream in gathers},
        stored=SimpleNamespace(jobs=jobs),
    )
    wished = list(zip(jobs, promised, strict=False))
    if is_as_before:
        wished = [(stream, job.promise) for stream, job in kept.items()]
    found = {stream: promise for stream, promise in wished if promise is not None}

    over = [(stream, None) for stream in kept if stream not in found and stream not in gathers]
    anew = [
        (stream, promise)
        for stream, promise in found.items()
        if stream not in gathers and promise != jobs[stream].promise
    ]

    assert [*over, *anew] == promised_anew(cast("Any", state), found)
