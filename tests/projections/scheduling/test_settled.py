"""
A session after which jobs may start that had had their turn says that another one must follow: no
event would bring it about.
"""

from __future__ import annotations

import pytest

from domain.arrays import ArraySpec, IndexRange
from tests.builders import SECOND_US, some_settings
from tests.projections.scheduling.policies import limit, queue
from tests.projections.scheduling.preempting import again
from tests.projections.scheduling.test_modified import change
from tests.scenario import Scenario


def test_what_a_job_behind_gave_back_is_tried_at_once(scenario: Scenario) -> None:
    """
    The one before it was short of what the other had gathered, and nobody would wake for it.
    """
    queue(scenario, "first", priority=50)
    queue(scenario, "gather", priority=40, slot_reserve_us=900 * SECOND_US)
    scenario.hosts("h1 slots=2")
    scenario.jobs("X")
    scenario.session()
    scenario.submit("Wide", queue="gather", user="bob", tasks_min=2, tasks_max=2)
    assert "Wide gathers h1*1 till 901: unknown" in scenario.session()
    assert not scenario.core.is_cut_short
    scenario.jobs("A queue=first")
    scenario.session()
    assert "PEND" == scenario.states()["A"]
    limit(scenario, "none", users="bob", slots=1)

    assert "Wide no longer promised" in scenario.session()

    assert scenario.core.is_cut_short
    assert ["A dispatched: h1*1"] == scenario.session()
    assert not scenario.core.is_cut_short


@pytest.mark.parametrize("bound", ["limit", "array"])
@pytest.mark.parametrize("plain", [False, True])
def test_hosts_stay_free_for_nobody_who_can_not_start(bound: str, *, plain: bool) -> None:
    """
    What was fitted around the first job is all that its user, or its array, may have: now that is
    what it waits for, and those behind needn't spare its hosts.
    """
    scenario = Scenario(some_settings(picker="easy"), plain=plain)
    scenario.hosts("h1 slots=3")
    scenario.submit("X", user="dora", run_limit_us=100 * SECOND_US)
    scenario.session()
    if bound == "limit":
        limit(scenario, "few", users="each all", jobs=1)
        scenario.submit("Wide", user="bob", tasks_min=3, tasks_max=3)
        scenario.submit("Short", user="bob", run_limit_us=10 * SECOND_US)
        scenario.submit("Long", user="emma", run_limit_us=900 * SECOND_US)
        short, wide = "Short", "Wide"
    else:
        array = ArraySpec(ranges=(IndexRange(start=1, end=2),), started_max=1)
        scenario.submit("A", array=array, run_limit_us=10 * SECOND_US)
        change(scenario, "A[1]", tasks_min=3, tasks_max=3)
        scenario.submit("Long", user="emma", run_limit_us=900 * SECOND_US)
        short, wide = "A[2]", "A[1]"

    assert [f"{short} dispatched: h1*1"] == [
        words for words in scenario.session() if "dispatched" in words
    ]
    assert scenario.core.is_cut_short
    assert f"{wide} promised 101: h1*3" in scenario.decisions

    scenario.core = again(scenario)
    assert "Long dispatched: h1*1" in scenario.session()
    assert f"{wide} no longer promised" in scenario.decisions
    assert not scenario.core.is_cut_short
