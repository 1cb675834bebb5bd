"""
Signals that users send to their jobs, and ends by force.
"""

from __future__ import annotations

import pytest

from domain.commands import KillJob, MarkUnreachable, OrderDoneReport, SignalJob
from domain.errors import Refused
from domain.events.refusals import ReportIgnored
from domain.signals import SignalName
from tests.projections.scheduling.preempting import again
from tests.scenario import Scenario


def started(scenario: Scenario, *jobs: str) -> Scenario:
    """
    Return a scenario in which jobs run on h1.
    """
    scenario.hosts("h1 slots=4")
    scenario.jobs(*jobs)
    scenario.session()
    return scenario


def test_a_signal_is_ordered_once(scenario: Scenario) -> None:
    """
    A signal is no state: it is sent, and what comes of it the program decides.
    """
    started(scenario, "A")

    scenario.signal("A", SignalName.USR1)

    assert ["A to get SIGUSR1 on h1"] == scenario.session()
    assert [] == scenario.session()
    assert {"A": "RUN"} == scenario.states()


def test_signals_are_ordered_as_they_were_asked_for(scenario: Scenario) -> None:
    """
    Before the kill that the same session orders: a program may be told first.
    """
    started(scenario, "A", "B")

    scenario.signal("B", SignalName.HUP)
    scenario.signal("A", SignalName.USR2)
    scenario.signal("A", SignalName.USR1)
    scenario.signal("A", SignalName.USR2)
    scenario.kill("A")

    assert [
        "A to get SIGUSR2 on h1",
        "A to get SIGUSR1 on h1",
        "B to get SIGHUP on h1",
        "A kill ordered on h1: TERM_OWNER",
    ] == scenario.session()
    orders = scenario.state.stored.workers["h1"].orders
    assert [(1, "signal"), (2, "signal"), (3, "signal"), (4, "kill")] == [
        (number, order.kind) for number, order in orders.items()
    ]


def test_an_order_to_signal_stands_until_it_is_carried_out(scenario: Scenario) -> None:
    """
    An agent that was away hears of it later, once.
    """
    started(scenario, "A")
    scenario.signal("A", SignalName.USR1)
    scenario.session()
    worker = scenario.state.stored.workers["h1"]
    assert {1: "SIGUSR1"} == {number: order.signal for number, order in worker.orders.items()}

    scenario.command(OrderDoneReport(worker="h1", incarnation=1, order_number=1), actor="")

    assert {} == worker.orders


def test_a_signal_ends_with_its_attempt(scenario: Scenario) -> None:
    """
    The next attempt is another program.
    """
    started(scenario, "A", "B")
    scenario.signal("A", SignalName.USR1)
    scenario.session()
    scenario.signal("B", SignalName.USR1)

    scenario.finish("A", "B")

    assert [] == scenario.session()
    assert {} == scenario.state.stored.workers["h1"].orders
    assert ((), ()) == (scenario.job("A").signalled, scenario.job("B").signals_wanted)


@pytest.mark.parametrize("state", ["PEND", "PSUSP", "DONE"])
def test_only_started_jobs_get_signals(scenario: Scenario, state: str) -> None:
    """
    A job that has no process can't be sent any.
    """
    scenario.hosts("h1 slots=1")
    scenario.jobs("A" if state != "PSUSP" else "A hold=1")
    if state == "DONE":
        scenario.session()
        scenario.finish("A")

    with pytest.raises(Refused) as refused:
        scenario.signal("A", SignalName.USR1)

    assert ("job_id", f"1 is {state}") == (refused.value.field, refused.value.value)


@pytest.mark.parametrize(
    ("sender", "why"),
    [("alice", "TERM_OWNER"), ("root", "TERM_ADMIN"), ("", "TERM_EXTERNAL_SIGNAL")],
)
def test_who_sent_the_signal_that_ended_a_job_is_told(
    scenario: Scenario, sender: str, why: str
) -> None:
    """
    A signal that nobody sent through the scheduler came from outside.
    """
    started(scenario, "A")
    if sender:
        scenario.signal("A", SignalName.INT, actor=sender)
        scenario.session()

    scenario.end_by("A", 2)

    assert ("EXIT", why) == (scenario.states()["A"], scenario.job("A").why)


