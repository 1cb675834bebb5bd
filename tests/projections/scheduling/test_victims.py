"""
Who is stopped for another job: what ranks victims, and who is none.
"""

from __future__ import annotations

import pytest

from domain.amounts import Amount
from domain.commands import (
    ConfigureWorker,
    DefineQueue,
    RequeueJob,
    ResumeJob,
    StopJob,
    WorkerReport,
)
from domain.name_lists import parse_names
from domain.preemption import Preemption, PreemptPolicy
from domain.queues import QueueSpec
from domain.thresholds import LoadThreshold
from domain.windows import parse_windows
from domain.workers import HostSettings
from tests.builders import SECOND_US, some_settings
from tests.projections.scheduling.preempting import queues, running, stops
from tests.scenario import Scenario


def begun(scenario: Scenario, *, policy: PreemptPolicy = PreemptPolicy.LOWEST_PRIORITY) -> None:
    """
    Define a queue "hi" that may stop jobs of "lo", "low" and "mid", those of "low" rather.
    """
    preys = parse_names("low+2 lo mid")
    spec = QueueSpec(priority=90, preemptible_queues=preys, preempt_policy=policy)
    scenario.command(DefineQueue(queue="hi", spec=spec))
    queues(scenario, "lo 10 <all", "low 20 <all", "mid 30 <all")


def ran(scenario: Scenario, *texts: str) -> None:
    """
    Let jobs run, each ten seconds longer than the next.
    """
    for text in texts:
        running(scenario, text)
        scenario.pass_time(9)


@pytest.mark.parametrize(
    ("jobs", "victim"),
    [
        (("A queue=lo", "B queue=low"), "B"),
        (("A queue=lo", "B queue=mid"), "A"),
        (("A queue=lo priority=5", "B queue=lo priority=4"), "B"),
        (("A queue=lo", "B queue=lo"), "B"),
    ],
)
def test_victims_are_ranked_by_preference_then_priorities_then_work_lost(
    scenario: Scenario, jobs: tuple[str, ...], victim: str
) -> None:
    """
    The aggressor's preference, the lower queue, the lower job, the one that was started later.
    """
    begun(scenario)
    scenario.hosts("h1 slots=2")
    ran(scenario, *jobs)
    scenario.jobs("X queue=hi")

    assert [victim] == stops(scenario)


@pytest.mark.parametrize(
    ("jobs", "victim"),
    [
        (("A queue=lo priority=1", "B queue=lo priority=9"), "B"),
        (("A queue=low", "B queue=lo"), "A"),
        (("A queue=lo", "B queue=mid"), "A"),
    ],
)
def test_least_run_time_goes_before_the_jobs_own_priority(
    scenario: Scenario, jobs: tuple[str, ...], victim: str
) -> None:
    """
    But not before the preference and the priority of its queue.
    """
    begun(scenario, policy=PreemptPolicy.LEAST_RUN_TIME)
    scenario.hosts("h1 slots=2")
    ran(scenario, *jobs)
    scenario.jobs("X queue=hi")

    assert [victim] == stops(scenario)


@pytest.mark.parametrize(
    ("policy", "victim"),
    [(PreemptPolicy.LEAST_RUN_TIME, "A"), (PreemptPolicy.LOWEST_PRIORITY, "B")],
)
def test_time_that_a_job_was_stopped_is_no_run_time(
    scenario: Scenario, policy: PreemptPolicy, victim: str
) -> None:
    """
    A job that was started first and stood still for long has run the least.
    """
    begun(scenario, policy=policy)
    scenario.hosts("h1 slots=2")
    running(scenario, "A queue=lo", "B queue=lo")
    scenario.command(StopJob(job_id=scenario.ids["A"]))
    scenario.session()
    scenario.suspended("A")
    scenario.pass_time(100)
    scenario.command(ResumeJob(job_id=scenario.ids["A"]))
    scenario.session()
    scenario.resumed("A")
    scenario.pass_time(1)
    scenario.jobs("X queue=hi")

    assert [victim] == stops(scenario)


def test_what_counts_of_a_victims_priority_its_queue_caps(scenario: Scenario) -> None:
    """
    A wish beyond the cap protects nobody: then the later one is stopped.
    """
    begun(scenario)
    spec = QueueSpec(priority=10, preemptible_by=parse_names("all"), user_priority_max=5)
    scenario.command(DefineQueue(queue="lo", spec=spec))
    scenario.hosts("h1 slots=2")
    ran(scenario, "A queue=lo priority=6", "B queue=lo priority=9")
    scenario.jobs("X queue=hi")

    assert ["B"] == stops(scenario)


