"""
Requests proved impossible: the others that ask for the same aren't searched for again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings

from domain.commands import DefineQueue, StopJob
from domain.events.jobs import (
    JobDispatched,
    JobKillOrdered,
    JobPended,
    JobPreemptionEnded,
    JobPreemptionPlanned,
    JobResumeOrdered,
    JobSuspendOrdered,
)
from domain.events.session import ReasonSetChanged
from domain.name_lists import parse_names
from domain.queues import QueueSpec
from projections.scheduling.core import Core
from projections.scheduling.records import ReasonSet
from tests.examples import examples
from tests.literal import literal_plugins
from tests.projections.scheduling import test_core_props as core_props
from tests.projections.scheduling.test_preemption_props import CASES, STEPS, act, scenario_of
from tests.scenario import Scenario

ACTS = (
    JobDispatched,
    JobKillOrdered,
    JobPended,
    JobPreemptionEnded,
    JobPreemptionPlanned,
    JobResumeOrdered,
    JobSuspendOrdered,
)


def acts_of(scenario: Scenario) -> list[Any]:
    """
    Return the dispatches, suspensions and pended jobs in a log, by session.
    """
    return [
        (each.cause, each.stream, each.event)
        for each in scenario.log
        if isinstance(each.event, ACTS)
    ]


def set_of(scenario: Scenario, name: str) -> ReasonSet:
    """
    Return the reason set that a job is in.
    """
    return scenario.state.stored.reason_sets[scenario.job(name).reason_set]


@settings(max_examples=examples(150))
@given(CASES, STEPS)
def test_safety_with_and_without_the_cache_the_same_is_decided(
    values: dict[str, Any], steps: list[tuple[Any, ...]]
) -> None:
    """
    A picker that returns every job each time asks the cache most: the same dispatches, suspensions
    and pended jobs as when each is searched for.
    """
    chosen = {**values, "most": 10_000}
    cached = scenario_of(chosen, plain=False, plugins=literal_plugins())
    searched = scenario_of(chosen, plain=True)
    for step in [*steps, ("session",), ("session",)]:
        act(cached, step)
        act(searched, step)
        assert acts_of(searched) == acts_of(cached)


@settings(max_examples=examples(100))
@given(core_props.HOSTS, core_props.CHAINS, core_props.PICKERS, core_props.STEPS)
def test_safety_the_cache_changes_nothing_for_any_kind_of_job(
    hosts: list[Any], chain: tuple[str, ...], picker: str, steps: list[Any]
) -> None:
    """
    The same with arrays, dependencies, windows, lost hosts, limits of use and changing queues.
    """
    cached = core_props.scenarios_of(hosts, chain, picker, 10_000, plain=False)
    cached.core = Core.restore(cached.core.snapshot(), literal_plugins())
    searched = core_props.scenarios_of(hosts, chain, picker, 10_000, plain=True)
    for step in [*steps, ("session",), ("session",)]:
        core_props.play(cached, step)
        core_props.play(searched, step)
        assert acts_of(searched) == acts_of(cached)


def proofs(scenario: Scenario) -> Iterator[str]:
    """
    Yield by whom each reason set in a log was proved.
    """
    for each in scenario.log:
        if isinstance(each.event, ReasonSetChanged):
            yield each.event.proved_by


def test_a_hit_pends_with_all_reasons_and_names_the_job_that_proved_them() -> None:
    """
    One search, one set: the others have every reason of every host, and know whom they owe it to.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=4 mem_mb=100", "h2 slots=1 mem_mb=900", "h3 slots=1 mem_mb=100")
    scenario.jobs(*(f"J{number} tasks=3 mem_mb=500" for number in range(4)))
    scenario.session()

    assert [scenario.ids["J0"]] == list(proofs(scenario))
    whole = "never: slots short on h2, h3; mem short on h1, h3"
    for number in range(4):
        assert whole == scenario.reasons(f"J{number}")
        assert scenario.ids["J0"] == set_of(scenario, f"J{number}").proved_by


def test_who_proved_it_changes_with_the_reasons() -> None:
    """
    The first in order finds the new reasons, whoever found the old.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=2")
    scenario.jobs("A tasks=3", "B tasks=3")
    scenario.session()
    scenario.kill("A")
    scenario.hosts("h2 slots=0")
    scenario.session()

    assert [scenario.ids["A"], scenario.ids["B"]] == list(proofs(scenario))
    restored = Core.restore(scenario.core.snapshot()).state.stored.reason_sets
    assert [scenario.ids["B"]] == [kept.proved_by for kept in restored.values()]


def test_reasons_that_need_no_search_were_proved_by_nobody() -> None:
    """
    A job that depends on another isn't tried, so its reason is nobody's finding.
    """
    scenario = Scenario()
    scenario.jobs("A hold=1")
    scenario.submit("B", dependency_text=f"done({scenario.ids['A']})")
    scenario.session()

    assert [""] == list(proofs(scenario))


@pytest.mark.parametrize("kind", ["fast", "cached", "plain"])
@pytest.mark.parametrize("is_known", [False, True])
def test_what_is_freed_within_a_session_empties_the_cache(kind: str, *, is_known: bool) -> None:
    """
    A preemptor that gives up what is held for it lets another start that was just proved
    impossible, in the same session: as when each is searched for.
    """
    plugins = literal_plugins() if kind == "cached" else None
    scenario = Scenario(plain=kind == "plain", plugins=plugins)
    every = parse_names("all")
    for name, spec in {
        "top": QueueSpec(priority=90),
        "hi": QueueSpec(priority=90, preemptible_queues=every),
        "lo": QueueSpec(priority=10, preemptible_by=every),
    }.items():
        scenario.command(DefineQueue(queue=name, spec=spec))
    scenario.hosts("h1 slots=1", "h2 slots=1")
    scenario.jobs("Victim queue=lo")
    scenario.session()
    scenario.jobs("Preemptor tasks=2 queue=hi priority=5")
    scenario.session()
    second = ["Second queue=top"]
    scenario.jobs("First queue=top priority=9", *(second if is_known else []))
    scenario.session()
    assert "PEND" == scenario.states()["First"]
    scenario.close("h1")
    scenario.jobs(*([] if is_known else second))
    scenario.session()

    assert "Preemptor gives up preempting" in scenario.decisions
    assert {"First": "PEND", "Second": "RUN"} == {
        name: scenario.states()[name] for name in ("First", "Second")
    }


def test_a_stopped_job_that_waited_takes_no_part() -> None:
    """
    Asking to stop a waiting job holds it: it is no longer in the set, the others still are.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=1")
    scenario.jobs("A tasks=2", "B tasks=2")
    scenario.session()
    scenario.command(StopJob(job_id=scenario.ids["A"]))
    scenario.session()

    assert 0 == scenario.job("A").reason_set
    assert scenario.ids["A"] == set_of(scenario, "B").proved_by


@pytest.mark.parametrize("plain", [False, True])
def test_an_exclusive_start_frees_nothing_so_those_behind_get_a_copy(*, plain: bool) -> None:
    """
    The reasons of an earlier job of the same request are copied, as after any other start; the next
    session tells what the exclusive job has shut.
    """
    scenario = Scenario(plain=plain)
    scenario.hosts("h1 slots=2")
    scenario.submit("A", tasks_min=6, tasks_max=6, user_priority=2)
    scenario.session()
    scenario.submit("X", is_exclusive=True, user_priority=1)
    scenario.submit("B", tasks_min=6, tasks_max=6)

    assert "B pended: never: slots short on h1" in scenario.session()

    scenario.session()
    assert "never: HOST_EXCLUSIVE on h1" == scenario.reasons("B")
