"""
Jobs that wait for several causes at once.
"""

from __future__ import annotations

import pytest

from tools.conformance.causes import CAUSES, with_causes
from tools.conformance.schedule import differences
from tools.conformance.values import Malformed, Vector


def test_a_case_without_causes_stays_as_it_is():
    """
    Most vectors have none.
    """
    case = {"jobs": [{"id": "A"}]}

    assert case == with_causes(case)


def test_the_causes_come_together_in_one_job():
    """
    The window that is closed stays the one that would close too soon.
    """
    case = with_causes(
        {
            "causes": ["QUE_WINDOW", "QUE_WINDOW_WILL_CLOSE", "USER_JOB_LIMIT", "JOB_DEP_INVALID"],
            "expect": "X",
        }
    )

    assert [{"name": "normal", "RUN_WINDOW": "08:00-09:00"}] == case["queues"]
    assert [{"id": "J1", "W": 120, "w": "done(X)"}] == case["jobs"]
    assert [{"name": "u1", "MAX_JOBS": 0}] == case["users"]
    assert {"X": 1} == case["ended"]
    assert {"pend": {"J1": {"main": "X"}}} == case["expect"]


def test_an_unknown_cause_is_malformed():
    """
    Rather than left out.
    """
    with pytest.raises(Malformed):
        with_causes({"causes": ["BAD_WEATHER"]})


@pytest.mark.parametrize("cause", ["PSUSP", "QUE_INACT", "JOB_START_TIME", "JOB_DEP_INVALID"])
def test_a_single_cause_is_the_main_reason(cause):
    """
    Through the real core; that the others aren't is seen too.
    """
    code = {"PSUSP": "USER_STOP"}.get(cause, cause)

    assert cause in CAUSES
    assert [] == differences(Vector("x", "schedule", "", {"causes": [cause], "expect": code}))
    assert differences(Vector("x", "schedule", "", {"causes": [cause], "expect": "JOB_NEW"}))
