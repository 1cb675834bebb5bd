"""
Slot reservation: what waits gathers, what it lends comes back in time, and when it gives up.
"""

from __future__ import annotations

import pytest

from domain.commands import DefineQueue, SetQueue
from domain.errors import Refused
from domain.queues import QueueSpec
from projections.scheduling.core import Core
from projections.scheduling.derived import derived
from tests.builders import SECOND_US, some_settings
from tests.projections.scheduling.policies import limit
from tests.scenario import Scenario


@pytest.fixture
def scenario() -> Scenario:
    """
    Return a cluster of one host of four slots, two of them in use until second 101.
    """
    found = Scenario()
    queues = {
        "par": QueueSpec(priority=50, slot_reserve_us=300 * SECOND_US),
        "bf": QueueSpec(priority=40, is_backfill=True),
    }
    for name, spec in queues.items():
        found.command(DefineQueue(queue=name, spec=spec))
    found.hosts("h1 slots=4")
    found.submit("A", tasks_min=2, tasks_max=2, run_limit_us=100 * SECOND_US)
    found.session()
    found.start("A")
    return found


def test_what_is_gathered_is_kept_from_others_and_lent_to_those_that_end_in_time(
    scenario: Scenario,
) -> None:
    """
    B-001, B-002: the wide job is promised second 101; a job of 100 s may run on its slots.
    """
    scenario.jobs("BIG tasks=4 queue=par", "J")
    scenario.submit("SHORT", queue="bf", run_limit_us=100 * SECOND_US)
    scenario.submit("LONG", queue="bf", run_limit_us=101 * SECOND_US)

    assert [
        "BIG gathers h1*2 till 301: 101",
        "BIG pended: slots short on h1",
        "SHORT dispatched: h1*1",
        "LONG pended: slots short on h1",
        "J pended: slots short on h1",
    ] == scenario.session()
    assert scenario.job("BIG").job_id == scenario.job("SHORT").ahead_of
    assert [] == scenario.session(), "what is lent is still promised"

    restored = Core.restore(scenario.core.snapshot())
    assert derived(scenario.state) == derived(restored.state)
    scenario.start("SHORT")
    scenario.pass_time(100)
    scenario.finish("A", "SHORT")
    assert ["BIG dispatched: h1*4"] == scenario.session()


def test_when_time_is_over_everything_is_given_back_for_one_turn(scenario: Scenario) -> None:
    """
    B-003: the next session at a later moment gathers anew.
    """
    scenario.jobs("BIG tasks=4 queue=par", "J tasks=1", "K tasks=2")
    scenario.session()
    assert 301 * SECOND_US >= (scenario.core.next_wakeup(scenario.now_us) or 0)

    scenario.pass_time(300)
    decisions = scenario.session()
    assert "BIG no longer promised" == decisions[1], "behind the run limit of A"
    assert "J dispatched: h1*1" in decisions
    scenario.pass_time(1)
    assert "BIG gathers h1*1 till 602: unknown" == scenario.session()[0]


def test_a_job_that_is_held_gives_everything_back(scenario: Scenario) -> None:
    """
    A promise ends with the waiting.
    """
    scenario.jobs("BIG tasks=4 queue=par", "J tasks=2")
    scenario.session()
    scenario.hold("BIG")

    assert ["J dispatched: h1*2"] == scenario.session()
    assert scenario.job("BIG").promise is None


@pytest.mark.parametrize("why", ["queue", "delay"])
def test_a_job_that_may_not_be_tried_gives_everything_back(scenario: Scenario, why: str) -> None:
    """
    Whether its queue is inactive, or lets its jobs wait for so long before they are tried.
    """
    scenario.jobs("BIG tasks=4 queue=par", "J tasks=2")
    scenario.session()
    if why == "queue":
        scenario.command(SetQueue.model_validate({"queue": "par", "to": "inactive"}))
    else:
        held = {"slot_reserve_us": 300 * SECOND_US, "new_job_delay_us": 1_000 * SECOND_US}
        scenario.command(DefineQueue(queue="par", spec=QueueSpec(priority=50, **held)))

    assert "J dispatched: h1*2" in scenario.session()
    assert scenario.job("BIG").promise is None


def test_a_queue_gathers_slots_or_resources() -> None:
    """
    LSF refuses both at once.
    """
    spec = QueueSpec(priority=1, slot_reserve_us=1, resource_reserve_us=1)
    with pytest.raises(Refused, match="slot_reserve_us"):
        Scenario().command(DefineQueue(queue="x", spec=spec))


@pytest.mark.parametrize("plain", [False, True], ids=["fast", "plain"])
def test_what_a_job_keeps_is_no_limit_to_itself(*, plain: bool) -> None:
    """
    It counts for the limit as soon as it is kept, but slots are what the job waits for.
    """
    scenario = Scenario(plain=plain)
    keeps = QueueSpec(priority=50, slot_reserve_us=300 * SECOND_US)
    scenario.command(DefineQueue(queue="par", spec=keeps))
    scenario.hosts("h1 slots=3", "h2 slots=2")
    scenario.close("h2")
    limit(scenario, "five", users="each all", slots=5)
    scenario.jobs("BIG tasks=5 queue=par")

    assert [
        "BIG gathers h1*3 till 301: unknown",
        "BIG pended: HOST_DISABLED on h2; slots short on h1",
    ] == scenario.session()
    assert [] == scenario.session()
    scenario.open("h2")
    assert ["BIG dispatched: h1*3 h2*2"] == scenario.session()


@pytest.mark.parametrize("picker", ["builtin_fcfs", "fairshare", "shortest_first"])
@pytest.mark.parametrize("plain", [False, True])
def test_what_a_job_gives_back_the_next_like_it_gathers(picker: str, *, plain: bool) -> None:
    """
    That the first one lets its turn pass proves nothing for those that ask for the same: they were
    passed over until something else happened.
    """
    scenario = Scenario(some_settings(picker=picker), plain=plain)
    par = QueueSpec(priority=50, slot_reserve_us=300 * SECOND_US)
    scenario.command(DefineQueue(queue="par", spec=par))
    scenario.hosts("h1 slots=4")
    scenario.jobs("A tasks=2")
    scenario.session()
    scenario.jobs("BIG tasks=4 queue=par", "WIDE tasks=4 queue=par")
    scenario.session()
    assert set(scenario.state.gatherers) == {scenario.job("BIG").stream}
    scenario.pass_time(300)
    scenario.session()

    assert set(scenario.state.gatherers) == {scenario.job("WIDE").stream}
    scenario.core = Core.restore(scenario.core.snapshot(), scenario.core.plugins, plain=plain)
    assert [] == scenario.session()


def test_a_job_whose_turn_has_passed_asks_as_its_like_again(scenario: Scenario) -> None:
    """
    Else it would ask otherwise than in a core that was restored, share no proof with its like, and
    have reasons of its own written down.
    """
    scenario.jobs("BIG tasks=4 queue=par", "J tasks=2")
    scenario.session()
    scenario.pass_time(300)
    assert "J dispatched: h1*2" in scenario.session(), "nothing is left to be gathered"
    scenario.jobs("WIDE tasks=4 queue=par")

    def request(name: str) -> str:
        return scenario.state.request_of(scenario.job(name)).fingerprint

    has_own = request("BIG") != request("WIDE")
    scenario.pass_time(1)
    scenario.session()

    assert has_own
    assert request("WIDE") == request("BIG")
