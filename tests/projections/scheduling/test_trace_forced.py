"""
What a decision trace tells of a job that an operator wants on certain hosts.
"""

from __future__ import annotations

import pytest

from domain.commands import LeaveWorker
from projections.scheduling.trace import Kind, Verdict
from replay.debugger.show import Units
from replay.trace_words import FORCED, outcome_text, trace_lines
from tests.projections.scheduling.test_trace import outcomes, told, trace_of, traced
from tests.scenario import Scenario


@pytest.fixture
def scenario():
    """
    Return a scenario of the fast core, with a job on the only slot of h1.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=1 mem_mb=100", "h2 slots=4 mem_mb=900")
    scenario.submit("X", resreq=("rusage[mem=50] select[mem<200]",))
    scenario.session()
    return scenario


def test_it_is_told_that_it_was_forced_and_how_it_fitted(scenario):
    """
    No picker handed it out: its hosts, what that passes over, and the amounts that it needed.
    """
    store = traced(scenario)
    scenario.jobs("B")
    scenario.submit("A", resreq=("rusage[mem=40] select[mem>500]",), dependency_text="done(X)")
    scenario.run("A", "h1")

    assert "A dispatched: h1*1" in scenario.session()

    trace = trace_of(scenario, store, "A")
    assert (1, "", (), "1*h1") == (trace.place, trace.picker, trace.keys, trace.forced_on)
    assert 2 == trace_of(scenario, store, "B").place
    assert [("host", 0, "taken")] == outcomes(trace, Kind.HOST)
    assert "dispatched, by seqjob, on hosts that an operator named, 1 task on 1 host" == (
        outcome_text(trace.outcome)
    )
    lines = list(trace_lines(trace, Units()))
    head = "  tried as number 1, before all that wait their turn: an operator wants it on 1*h1"
    assert [head, *(f"  {line}" for line in FORCED)] == lines[1 : 2 + len(FORCED)]


def test_what_it_waits_for_is_told_of_its_hosts_alone(scenario):
    """
    What others are short of is no concern of it; nor is a picker asked why it passed it over.
    """
    store = traced(scenario)
    scenario.submit("A", resreq=("rusage[mem=80]",))
    scenario.run("A", "h1")

    assert ["A pended: mem short on h1"] == scenario.session()

    trace = trace_of(scenario, store, "A")
    assert Verdict.PENDED is trace.outcome.verdict
    assert [("h1", "mem")] == [(host.host, host.resource) for host in trace.outcome.hosts]
    assert (trace.outcome.reason_set, False) == (
        scenario.job("A").reason_set, trace.outcome.is_never
    )  # fmt: skip
    assert 1 == len(told(trace, Kind.HOST))
    assert [] == scenario.session()
    assert trace_of(scenario, store, "A").passed is None


def test_a_host_that_is_not_reached_is_told_as_such(scenario):
    """
    Nothing is tried then.
    """
    scenario.jobs("A")
    scenario.set_queue("normal", "inactive")
    scenario.run("A", "h2")
    scenario.command(LeaveWorker(worker="h2", incarnation=1), actor="")
    store = traced(scenario)

    scenario.session()

    trace = trace_of(scenario, store, "A")
    assert [Kind.UNAVAILABLE] == [line.kind for line in trace.lines]
    assert ["h2"] == [line.host for line in trace.lines]
    assert Verdict.PENDED is trace.outcome.verdict
