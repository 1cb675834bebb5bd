"""
Where a condition first holds, by which event, and the small safe language that says it.
"""

from __future__ import annotations

import pytest

from domain.errors import Refused
from domain.events.jobs import JobDispatched, JobFinished, JobSubmitted
from projections.scheduling.core import Core
from replay.at import Ladder
from replay.bisect import first_hold
from replay.conditions import Condition
from tests.replay.logs import ListLog
from tests.scenario import Scenario


@pytest.fixture
def log():
    """
    Return the log of two hosts and three jobs: A and B run, C waits for A.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=2 mem_mb=100", "h-2 slots=1")
    scenario.jobs("A tasks=2", "B tasks=1", "C tasks=2 mem_mb=10")
    scenario.session()
    scenario.start("A", "B")
    scenario.pass_time(30)
    scenario.finish("A")
    scenario.session()
    scenario.pass_time(30)
    scenario.finish("C", exit_code=1)
    return ListLog(scenario.log)


def found(log, text, **options):
    """
    Return where a condition first holds.
    """
    return first_hold(log, Ladder(log), Condition(text), **options)


@pytest.mark.parametrize(
    ("text", "kind", "number"),
    [
        ("job(3).state = RUN", JobDispatched, 3),
        ("jobs.run = 2", JobDispatched, 2),
        ("job(1).state = DONE", JobFinished, 1),
        ("count(jobs, state = EXIT) > 0", JobFinished, 2),
        ("job(3).wait >= 30s and job(3).state = RUN", JobDispatched, 3),
        ("h1 in job(3).hosts", JobDispatched, 3),
        ("hosts.known = 2 and not slots.free > 0", JobDispatched, 2),
        ("host(h-2).slots_used = 1", JobDispatched, 2),
        ("any(jobs, user = alice and tasks = 2)", JobSubmitted, 1),
        ("queue(normal).PEND = 3", JobSubmitted, 3),
        ("job(2) != none", JobSubmitted, 2),
        ("host(h1).mem.available_milli < host(h1).mem.total_milli", JobDispatched, 3),
        ("session = 2 and all(hosts, slots_usable = 0) or job(9).state = RUN", JobDispatched, 3),
    ],
)
def test_the_first_hit_is_the_event_that_made_it_so(log, text, kind, number):
    """
    The position of the event itself is told, also inside the step of a session.
    """
    hit = found(log, text)

    assert log.where(kind, number) == hit.event.position


def test_the_chain_says_what_came_in_and_what_was_decided(log):
    """
    C ran because A finished: the input between the two sessions is in the chain, with C's past.
    """
    hit = found(log, "job(3).state = RUN")

    assert ["job.started", "job.started", "job.finished"] == [
        one.event.TYPE_CODE for one in hit.inputs
    ]
    assert {"job:0000000003"} == {one.stream for one in hit.before}
    assert ["session.held", "job.dispatched"] == [one.event.TYPE_CODE for one in hit.step]


def test_a_condition_that_comes_and_goes_is_found_at_its_first_time(log):
    """
    No halving, unless the condition is said to be lasting: it would miss what is over.
    """
    text = "jobs.RUN = 2 and jobs.DONE = 0"

    assert found(log, text).event.position == log.where(JobDispatched, 2)
    assert found(log, text, is_lasting=True) is None
    lasting = "job(1).state = DONE"
    assert found(log, lasting).position == found(log, lasting, is_lasting=True).position


def test_nowhere_is_told_from_already(log):
    """
    What never holds isn't found; what holds where the search begins is found there.
    """
    assert found(log, "jobs.RUN = 7") is None
    assert found(log, "jobs.RUN = 7 or job(1) = none").held_at_start
    assert found(log, "job(1).state = DONE", upto=log.where(JobDispatched)) is None
    after = log.where(JobFinished)
    assert found(log, "job(1).state = DONE", after=after).held_at_start


def test_a_condition_about_jobs_alone_looks_only_where_they_change(log):
    """
    Skipping must not change the outcome: the same with a part that forces a look at each step.
    """
    for text in ("job(3).state = RUN", "job(1).exit_code = 0", "job(2).state = job(3).state"):
        assert Condition(text).streams is not None
        watchful = f"{text} and position >= 0"
        assert Condition(watchful).streams is None
        assert found(log, text).position == found(log, watchful).position


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3", 7), ("(1 + 2) * 3", 9), ("10 - 2 - 3", 5), ("2h", 7_200_000_000),
        ("'a b' = 'a b'", True), ("1 = 1 and 2 = 3 or true", True), ("not not true", True),
        ("1 < 2 and not 2 < 1", True), ("none = none", True), ("job(7).state < 3", False),
        ("job(7).state != RUN", True), ("cluster.default_queue = normal", True),
        ("time('1970-01-01T00:00:01')", 1_000_000), ("RUN", "RUN"), ("'x' < 'y'", True),
        ("job(7).state.deeper.still", None), ("not 1 = 1", False),
    ],
)  # fmt: skip
def test_what_an_expression_comes_to(log, text, expected):
    """
    Precedence as everywhere, whole numbers only, and nothing (none) where nothing is.
    """
    core = Core()
    for envelope in log.read(0, 3):
        core.apply(envelope.stamped())

    assert expected == Condition(text).value(core, 3)


@pytest.mark.parametrize(
    "text",
    ["", "1 +", "(1", "job()", "job(x).state", "foo(1)", "slots.fre", "jobs.RUNNING", "a.b", "1 2",
     "job(1).", "count(things)", "time('5')", "3x", "1.5", "'open", "__import__('os')", "a ; b",
     "position.x", "slots", "(" * 99 + "1" + ")" * 99, "job(1).state = RUN and"],
)  # fmt: skip
def test_what_is_no_condition_is_refused(text):
    """
    A typing mistake must not become a condition that never holds.
    """
    with pytest.raises(Refused) as caught:
        Condition(text)
    assert caught.value.rule


def test_only_fields_can_be_reached(log):
    """
    The language looks at data; methods, modules and private parts of objects aren't there for it.
    """
    core = Core()
    for envelope in log.read():
        core.apply(envelope.stamped())

    for text in ("job(1).__class__", "job(1).spec.model_dump", "queue(normal).spec.copy",
                 "host(h1).takes_jobs", "job(1).spec.__init__.__globals__"):  # fmt: skip
        assert Condition(text).value(core, 0) is None
