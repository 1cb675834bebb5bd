"""
xce why --trace: the session held again with the trace on, for now, for then, for jobs long ended.
"""

from __future__ import annotations

import json

import pytest

from store.log import EventLog
from tests.scenario import Scenario
from tools.cli import audit_asking
from tools.cli.main import run


@pytest.fixture
def life():
    """
    Return a scenario: A runs, low and same wait for slots, huge can never start; then A ends, low
    starts, and late comes.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=4", "h2 slots=1")
    scenario.jobs("A tasks=4")
    scenario.session()
    scenario.start("A")
    scenario.pass_time(10)
    scenario.jobs("low tasks=2", "same tasks=2", "huge tasks=9")
    scenario.session()
    scenario.pass_time(60)
    scenario.finish("A")
    scenario.session()
    scenario.pass_time(10)
    scenario.jobs("late tasks=4")
    return scenario


@pytest.fixture
def directory(life, tmp_path):
    """
    Return the directory of a cluster whose log that is.
    """
    with EventLog.create(tmp_path / "c" / "log", log_id="why", durability="none") as log:
        log.append(life.log)
    return tmp_path / "c"


@pytest.fixture
def ask(capsys, directory):
    def asked(*arguments, status=0):
        assert status == run(["why", "--dir", str(directory), *map(str, arguments)])
        captured = capsys.readouterr()
        return captured.out if status == 0 else captured.err

    return asked


def where(life, kind, name):
    """
    Return the position of a job's first event of a kind.
    """
    stream = f"job:{int(life.ids[name]):010}"
    return next(
        place for place, one in enumerate(life.log, 1)
        if one.stream == stream and one.event.TYPE_CODE == kind
    )  # fmt: skip


def test_a_job_that_has_hosts_or_ended_is_told_by_the_session_that_dispatched_it(life, ask):
    """
    Decided again on the state right before that session, and found to come out as recorded.
    """
    shown = ask(life.ids["A"], "--trace").splitlines()

    last = where(life, "job.dispatched", "A")
    assert (
        f"Positions {last - 1} to {last}, decided again on the state at position {last - 2}, "
        "as recorded."
    ) == shown[0]
    assert shown[1] == "job 1: session 1, 1970-01-01T00:00:01Z, full trace"
    assert "  outcome: dispatched, by parjob, 4 tasks on 1 host" in shown


def test_a_forced_job_is_told_as_what_it_is(life, ask, tmp_path):
    """
    When it was dispatched, and while it waits for the hosts that were named.
    """
    life.submit("eager", begin_us=life.now_us * 9)
    life.run("eager", "h1")
    life.session()
    life.jobs("wide tasks=2 mem_mb=90000000")
    life.run("wide", "h2*2")
    life.session()
    with EventLog.create(tmp_path / "d" / "log", log_id="forced", durability="none") as log:
        log.append(life.log)
    elsewhere = ("--trace", "--dir", str(tmp_path / "d"))

    shown = ask(life.ids["eager"], *elsewhere)
    assert "decided again" in shown
    assert "an operator wants it on 1*h1" in shown
    assert "outcome: dispatched, by seqjob, on hosts that an operator named" in shown
    shown = ask(life.ids["wide"], *elsewhere)
    assert "an operator wants it on 2*h2" in shown
    assert "it could never start as things are" in shown
    head = ask(life.ids["wide"], *elsewhere[1:]).splitlines()[0]
    assert head.endswith("can never start on the hosts that an operator named.")


def test_a_waiting_job_is_told_by_the_session_at_that_moment(life, ask):
    """
    At any position of the session's step, and right before it: that very session.
    """
    at = where(life, "job.pended", "low")

    answers = [json.loads(ask(life.ids["low"], "--trace", "--json", "--at", at - shift))
               for shift in (0, 1, 2)]  # fmt: skip

    assert answers[0] == answers[1] == answers[2]
    (trace,) = answers[0]["traces"]
    assert ("pended", 2) == (trace["outcome"]["verdict"], trace["session"]["number"])
    assert answers[0]["is_recorded"]
    assert "" == answers[0]["difference"]
    assert answers[0]["session_first"] <= at <= answers[0]["session_last"]


def test_who_proved_the_same_request_unsatisfiable_is_told_too(life, ask):
    """
    A skipped job alone would tell nothing of the hosts.
    """
    at = where(life, "job.pended", "same")

    found = json.loads(ask(life.ids["same"], "--trace", "--json", "--at", at))

    skipped, prover = found["traces"]
    assert ("skipped", life.ids["low"]) == (
        skipped["outcome"]["verdict"], skipped["outcome"]["because_of"],
    )  # fmt: skip
    assert life.ids["low"] == prover["job_id"]
    assert any(line["kind"] == "host" for line in prover["lines"])


def test_where_no_session_was_held_one_is_held_for_the_question(life, ask):
    """
    It says so, tells what would be decided, and writes nothing.
    """
    before = len(life.log)

    shown = ask(life.ids["late"], "--trace").splitlines()

    assert (
        f"A session on the state at position {before}, held for this question only: it decides so "
        "now."
    ) == shown[0]
    assert any("isn't recorded" in line for line in shown)
    assert any(line.startswith("  outcome: pends, ") for line in shown)


def test_levels_and_bounds_are_obeyed(life, ask):
    """
    A summary has no plans; what is beyond the bound is counted.
    """
    summary = ask(life.ids["A"], "--trace", "--level", "summary")
    short = json.loads(ask(life.ids["A"], "--trace", "--lines", 3, "--json"))["traces"][0]
    whole = json.loads(ask(life.ids["A"], "--trace", "--json"))["traces"][0]

    assert "plan 1" not in summary
    assert 3 == len(short["lines"])
    assert len(whole["lines"]) == 3 + short["left_out"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("1", "--trace", "--history"), "--trace: must not be given with"),
        (("1", "--trace", "--ahead"), "--trace: must not be given with"),
        (("1", "--level", "full"), "--level: must be given with --trace"),
        (("1", "--lines", "5"), "--lines: must be given with --trace"),
        (("99", "--trace"), "JOB: must name a job that is known at that moment"),
        (("2", "--trace", "--at", "3"), "JOB: must name a job that is known at that moment"),
        (("x", "--trace"), "JOB: must be a job number"),
        (("1", "--trace", "--at", "teatime"), "--at: must be"),
    ],
)
def test_what_can_not_be_traced_is_one_line(life, ask, arguments, words):
    """
    Field and rule.
    """
    names = {"99": 1, "2": 1}
    status = names.get(arguments[0], 2)

    error = ask(*arguments, status=status)

    assert 1 == len(error.splitlines())
    assert error.startswith(f"xce: {words}")


def test_a_job_that_was_never_dispatched_is_told_at_a_moment_when_it_waited(life, ask, tmp_path):
    """
    It was killed while it waited: the error says how to ask.
    """
    life.kill("huge")
    life.session()
    with EventLog.create(tmp_path / "d" / "log", log_id="killed", durability="none") as log:
        log.append(life.log)
    elsewhere = ("--dir", str(tmp_path / "d"))

    error = ask(life.ids["huge"], "--trace", *elsewhere, status=1)

    assert "Give --at a moment at which it waited." in error
    at = where(life, "job.pended", "huge")
    assert "it could never start" in ask(life.ids["huge"], "--trace", "--at", at, *elsewhere)


def test_who_may_not_read_the_log_is_told_so(life, ask, monkeypatch):
    """
    The scheduler traces the latest decision only, and only a running one does.
    """
    monkeypatch.setattr(audit_asking, "may_read", lambda _: False)

    error = ask(life.ids["A"], "--trace", "--at", "9", status=2)
    assert "must be readable to you for --at" in error
    assert "no scheduler answers" in ask(life.ids["A"], "--trace", status=3)


def test_every_field_of_a_trace_is_documented():
    """
    Programs read it: each name of the JSON object stands in the README.
    """
    from dataclasses import fields
    from pathlib import Path

    from projections.scheduling import trace

    text = Path(__file__).parents[2].joinpath("tools", "cli", "README.md").read_text()
    section = text.split("### Traces")[1].split("\n## ")[0]
    kinds = (trace.DecisionTrace, trace.SessionMark, trace.Key, trace.Line, trace.Row,
             trace.Outcome, trace.OutcomeHost, trace.Rest, trace.Passed)  # fmt: skip
    names = {one.name for kind in kinds for one in fields(kind)}
    words = {str(one) for enum in (trace.Kind, trace.Verdict, trace.Level) for one in enum}

    assert [] == [name for name in sorted(names | words) if f"`{name}`" not in section]
