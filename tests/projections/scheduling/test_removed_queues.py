"""
A queue that was removed leaves nothing behind: its name means what it is defined to be next.
"""

from __future__ import annotations

from domain.commands import DefineQueue, RemoveQueue
from domain.queues import QueueSpec
from domain.windows import parse_windows
from projections.scheduling.core import Core
from tests.builders import some_settings
from tests.scenario import Scenario


def test_a_queue_defined_again_without_windows_suspends_nothing(scenario: Scenario) -> None:
    """
    A window that was shut when the queue was removed would keep its jobs stopped for ever.
    """
    shut = parse_windows("8:00-9:00")
    scenario.command(DefineQueue(queue="other", spec=QueueSpec(priority=30, run_windows=shut)))
    scenario.hosts("h1 slots=1")
    scenario.session()
    scenario.command(RemoveQueue(queue="other"))
    scenario.command(DefineQueue(queue="other", spec=QueueSpec(priority=30)))
    scenario.jobs("A queue=other")
    scenario.session()

    assert [] == scenario.session()
    assert {"A": "RUN"} == scenario.states()


def test_a_queue_defined_again_comes_last_also_before_a_restart() -> None:
    """
    Fairshare goes by the order of definition, and a restored core must decide as the one before.
    """
    scenario = Scenario(some_settings(picker="fairshare"))
    for name in ("a", "b"):
        scenario.queue(name)
    scenario.command(RemoveQueue(queue="a"))
    scenario.queue("a")
    scenario.hosts("h1 slots=1")
    scenario.jobs("A queue=a", "B queue=b")
    restored = Core.restore(scenario.core.snapshot())
    expected = [stamped.event for stamped in restored.session(scenario.now_us)]

    assert "B dispatched: h1*1" in scenario.session()
    assert expected == [stamped.event for stamped in scenario.log[-len(expected) :]]
