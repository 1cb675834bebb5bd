"""
Sessions held again with the trace on: which one, and what is said when it comes out otherwise.
"""

from __future__ import annotations

import pytest

from domain.errors import NotFound
from domain.events.jobs import JobDispatched
from projections.scheduling.trace import Verdict
from replay.at import Ladder
from replay.retrace import OTHERWISE, Retracer
from tests.replay.logs import ListLog
from tests.replay.test_debugger_traces import day


@pytest.fixture
def log():
    return ListLog(one.stamped() for one in day().events)


def retraced(log, job_id, position=10**9):
    return Retracer(log, Ladder(log)).retrace(job_id, position)


def test_every_position_tells_a_job_as_the_session_there_decided_it(log):
    """
    From the job's submission on, wherever one asks: a trace of that job, of a state not after the
    position that was asked for, as recorded where it was.
    """
    begun = next(one.position for one in log.events if one.stream == "job:0000000004")
    for position in range(begun, log.head() + 1):
        found = retraced(log, "4", position)

        assert "4" == found.traces[0].job_id
        assert found.position <= position
        assert "" == found.difference


def test_a_job_that_was_put_back_is_told_by_its_last_dispatch(log):
    """
    Of several dispatches the last one before the position counts.
    """
    places = [log.where(JobDispatched, number) for number in (1, 2)]

    found = [retraced(log, "1", place) for place in places]

    assert [Verdict.DISPATCHED] * 2 == [one.traces[0].outcome.verdict for one in found]
    assert all(one.first < places[0] <= one.last for one in found)


def test_a_session_that_comes_out_otherwise_is_said(log):
    """
    What is told then is what is decided now.
    """
    place = log.where(JobDispatched, 1)
    event = log.events[place - 1].event
    allocation = event.allocation.model_copy(update={"allocator": "another"})
    log.change(place, event=event.model_copy(update={"allocation": allocation}))

    found = retraced(log, "1")

    assert OTHERWISE == found.difference
    assert "by parjob" == found.traces[0].outcome.why


def test_an_array_is_asked_about_by_its_elements(log):
    """
    Its elements are decided each by itself.
    """
    with pytest.raises(NotFound) as error:
        retraced(log, "7")

    assert "must name an element" in error.value.text()
    assert "7[2]" == retraced(log, "7[2]").traces[0].job_id
