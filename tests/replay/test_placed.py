"""
A recorded placement, decided again in the state of that very moment, comes out the same.
"""

from __future__ import annotations

from itertools import takewhile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.events.jobs import JobDispatched
from replay.at import Ladder, whole_steps
from replay.placed import placement_at
from tests.examples import examples
from tests.projections.audit.driving import driven, some_actions

ACTIONS = st.builds(some_actions, st.integers(0, 2**32), st.integers(1, 120))
PICKERS = st.sampled_from(["builtin_fcfs", "strict_fcfs"])


class ListLog:
    """
    Be a log in a plain list, as far as a ladder reads it.
    """

    def __init__(self, envelopes):
        self.envelopes = envelopes

    def read(self, after=0, upto=None):
        return iter(self.envelopes[after:upto])

    def head(self):
        return len(self.envelopes)


@pytest.mark.slow
@settings(max_examples=examples(40))
@given(ACTIONS, PICKERS)
def test_safety_every_recorded_placement_is_explained_truly(actions, picker):
    """
    With preemption, limits of hosts and requeues: what is said to have had room got the tasks, and
    what was passed over had less room than was asked of it there.
    """
    log = ListLog(driven(actions, picker).envelopes)
    ladder = Ladder(log)
    for step in whole_steps(log.envelopes):
        for place, envelope in enumerate(step):
            if not isinstance(envelope.event, JobDispatched):
                continue
            placed = placement_at(ladder, step[: place + 1])

            assert placed.is_same
            assert placed.why is not None
            taken = {one.host: one.taken_tasks for one in placed.why.considered if one.taken_tasks}
            assert dict(placed.hosts) == taken
            assert all(one.room_tasks >= one.taken_tasks for one in placed.why.considered)
            assert all(bool(one.room_tasks) != bool(one.short_of) for one in placed.why.considered)
            if len(taken) == 1:
                (tasks,) = taken.values()
                before = takewhile(lambda one: not one.taken_tasks, placed.why.considered)
                assert all(one.room_tasks < tasks for one in before)