def test_another_signal_than_was_sent_comes_from_outside(scenario: Scenario) -> None:
    """
    A program that was told to reread its files and is then killed by the kernel wasn't ended by its
    user.
    """
    started(scenario, "A")
    scenario.signal("A", SignalName.HUP)
    scenario.session()

    scenario.end_by("A", 9)

    assert "TERM_EXTERNAL_SIGNAL" == scenario.job("A").why


def test_wanted_signals_survive_a_snapshot(scenario: Scenario) -> None:
    """
    What was asked for before a crash is sent after it.
    """
    started(scenario, "A")
    scenario.signal("A", SignalName.USR1)

    scenario.core = again(scenario)

    assert ["A to get SIGUSR1 on h1"] == scenario.session()


# ------------------------------------------------------------------------------------ ends by force


@pytest.mark.parametrize(
    ("actor", "why"), [("alice", "TERM_FORCE_OWNER"), ("root", "TERM_FORCE_ADMIN")]
)
def test_by_force_a_job_ends_without_its_worker(scenario: Scenario, actor: str, why: str) -> None:
    """
    Its host takes the next job at once.
    """
    scenario.hosts("h1 slots=1")
    scenario.jobs("A", "B")
    scenario.session()

    scenario.kill("A", actor=actor, force=True)

    assert [f"A ended: {why}", "B dispatched: h1*1"] == scenario.session()
    assert "EXIT" == scenario.states()["A"]


def test_force_follows_a_kill_that_did_not_help(scenario: Scenario) -> None:
    """
    That is when people need it: the order stands, and nobody carries it out.
    """
    started(scenario, "A")
    scenario.kill("A")
    scenario.session()
    assert [] == scenario.core.handle(
        KillJob(job_id="1"), actor="alice", now_us=scenario.now_us
    )

    scenario.kill("A", actor="root", force=True)

    assert ["A ended: TERM_FORCE_ADMIN"] == scenario.session()
    assert {} == scenario.state.stored.workers["h1"].orders


def test_force_ends_a_job_whose_host_is_silent(scenario: Scenario) -> None:
    """
    Without it a job would be UNKWN until the grace time is over, or for ever where jobs are kept.
    """
    started(scenario, "A")
    scenario.command(MarkUnreachable(worker="h1", incarnation=1, silent_us=1), actor="")
    assert {"A": "UNKWN"} == scenario.states()

    scenario.kill("A", force=True)

    assert ["A ended: TERM_FORCE_OWNER"] == scenario.session()


def test_a_pending_job_ends_the_same_with_force(scenario: Scenario) -> None:
    """
    There is nothing to wait for.
    """
    scenario.jobs("A")

    scenario.kill("A", force=True)

    assert ["A ended: TERM_OWNER"] == scenario.session()


def test_what_is_reported_of_a_job_ended_by_force_is_ignored(scenario: Scenario) -> None:
    """
    It ended as its user wanted; the report of its process comes too late.
    """
    started(scenario, "A")
    scenario.kill("A", force=True)
    scenario.session()

    scenario.finish("A")

    assert isinstance(scenario.log[-1].event, ReportIgnored)
    assert ("EXIT", "TERM_FORCE_OWNER") == (scenario.states()["A"], scenario.job("A").why)


def test_a_wish_for_force_survives_a_snapshot(scenario: Scenario) -> None:
    """
    Also when the kill before it is ordered already.
    """
    started(scenario, "A")
    scenario.kill("A")
    scenario.session()
    scenario.kill("A", force=True)

    scenario.core = again(scenario)

    assert ["A ended: TERM_FORCE_OWNER"] == scenario.session()


def test_signal_commands_name_their_signal() -> None:
    """
    One of the enumeration: a text from outside is parsed at the edge.
    """
    with pytest.raises(ValueError, match="signal"):
        SignalJob.model_validate({"job_id": "1", "signal": "SIGSTOP"})
