"""
The frame of the schedule vectors, on a scheduler that does what it is told: steps, comparisons,
what is missing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from tools.conformance.observed import compare
from tools.conformance.schedule import differences_with, with_defaults
from tools.conformance.seen import Observed, Waiting
from tools.conformance.trial import NotYet
from tools.conformance.values import LeftOut, Malformed, Vector
from tools.conformance.vectors import run_one


@dataclass
class Told:
    """
    Be a scheduler that runs each job on the host it names, and notes what it was asked to do.
    """

    case: dict
    done: list = field(default_factory=list)
    seen: Observed = field(default_factory=Observed)

    def submit(self, job):
        if job.get("on") is None:
            self.seen.waiting[job["id"]] = Waiting(hosts={"h1": ["HOST_JOB_LIMIT", "HOST_RES_REQ"]})
        else:
            self.seen.shares[job["id"]] = {job["on"]: job.get("n", 1)}

    def go_to(self, minute):
        self.done.append(minute)

    def happen(self, step):
        self.done.append(step.get("finish"))

    def cycle(self):
        self.done.append("cycle")

    def observe(self):
        return self.seen


def differences(trials=None, **fields):
    def make(case):
        trial = Told(case)
        if trials is not None:
            trials.append(trial)
        return trial

    return differences_with(Vector("x", "schedule", "", fields), make)


def test_a_vector_without_steps_is_one_cycle():
    """
    Jobs are submitted in the order listed.
    """
    trials = []
    found = differences(
        trials, jobs=[{"id": "A", "on": "h1", "n": 2}], expect={"dispatch": {"A": {"h1": 2}}}
    )

    assert [] == found
    assert ["cycle"] == trials[0].done


def test_each_step_has_its_time_and_its_expectations():
    """
    A clock of 18:00 is minute 1080 of the day.
    """
    trials = []
    found = differences(
        trials,
        jobs=[{"id": "A", "on": "h1"}],
        steps=[
            {"at": 5, "finish": ["B"], "expect": {"dispatch": {"A": {"h1": 1}}}},
            {"clock": "18:00", "expect": {"dispatch": {"A": {"h2": 1}}}},
        ],
    )

    assert [5, ["B"], "cycle", 1080, "cycle"] == trials[0].done
    assert ["step 2: A runs on: expected {'h2': 1}, found {'h1': 1}"] == found


def test_what_is_missing_is_a_difference_in_words():
    """
    Never a wrong answer, and never a pass.
    """

    def make(case):
        raise NotYet("limits")

    assert ["not yet: limits"] == differences_with(Vector("x", "schedule", "", {}), make)


def test_a_case_may_say_its_cluster_and_job_briefly():
    """
    Free slots per host, and the fields of the one job.
    """
    case = with_defaults({"free": {"h1": 9, "h2": 5}, "n": 8, "R": "span[block=4]"})

    assert [{"name": "h1", "slots": 9}, {"name": "h2", "slots": 5}] == case["cluster"]["hosts"]
    assert [{"id": "J", "n": 8, "R": "span[block=4]"}] == case["jobs"]


SEEN = Observed(
    shares={"A": {"h2": 2, "h1": 1}},
    states={"A": "RUN", "B": "PEND", "C": "PEND"},
    waiting={"B": Waiting(main="QUE_INACT"), "C": Waiting(hosts={"h1": ["X", "Y"], "h2": ["Y"]})},
    rejected=["D"],
    victims={"C": ["E", "F"]},
    used={"lic": 2},
    host_status={"h1": "closed_Full"},
)

RIGHT = {
    "dispatch": {"A": {"h1": 1, "h2": 2}},
    "states": {"A": "RUN", "B": "PEND"},
    "pend": {"B": {"main": "QUE_INACT"}, "C": {"hosts": {"X": ["h1"], "Y": ["h2"]}}},
    "reject": ["D"],
    "preempt": {"C": ["F", "E"]},
    "preempt_count": 2,
    "used": {"lic": 2},
    "host_status": {"h1": "closed_Full"},
    "xce": {"reject": True},
    "vendor": {"pend": {"D": True}},
}

WRONG = [
    {"dispatch": {"A": {"h1": 1}}},
    {"dispatch": {"B": {"h1": 1}}},
    {"states": {"A": "PEND"}},
    {"states": {"Z": "PEND"}},
    {"pend": {"A": True}},
    {"pend": {"B": {"main": "QUE_WINDOW"}}},
    {"pend": {"B": {"hosts": {"X": ["h1"]}}}},
    {"pend": {"C": {"main": "X"}}},
    {"pend": {"C": {"hosts": {"Y": ["h1"]}}}},
    {"pend": {"C": {"hosts": {"X": ["h3"]}}}},
    {"reject": []},
    {"reject": False},
    {"preempt": {}},
    {"preempt_count": 1},
    {"used": {"lic": 1}},
    {"used": {"other": 1}},
    {"host_status": {"h1": "ok"}},
    {"xce": {"reject": False}},
]


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_as_expected_gives_no_difference(name):
    """
    The first code on a host is the one that counts; the order of hosts doesn't, unless it is asked
    for.
    """
    assert [] == compare({name: RIGHT[name]}, SEEN)


@pytest.mark.parametrize("expect", WRONG, ids=str)
def test_what_is_not_as_expected_gives_a_difference(expect):
    """
    One field changed at a time.
    """
    assert compare(expect, SEEN)


def test_two_words_of_one_meaning_in_one_action_are_refused():
    """
    The first would be lost unseen.
    """
    with pytest.raises(Malformed, match="host_lost, host_down mean the same"):
        differences(steps=[{"host_lost": "h1", "host_down": "h2"}])


def test_expectations_that_name_no_job_are_about_the_last_one():
    """
    As in cases with a single job.
    """
    lone = Observed(shares={"J": {"h2": 1, "h1": 1}}, states={"J": "RUN"})

    assert [] == compare(
        {"alloc": {"h1": 1, "h2": 1}, "first": "h2", "sequence": ["h2", "h1"], "run": True}, lone
    )
    assert compare({"pend": True}, lone)
    assert compare({"first": "h1"}, lone)
    with pytest.raises(Malformed):
        compare({"colour": "blue"}, lone)


@pytest.mark.parametrize(
    "fields",
    [
        {"queues": [{"name": "q", "INTERRUPTIBLE_BACKFILL": 5}]},
        {"cases": [{"queues": [{"name": "q", "INTERRUPTIBLE_BACKFILL": 5}]}]},
        {"expect": {"overage_applied": False}},
    ],
)
def test_what_is_left_out_says_so(fields):
    """
    It is neither passed nor failed.
    """
    outcome = run_one(Vector("x", "account" if "expect" in fields else "schedule", "", fields))

    assert outcome.left_out
    assert not outcome.has_passed
    assert issubclass(LeftOut, Exception)
