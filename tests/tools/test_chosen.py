"""
Which jobs job 0 stands for.
"""

from __future__ import annotations

import pytest

from domain.errors import Denied, NotFound, Refused
from tests.scenario import Scenario
from tools.daemon.access import Caller
from tools.daemon.bodies import ChosenJobs
from tools.daemon.chosen import check_chosen, jobs_chosen

ALICE, ROOT = Caller(54_321, "alice"), Caller(0, "root")


@pytest.fixture
def scenario():
    """
    Return a scenario: A and B of alice, C of bob; A runs, D of alice has ended.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=1", "h2")
    scenario.close("h2")
    scenario.queue("low")
    scenario.jobs("D")
    scenario.session()
    scenario.finish("D")
    scenario.jobs("A")
    scenario.session()
    scenario.jobs("B queue=low")
    scenario.submit("C", user="bob")
    return scenario


def names(scenario, caller, **chosen):
    return [job.spec.name for job in jobs_chosen(scenario.state, ChosenJobs(**chosen), caller)]


def test_all_of_the_caller_that_have_not_ended_and_fit(scenario):
    """
    As LSF's bkill 0: each option leaves fewer.
    """
    assert ["A", "B"] == names(scenario, ALICE)
    assert ["B"] == names(scenario, ALICE, queue="low")
    assert ["A"] == names(scenario, ALICE, host="h1")
    assert ["A"] == names(scenario, ALICE, name="A")
    assert ["A", "B", "C"] == names(scenario, ROOT, user="all", name="*")
    assert ["C"] == names(scenario, ROOT, user="bob")


def test_others_jobs_are_an_operator_s_to_choose(scenario):
    """
    One typo of a user must not end everybody's work, nor ask for it.
    """
    for user in ("bob", "all"):
        with pytest.raises(Denied) as denied:
            names(scenario, ALICE, user=user)
        assert ("user", user) == (denied.value.field, denied.value.value)
    assert ["A", "B"] == names(scenario, ALICE, user="alice")


def test_nothing_chosen_is_told_by_what_is_unknown(scenario):
    """
    A name that isn't known is more likely wrong than empty.
    """
    for field, chosen in {"queue": "none", "host": "h9", "job_id": ""}.items():
        wanted = {field: chosen} if chosen else {"host": "h2"}
        with pytest.raises(NotFound) as refused:
            names(scenario, ALICE, **wanted)
        assert field == refused.value.field


@pytest.mark.parametrize(
    ("caller", "chosen", "words"),
    [
        (Caller(7, "carol"), {}, "no job of yours hasn't ended yet"),
        (ALICE, {"name": "none"}, "no job of yours that fits hasn't ended yet"),
        (ROOT, {"user": "all", "name": "none"}, "no job that fits hasn't ended yet"),
        (ROOT, {"user": "bob", "queue": "low"}, "no job of bob that fits hasn't ended yet"),
    ],
)
def test_nothing_chosen_is_told_plainly(scenario, caller, chosen, words):
    """
    Whoever asks for all their jobs has broken no rule when there is none.
    """
    with pytest.raises(NotFound) as refused:
        names(scenario, caller, **chosen)

    assert f"job_id: {words}." == refused.value.text()


def test_what_chooses_goes_with_job_0_alone():
    """
    It would seem to narrow down what it doesn't.
    """
    check_chosen("0", ChosenJobs(queue="low"))
    check_chosen("12", ChosenJobs())
    with pytest.raises(Refused) as refused:
        check_chosen("12", ChosenJobs(queue="low"))
    assert "queue" == refused.value.field
