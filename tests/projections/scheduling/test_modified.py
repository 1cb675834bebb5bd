"""
What a modification leaves as it was.
"""

from __future__ import annotations

import pytest

from domain.arrays import ArraySpec, IndexRange
from domain.commands import ModifyJob
from tests.projections.scheduling.policies import profile
from tests.scenario import Scenario


def change(scenario: Scenario, job: str, /, **changes: object) -> None:
    """
    Ask for other contents of a job.
    """
    spec = scenario.job(job).spec.model_copy(update=changes)
    scenario.command(ModifyJob(job_id=scenario.ids[job], spec=spec))


@pytest.mark.parametrize("change_of", ["A", "B"])
def test_a_dependency_that_is_not_changed_keeps_its_parents(
    change_of: str, scenario: Scenario
) -> None:
    """
    It was bound at submission, as LSF does: that the name means nothing any more, or another job
    too, is no concern of whoever changes something else.
    """
    scenario.hosts("h1 slots=9")
    scenario.submit("A", user="alice")
    scenario.submit("B", dependency_text='done("A")')
    if change_of == "A":
        change(scenario, "A", name="other")
    else:
        parent, first = scenario.ids["A"], scenario.job("B").spec.dependency
        scenario.submit("A", hold=True)
        scenario.ids["A"] = parent
        assert first is not None

    change(scenario, "B", user_priority=3)

    scenario.session()
    scenario.finish("A")
    assert ["B dispatched: h1*1"] == scenario.session()


def test_other_default_tasks_of_a_profile_leave_a_waiting_compound_its_own(
    scenario: Scenario,
) -> None:
    """
    The counts of its members contradict them; that is found while the definition is folded, when
    nothing may be refused any more.
    """
    profile(scenario, "app")
    scenario.submit("A", resreq=("1*{} + 2*{}",), profile="app")
    scenario.session()

    profile(scenario, "app", tasks_min=1)

    scenario.hosts("h1 slots=3")
    assert ["A dispatched: h1*3"] == scenario.session()


def test_an_element_of_other_tasks_is_told_of_its_array_s_bound(scenario: Scenario) -> None:
    """
    It was short of slots when it was tried; the element behind it, which asks for less, is what the
    array may start since then.
    """
    scenario.hosts("h1 slots=2")
    array = ArraySpec(ranges=(IndexRange(start=1, end=3),), started_max=1)
    scenario.submit("A", array=array)
    change(scenario, "A[1]", tasks_min=3, tasks_max=3)
    assert ["A[1] pended: never: slots short on h1", "A[2] dispatched: h1*1"] == [
        words for words in scenario.session() if "A[3]" not in words
    ]

    assert [] == scenario.session()

    assert "JOB_ARRAY_JLIMIT" == scenario.reasons("A[1]").removeprefix("never: ")
