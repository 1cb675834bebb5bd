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
from replay.condition_check import FIELDS, JOB_EXTRAS, RESOURCE_FIELDS
from replay.conditions import JOB_VALUES, Condition
from replay.entities import accounts_of
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
        with pytest.raises(Refused):
            Condition(text)
    for text in ("job(1).state.__class__", "job(1).spec.tasks_min.__class__",
                 "host(h1).settings.model_dump", "queue(normal).priority.real"):  # fmt: skip
        assert Condition(text).value(core, 0) is None


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("banana", "banana"), ("job(2).stat != RUN", "stat"), ("job(2).stat = RUN", "stat"),
        ("job(2).state = RUNNING", "RUNNING"), ("run = job(2).state", "run"),
        ("jobs.PEND > 1 and fo", "fo"), ("not fo", "fo"), ("stat = RUN", "stat"),
        ("jbs > 3", "jbs"), ("any(jobs, stat = PEND)", "stat"), ("all(hosts, closd)", "closd"),
        ("count(jobs, state = PENDING) > 2", "PENDING"), ("job(1).spec.usr = ann", "spec.usr"),
        ("host(h1).slots_fre > 1", "slots_fre"), ("host(h1).mem.available > 1", "mem.available"),
        ("queue(normal).prio = 1", "prio"), ("any(queues, spec.nothing = 1)", "spec.nothing"),
        ("count(jobs, wait.x = 1 or a.b = 2) > 1", "a.b"), ("job(1).state = 3", "3"),
    ],
)  # fmt: skip
def test_words_fields_and_states_that_mean_nothing_are_refused_by_name(text, named):
    """
    Such a condition would hold nowhere, or everywhere, and look like an answer.
    """
    with pytest.raises(Refused) as caught:
        Condition(text, is_truth=True)
    assert f"(given: {named!r})" in caught.value.text()


def test_what_is_near_to_a_mistake_is_named():
    """
    A job has some seventy fields; they are no help in a line.
    """
    with pytest.raises(Refused) as caught:
        Condition("job(2).stat = RUN")
    assert "Is it state" in caught.value.hint
    assert len(caught.value.rule) < 80


@pytest.mark.parametrize(
    "text",
    ["jobs.PEND", "any(jobs, is_forced)", "true", "any(jobs, spec.user = alice)",
     "any(queues, priority > 3 and pend > 2)", "any(hosts, mem.available_milli < 5)",
     "job(1).state = none", "job(1).state != job(2).state", "alpha in job(12).hosts",
     "any(jobs, not (state = RUN or state = 'PEND'))", "host(h1).mem.total_milli > 1",
     "cluster.default_queue = normal", "any(jobs, session = 2 and queue = night)"],
)  # fmt: skip
def test_what_means_something_is_taken(text):
    """
    The check must not refuse what can hold.
    """
    assert text == Condition(text, is_truth=True).text


def test_the_names_that_are_checked_are_those_that_can_be_asked_for(log):
    """
    A field that is told but not known to the check could not be asked for.
    """
    core = Core()
    for envelope in log.read():
        core.apply(envelope.stamped())
    accounts = accounts_of(core, core.state.worker("h1"))

    assert set(JOB_EXTRAS) == set(JOB_VALUES)
    assert set(accounts) <= {*FIELDS["host"], *core.state.capacity.resources}
    assert set(RESOURCE_FIELDS) == set(accounts["mem"])
