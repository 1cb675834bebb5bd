"""
A job's place in the order is the one in which jobs are really taken.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.events.jobs import JobDispatched
from domain.ids import job_of_stream
from domain.job_states import JobState
from projections.scheduling.core import Core
from replay.why import order_of
from tests.builders import a_host
from tests.examples import examples
from tests.projections.audit.driving import driven, some_actions

ACTIONS = st.builds(some_actions, st.integers(0, 2**32), st.integers(1, 120))
PICKERS = st.sampled_from(["builtin_fcfs", "strict_fcfs"])
PLENTY = 10_000


@pytest.mark.slow
@settings(max_examples=examples(80))
@given(ACTIONS, PICKERS)
def test_safety_the_place_is_that_in_which_jobs_are_taken_where_everything_fits(actions, picker):
    """
    Not the order of submission: queues, priorities, moves and requeues count. The order told at a
    position is compared with what the same state does when a host joins that holds everything.
    """
    history = driven(actions, picker)
    core = Core.restore(history.core.snapshot())
    waiting = [one for one in core.state.stored.jobs.values() if one.state is JobState.PEND]
    orders = {job.job_id: order_of(core, job) for job in waiting}

    for stream, event in core.handle(
        a_host("huge", PLENTY, PLENTY), actor="root", now_us=history.now_us
    ):
        version = core.state.next_version(stream)
        core.apply(history.stamped[-1]._replace(stream=stream, version=version, event=event))
    made = core.session(history.now_us)

    taken = [job_of_stream(one.stream) for one in made if isinstance(one.event, JobDispatched)]
    placed = sorted(
        (order.place, job_id) for job_id, order in orders.items() if order.place is not None
    )
    assert taken == [job_id for _, job_id in placed]
    for job_id, order in orders.items():
        if order.place is not None:
            assert len(placed) == order.waiting_count
            assert taken[: order.place - 1] == [one.job_id for one in order.ahead]
            assert job_id == taken[order.place - 1]
