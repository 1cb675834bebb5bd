"""
The frame of the control vectors, on a scheduler that only notes what it is asked.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from tools.conformance.control import differences_with
from tools.conformance.observed import compare
from tools.conformance.seen import Observed, Waiting
from tools.conformance.values import Vector


@dataclass
class Noting:
    """
    Be a scheduler whose one job J is killed at minute 10; it notes everything else.
    """

    case: dict
    done: list = field(default_factory=list)
    minute: int = 0

    def submit(self, job):
        self.done.append(f"submit {job['id']}")

    def go_to(self, minute):
        self.minute = minute

    def happen(self, step):
        self.done.append(f"happen {sorted(set(step) - {'expect', 'cycle'})}")

    def act(self, name, job, value, *, by):
        self.done.append(f"{by}: {name} {job} {value}")

    def cycle(self):
        self.done.append("cycle")

    def observe(self):
        state = "EXIT" if self.minute >= 10 else "RUN"
        return Observed(
            states={"J": state}, waiting={"W": Waiting(main="X")}, error="no", denied=True
        )


def tried(**fields):
    trials = []

    def make(case):
        trials.append(Noting(case))
        return trials[-1]

    found = differences_with(Vector("x", "control", "", fields), make)
    return found, trials[0].done, trials[0].case


def test_actions_are_done_in_order_by_who_does_them():
    """
    The user is u1 where the vector says nobody.
    """
    _, done, _ = tried(
        running=[{"id": "A"}],
        actions=[{"bstop": ["A", "B"]}, {"by": "admin", "exit": {"A": 20}}, {"cycle": True}],
    )

    assert ["u1: bstop A None", "u1: bstop B None", "admin: exit A 20", "cycle"] == done


def test_each_action_may_have_expectations():
    """
    They are looked at right after it.
    """
    found, _, _ = tried(
        running=[{"id": "A"}], actions=[{"bstop": "J", "expect": {"states": {"J": "PEND"}}}]
    )

    assert ["state of J: expected 'PEND', found 'RUN'"] == found


@pytest.mark.parametrize(
    ("expect", "cycles"),
    [
        ({"pend": {"W": {"main": "JOB_REQUEUED"}}}, 0),
        ({"pend": {"main": "JOB_SWITCH"}}, 0),
        ({"pend": {"W": {"main": "X"}}}, 1),
        ({"pend": {"W": {"hosts": {"X": ["h1"]}}}}, 1),
        ({"dispatch": {}}, 1),
        ({"states": {}}, 0),
    ],
)
def test_a_cycle_is_held_only_for_what_a_cycle_brings_about(expect, cycles):
    """
    Some reasons hold until the next cycle.
    """
    _, done, _ = tried(running=[{"id": "A"}], expect=expect)

    assert cycles == done.count("cycle")


@pytest.mark.parametrize(
    ("case", "done"),
    [
        ({"exit_code": 3}, "u1: exit J 3"),
        ({"signal": 9}, "u1: killed J 9"),
        ({"pre_exec_exit": 1}, "u1: pre_exec J 1"),
        ({"over": "memlimit"}, "u1: over J memlimit"),
        ({"state": "RUN", "host": "h2", "from": "a", "to": "b"}, "u1: bswitch J b"),
        ({"state": "PEND", "set": {"n": 8}}, "u1: bmod J {'n': 8}"),
    ],
)
def test_brief_cases_are_about_one_job(case, done):
    """
    It runs where the case needs it to.
    """
    _, what, told = tried(**case)

    assert done in what
    is_running = bool(told.get("running"))
    assert (case.get("state") != "PEND") == is_running
    if "from" in case:
        assert {"h2": 1} == told["running"][0]["alloc"]
        assert "a" == told["running"][0]["q"]


def test_a_kill_must_come_at_its_minute():
    """
    Not before, and not later.
    """
    assert [] == tried(expect={"killed_at": 10})[0]
    assert ["runs at minute 10: expected True, found False"] == tried(expect={"killed_at": 11})[0]
    assert ["runs at minute 9: expected False, found True"] == tried(expect={"killed_at": 9})[0]


SEEN = Observed(
    states={"J": "PEND"},
    waiting={"J": Waiting(main="JOB_SWITCH")},
    queues={"J": "b"},
    run_limits_min={"J": 5},
    exit_codes={"J": 137},
    tasks={"J": 4},
    dependencies={"J": None},
    submitted_min={"J": 0},
    order=["K", "J"],
    terms={"J": "TERM_X"},
)

RIGHT = {
    "queue": "b",
    "state": "PEND",
    "runlimit_min": 5,
    "n": 4,
    "code": 137,
    "dependency": None,
    "keeps": {"J": {"jobid": True, "submit_time": 0}},
    "queue_order": ["K", "J"],
    "term": "TERM_X",
    "ok": True,
    "denied": False,
    "pend": {"main": "JOB_SWITCH"},
    "counts": {"NJOBS": 1, "PEND": 1},
}
WRONG = {
    "queue": "a",
    "state": "RUN",
    "runlimit_min": None,
    "n": 5,
    "code": 0,
    "dependency": "done(1)",
    "keeps": {"J": {"jobid": True, "submit_time": 1}},
    "queue_order": ["J", "K"],
    "term": "TERM_Y",
    "ok": False,
    "denied": True,
    "pend": {"main": "JOB_NEW"},
    "counts": {"NJOBS": 2, "PEND": 2},
    "error": "any",
}


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_as_expected_gives_no_difference(name):
    """
    Of the one job that the case is about.
    """
    assert [] == compare({name: RIGHT[name]}, SEEN)


@pytest.mark.parametrize("name", WRONG)
def test_what_is_not_as_expected_gives_a_difference(name):
    """
    One expectation at a time.
    """
    assert compare({name: WRONG[name]}, SEEN)
