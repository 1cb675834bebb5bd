"""
Which kinds of jobs are victims of preemption, and which are protected by their run limit.
"""

from __future__ import annotations

import pytest

from domain.commands import StopJob
from domain.commands.jobs import ResumeJob
from domain.preemption import JobType, OnPreempt, Preemption, Trigger
from domain.windows import parse_windows
from projections.scheduling.status import why_suspended
from tests.builders import SECOND_US, some_settings
from tests.projections.scheduling.policies import queue
from tests.projections.scheduling.preempting import again, licence, queues, running, stops
from tests.scenario import Scenario


def begun(plain: bool, *hosts: str, **preemption: object) -> Scenario:
    """
    Return a cluster in which jobs of the queue ``hi`` preempt those of ``lo``.
    """
    scenario = Scenario(some_settings(preemption=Preemption(**preemption)), plain=plain)
    queues(scenario, "hi 90 >lo", "mid 50")
    queues(scenario, "lo 10 <all", allows_exclusive=True)
    scenario.hosts(*hosts)
    return scenario


def exclusive(scenario: Scenario, name: str, **fields: object) -> None:
    """
    Let an exclusive job of the low queue run.
    """
    scenario.submit(name, queue="lo", is_exclusive=True, **fields)
    scenario.session()
    assert "RUN" == scenario.states()[name]
    scenario.start(name)
    scenario.pass_time(1)


@pytest.mark.parametrize("plain", [False, True], ids=["fast", "plain"])
def test_an_exclusive_job_is_a_victim_only_where_the_cluster_says_so(*, plain: bool) -> None:
    """
    LSF's PREEMPT_JOBTYPE=EXCLUSIVE.
    """
    found = []
    for kinds in ((), (JobType.BACKFILL,), (JobType.EXCLUSIVE,)):
        scenario = begun(plain, "h1 slots=4", job_types=kinds)
        exclusive(scenario, "X")
        scenario.jobs("A queue=hi")
        found.append(stops(scenario))

    assert [[], [], ["X"]] == found


def test_an_exclusive_job_is_a_victim_where_only_a_lack_of_slots_makes_some() -> None:
    """
    Its host takes no jobs, which is no reason about slots, but stopping it frees them.
    """
    found = []
    for kinds in ((), (JobType.EXCLUSIVE,)):
        scenario = begun(False, "h1 slots=4", job_types=kinds, trigger=Trigger.SLOTS)
        exclusive(scenario, "X")
        scenario.jobs("A queue=hi")
        found.append(stops(scenario))

    assert [[], ["X"]] == found


@pytest.mark.parametrize("plain", [False, True], ids=["fast", "plain"])
def test_the_host_of_a_suspended_exclusive_job_is_open_to_its_preemptors_alone(
    *, plain: bool
) -> None:
    """
    It goes on when none of them is there any more, and has its host alone again.
    """
    scenario = begun(plain, "h1 slots=4", job_types=(JobType.EXCLUSIVE,))
    exclusive(scenario, "X")
    scenario.jobs("A queue=hi tasks=2")
    assert ["X"] == stops(scenario)
    scenario.suspended("X")
    scenario.jobs("M queue=mid", "L queue=lo", "B queue=hi")
    scenario.core = again(scenario)
    scenario.session()
    assert {"X": "SSUSP", "A": "RUN", "M": "PEND", "L": "PEND", "B": "RUN"} == scenario.states()
    assert "HOST_EXCLUSIVE on h1" == scenario.reasons("M")
    scenario.start("A", "B")
    scenario.finish("A")
    assert [] == [words for words in scenario.session() if "resume" in words]
    scenario.finish("B")

    assert ["X resume ordered on h1"] == scenario.session()
    scenario.resumed("X")
    scenario.session()
    assert {"RUN": 1, "PEND": 2, "DONE": 2} == _counts(scenario)
    scenario.finish("X")
    scenario.session()
    assert {"RUN": 2, "DONE": 3} == _counts(scenario)


def _counts(scenario: Scenario) -> dict[str, int]:
    states = list(scenario.states().values())
    return {state: states.count(state) for state in sorted(set(states), reverse=True)}


@pytest.mark.parametrize("plain", [False, True], ids=["fast", "plain"])
@pytest.mark.parametrize(
    ("protection", "after_s", "is_victim"),
    [
        ({}, 85, True),
        ({"no_run_percent": 80}, 79, True),
        ({"no_run_percent": 80}, 80, False),
        ({"no_finish_percent": 20}, 79, True),
        ({"no_finish_percent": 20}, 80, False),
    ],
)
def test_a_share_of_the_run_limit_protects(
    protection: dict[str, int], after_s: int, is_victim: bool, *, plain: bool
) -> None:
    """
    NO_PREEMPT_RUN_TIME and NO_PREEMPT_FINISH_TIME in percent; without a run limit nothing does.
    """
    scenario = begun(plain, "h1 slots=1", **protection)
    scenario.submit("V", queue="lo", run_limit_us=100 * SECOND_US)
    scenario.session()
    scenario.start("V")
    scenario.pass_time(after_s)
    scenario.jobs("A queue=hi")

    assert (["V"] if is_victim else []) == stops(scenario)


