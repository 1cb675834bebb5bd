"""
Give scheduling tests their scenario.
"""

from __future__ import annotations

import pytest

from tests.projections.scheduling.preempting import queues
from tests.scenario import Scenario


@pytest.fixture(params=["fast", "plain"])
def scenario(request: pytest.FixtureRequest) -> Scenario:
    """
    Return a scenario, once on the fast core and once on the literal one.
    """
    return Scenario(plain=request.param == "plain")


@pytest.fixture
def high_and_low(scenario: Scenario) -> Scenario:
    """
    Return a scenario with a queue that preempts another.
    """
    queues(scenario, "hi 90 >all", "mid 50", "lo 10 <all")
    return scenario
