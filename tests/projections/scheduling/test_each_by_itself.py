"""
Rules that are told one by one: what exit values mean, and what each user may have of a host.
"""

from __future__ import annotations

import pytest

from domain.commands import ConfigureWorker
from domain.jobs import ExitRules
from domain.workers import HostSettings
from tests.projections.scheduling.policies import queue
from tests.scenario import Scenario


@pytest.mark.parametrize(
    ("own", "code", "ends"),
    [
        (ExitRules(requeue=(9,)), 7, "DONE"),
        (ExitRules(requeue=(9,)), 9, "PEND"),
        (ExitRules(requeue=(9,)), 8, "EXIT"),
        (ExitRules(success=(5,)), 5, "DONE"),
        (ExitRules(success=(5,)), 7, "EXIT"),
        (ExitRules(success=(5,)), 8, "PEND"),
        (None, 8, "PEND"),
    ],
)
def test_what_a_job_says_of_exit_values_goes_before_its_queue_each_by_itself(
    scenario: Scenario, own: ExitRules | None, code: int, ends: str
) -> None:
    """
    A job that says which values put it back has its queue's word on success, and the other way
    round.
    """
    queue(scenario, exits=ExitRules(requeue=(8,), success=(7,)))
    scenario.hosts("h1")
    scenario.submit("A", exits=own)
    scenario.session()
    scenario.set_queue("normal", "inactive")

    scenario.finish("A", exit_code=code)
    scenario.session()

    assert {"A": ends} == scenario.states()


def test_a_job_goes_back_as_often_as_its_queue_says(scenario: Scenario) -> None:
    """
    Where it doesn't say so itself (MAX_JOB_REQUEUE).
    """
    queue(scenario, exits=ExitRules(requeue_max=1))
    scenario.hosts("h1")
    scenario.submit("A", exits=ExitRules(requeue=(9,)))
    for _ in range(2):
        scenario.session()
        scenario.finish("A", exit_code=9)
    scenario.session()

    assert ({"A": "EXIT"}, 1) == (scenario.states(), scenario.job("A").requeues)


@pytest.mark.parametrize(("condition", "starts"), [("137", True), (">128", True), ("9", False)])
def test_a_job_that_a_signal_ended_has_the_code_that_shells_tell(
    scenario: Scenario, condition: str, *, starts: bool
) -> None:
    """
    exit(A,137) is how users ask whether it was killed.
    """
    scenario.hosts("h1 slots=9")
    scenario.jobs("A")
    scenario.session()
    scenario.end_by("A", 9)
    scenario.submit("B", dependency_text=f"exit(1,{condition})")

    decided = "B dispatched: h1*1" if starts else "B pended: never: JOB_DEP_INVALID"
    assert [decided] == scenario.session()


def test_each_user_may_have_so_many_slots_of_a_host(scenario: Scenario) -> None:
    """
    LSF's JL/U: what one has keeps no other from theirs.
    """
    scenario.hosts("h1 slots=9")
    settings = HostSettings(user_slots_max=2)
    scenario.command(ConfigureWorker(worker="h1", settings=settings))
    scenario.jobs("A user=ann tasks=2", "B user=ann", "C user=bob tasks=2", "D user=bob")

    decisions = scenario.session()

    assert ["A dispatched: h1*2", "C dispatched: h1*2"] == [
        words for words in decisions if "dispatched" in words
    ]
    assert "HOST_USR_JLIMIT" in scenario.reasons("B")
    assert "HOST_USR_JLIMIT" in scenario.reasons("D")