def test_a_backfill_job_is_a_victim_only_where_the_cluster_says_so() -> None:
    """
    It started ahead of a job that it doesn't delay; stopped, it would outlast the promise.
    """
    found = []
    for kinds in ((), (JobType.BACKFILL,)):
        scenario = begun(False, "h1 slots=2", job_types=kinds)
        queue(scenario, "wide", priority=40, slot_reserve_us=10_000 * SECOND_US)
        queues(scenario, "lo 10 <all", is_backfill=True)
        scenario.submit("R", queue="wide", run_limit_us=500 * SECOND_US)
        scenario.session()
        scenario.start("R")
        scenario.submit("W", queue="wide", tasks_min=2, tasks_max=2)
        scenario.session()
        scenario.submit("V", queue="lo", run_limit_us=100 * SECOND_US)
        scenario.session()
        scenario.start("V")
        assert scenario.job("W").job_id == scenario.job("V").ahead_of
        scenario.jobs("A queue=hi")
        found.append(stops(scenario))

    assert [[], ["V"]] == found


@pytest.mark.parametrize(("kinds", "victims"), [((), []), ((JobType.BACKFILL,), ["V"])])
def test_a_job_fitted_around_a_pickers_promise_is_a_backfill_job_too(
    kinds: tuple[JobType, ...], victims: list[str]
) -> None:
    """
    Nothing was gathered, so it has borrowed nothing; it is ahead of another one all the same.
    """
    preemption = Preemption(job_types=kinds)
    scenario = Scenario(some_settings(picker="easy", preemption=preemption))
    queues(scenario, "hi 90 >lo", "mid 50", "lo 10 <all")
    scenario.hosts("h1 slots=2")
    scenario.submit("R", queue="mid", run_limit_us=500 * SECOND_US)
    scenario.session()
    scenario.start("R")
    scenario.submit("W", queue="mid", tasks_min=2, tasks_max=2)
    scenario.session()
    scenario.submit("V", queue="lo", run_limit_us=100 * SECOND_US)
    scenario.session()
    scenario.start("V")
    assert scenario.job("W").job_id == scenario.job("V").ahead_of
    scenario.submit("A", queue="hi", run_limit_us=10 * SECOND_US)

    assert victims == stops(scenario)


def test_a_job_that_waits_for_what_it_gave_back_says_so(scenario: Scenario) -> None:
    """
    LSF's SUSP_RES_RESERVE: stopped, it released a licence that another job has now.
    """
    scenario.hosts("h1")
    licence(scenario, total=1, release=True)
    scenario.submit("A", resreq=("rusage[lic=1]",))
    scenario.session()
    scenario.start("A")
    scenario.command(StopJob(job_id=scenario.ids["A"]))
    scenario.session()
    scenario.suspended("A")
    scenario.submit("B", resreq=("rusage[lic=1]",))
    scenario.session()
    assert "RUN" == scenario.states()["B"]
    assert "SUSP_USER_STOP" == why_suspended(scenario.state, scenario.job("A"))
    scenario.command(ResumeJob(job_id=scenario.ids["A"]))
    scenario.session()
    assert "SUSP_RES_RESERVE" == why_suspended(scenario.state, scenario.job("A"))
    scenario.finish("B")

    assert ["A resume ordered on h1"] == scenario.session()


@pytest.mark.parametrize(
    ("cpu_s", "tasks", "starts"),
    [(7_198, 2, True), (7_200, 2, False), (3_599, 1, True), (3_600, 1, False)],
)
def test_without_a_run_limit_the_cpu_limit_of_each_task_must_fit_before_the_window_closes(
    cpu_s: int, tasks: int, starts: bool, scenario: Scenario
) -> None:
    """
    LSF's deadline rule; ending exactly when the window closes, 3,599 s from now, is allowed.
    """
    scenario.hosts("h1")
    queue(scenario, run_windows=parse_windows("0:00-1:00"))
    limits = {"cpu_us": cpu_s * SECOND_US}
    scenario.submit("A", tasks_min=tasks, tasks_max=tasks, limits=limits)
    scenario.session()

    assert ("RUN" if starts else "PEND") == scenario.states()["A"]


@pytest.mark.parametrize(
    ("how", "state"), [(OnPreempt.KILL, "EXIT"), (OnPreempt.REQUEUE, "PEND")]
)
def test_a_queue_may_have_its_jobs_ended_or_put_back_when_its_window_closes(
    how: OnPreempt, state: str, scenario: Scenario
) -> None:
    """
    LSF's TERMINATE_WHEN=WINDOW.
    """
    queue(scenario, run_windows=parse_windows("0:00-1:00"), on_window=how)
    scenario.hosts("h1")
    running(scenario, "A")
    scenario.pass_time(3_600)
    assert ["A kill ordered on h1: TERM_WINDOW"] == scenario.session()
    scenario.finish("A", exit_code=143)
    scenario.session()

    assert state == scenario.states()["A"]
    if state == "EXIT":
        assert "TERM_WINDOW" == scenario.job("A").why
