"""
Queues that name a picker of their own.
"""

from __future__ import annotations

from typing import Any

import pytest

from domain.commands import DefineCluster, DefineQueue, SwitchJob
from domain.errors import Refused
from domain.events.session import ListHeldBack
from domain.ids import CLUSTER, queue_stream
from domain.queues import QueueSpec
from domain.reasons import ReasonCode
from projections.scheduling.core import Core
from projections.scheduling.status import why_waiting
from tests.builders import some_settings
from tests.scenario import Scenario


def scenario_of(cluster: str, *, plain: bool = False, **queues: tuple[int, str]) -> Scenario:
    """
    Return a cluster of one host of four slots, with queues: name=(priority, picker).
    """
    scenario = Scenario(some_settings(picker=cluster), plain=plain)
    scenario.hosts("h1 slots=4")
    for name, (priority, picker) in queues.items():
        define(scenario, name, priority=priority, picker=picker)
    return scenario


def define(scenario: Scenario, name: str, **fields: Any) -> None:
    """
    Define a queue.
    """
    scenario.command(DefineQueue(queue=name, spec=QueueSpec(**fields)))


def started(scenario: Scenario) -> list[str]:
    """
    Hold a session; return the names of the jobs that were dispatched, in order.
    """
    return [words.split()[0] for words in scenario.session() if " dispatched" in words]


@pytest.mark.parametrize("plain", [False, True])
def test_a_strict_queue_holds_back_its_own_jobs_alone(plain: bool) -> None:
    """
    A blocked job of a strict queue ends its list; the greedy queue below goes on.
    """
    scenario = scenario_of("builtin_fcfs", plain=plain, first=(50, "strict_fcfs"), last=(20, ""))
    scenario.jobs("A tasks=5 queue=first", "B queue=first", "C queue=last", "D queue=normal")

    assert ["D", "C"] == started(scenario)
    assert {"A": "PEND", "B": "PEND", "C": "RUN", "D": "RUN"} == scenario.states()


def test_a_greedy_queue_goes_on_though_its_cluster_is_strict() -> None:
    """
    The queue's own picker says what a blocked job means in it.
    """
    scenario = scenario_of("strict_fcfs", first=(50, "builtin_fcfs"))
    scenario.jobs("A tasks=5 queue=first", "B queue=first", "C tasks=5", "D")

    assert ["B"] == started(scenario)


def test_a_blocked_job_of_a_strict_cluster_holds_back_lower_lists_too() -> None:
    """
    As the cluster's picker, a strict one ends everything; even alone in its list.
    """
    scenario = scenario_of("strict_fcfs", last=(20, "builtin_fcfs"))
    scenario.jobs("A tasks=5", "B queue=last")

    assert [] == started(scenario)
    assert "A holds back its list" in scenario.decisions
    scenario.kill("A")

    assert ["B"] == started(scenario)


def test_queues_of_one_priority_under_one_picker_are_one_list() -> None:
    """
    Their jobs are taken in order of submission, and the blocked one of either holds back both.
    """
    own = (50, "strict_fcfs")
    scenario = scenario_of("builtin_fcfs", one=own, two=own)
    scenario.jobs("A queue=two", "B queue=one", "C tasks=5 queue=two", "D queue=one", "E")

    assert ["A", "B", "E"] == started(scenario)
    held = [each for each in scenario.log if isinstance(each.event, ListHeldBack)]
    assert [queue_stream("one"), queue_stream("two")] == [each.stream for each in held]


def test_lists_of_one_priority_come_in_order_of_definition() -> None:
    """
    The order of lists is total.
    """
    scenario = scenario_of("builtin_fcfs", one=(50, "strict_fcfs"), two=(50, ""))
    scenario.jobs("A tasks=3 queue=two", "B tasks=3 queue=one")

    assert ["B"] == started(scenario)


def test_a_waiting_job_is_told_who_holds_back_its_own_list() -> None:
    """
    A job behind in a queue's own list isn't behind the blocker of another.
    """
    scenario = scenario_of("strict_fcfs", first=(50, "strict_fcfs"), own=(40, "strict_fcfs"))
    own = (40, "builtin_fcfs")
    define(scenario, "own", priority=own[0], picker=own[1])
    scenario.jobs("A tasks=5 queue=own", "B tasks=5", "C", "D queue=own")
    scenario.session()

    _, reasons = why_waiting(scenario.state, scenario.job("C"))
    assert (ReasonCode.JOB_BEHIND, f"job {scenario.ids['B']}") == (
        reasons[0].code, reasons[0].detail,
    )  # fmt: skip
    assert "RUN" == scenario.states()["D"]


def test_the_blocker_of_a_list_is_recorded_when_it_changes_and_forgotten_with_it() -> None:
    """
    One event a change, none a session; and it survives a snapshot.
    """
    scenario = scenario_of("builtin_fcfs", own=(40, "strict_fcfs"))
    scenario.jobs("A tasks=5 queue=own", "B queue=own")
    for _ in range(3):
        scenario.session()

    held = [each for each in scenario.log if isinstance(each.event, ListHeldBack)]
    stream = queue_stream("own")
    assert [stream] == [each.stream for each in held]
    kept = Core.restore(scenario.core.snapshot()).state.stored.blockers
    assert {stream: scenario.job("A").stream} == kept
    scenario.kill("A")
    scenario.session()

    assert {} == scenario.state.stored.blockers
    assert "RUN" == scenario.states()["B"]


def test_a_switched_job_goes_to_the_list_of_its_new_queue() -> None:
    """
    It no longer holds back those that it left.
    """
    scenario = scenario_of("builtin_fcfs", own=(40, "strict_fcfs"))
    scenario.jobs("A tasks=5 queue=own", "B queue=own")
    scenario.session()
    scenario.command(SwitchJob(job_id=scenario.ids["A"], queue="normal"))

    assert ["B"] == started(scenario)


@pytest.mark.parametrize("restored", [False, True])
def test_a_queue_gets_and_loses_its_own_picker_while_jobs_wait(restored: bool) -> None:
    """
    Whatever is configured holds from the next session, also in a restored core.
    """
    scenario = scenario_of("builtin_fcfs")
    scenario.jobs("A tasks=5", "B tasks=2")
    define(scenario, "normal", priority=30, picker="strict_fcfs")
    if restored:
        scenario.core = Core.restore(scenario.core.snapshot())

    assert [] == started(scenario)
    define(scenario, "normal", priority=30)

    assert ["B"] == started(scenario)
    assert {} == scenario.state.stored.blockers


def test_an_unknown_picker_is_refused_when_it_is_configured() -> None:
    """
    Neither a queue nor the cluster can name one; nothing is taken over.
    """
    scenario = scenario_of("builtin_fcfs")
    with pytest.raises(Refused, match="picker: must be one of builtin_fcfs, "):
        define(scenario, "own", priority=40, picker="nope")
    with pytest.raises(Refused, match="picker: must be one of"):
        scenario.command(DefineCluster(settings=some_settings(picker="nope")))

    assert ["normal"] == list(scenario.state.stored.queues)


def test_a_queue_that_names_the_clusters_picker_stays_in_its_list() -> None:
    """
    One picker of one name picks from all: nothing is told apart.
    """
    scenario = scenario_of("strict_fcfs", last=(20, "strict_fcfs"))
    scenario.jobs("A tasks=5", "B queue=last")

    assert [] == started(scenario)
    held = [each.stream for each in scenario.log if isinstance(each.event, ListHeldBack)]
    assert [CLUSTER] == held
