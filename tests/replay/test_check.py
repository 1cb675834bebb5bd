"""
The invariants of a log: a sound one passes, and each thing that can be wrong is found where it is.
"""

from __future__ import annotations

import pytest

from domain.commands import DefineLimit
from domain.events.jobs import JobDispatched, JobFinished, JobPended, JobStarted
from domain.events.session import SessionHeld
from domain.events.workers import WorkerReported
from domain.limits import LimitAmount, LimitSpec
from projections.scheduling import capacity as capacity_module
from projections.scheduling.limits import Limits
from projections.scheduling.state import State
from replay.at import Ladder
from replay.check import check
from store.log import EventLog
from tests.replay.logs import ListLog
from tests.scenario import Scenario


def rules(log, **options):
    """
    Return rule and position of each finding.
    """
    return [(one.rule, one.position) for one in check(log, **options).findings]


def test_a_sound_live_log_passes_with_the_state_rebuilt_after_each_step(live):
    """
    The judge itself must not be wrong, whatever a live cluster goes through.
    """
    result = check(live, sample_events=1)

    assert [] == result.findings
    assert result.steps == result.rebuilds - 1 > 20
    assert result.dispatches >= 3
    assert result.accounts >= 8


@pytest.mark.needs_traces
@pytest.mark.slow
def test_a_sound_simulated_log_passes(kth_log):
    """
    A real workload on a hundred hosts holds every invariant.
    """
    with EventLog.open(kth_log, writable=False) as log:
        result = check(log, sample_events=200)

    assert result.is_good
    assert result.rebuilds > 5


def _missing(log):
    del log.events[4]
    return "positions have no gaps", 6


def _version(log):
    position = log.where(JobStarted)
    log.change(position, version=9)
    return "versions of a stream have no gaps", position


def _stamp(log):
    position = log.where(JobStarted)
    log.change(position, time_us=1)
    return "stamps never fall", position


def _two_stamps(log):
    position = log.where(JobDispatched)
    log.change(position, time_us=log.events[position - 1].time_us + 1)
    return "a step has one stamp", position


def _number(log):
    position = log.where(SessionHeld, 2)
    log.change(position, event=SessionHeld(number=7))
    return "session numbers have no gaps", position


def _cause(log):
    position = log.where(JobPended)
    log.change(position, cause="")
    return "decisions stand in the step of their session", position


def _attempt(log):
    position = log.where(JobStarted)
    log.change(position, event=JobStarted(attempt=2))
    return "attempts are counted by one", position


def _open_end(log):
    position = log.head()
    log.change(position, ends_step=False)
    return "a log ends with the end of a step", position


def _crowded(log):
    position = log.where(JobDispatched, 2)
    event = log.events[position - 1].event
    runs = tuple(run.model_copy(update={"tasks": 9}) for run in event.allocation.runs)
    allocation = event.allocation.model_copy(update={"runs": runs})
    log.change(position, event=event.model_copy(update={"allocation": allocation}))
    return "slots are never given twice", position


def _twice(log):
    first = log.where(JobDispatched)
    second = log.where(JobDispatched, 2)
    event = log.events[second - 1].event.model_copy(update={"attempt": 2})
    log.change(second, event=event, stream=log.events[first - 1].stream, version=3)
    return "a job has one live attempt", second


@pytest.mark.parametrize(
    "tamper",
    [_missing, _version, _stamp, _two_stamps, _number, _cause, _attempt, _open_end, _crowded,
     _twice],
)  # fmt: skip
def test_what_is_wrong_in_a_log_is_found_at_its_position(live, tamper):
    """
    One test for each rule about events: the finding names the rule and the place.
    """
    expected = tamper(live)

    assert expected in rules(live)


def test_accounts_that_drift_are_found_at_the_step_that_made_them_wrong(live, monkeypatch):
    """
    A core that forgets to charge overage must be caught at that very report, not at the end.
    """
    monkeypatch.setattr(
        capacity_module.Capacity, "reconcile",
        lambda self, job, number, actual: job.actual.update({number: actual}),
    )  # fmt: skip

    found = rules(live)

    position = live.where(WorkerReported)
    assert ("kept accounts are as worked out again: mem charged", position) in found


def test_an_index_that_drifts_is_found_when_the_state_is_rebuilt(live, monkeypatch):
    """
    Indexes aren't stored, so a wrong one is found only by rebuilding: at the sampled steps.
    """

    def joined(_state, job, number):
        job.reason_set = number

    monkeypatch.setattr(State, "join_set", joined)

    first = next(one for one in check(live, sample_events=1).findings)

    assert ("kept indexes are as rebuilt", "members") == (first.rule, first.subject)
    assert live.where(JobPended) <= first.position


@pytest.mark.slow
def test_a_window_is_judged_by_the_state_with_which_it_begins(live):
    """
    Use, attempts and what hosts hold go on from there, at every boundary; what is wrong is found.
    """
    ladder = Ladder(live)
    for position in range(1, live.head(), 4):
        begin = ladder.at(position)
        result = check(live, begin=begin, sample_events=1)
        assert [] == result.findings, begin.position
        assert live.head() - begin.position == result.events

    position = live.where(JobDispatched, 3)
    event = live.events[position - 1].event
    live.change(position, event=event.but(attempt=event.attempt + 1))
    found = check(live, begin=ladder.at(position - 3)).findings
    assert ("attempts are counted by one", position) in [(one.rule, one.position) for one in found]


def test_use_of_limits_that_drifts_is_found(monkeypatch):
    """
    What is counted against a limit must be what the live jobs come to.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=4")
    amounts = (LimitAmount(resource="slots", milli=3_000),)
    scenario.command(DefineLimit(limit="l1", spec=LimitSpec(amounts=amounts)))
    scenario.jobs("A tasks=2", "B tasks=2")
    scenario.session()
    scenario.start("A")
    scenario.finish("A")
    scenario.session()
    log = ListLog(scenario.log)
    assert check(log, sample_events=1).is_good

    monkeypatch.setattr(Limits, "give_back", lambda self, job: None)

    positions = [one.position for one in check(log, sample_events=1).findings]
    assert log.where(JobFinished) == positions[0]


def test_a_core_that_can_not_go_on_is_a_finding(live):
    """
    An event that the core can't apply ends the check with its position, not with a traceback.
    """
    position = live.where(JobStarted)
    live.change(position, stream="job:0000000099", version=1)

    assert ("the core can apply every event", position) in rules(live)
