"""
Which victims of preemption go on, and when: the longest running first, as soon as all that it gave
back is free and held for nobody.
"""

from __future__ import annotations

import pytest

from domain.commands import MarkUnreachable, SetQueue
from domain.preemption import Preemption
from tests.builders import SECOND_US, some_settings
from tests.projections.scheduling.policies import asked_for
from tests.projections.scheduling.preempting import again, queues, running, stops
from tests.scenario import Scenario


def two_victims(*hosts: str, plain: bool) -> Scenario:
    """
    Return a cluster where A and B of the low queue run, B since earlier though it came later.
    """
    scenario = Scenario(some_settings(), plain=plain)
    queues(scenario, "hi 90 >all", "lo 10 <all")
    scenario.hosts(*hosts)
    scenario.submit("A", queue="lo", begin_us=scenario.now_us + 5 * SECOND_US)
    scenario.submit("B", queue="lo")
    scenario.session()
    scenario.start("B")
    scenario.pass_time(5)
    scenario.session()
    scenario.start("A")
    assert {"A": "RUN", "B": "RUN"} == scenario.states()
    return scenario


def resumed_in(decisions: list[str]) -> list[str]:
    return [words.split()[0] for words in decisions if "resume ordered" in words]


@pytest.mark.parametrize("plain", [False, True])
def test_the_victim_that_started_first_goes_on_first(*, plain: bool) -> None:
    """
    Where there is room for one of them; it needn't be the one that was submitted first.
    """
    scenario = two_victims("h1 slots=2", plain=plain)
    scenario.jobs("J tasks=2 queue=hi")
    assert ["A", "B"] == sorted(stops(scenario))
    scenario.suspended("A", "B")
    scenario.session()
    scenario.start("J")
    scenario.jobs("K queue=hi")
    scenario.finish("J")

    assert ["B"] == resumed_in(scenario.session())


@pytest.mark.parametrize("plain", [False, True])
def test_a_victim_whose_host_is_taken_holds_up_none_on_another(*, plain: bool) -> None:
    """
    Only of its own hosts others take nothing before it.
    """
    scenario = two_victims("h1 slots=1", "h2 slots=1", plain=plain)
    scenario.jobs("J queue=hi", "K queue=hi")
    assert ["A", "B"] == sorted(stops(scenario))
    scenario.suspended("A", "B")
    scenario.session()
    scenario.start("J", "K")
    before_a = next(
        name for name in ("J", "K") if scenario.job(name).allocation == scenario.job("A").allocation
    )
    scenario.finish(before_a)

    assert ["A"] == resumed_in(scenario.session())


@pytest.mark.parametrize("plain", [False, True])
def test_no_victim_goes_on_where_hosts_are_held_for_a_preemptor(*, plain: bool) -> None:
    """
    Half of what that one needs is free already, the other half is about to be.
    """
    scenario = two_victims("h1 slots=2", plain=plain)
    scenario.jobs("J queue=hi")
    (first,) = stops(scenario)
    scenario.suspended(first)
    scenario.session()
    scenario.start("J")
    scenario.finish("J")
    scenario.jobs("K tasks=2 queue=hi")
    decisions = scenario.session()

    assert [] == resumed_in(decisions)
    assert any("stop ordered" in words for words in decisions)


@pytest.mark.parametrize(("beside_mb", "resumed"), [(0, ["A"]), (1, [])])
@pytest.mark.parametrize("plain", [False, True])
def test_a_victim_goes_on_when_all_that_it_gave_back_is_free(
    beside_mb: int, resumed: list[str], *, plain: bool
) -> None:
    """
    To the last megabyte.
    """
    settings = some_settings(preemption=Preemption(resources=("mem",)))
    scenario = Scenario(settings, plain=plain)
    queues(scenario, "hi 90 >all", "lo 10 <all")
    scenario.hosts("h1 slots=4 mem_mb=100")
    running(scenario, "A queue=lo mem_mb=100")
    scenario.jobs("J queue=hi mem_mb=60", f"K queue=hi mem_mb={beside_mb}")
    assert ["A"] == stops(scenario)
    scenario.suspended("A")
    scenario.session()
    assert {"A": "SSUSP", "J": "RUN", "K": "RUN"} == scenario.states()
    scenario.finish("J")

    assert resumed == resumed_in(scenario.session())


@pytest.mark.parametrize("plain", [False, True])
def test_what_a_preemptors_victims_gave_back_is_for_nobody_else(*, plain: bool) -> None:
    """
    One of its two victims has stopped already: that one's slot seems free, and an older victim of
    the same host would have it.
    """
    scenario = Scenario(some_settings(), plain=plain)
    queues(scenario, "top 95 >all", "hi 90 >lo <all", "lo 10 <all")
    scenario.hosts("h1 slots=2")
    running(scenario, "Y queue=lo", "W queue=lo")
    scenario.jobs("X queue=hi")
    assert ["W"] == stops(scenario)
    scenario.suspended("W")
    scenario.session()
    scenario.start("X")
    scenario.pass_time(1)
    scenario.jobs("J tasks=2 queue=top")
    assert ["X", "Y"] == sorted(stops(scenario))
    scenario.suspended("X")

    assert [] == scenario.session()
    scenario.suspended("Y")
    assert ["J dispatched: h1*2"] == scenario.session()


@pytest.mark.parametrize("plain", [False, True])
def test_another_host_that_is_lost_takes_nothing_from_a_preemptor(*, plain: bool) -> None:
    """
    What is held elsewhere is as good as before.
    """
    scenario = Scenario(some_settings(), plain=plain)
    queues(scenario, "hi 90 >all", "lo 10 <all")
    scenario.hosts("h1 slots=1", "h2 slots=1")
    running(scenario, "A queue=lo", "B queue=lo")
    scenario.jobs("J queue=hi")
    (victim,) = stops(scenario)
    other, kept = ("h1", "h2") if victim == "B" else ("h2", "h1")
    scenario.command(MarkUnreachable(worker=other, incarnation=1, silent_us=1), actor="")

    assert {scenario.job("J").stream} == set(scenario.state.keepers)
    scenario.command(MarkUnreachable(worker=kept, incarnation=1, silent_us=1), actor="")
    assert {} == scenario.state.keepers


def test_what_a_preemptor_asks_for_is_worked_out_anew_with_its_victims(scenario: Scenario) -> None:
    """
    When the last one is told to go on it asks as others do, and as nobody else once that one has:
    it isn't stopped for it again. A core that remembered more would tell other reasons than one
    that was restored.
    """
    queues(scenario, "hi 90 >all", "lo 10 <all")
    scenario.hosts("h1 slots=1")
    running(scenario, "A queue=lo")
    scenario.jobs("J queue=hi")
    assert ["A"] == stops(scenario)
    scenario.suspended("A")
    scenario.command(SetQueue.model_validate({"queue": "hi", "to": "inactive"}))
    asked = [asked_for(scenario.state)]
    assert "A resume ordered on h1" in scenario.session()
    asked.append(asked_for(scenario.state))
    assert asked[-1] == asked_for(again(scenario).state)
    scenario.resumed("A")
    asked.append(asked_for(scenario.state))

    assert asked[-1] == asked_for(again(scenario).state)
    assert 3 == len({words for each in asked for words in each.values()})