@pytest.mark.parametrize("wish", ["kill", "stop", "requeue"])
@pytest.mark.parametrize("plain", [False, True])
def test_a_job_that_is_about_to_go_is_no_victim(wish: str, *, plain: bool) -> None:
    """
    It ends or stops for whoever asked; what it gives back is looked at when it has. Its order comes
    first in the session that also looks for victims.
    """
    scenario = Scenario(some_settings(), plain=plain)
    begun(scenario)
    scenario.hosts("h1 slots=2")
    ran(scenario, "A queue=lo", "B queue=lo")
    if wish == "kill":
        scenario.kill("B")
    elif wish == "stop":
        scenario.command(StopJob(job_id=scenario.ids["B"]))
    else:
        scenario.command(RequeueJob(job_id=scenario.ids["B"]))
    scenario.jobs("X queue=hi")

    decisions = scenario.session()

    assert "X preempts A: h1*1" in decisions
    assert not [words for words in decisions if "SUSP_PREEMPT" in words and words[0] == "B"]


# ----------------------------------------------------------------------------- when victims go on


def stopped_victim(scenario: Scenario) -> None:
    """
    Let A stop for X on h1, and X end.
    """
    scenario.hosts("h1 slots=1")
    running(scenario, "A queue=lo")
    scenario.jobs("X queue=hi")
    scenario.session()
    scenario.suspended("A")
    scenario.session()
    scenario.start("X")
    scenario.finish("X")


def test_a_victim_does_not_go_on_outside_its_queues_window(scenario: Scenario) -> None:
    """
    It would be stopped again at once; it goes on when the window opens.
    """
    queues(scenario, "hi 90 >lo", "lo 10 <all")
    stopped_victim(scenario)
    spec = scenario.state.stored.queues["lo"].spec
    shut = spec.model_copy(update={"run_windows": parse_windows("0:30-1:00")})
    scenario.command(DefineQueue(queue="lo", spec=shut))
    assert [] == scenario.session()
    assert {"A": "SSUSP", "X": "DONE"} == scenario.states()

    scenario.now_us = 1_800 * SECOND_US
    assert ["A resume ordered on h1"] == scenario.session()


def test_a_victim_does_not_go_on_where_the_load_is_too_much(scenario: Scenario) -> None:
    """
    As no job starts there.
    """
    queues(scenario, "hi 90 >lo", "lo 10 <all")
    stopped_victim(scenario)
    threshold = LoadThreshold(index="r1m", sched_milli=1_000)
    settings = HostSettings(thresholds=(threshold,))
    scenario.command(ConfigureWorker(worker="h1", settings=settings))
    for load, decisions in ((3_000, []), (500, ["A resume ordered on h1"])):
        seen = (Amount(resource="r1m", milli=load),)
        scenario.command(WorkerReport(worker="h1", incarnation=1, load=seen), actor="")
        assert decisions == scenario.session()


# -------------------------------------------------------------------------------- who is protected


@pytest.mark.parametrize("plain", [False, True])
def test_a_job_that_has_run_for_long_is_protected(*, plain: bool) -> None:
    """
    NO_PREEMPT_RUN_TIME: of jobs with a run limit, whose work would be lost or late.
    """
    preemption = Preemption(no_run_us=60 * SECOND_US)
    scenario = Scenario(some_settings(preemption=preemption), plain=plain)
    begun(scenario)
    scenario.hosts("h1 slots=1")
    scenario.submit("A", queue="lo", run_limit_us=600 * SECOND_US)
    scenario.session()
    scenario.start("A")
    scenario.pass_time(60)
    scenario.jobs("X queue=hi")
    assert [] == stops(scenario)
    scenario.kill("X")
    scenario.session()
    scenario.finish("A")

    scenario.submit("B", queue="lo", run_limit_us=600 * SECOND_US)
    scenario.session()
    scenario.start("B")
    scenario.pass_time(59)
    scenario.jobs("Y queue=hi")
    assert ["B"] == stops(scenario)


@pytest.mark.parametrize("plain", [False, True])
def test_a_job_that_has_just_started_is_protected_until_a_moment_that_is_waited_for(
    *, plain: bool
) -> None:
    """
    NO_PREEMPT_INTERVAL: nothing else happens then, so the core must say when to look again.
    """
    preemption = Preemption(no_interval_us=60 * SECOND_US)
    scenario = Scenario(some_settings(preemption=preemption), plain=plain)
    begun(scenario)
    scenario.hosts("h1 slots=1")
    running(scenario, "A queue=lo")
    scenario.jobs("X queue=hi")
    assert [] == stops(scenario)

    moment = scenario.core.next_wakeup(scenario.now_us)
    assert scenario.job("A").since_us + 60 * SECOND_US == moment
    assert moment is not None
    scenario.now_us = moment

    assert ["A"] == stops(scenario)
